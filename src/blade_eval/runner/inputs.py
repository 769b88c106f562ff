"""Read the rows of datasets, fill in their prompts, and repeat each task for a run."""

from __future__ import annotations

import hashlib
import json
import string
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
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
            value = row[name]
            parts.append(repr(value) if conversion == "r" else str(value))
    return "".join(parts)


def load_prompt(path: Path) -> Prompt:
    """The templates of a YAML file."""
    import yaml

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
            names = [name for _, name, _, _ in _parse(template) if name is not None]
        except ValueError as error:
            raise _bad_prompt(
                path, f"a brace is out of place ({error}); a brace that is meant is doubled"
            ) from error
        if "" in names:
            raise _bad_prompt(path, "{} names no column; braces that are meant are doubled")
    return Prompt(str(path), config["user"], system, hashlib.sha256(data).hexdigest())


def _bad_prompt(path: Path, why: str) -> Unreadable:
    hint = "a prompt is YAML with `user:` and, if wanted, `system:`, texts with {column} of the rows in them"
    return Unreadable(f"the prompt {path} cannot be used: {why}", hint, "bad-prompt")


_NAMED = 10  # offenders that a message names
_DEFAULT = "_default"


@dataclass(frozen=True)
class Source:
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


@dataclass(frozen=True)
class _Line:
    """A line of a dataset and the task it belongs to."""

    row: Row
    source: Source
    task: int
    occurrence: int  # how many lines of the same text came before


def materialized(
    sources: Sequence[Source], wanted: Wanted, notice: Callable[[str], None] = lambda _: None
) -> Iterator[Row]:
    """The rows of a run in the order of dispatch; what is wrong with rows is said at the end."""
    wrong = _Wrong()
    passes = _most_repeats(sources, wanted) if wanted.interleaved else 1
    for number in range(passes):
        n_again = 0
        for line in _lines(sources, wanted):
            if not wrong.takes(line):
                continue
            repeats = _repeats(line, wanted)
            if _is_set(wanted) and line.occurrence:
                n_again += 1  # the number was set for the task, and the task was there already
                continue
            numbers = (number,) if wanted.interleaved else range(repeats)
            for repeat in numbers:
                if repeat < repeats:
                    yield _row(line, line.occurrence * repeats + repeat, wanted)
        if n_again and not number:
            notice(
                f"{n_again:,} line(s) repeat the text of an earlier one: the same task, whose repeats are set"
            )
    wrong.told()


def _is_set(wanted: Wanted) -> bool:
    return wanted.repeats is not None and not wanted.gym


def _repeats(line: _Line, wanted: Wanted) -> int:
    """How often a line runs; in Gym's sense the file has its own repeats already."""
    if wanted.repeats is None:
        return 1 if wanted.gym else line.source.repeats
    if isinstance(wanted.repeats, int):
        return wanted.repeats
    name = agent_of(line.row)
    return wanted.repeats.get(name or _DEFAULT, wanted.repeats.get(_DEFAULT, 1))


def _most_repeats(sources: Sequence[Source], wanted: Wanted) -> int:
    if wanted.repeats is None:
        return 1 if wanted.gym else max((source.repeats for source in sources), default=1)
    return wanted.repeats if isinstance(wanted.repeats, int) else max(wanted.repeats.values(), default=1)


def agent_of(row: Row) -> str | None:
    """The agent that a row names."""
    ref = row.get("agent_ref")
    name = ref.get("name") if isinstance(ref, Mapping) else None
    return name if isinstance(name, str) else None


# -- lines and tasks ----------------------------------------------------------------------------


def _lines(sources: Sequence[Source], wanted: Wanted) -> Iterator[_Line]:
    """The lines of all datasets that are within the limit and the shard.

    A task has the number of the first line of its text. Of the texts only hashes are held: a million tasks
    take some hundred megabytes whatever their length.
    """
    seen: dict[int, list[int]] = {}  # hash of the text: task, place among the tasks, lines so far
    mixed: set[bool] = set()  # whether the numbers of the tasks are given
    number = -1
    for source in sources:
        for where, text in _texts(source.path):
            row = _parsed(source.path, where, text)
            _routed(row, source, wanted)
            for _ in range(source.repeats if wanted.gym else 1):
                number += 1
                if wanted.gym and wanted.limit is not None and number >= wanted.limit:
                    return
                key = _identity(row, text, source)
                mixed |= {key < 0}
                if len(mixed) > 1:
                    raise _mixed(source.path, where)
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


def _mixed(path: Path, number: int) -> Unreadable:
    return Unreadable(
        f"some rows give their _ng_task_index and others do not ({path}, line {number})",
        "give it in all rows or in none: otherwise two tasks could have the same number",
        "bad-input",
    )


def _texts(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
                if text:
                    yield number, text
    except OSError as error:
        hint = "name a file of JSON lines; `blade eval prepare` makes those of benchmarks"
        raise Unreadable(f"cannot read {path}: {error.strerror}", hint, "unreadable-file") from error


def _parsed(path: Path, number: int, text: bytes) -> Row:
    try:
        row = json_lines.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        try:
            row = json.loads(text)  # takes NaN and half surrogate pairs, which are written as null and �
        except (ValueError, RecursionError) as error:
            hint = "each line must be one JSON object"
            raise Unreadable(f"{path}, line {number} is not JSON: {error}", hint, "bad-input") from error
    if not isinstance(row, dict):
        raise Unreadable(f"{path}, line {number} is no JSON object", "each line must be one", "bad-input")
    return row


def _routed(row: Row, source: Source, wanted: Wanted) -> None:
    """The row says who runs it: whoever the command names, else the row itself, else its dataset's agent."""
    if wanted.agent is not None:
        row["agent_ref"] = {"name": wanted.agent}
    elif agent_of(row) is None and source.agent is not None:
        row["agent_ref"] = {"type": "responses_api_agents", "name": source.agent}


# -- rows ---------------------------------------------------------------------------------------


def _row(line: _Line, repeat: int, wanted: Wanted) -> Row:
    """The row of one repeat; the two indices are its last keys."""
    template = line.row.get("responses_create_params")
    params = {**template} if isinstance(template, dict) else {}
    if line.source.prompt is not None:
        params["input"] = line.source.prompt.messages(line.row)
    params.update(wanted.params)
    if wanted.seeds:
        params["metadata"] = _seeded(params.get("metadata"), repeat)
    row = {
        key: value for key, value in line.row.items() if key not in ("_ng_task_index", "_ng_rollout_index")
    }
    row["responses_create_params"] = params
    if wanted.skills is not None:
        row["skills_ref"] = wanted.skills.ref()
    row["_ng_task_index"] = line.task
    row["_ng_rollout_index"] = repeat
    return row


def _seeded(metadata: Any, repeat: int) -> Row:
    """Metadata whose `extra_body`, a text of JSON, carries the number of the repeat as the seed."""
    fields = dict(metadata) if isinstance(metadata, Mapping) else {}
    try:
        body = json.loads(fields.get("extra_body") or "{}")
    except (TypeError, ValueError):
        body = {}
    return {**fields, "extra_body": json.dumps({**(body if isinstance(body, dict) else {}), "seed": repeat})}


class _Wrong:
    """Rows that cannot be asked, collected so that all are named at once."""

    def __init__(self) -> None:
        self._found: dict[str, list[int]] = {}
        self._more = ""

    def takes(self, line: _Line) -> bool:
        why = self._why(line)
        if why:
            self._found.setdefault(why, []).append(line.task)
        return not why

    def _why(self, line: _Line) -> str:
        params = line.row.get("responses_create_params")
        has_input = isinstance(params, dict) and params.get("input") not in (None, [], "")
        if line.source.prompt is None:
            return "" if has_input else "no responses_create_params.input, and no prompt to make one from"
        if has_input:
            return "a responses_create_params.input of their own beside the prompt"
        try:
            line.source.prompt.messages(line.row)
        except (KeyError, IndexError) as error:
            columns = ", ".join(sorted(map(str, line.row)))
            self._more = f"; the columns of the first are {columns}"
            return f"no column {error.args[0]!r}, which the prompt {line.source.prompt.path} names"
        return ""

    def told(self) -> None:
        if not self._found:
            return
        why, tasks = max(self._found.items(), key=lambda entry: len(entry[1]))
        named = ", ".join(map(str, tasks[:_NAMED])) + (", …" if len(tasks) > _NAMED else "")
        raise UsageError(
            f"{len(tasks):,} row(s) have {why}: tasks {named}{self._more}",
            "--prompt-config names a template for rows without input; leave it out for rows that have one",
            "rows-and-prompt",
        )
