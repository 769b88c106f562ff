"""Collect rollout lines as columns of numbers and texts; an odd row costs that row alone."""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from operator import sub
from traceback import walk_stack
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest, xxh3_128

from blade.formats import field_columns, rollout_ends, row_decoder
from blade.formats.check_records import MAX_CHECKS, MAX_TEXT, WORDS, of_list, of_object
from blade.formats.field_columns import PARENTS, FieldColumn, Nest, Shape, transposed
from blade.formats.lines import MAX_LINE_BYTES, Block, hash_block
from blade.formats.rollout_steps import NESTED_KEYS, flat, kind_of, parsed, steps_of
from blade.model import LAST_KINDS, Part

LONGEST_TEXT = 1000  # of a name of an agent, a model or a task
NO_INDEX = -(1 << 63)  # a task or repeat index that is not there
MAX_REWARD = 1e100  # beyond it a reward is no measurement, and its square no number
_LAST = {name: code for code, name in enumerate(LAST_KINDS)}


# What a reward can be, the codes of `reward_kind`.
REWARD_ABSENT, REWARD_NULL, REWARD_BOOL, REWARD_NUMBER, REWARD_OTHER, REWARD_NOT_FINITE = range(6)


def index_of(value: Any) -> int:
    """An index as a number; text and nonsense have none."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    return NO_INDEX


def text_index(value: Any) -> str | None:
    """An index that is no whole number of ordinary size, as the text of a key."""
    if value is None or index_of(value) != NO_INDEX:
        return None
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:100]}...{xxh3_64_intdigest(text.encode()):016x}"


def reward_of(value: Any) -> tuple[float, int]:
    if value is msgspec.UNSET:
        return math.nan, REWARD_ABSENT
    if value is None:
        return math.nan, REWARD_NULL
    if isinstance(value, bool):
        return float(value), REWARD_BOOL
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return math.nan, REWARD_NOT_FINITE
        return (number, REWARD_NUMBER) if abs(number) <= MAX_REWARD else (math.nan, REWARD_NOT_FINITE)
    return math.nan, REWARD_OTHER


_Counts = tuple[int, int, int, int]


def output_counts(output: Any) -> _Counts:
    """Items, tool calls, turns and the kind of the last item."""
    try:
        shape = tuple([(item.type, item.role) for item in output or ()])
    except AttributeError:  # a list of lists
        shape = tuple([(item.type, item.role) for item in flat(output)])
    return _known_counts(shape) if len(shape) <= 8 else _known_counts.__wrapped__(shape)


@lru_cache(maxsize=10_000)  # short outputs come in few shapes
def _known_counts(shape: tuple[tuple[str | None, str | None], ...]) -> _Counts:
    return counts_of_kinds([kind_of(*pair) for pair in shape])


def counts_of_kinds(kinds: Sequence[str]) -> _Counts:
    """A turn is a run of items that the model made without being answered in between."""
    n_turns, in_turn = 0, False
    for kind in kinds:
        by_model = kind in ("message", "reasoning", "call")
        n_turns += by_model and not in_turn
        in_turn = by_model
    return len(kinds), kinds.count("call"), n_turns, _LAST[kinds[-1]] if kinds else 0


PART_ROWS = 100_000
MAX_SKIPPED = 1000  # reasons kept per part; all are counted
PART_BYTES = 512 << 20
_STOPS_DECODER = sys.version_info < (3, 12)  # from then on the recursion limit does not count C calls

_NEWLINE = ord("\n")
_COLUMNS = {  # type of the array -> names
    "q": "offset length line task_index repeat attempt n_items n_calls n_turns",
    "d": "reward input_tokens output_tokens reasoning_tokens total_tokens cost_usd temperature top_p max_output_tokens",
    "Q": "prompt_hash row_hash",
    "B": "reward_kind masked truncated response_error last_kind answer_source",
}
_TYPES = {"q": "<i8", "d": "<f8", "Q": "<u8", "B": "u1"}
_TEXTS = "task_text agent model skills_hash failure_class stop_reason answer last_tool submitted".split()
MAX_PATHS = 2000  # columns of scalars inside objects; the rest is told by the census alone

MAX_CHECKS_BYTES = 1 << 20  # of a list or object that is looked into
MAX_KNOWN_CHECKS = 10_000
_HINT = re.compile(
    rb'[:\[,]\s*(?:true|false|"(?:' + "|".join(WORDS).encode() + rb')"|[01](?:\.0)?[,}\]\s])', re.IGNORECASE
)
_TURN = (b'"role"', b'"content"')  # a list of messages holds no checks


def checks_in(raw: msgspec.Raw) -> Iterator[tuple[str, str, str]]:
    """Name, status and value of each check in a list of records, or in an object of statuses."""
    view = memoryview(raw)
    if len(view) > MAX_CHECKS_BYTES or not _HINT.search(view):
        return
    if view[0] == ord("[") and any(mark in bytes(view[:4000]) for mark in _TURN):
        return
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return
    checks = of_list(value) if isinstance(value, list) else of_object(value)
    for name, status, member in islice(checks, MAX_CHECKS):
        text = member if isinstance(member, str) else msgspec.json.encode(member).decode()
        yield name, status, text[:MAX_TEXT]


class CheckColumns:
    """The checks of a part: row by row, with texts kept once."""

    def __init__(self) -> None:
        self.rows: array[int] = array("q")
        self.codes: dict[str, array[int]] = {name: array("i") for name in ("path", "name", "status", "value")}
        self.texts: dict[str, dict[str, int]] = {name: {} for name in self.codes}
        self._known: dict[int, list[tuple[str, str, str]]] = {}  # what equal values hold: repeats share much

    def add(self, row: int, path: str, raw: msgspec.Raw) -> None:
        """Keep the checks that a value of a row holds."""
        digest = xxh3_64_intdigest(raw)
        checks = self._known[digest] if digest in self._known else list(checks_in(raw))
        if len(self._known) < MAX_KNOWN_CHECKS:
            self._known[digest] = checks
        for check in checks:
            self.rows.append(row)
            for name, text in zip(self.codes, (path, *check), strict=True):
                self.codes[name].append(self.texts[name].setdefault(text, len(self.texts[name])))

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, list[str]]]:
        """What was collected, under the names of its columns."""
        columns: dict[str, NDArray[Any]] = {"c.row": np.frombuffer(self.rows, "<i8")} if self.rows else {}
        texts: dict[str, list[str]] = {}
        for name, codes in self.codes.items():
            if codes:
                columns[f"c.{name}:code"] = np.frombuffer(codes, "<i4")
                texts[f"c.{name}"] = list(self.texts[name])
        return columns, texts


class Columns:
    """Collects rows until they are handed over as a `Part`."""

    def __init__(self) -> None:
        self.fields: dict[str, bool] = {}  # other top-level keys -> is scalar; grows as keys are seen
        # the known objects, which may hold keys that nobody knows
        self.inner = {name: Shape(base=struct) for name, (struct, _) in row_decoder.INNER.items()}
        self.nests: defaultdict[str, Nest] = defaultdict(Nest)  # the other objects, by path
        self.decoder = row_decoder.RowDecoder(self.fields, self.inner)
        self._reset(0)

    def _reset(self, start: int) -> None:
        self.start = self.end = start
        self.n_rows = self.n_lines = 0
        self.skipped: list[tuple[int, str]] = []
        self.n_skipped = 0
        self.open_ended = False
        self.digest = xxh3_128()
        self.numbers: dict[str, array[Any]] = {
            name: array(kind) for kind, names in _COLUMNS.items() for name in names.split()
        }
        self.columns: defaultdict[str, FieldColumn] = defaultdict(FieldColumn)
        self.nested: set[str] = set()  # columns of scalars inside an object
        self.scalars: defaultdict[str, FieldColumn] = defaultdict(FieldColumn)  # at any depth, by dotted path
        self.checks = CheckColumns()
        self.texts = {name: FieldColumn(LONGEST_TEXT) for name in _TEXTS}

    # -- blocks in ------------------------------------------------------------------------------

    def add(self, block: Block) -> None:
        """Take in a block of whole lines."""
        if self.n_lines == 0:
            self.start = block.offset
        hash_block(self.digest, block)
        if block.broken is not None:
            self._skip(self.n_lines, block.broken)
            self.n_lines += 1
        elif block.too_long:
            self._skip(self.n_lines, f"line of {block.too_long:,} bytes is longer than {MAX_LINE_BYTES:,}")
            self.n_lines += 1
            self.end = block.offset + block.too_long
        else:
            self._add_lines(block)

    def _skip(self, line: int, reason: str) -> None:
        self.n_skipped += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append((line, reason))

    def _add_lines(self, block: Block) -> None:
        data = block.data
        self.open_ended = data[block.size - 1] != _NEWLINE
        self.end = block.offset + block.size
        if self._holds_no_row(block):
            return
        starts, ends = _line_bounds(data, block.size)
        first = 0
        while first < len(starts):
            first = self._add_from(block, starts, ends, first)
        self.n_lines += len(starts)

    def _add_from(self, block: Block, starts: list[int], ends: list[int], first: int) -> int:
        """Take in the lines from `first` on, all at once if they decode; the next line to go on with."""
        rest = starts[first:], ends[first:]
        rows = self._decoded(block, *rest)
        if rows is not None:
            self._add_rows(rows, block.data, block.offset, *rest, self.n_lines + first)
            return len(starts)
        decoder = self.decoder
        for number in range(first, len(starts)):
            start = starts[number]
            self._add_line(block.data[start : ends[number]], block.offset + start, self.n_lines + number)
            if self.decoder is not decoder:  # it learned: the rest may decode at once now
                return number + 1
        return len(starts)

    def _holds_no_row(self, block: Block) -> bool:
        """Take in a block of blank lines, or of junk once enough of it is listed, without looking at each."""
        if block.data.isspace():
            n_bad = 0
        elif len(self.skipped) >= MAX_SKIPPED and (b"{" not in block.data or b"}" not in block.data):
            n_bad = sum(1 for line in block.data[: block.size].split(b"\n") if line.strip())
        else:
            return False
        self.n_skipped += n_bad
        self.n_lines += block.data.count(b"\n", 0, block.size) + self.open_ended
        return True

    def _decoded(self, block: Block, starts: list[int], ends: list[int]) -> list[Any] | None:
        """All rows of the lines of a block at once, or None if any of them needs a closer look."""
        # the decoder does not look into what it skips; line by line, since most lines are ASCII and
        # only the others need the costly check
        data = block.data
        if row_decoder.has_too_many_nodes(data):  # rare: only a block of one long line is large enough
            return None
        if not data.isascii():
            beyond = [line for line in _lines(data, starts, ends) if not line.isascii()]
            if not all(map(row_decoder.is_utf8, beyond)):
                return None
        if not _STOPS_DECODER and any(map(row_decoder.is_too_deep, _lines(data, starts, ends))):
            return None
        usual = sys.getrecursionlimit()
        try:
            # the decoder recurses once per level of nesting: let it stop where we would
            sys.setrecursionlimit(len([*walk_stack(sys._getframe())]) + row_decoder.MAX_DEPTH - 7)
            rows: list[Any] = self.decoder.decode_lines(memoryview(data)[starts[0] : block.size])
        except (msgspec.DecodeError, RecursionError):
            return None
        finally:
            sys.setrecursionlimit(usual)
        return rows if len(rows) == len(starts) else None

    def _add_line(self, line: bytes, offset: int, number: int) -> None:
        body = line.removeprefix(b"\xef\xbb\xbf")  # files that were joined may carry one in the middle
        if not body.strip():
            return  # a blank line holds nothing that could be lost
        reason = row_decoder.refusal(body)
        if reason is None:
            row, reason = self._row_of(body)
        if reason is not None:
            self._skip(number, reason)
            return
        self._add_rows([row], body, offset + len(line) - len(body), [0], [len(body)], number)

    def _row_of(self, line: bytes) -> tuple[Any, str | None]:
        """The row in `line`, or why there is none."""
        try:
            return self.decoder.decode(line), None
        except (msgspec.DecodeError, RecursionError):
            pass
        row, reason = row_decoder.members(line)
        if row is None:
            return None, reason
        if row_decoder.learn(self.fields, row) | row_decoder.learn_inner(self.inner, row):
            self.decoder = row_decoder.RowDecoder(self.fields, self.inner)
            for name in self.columns.keys() - self.fields.keys() - self.nested:
                del self.columns[name]  # it had to make room
        try:
            return self.decoder.decode(line), None
        except (msgspec.DecodeError, RecursionError):
            return self.decoder.decode(row_decoder.coerced(row, self.fields)), None

    # -- rows to columns ------------------------------------------------------------------------

    def _add_rows(
        self, rows: list[Any], data: bytes, offset: int, starts: list[int], ends: list[int], line: int
    ) -> None:
        first = self.n_rows
        self._number("offset", [offset + start for start in starts])
        self._number("length", map(sub, ends, starts))
        self._number("line", range(line, line + len(rows)))
        columns = transposed(rows)
        self._add_identity(columns, data, starts, ends)
        self._add_rewards(columns["reward"], columns["mask"])
        empty = self.decoder.empty
        known = {
            name: transposed(row_decoder.filled(columns[name], empty[name]))
            for name in ("params", "response", "agent", "skills")
            if name in ("params", "response") or any(columns[name])
        }
        params, responses = known["params"], known["response"]
        usage = row_decoder.filled(responses["usage"], empty["usage"])
        known["usage"] = transposed(usage)
        prompts = params["input"]
        self._number("prompt_hash", [0 if text is msgspec.UNSET else xxh3_64_intdigest(text) for text in prompts])
        for name in ("temperature", "top_p", "max_output_tokens"):
            self._extend_optional(name, params[name])
        self._add_outputs(responses["output"], data, starts, ends)
        self._add_responses(responses, known["usage"], usage)
        models = zip(responses["model"], params["model"], strict=True)
        self.texts["model"].extend([model or other for model, other in models], first)
        for key in self.nested & self.fields.keys():  # a top-level key of that name came later
            self.nested.remove(key)
            del self.columns[key]
        for number, key in enumerate(self.fields):
            values = columns[f"f{number}"]
            self.columns[key].extend(values, first)
            if key in PARENTS:
                self._add_nested(key, values)
            if not self.fields[key] and key not in NESTED_KEYS:  # scalars inside objects, and checks inside lists
                self.nests[key].add(key, values, self._put_scalars, self._put_raw)
        for name, members in known.items():  # whose lists hold no checks
            self.inner[name].leaves(row_decoder.INNER[name][1], members, self._put_scalars, None)
        self.n_rows += len(rows)

    def _number(self, name: str, values: Iterable[Any]) -> None:
        self.numbers[name].fromlist(list(values))

    def _put_scalars(self, path: str, values: Sequence[Any]) -> None:
        if path in self.scalars or (field_columns.can_be_column(path) and len(self.scalars) < MAX_PATHS):
            self.scalars[path].extend(values, self.n_rows)

    def _put_raw(self, path: str, position: int, value: msgspec.Raw) -> None:
        self.checks.add(self.n_rows + position, path, value)

    def _add_nested(self, key: str, values: tuple[Any, ...]) -> None:
        for position, value in enumerate(values):
            for name, scalar in field_columns.nested_scalars(key, value):
                if name in self.nested or self._has_room(name):
                    self.columns[name].put(scalar, self.n_rows + position)

    def _has_room(self, name: str) -> bool:
        """May a nested field become a column; of too many the first in rank stay, as with all fields."""
        if name in self.fields or not field_columns.can_be_column(name):
            return False
        if len(self.nested) >= row_decoder.MAX_FIELDS:
            last = max(self.nested, key=field_columns.rank)
            if field_columns.rank(name) > field_columns.rank(last):
                return False
            self.nested.remove(last)
            del self.columns[last]
        self.nested.add(name)
        return True

    def _add_identity(
        self, columns: dict[str, tuple[Any, ...]], data: bytes, starts: list[int], ends: list[int]
    ) -> None:
        tasks, repeats, n = columns["task"], columns["repeat"], len(starts)
        try:
            self.numbers["task_index"].extend(array("q", tasks))
            self.numbers["repeat"].extend(array("q", repeats))
            hashes = [0] * n
        except (TypeError, OverflowError):  # some of them are no whole numbers
            keys = [(index_of(task), index_of(repeat)) for task, repeat in zip(tasks, repeats, strict=True)]
            del self.numbers["task_index"][self.n_rows :]
            self._number("task_index", [task for task, _ in keys])
            self._number("repeat", [repeat for _, repeat in keys])
            # a row without a full key is put in order by its content, whatever rows are read together with it
            view = memoryview(data)
            spans = zip(keys, starts, ends, strict=True)
            hashes = [xxh3_64_intdigest(view[start:end]) if NO_INDEX in key else 0 for key, start, end in spans]
            self.texts["task_text"].extend(list(map(text_index, tasks)), self.n_rows)
        self._number("row_hash", hashes)
        attempts = columns["attempt"]
        self._number("attempt", [max(0, index_of(attempt)) for attempt in attempts] if any(attempts) else [0] * n)
        self._text("agent", [agent and agent.name for agent in columns["agent"]])
        self._text("skills_hash", [skills and skills.hash for skills in columns["skills"]])
        self._text("failure_class", columns["failure_class"])

    def _text(self, name: str, values: Sequence[str | None]) -> None:
        if any(values):
            self.texts[name].extend(values, self.n_rows)

    def _extend_optional(self, name: str, values: Sequence[float | None]) -> None:
        self._number(name, [math.nan if value is None else value for value in values] if None in values else values)

    def _add_rewards(self, values: tuple[Any, ...], masks: tuple[Any, ...]) -> None:
        if set(map(type, values)) == {float} and max(map(abs, values)) <= MAX_REWARD:
            self._number("reward", values)
            self._number("reward_kind", [REWARD_NUMBER] * len(values))
        else:
            rewards, kinds = zip(*map(reward_of, values), strict=True)
            self._number("reward", rewards)
            self._number("reward_kind", kinds)
        self._number("masked", [
            mask.strip().lower() in ("true", "yes", "1") if isinstance(mask, str) else bool(mask) for mask in masks
        ])  # fmt: skip

    def _add_outputs(self, outputs: tuple[Any, ...], data: bytes, starts: list[int], ends: list[int]) -> None:
        """How many items, calls and turns a rollout has, and what stands last."""
        counts = list(map(output_counts, outputs))
        ends_of = [rollout_ends.final_of(output, count[1]) for output, count in zip(outputs, counts, strict=True)]
        if NESTED_KEYS & self.fields.keys():
            for position, count in enumerate(counts):
                if not count[0]:
                    row = parsed(data[starts[position] : ends[position]])[0]
                    steps = steps_of(row or {})[0]
                    counts[position] = counts_of_kinds([step["kind"] for step in steps])
                    ends_of[position] = rollout_ends.final_of_steps(steps)
        answers, sources, tools, submitted = zip(*ends_of, strict=True)
        self._number("answer_source", sources)
        for name, texts in (("answer", answers), ("last_tool", tools), ("submitted", submitted)):
            self._text(name, texts)
        names = ("n_items", "n_calls", "n_turns", "last_kind")
        for name, values in zip(names, zip(*counts, strict=True), strict=True):
            self._number(name, values)

    def _add_responses(
        self, responses: dict[str, tuple[Any, ...]], counts: dict[str, tuple[Any, ...]], usage: tuple[Any, ...]
    ) -> None:
        reasons = [detail and detail.reason for detail in responses["incomplete_details"]]
        self._text("stop_reason", reasons)
        self._number("truncated", [reason == "max_output_tokens" for reason in reasons])
        self._number("response_error", map(bool, responses["error"]))
        for name, numbers in row_decoder.usage_columns(counts, usage):
            self._extend_optional(name, numbers)

    # -- a part out -----------------------------------------------------------------------------

    def part(self) -> Part:
        """What was collected so far; the next part starts empty."""
        columns: dict[str, Any] = {
            name: np.frombuffer(column, _TYPES[column.typecode]) for name, column in self.numbers.items()
        }
        texts: dict[str, list[str]] = {}
        families = (("t", self.texts), ("f", self.columns), ("s", self.scalars))
        for name, field in [(f"{kind}.{n}", f) for kind, known in families for n, f in known.items()]:
            columns |= {f"{name}:{part}": values for part, values in field.arrays(self.n_rows).items()}
            known_texts = {name: field.seen, f"{name}:head": field.heads}
            texts |= {key: list(codes) for key, codes in known_texts.items() if codes}
        check_columns, check_texts = self.checks.arrays()
        columns |= check_columns
        texts |= check_texts
        part = Part(
            columns, texts, tuple(self.skipped), self.n_skipped, self.n_rows, self.n_lines, self.start, self.end,
            self.open_ended, self.digest.hexdigest(),
        )  # fmt: skip
        self._reset(self.end)
        return part


def parts(blocks: Iterator[Block]) -> Iterator[Part]:
    """Parts of bounded size; an unfinished last line gets a part of its own."""
    columns = Columns()
    for block in blocks:
        data, size = block.data, block.size
        cut = data.rfind(b"\n", 0, size) + 1 if size else 0
        pieces = [block]
        if cut < size:
            pieces = [Block(data, cut, block.offset)] if cut else []
            pieces.append(Block(data[cut:size], size - cut, block.offset + cut))
        for piece in pieces:
            if cut < size and piece is pieces[-1] and columns.n_lines:
                yield columns.part()
            columns.add(piece)
            if columns.n_rows >= PART_ROWS or columns.end - columns.start >= PART_BYTES:
                yield columns.part()
    if columns.n_lines:
        yield columns.part()


def _line_bounds(data: bytes, size: int) -> tuple[list[int], list[int]]:
    """Where each line starts and ends; an unfinished last line counts."""
    ends, find = [], data.find
    end = find(b"\n", 0, size)
    while end >= 0:
        ends.append(end)
        end = find(b"\n", end + 1, size)
    if data[size - 1] != _NEWLINE:
        ends.append(size)
    starts = [0, *[end + 1 for end in ends[:-1]]]
    if b"\r" in data:  # it cannot stand inside a row, only at the end of a line
        ends = [end - data.endswith(b"\r", start, end) for start, end in zip(starts, ends, strict=True)]
    return starts, ends


def _lines(data: bytes, starts: list[int], ends: list[int]) -> Iterator[bytes]:
    return map(data.__getitem__, map(slice, starts, ends))
