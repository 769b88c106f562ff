"""Read the rows of datasets, fill in their prompts, and repeat each task for a run."""

from __future__ import annotations

import hashlib
import json
import string
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from xxhash import xxh3_128_intdigest

from blade.errors import Unreadable, UsageError
from blade_eval.config.sources import MOST_BYTES
from blade_eval.environment import Row
from blade_eval.runner import json_lines
from blade_eval.runner.skills import Skills

_parse = string.Formatter().parse


@dataclass(frozen=True)
class Prompt:
    """The templates of a `prompt_config`: texts with `{column}`; a brace that is meant is doubled."""

    path: str
    user: str
    system: str | None = None
    sha256: str = ""

    def messages(self, row: Row) -> list[Row]:
        """The input of a request; a column that is not there is a KeyError."""
        system = [] if self.system is None else [{"role": "system", "content": filled(self.system, row)}]
        return [*system, {"role": "user", "content": filled(self.user, row)}]


def filled(template: str, row: Mapping[str, Any]) -> str:
    """The template with the columns in place; they are put in as they are and never read as templates."""
    parts = []
    for text, name, _, conversion in _parse(template):
        parts.append(text)
        if name is not None:
            parts.append(repr(row[name]) if conversion == "r" else str(row[name]))
    return "".join(parts)


def load_prompt(path: Path) -> Prompt:
    try:
        with path.open("rb") as file:  # a device has no size, and no end
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise _bad_prompt(path, f"it is larger than {MOST_BYTES:,} bytes")
        config = yaml.safe_load(data.decode())
    except OSError as error:
        hint = "name a YAML file with the key user, and system if there is one"
        raise Unreadable(f"cannot read the prompt {path}: {error.strerror}", hint, "bad-prompt") from error
    except (yaml.YAMLError, ValueError) as error:
        raise _bad_prompt(path, f"it is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(config, Mapping) or not isinstance(config.get("user"), str):
        raise _bad_prompt(path, "it has no text under the key user")
    system = config.get("system")
    if system is not None and not isinstance(system, str):
        raise _bad_prompt(path, "system is no text")
    for template in (config["user"], system or ""):
        try:
            names = [name for _, name, _, _ in _parse(template)]
        except ValueError as error:
            why = f"a brace is out of place ({error}); a brace that is meant is doubled"
            raise _bad_prompt(path, why) from error
        if "" in names:
            raise _bad_prompt(path, "{} names no column; braces that are meant are doubled")
    return Prompt(str(path), config["user"], system, hashlib.sha256(data).hexdigest())


def _bad_prompt(path: Path, why: str) -> Unreadable:
    hint = "a prompt is YAML with `user:` and, if wanted, `system:`, texts with {column} of the rows in them"
    return Unreadable(f"the prompt {path} cannot be used: {why}", hint, "bad-prompt")


_NAMED = 10  # offenders that a message names
_DEFAULT = "_default"


class Source(NamedTuple):
    """A dataset: its file, and what its block in the config says of it."""

    path: Path
    agent: str | None = None  # for rows that name none
    repeats: int = 1
    prompt: Prompt | None = None
    name: str | None = None
    complete: bool | None = None  # whether these are all rows of the benchmark, as far as it was recorded


@dataclass(frozen=True)
class Wanted:
    """What the command says about the rows."""

    limit: int | None = None  # tasks; in Gym's sense lines of the file with its repeats
    repeats: int | Mapping[str, int] | None = None  # sets; in Gym's sense multiplies
    agent: str | None = None  # every row goes to it
    params: Mapping[str, Any] = field(default_factory=dict)
    shard: tuple[int, int] | None = None  # which, counted from 1, of how many
    seeds: bool = False
    interleaved: bool = False
    gym: bool = False  # limit and repeats in Gym's sense
    skills: Skills | None = None

    def repeats_of(self, source: Source, agent: str | None) -> int:
        """How often a line runs; in Gym's sense the file has its own repeats already."""
        if self.repeats is None:
            return 1 if self.gym else source.repeats
        if isinstance(self.repeats, int):
            return self.repeats
        return self.repeats.get(agent or _DEFAULT, self.repeats.get(_DEFAULT, 1))


class _Line(NamedTuple):
    """A line of a dataset and the task it belongs to."""

    row: Row
    source: Source
    task: int
    occurrence: int  # how many lines of the same text came before


def materialized(
    sources: Sequence[Source], wanted: Wanted, notice: Callable[[str], None] = lambda _: None
) -> Iterator[Row]:
    """The rows of a run in the order of dispatch; what is wrong with rows is said at the end."""
    wrong: dict[str, list[int]] = {}  # rows that cannot be asked, so that all are named at once
    columns = ""  # of the first that lacks one
    is_set = wanted.repeats is not None and not wanted.gym
    agents = wanted.repeats if isinstance(wanted.repeats, Mapping) else (None,)
    repeats_all = [wanted.repeats_of(source, name) for source in sources for name in agents]
    for number in range(max(repeats_all, default=1)) if wanted.interleaved else (0,):
        n_again = 0
        for line in _lines(sources, wanted):
            if why := _fault(line):
                wrong.setdefault(why, []).append(line.task)
                if why.startswith("no column"):
                    columns = columns or ", ".join(sorted(map(str, line.row)))
                continue
            if is_set and line.occurrence:
                n_again += 1  # the number was set for the task, and the task was there already
                continue
            repeats = wanted.repeats_of(line.source, agent_of(line.row))
            for repeat in range(number, min(number + 1, repeats)) if wanted.interleaved else range(repeats):
                yield _row(line, line.occurrence * repeats + repeat, wanted)
        if n_again and not number:
            notice(f"{n_again:,} line(s) repeat the text of an earlier one: the same task, whose repeats are set")
        if wrong:
            why, tasks = max(wrong.items(), key=lambda entry: len(entry[1]))
            names = ", ".join(map(str, tasks[:_NAMED])) + (", …" if len(tasks) > _NAMED else "")
            more = f"; the columns of the first are {columns}" if columns else ""
            hint = "--prompt-config names a template for rows without input; leave it out for rows that have one"
            raise UsageError(f"{len(tasks):,} row(s) have {why}: tasks {names}{more}", hint, "rows-and-prompt")


def agent_of(row: Row) -> str | None:
    ref = row.get("agent_ref")
    name = ref.get("name") if isinstance(ref, Mapping) else None
    return name if isinstance(name, str) else None


def _lines(sources: Sequence[Source], wanted: Wanted) -> Iterator[_Line]:
    """The lines of all datasets that are within the limit and the shard.

    A task has the number of the first line of its text. Of the texts only hashes are held: a million tasks
    take some hundred megabytes whatever their length.
    """
    seen: dict[int, list[int]] = {}  # hash of the text: task, place among the tasks, lines so far
    mixed: set[bool] = set()  # whether the numbers of the tasks are given
    number = -1
    for source in sources:
        for where, text, row in _rows_of(source.path):
            if wanted.agent is not None:  # whoever the command names, else the row, else its dataset's agent
                row["agent_ref"] = {"name": wanted.agent}
            elif agent_of(row) is None and source.agent is not None:
                row["agent_ref"] = {"type": "responses_api_agents", "name": source.agent}
            for _ in range(source.repeats if wanted.gym else 1):
                number += 1
                if wanted.gym and wanted.limit is not None and number >= wanted.limit:
                    return
                key = _identity(row, text, source)
                mixed |= {key < 0}
                if len(mixed) > 1:
                    what = f"some rows give their _ng_task_index and others do not ({source.path}, line {where})"
                    hint = "give it in all rows or in none: otherwise two tasks could have the same number"
                    raise Unreadable(what, hint, "bad-input")
                task = seen.get(key)
                if task is None:
                    if not wanted.gym and wanted.limit is not None and len(seen) >= wanted.limit:
                        continue
                    task = seen[key] = [-1 - key if key < 0 else number, len(seen), 0]
                task[2] += 1
                if wanted.shard is None or task[1] % wanted.shard[1] == wanted.shard[0] - 1:
                    yield _Line(row, source, task[0], task[2] - 1)


def _identity(row: Row, text: bytes, source: Source) -> int:
    """What tells tasks apart: text and agent of the line or, below 0, the number that the line gives."""
    number = row.get("_ng_task_index")
    if type(number) is int and number >= 0:
        return -1 - number
    return xxh3_128_intdigest(text, seed=zlib.crc32((source.agent or "").encode()))


def _rows_of(path: Path) -> Iterator[tuple[int, bytes, Row]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
                if not text:
                    continue
                row = json_lines.any_row(text)  # with NaN and half surrogate pairs, which are written as null and �
                if row is None:
                    what = f"{path}, line {number} is no JSON object"
                    raise Unreadable(what, "each line must be one", "bad-input")
                yield number, text, row
    except OSError as error:
        hint = "name a file of JSON lines; `blade eval prepare` makes those of benchmarks"
        raise Unreadable(f"cannot read {path}: {error.strerror}", hint, "unreadable-file") from error


def _row(line: _Line, repeat: int, wanted: Wanted) -> Row:
    template = line.row.get("responses_create_params")
    params = {**template} if isinstance(template, dict) else {}
    if line.source.prompt is not None:
        params["input"] = line.source.prompt.messages(line.row)
    params.update(wanted.params)
    if wanted.seeds:  # the `extra_body` of the metadata, a text of JSON, carries the number of the repeat
        fields = dict(params["metadata"]) if isinstance(params.get("metadata"), Mapping) else {}
        try:
            body = json.loads(fields.get("extra_body") or "{}")
        except (TypeError, ValueError):
            body = {}
        seeded = {**(body if isinstance(body, dict) else {}), "seed": repeat}
        params["metadata"] = {**fields, "extra_body": json.dumps(seeded)}
    indices = {"_ng_task_index": line.task, "_ng_rollout_index": repeat}
    row = {key: value for key, value in line.row.items() if key not in indices}
    row["responses_create_params"] = params
    if wanted.skills is not None:
        row["skills_ref"] = wanted.skills.ref()
    return row | indices


def _fault(line: _Line) -> str:
    params, prompt = line.row.get("responses_create_params"), line.source.prompt
    has_input = isinstance(params, dict) and params.get("input") not in (None, [], "")
    if prompt is None:
        return "" if has_input else "no responses_create_params.input, and no prompt to make one from"
    if has_input:
        return "a responses_create_params.input of their own beside the prompt"
    try:
        prompt.messages(line.row)
    except (KeyError, IndexError) as error:
        return f"no column {error.args[0]!r}, which the prompt {prompt.path} names"
    return ""
