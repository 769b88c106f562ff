"""Judge a query by its rows, on the task's database, against those of the gold query.

Both run in a box, on a database that is opened to be read, and their rows are compared there. The comparison
is BIRD's: the sets of rows, order and repetition aside. `compare: multiset` counts repetitions, and
`ordered: true` holds the order where the gold query has one. A gold query that fails, or a database that is
not there, is the task's fault: no reward.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from blade.errors import UsageError
from blade_eval import limited, replies
from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.sandbox import Limits, Outcome, run
from blade_eval.sandbox import needed as box_needed
from blade_eval.sandbox.box import HERE
from blade_eval.task_row import field, needed

LANGUAGES = ("sql", "sqlite", "sqlite3")
BARE = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)
ORDER = re.compile(r"\border\s+by\b", re.IGNORECASE)
ROWS = 200_000


def environment(settings: Mapping[str, Any]) -> Environment:
    """The environment of the settings of a `bird_sql` block."""
    compare = settings.get("compare") or "set"
    if compare not in ("set", "multiset"):
        hint = "set is BIRD's own; multiset counts repeated rows"
        raise UsageError(f"bird_sql cannot compare as {compare!r}", hint, "environment-settings")
    seconds = float(settings.get("sql_execution_timeout_s") or 30)
    folder = Path(str(settings.get("bird_sql_dir") or "resources_servers/bird_sql/.bird_sql"))
    slots = limited.Slots(int(settings.get("max_concurrency") or 32))
    is_ordered = bool(settings.get("ordered", False))

    async def verify(attempt: Attempt) -> Row:
        row, text = attempt.row, replies.answer(attempt.response)
        gold = str(needed(row, "gt_sql"))
        script, path = _database(row, folder)
        query, had_codeblock = extracted(text)
        if query is None:
            return _fields(text, None, False, False, "no_sql_extracted", "no query in the answer")
        await box_needed()
        async with slots.here():
            rules = {"compare": compare, "is_ordered": is_ordered and bool(ORDER.search(gold))}
            outcome = await _run({"queries": [gold, query], **rules}, script, path, seconds)
        difference, error = _result(outcome, seconds)
        if error is not None:
            return _fields(text, query, had_codeblock, False, "execution_error", error)
        return _fields(text, query, had_codeblock, difference is None, "none", difference)

    return Environment("bird_sql", verify, scores=lambda row: {"accuracy": float(row["reward"])})


def extracted(text: str) -> tuple[str | None, bool]:
    """The query in an answer and whether it stood in a block; a bare text counts when it starts like one."""
    block = replies.last_block(text, LANGUAGES)
    query = block if block is not None else text if BARE.match(text) else ""
    query = query.strip().rstrip(";").strip()
    return query or None, block is not None


def _database(row: Row, folder: Path) -> tuple[str | None, Path | None]:
    """A script that builds the database, or its file; a task without one cannot be judged."""
    script = field(row, "db_script")
    if isinstance(script, str):
        return script, None
    name = str(needed(row, "db_id"))
    row_path = field(row, "db_path")
    # A row may come from whoever reaches the server: a path of its own stays within the folder of databases.
    named = [(base / str(row_path)).resolve() for base in (folder, Path())] if row_path else []
    places = [path for path in named if path.is_relative_to(folder.resolve())]
    if re.fullmatch(r"[\w.-]+", name) and name not in (".", ".."):
        places += [folder / name / f"{name}.sqlite", *sorted(folder.glob(f"**/{name}/{name}.sqlite"))]
    for place in places:
        if place.is_file():
            return None, place.resolve()
    looked = ", ".join(str(place) for place in places[:2]) or f"none within {folder}"
    raise Unmeasured("database_missing", f"no database {name!r}: looked for {looked}", terminal=True)


async def _run(query_job: Row, script: str | None, path: Path | None, seconds: float) -> Outcome:
    job = {**query_job, "script": script, "path": str(path), "seconds": seconds, "rows": ROWS}
    readable = [str(path)] if path else []
    limits = Limits(cpu=2 * seconds + 5, wall=2 * seconds + 10)
    program = (HERE / "sql.py").read_text("utf-8")
    return await run(program, msgspec.json.encode(job), limits, readable=readable)


def _result(outcome: Outcome, seconds: float) -> tuple[str | None, str | None]:
    """How the rows of the query differ from those of the gold query, or why there are none."""
    replies = [msgspec.json.decode(line) for line in outcome.stdout.splitlines() if line.endswith(b"}")]
    ended = f"the query was ended: {outcome.stopped or outcome.stderr.decode('utf-8', 'replace')[-300:]}"
    reply = replies[0] if replies else {"error": ended}
    if "database" in reply:
        raise Unmeasured("database_missing", f"the database cannot be read: {reply['database']}", terminal=True)
    if "error" in reply:
        fields = {"failure_reason": "gold_execution_error"}
        reason = f"the gold query does not run: {_told(reply['error'], seconds)}"
        raise Unmeasured("task_invalid", reason, terminal=True, fields=fields)
    other = replies[1] if len(replies) > 1 else {"error": ended}
    error = _told(str(other["error"]), seconds) if "error" in other else None
    return other.get("difference"), error


def _told(error: str, seconds: float) -> str:
    return f"not done after {seconds:g} s" if error == "OperationalError: interrupted" else error


def _fields(
    text: str, query: str | None, had_codeblock: bool, is_match: bool, reason: str, detail: str | None
) -> Row:
    return {
        "reward": float(is_match), "model_output": text, "extracted_sql": query,
        "had_codeblock": had_codeblock, "execution_match": is_match, "failure_reason": reason,
        "failure_detail": detail,
    }
