"""Turn a checked report into units: sentences, rows and quotations, with what they claim and cite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion, Report
from blade.package.coherence import is_sentence
from blade.prose.document import Document, Quotation, Statement, Table, document
from blade.prose.slots import CODE, NUMBER, QUOTED, RATIO, Slot, slots

CAUSES: Mapping[str, tuple[str, ...]] = {
    "KG": ("knowledge gap", "knowledge gaps", "lack of knowledge"),
    "UK": ("unreliable knowledge",),
    "BI": ("behavioural issue", "behavioral issue", "behavioural issues", "behavioral issues"),
    "TI": ("task or verifier issue", "task/verifier issue", "verifier issue", "task issue"),
    "IR": ("infrastructure reliability", "infrastructure issue", "infrastructure failure"),
    "DA": ("data artifact", "data artefact"),
}
_CAUSE = re.compile(
    r"(?<![\w-])(?:(?P<code>KG|UK|BI|TI|IR|DA)(?![\w-])|(?i:(?P<name>"
    + "|".join(re.escape(name) for names in CAUSES.values() for name in names)
    + r"))(?!\w))"
)
_CODE_OF = {name: code for code, names in CAUSES.items() for name in names}
_STEP = re.compile(r"\bsteps?\s+(\d+)\b", re.IGNORECASE)
_ADVICE = re.compile(
    r"recommend|what to do|next steps|action items|interventions?\b|repairs|suggested (?:fix|change)",
    re.IGNORECASE,
)
_NOTES = re.compile(r"reproducib|inventory|how right|read next|glossary", re.IGNORECASE)
_DENIAL = re.compile(
    r"\b(?:it is|it's|it was)\s+(?:false|untrue|wrong|incorrect|not true|not the case|not correct|not so)\b"
    r"|\b(?:is|are|was|were) (?:false|untrue)\b|\bcontrary to (?:fact|what)\b"
    r"|\bthe opposite (?:is true|holds)\b"
    r"|\bnot (?:true|the case) that\b|\bno truth\b|\bin no way\b",
    re.IGNORECASE,
)
SAME = "the rows give the same sentence"
MIN_QUOTE = 20  # characters from which a quotation says where it is from


class Unit(msgspec.Struct, frozen=True):
    """A sentence, table row or quotation: what it cites and claims, and whether the rows bear it out."""

    line: int
    last_line: int
    kind: str  # sentence, heading, row, quote
    text: str
    section: tuple[str, ...]  # the headings above it
    verdict: str | None  # None: nothing in it could be checked
    assertions: tuple[Assertion, ...]
    tasks: frozenset[str]  # tasks it names, or stands under
    own: frozenset[str]  # tasks it names itself
    causes: frozenset[str]
    steps: frozenset[int]
    quotes: tuple[str, ...]
    numbers: tuple[Slot, ...]
    denied: bool = False  # it says that what it says is not so
    advice: bool = False  # an item of the recommendations
    foreign: bool = False  # it is about another model
    near: frozenset[str] = frozenset()  # tasks named in the passage it opens
    jumbled: bool = False  # its words stand in an order that makes no sentence

    @property
    def fabricated(self) -> tuple[str, ...]:
        """Ids and quotations in it that no row has."""
        return tuple(
            one.found
            for one in self.assertions
            if one.verdict == CONTRADICTED and one.kind in ("id", "quote")
        )


class Names(msgspec.Struct, frozen=True):
    """How the tasks of the judged runs are called, and what other models there are."""

    tasks: Mapping[str, str]  # key or name -> key
    listed: re.Pattern[str]  # `tasks 4, 8 and 12`
    named: re.Pattern[str] | None  # names that cannot be taken for a number
    ours: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    causes: Mapping[str, frozenset[str]] = {}  # by task: what the rules find, and what the anchors say
    steps: Mapping[str, frozenset[int]] = {}


def names(report: Report, ours: Sequence[str] = (), others: Sequence[str] = ()) -> Names:
    """The names of a report's tasks."""
    tasks: dict[str, str] = {}
    for one in report.tasks:
        tasks[one.task] = one.task
        tasks.setdefault(one.task_name, one.task)
    tasks.pop("", None)
    return replace(_names(tasks, ours, others), causes=_labels(report), steps=_blamed(report))


def _labels(report: Report) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for one in report.attributions:
        found[one.task] = found.get(one.task, frozenset()) | {one.cause.value}
    return found


def _blamed(report: Report) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for one in report.attributions:
        told = {blame.step for blame in one.steps} | ({one.step} if one.step is not None else set())
        found[one.task] = found.get(one.task, frozenset()) | told
    for parting in report.divergences:
        found[parting.task] = found.get(parting.task, frozenset()) | {parting.step, parting.first_step}
    return found


def names_in(text: str) -> Names:
    """The names of tasks as a report alone shows them: after the word, and before a repeat."""
    told = re.findall(r"\b[Tt]asks?\s+`([^`\s]{1,80})`|(?<=`)([^`\s/]{1,80}(?=/\d{1,4}`))", text)
    told += [(name, "") for name in re.findall(r"\b[Tt]ask\s+([\w.-]*\d[\w-]*)", text)]
    keys = {re.sub(r"/\d+$", "", first or second) for first, second in told}
    return _names({key: key for key in keys if key})


def _names(tasks: Mapping[str, str], ours: Sequence[str] = (), others: Sequence[str] = ()) -> Names:
    words = sorted((name for name in tasks if not name.isdigit() and len(name) > 2), key=len, reverse=True)
    named = "|".join(map(re.escape, words[:5_000]))
    each = r"`?[\w.#@:+-]+(?:/\d+)?`?"
    return Names(
        tasks,
        re.compile(
            rf"\b(?:tasks?|rollouts?|rows?)\s+(?P<ids>{each}(?:(?:,\s*(?:and\s+)?|\s+and\s+|\s*&\s*){each})*)",
            re.I,
        ),
        re.compile(rf"(?<![\w-])(?P<name>{named})(?![\w-])") if named else None,
        tuple(ours),
        tuple(name for name in others if name not in ours),
    )


def units(text: str, assertions: Iterable[Assertion], known: Names) -> tuple[Unit, ...]:
    """The units of a report in the order of their lines."""
    read = document(text)
    told = _by_place(assertions)
    about = _about(read, known)
    found = [_sentence(one, told, known, about) for one in read.statements]
    found += [_row(table, at, told, known, about) for table in read.tables for at in range(len(table.rows))]
    found += [_quotation(one, told, known, about) for one in read.quotations]
    return _with_passages(sorted(found, key=lambda unit: (unit.line, unit.last_line)))


PASSAGE = 14  # lines after a statement in which its evidence may stand


def _with_passages(found: Sequence[Unit]) -> tuple[Unit, ...]:
    """Statements that name no task, with those that the lines after them name under the same heading."""
    told = []
    for at, unit in enumerate(found):
        near: set[str] = set()
        if unit.kind == "sentence" and not unit.tasks:
            for other in found[at + 1 : at + 1 + 2 * PASSAGE]:
                if other.line > unit.last_line + PASSAGE or other.section != unit.section:
                    break
                near |= other.own if other.kind != "row" else set()
            follows = found[at + 1] if at + 1 < len(found) else None
            if follows and follows.line <= unit.last_line + 1 and _POINTS.match(follows.text):
                unit = replace(unit, tasks=follows.own)
        told.append(replace(unit, near=frozenset(near)) if near else unit)
    return tuple(told)


_POINTS = re.compile(
    r"^\W*(?:see|compare|cf|for (?:instance|example)|examples?|as an example)\b", re.IGNORECASE
)


class _Told:
    def __init__(self) -> None:
        self.by_line: dict[int, list[Assertion]] = {}

    def of(self, line: int, text: str) -> list[Assertion]:
        """The assertions of one sentence; of a line that holds several, those of this one."""
        here = self.by_line.get(line, [])
        exact = [one for one in here if one.text == text]
        return exact or [one for one in here if one.text and (one.text in text or text in one.text)]

    def at(self, line: int) -> list[Assertion]:
        return self.by_line.get(line, [])


def _by_place(assertions: Iterable[Assertion]) -> _Told:
    told = _Told()
    for one in assertions:
        told.by_line.setdefault(one.line, []).append(one)
    return told


def _about(read: Document, known: Names) -> bool:
    """Whether a report says, where it says it first, that it is about another model."""
    for statement in read.statements[:60]:
        ours, others = _models(statement.text, known)
        if ours or others:
            return others and not ours
    for table in read.tables[:5]:
        for row in table.rows:
            ours, others = _models(" ".join(row.cells), known)
            if ours or others:
                return others and not ours
    return False


def _models(text: str, known: Names) -> tuple[bool, bool]:
    def has(name: str) -> bool:
        return bool(name) and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None

    return any(map(has, known.ours)), any(map(has, known.others))


def _foreign(text: str, known: Names, about: bool) -> bool:
    ours, others = _models(text, known)
    return about if ours == others else others


# Where files lie and which command was typed is no claim about the rollouts.
_FILES = re.compile(r"SHA-256|\.jsonl\b|\bblade (?:diagnose|compare|show)\b")


def _verdict(assertions: Sequence[Assertion], denied: bool) -> str | None:
    verdicts = {one.verdict for one in assertions if not _FILES.search(one.text)}
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    if any(one.verdict == UNVERIFIABLE and one.kind in ("label", "blame") for one in assertions):
        return UNVERIFIABLE  # that the task exists does not bear out what is said of it
    if SUPPORTED in verdicts:
        return CONTRADICTED if denied else SUPPORTED
    return UNVERIFIABLE if verdicts else None


def _sentence(one: Statement, told: _Told, known: Names, about: bool) -> Unit:
    parts = tuple(told.of(one.line, one.text))
    denied = bool(_DENIAL.search(one.text) or _NO_CAUSE.search(one.text) or _NO_STEP.search(one.text))
    own = _cited(one.text, known) | _claimed(parts, known)
    above = _cited(" ; ".join(one.headings), known)
    if not own and not above and _LEANS.match(one.text):
        before = reversed(re.split(r"(?<=[.!?])\s+(?=[A-Z`])", one.before))
        above = next((cites for part in before if (cites := _cited(part, known))), above)
    parts += _labelled(one, own or above, parts, known)
    found = slots(one.text)
    section = " ".join(one.headings)
    again = any(part.why == SAME for part in parts)
    jumbled = one.kind == "sentence" and not again and not is_sentence(one.text)
    verdict = _verdict(parts, denied)
    return Unit(
        one.line, one.last_line, "heading" if one.kind == "heading" else "sentence", one.text, one.headings,
        UNVERIFIABLE if jumbled and verdict == SUPPORTED else verdict, parts, own or above, own,
        _causes(one.text), _steps(one.text),
        tuple(slot.text for slot in found if slot.kind == QUOTED and len(slot.text) >= MIN_QUOTE),
        tuple(slot for slot in found if slot.kind in (NUMBER, RATIO)), denied,
        one.kind == "sentence" and bool(_ADVICE.search(section)), _foreign(one.text, known, about),
        jumbled=jumbled,
    )  # fmt: skip


_NO = r"(?:\b(?:not|nor|neither)\b|n['’]t\b|\b(?:rather than|instead of|rules? out)\b)"
_NO_CAUSE = re.compile(rf"{_NO}(?:\s+[\w'’-]+){{0,5}}\s+\(?{_CAUSE.pattern}")
_LINKED = re.compile(
    r"(?i:\b(?:is|are|was|were|as|for|from|of|to|cause|by|label(?:led)?|reflects?|shows?|of type)|[:–—])"
    rf"(?i:\s+(?:an?|the|due to))?\s+[*_(]*{_CAUSE.pattern}"
)
_NO_STEP = re.compile(rf"{_NO}(?:\s+[\w'’-]+){{0,4}}\s+wrong\b", re.IGNORECASE)
BLAMES = re.compile(
    r"\b(?:wrong at|(?:goes|went|going|gone) wrong|decisive|root cause|blamed?|critical step|derail\w*"
    r"|turning point|first (?:error|mistake)|mistake|parts? (?:from|ways)|diverges?)\b",
    re.IGNORECASE,
)
_LEANS = re.compile(r"^\W*(?:it|its|the cause|the root cause|this|there|here)\b", re.IGNORECASE)
_FEW = 3  # tasks up to which a sentence can be said to label each


def _labelled(
    one: Statement, tasks: frozenset[str], parts: Sequence[Assertion], known: Names
) -> tuple[Assertion, ...]:
    """What rules and anchors say of a cause or a step, where the rows do not give the sentence again."""
    if not 0 < len(tasks) <= _FEW or any(part.why == SAME or part.kind == "label" for part in parts):
        return ()
    found = []
    causes, steps = _causes(one.text), _steps(one.text)
    if len(causes) == 1 and _LINKED.search(one.text):
        held = all(causes <= known.causes.get(task, frozenset()) for task in tasks)
        found.append(_of_rules(one, "label", next(iter(causes)), held, tasks))
    if steps and BLAMES.search(one.text):
        held = any(steps & known.steps.get(task, frozenset()) for task in tasks)
        found.append(_of_rules(one, "blame", ", ".join(map(str, sorted(steps))), held, tasks))
    return tuple(found)


def _of_rules(one: Statement, kind: str, found: str, held: bool, tasks: frozenset[str]) -> Assertion:
    why = "the rules or the anchors say the same" if held else "neither the rules nor the anchors say so"
    verdict = SUPPORTED if held else UNVERIFIABLE
    return Assertion(
        verdict, kind, one.line, one.last_line, one.text, found, why=why, cites=tuple(sorted(tasks))
    )


def _row(table: Table, at: int, told: _Told, known: Names, about: bool) -> Unit:
    row = table.rows[at]
    text = " | ".join(row.cells)
    parts = tuple(told.at(row.line))
    own = _cited(text, known) | _claimed(parts, known)
    for head, cell in zip(table.header, row.cells, strict=False):
        own |= _column(head, cell, known)
    found = [slot for cell in row.cells for slot in slots(cell)]
    return Unit(
        row.line, row.line, "row", text, table.headings, _verdict(parts, denied=False), parts,
        frozenset(own or _cited(" ; ".join(table.headings), known)), frozenset(own),
        _causes(text), _steps(text),
        tuple(slot.text for slot in found if slot.kind == QUOTED and len(slot.text) >= MIN_QUOTE),
        tuple(slot for slot in found if slot.kind in (NUMBER, RATIO)), False,
        bool(_ADVICE.search(" ".join(table.headings))), _foreign(text, known, about),
    )  # fmt: skip


_ONE = re.compile(r"\s*(?:task|rollout|row)?[ _-]?(?:id|index|name|key)?\s*", re.IGNORECASE)
_SOME = re.compile(r"\b(?:tasks?|rollouts?|ids?|instance|examples?|read)\b", re.IGNORECASE)


def _column(head: str, cell: str, known: Names) -> set[str]:
    """The tasks in a cell of a column of tasks; a bare number under a plural is a number of tasks."""
    if head.strip() and _ONE.fullmatch(head):
        return _keys(re.findall(r"[\w.#@:+/-]+", cell), known)
    if not _SOME.search(head):
        return set()
    return _keys([part for told in re.findall(r"`([^`]+)`", cell) for part in told.split()], known)


def _quotation(one: Quotation, told: _Told, known: Names, about: bool) -> Unit:
    parts = tuple(part for part in told.at(one.line) if part.kind == "quote")
    own = _cited(one.label, known) | _claimed(parts, known)
    return Unit(
        one.line, one.last_line, "quote", one.text, one.headings, _verdict(parts, denied=False), parts,
        frozenset(own or _cited(" ; ".join(one.headings), known)), frozenset(own), frozenset(),
        _steps(one.label), (one.text,) if len(one.text.strip()) >= MIN_QUOTE else (), (), False, False,
        _foreign(one.label, known, about),
    )  # fmt: skip


def _causes(text: str) -> frozenset[str]:
    return frozenset(hit["code"] or _CODE_OF[hit["name"].lower()] for hit in _CAUSE.finditer(text))


def _steps(text: str) -> frozenset[int]:
    return frozenset(int(hit[1]) for hit in _STEP.finditer(text) if len(hit[1]) < 9)


def _cited(text: str, known: Names) -> frozenset[str]:
    """The tasks that a text names: `task 4`, `tasks 4/0 and 8`, `4/0` in code, or a name of letters."""
    words = [slot.text for slot in slots(text) if slot.kind == CODE and "/" in slot.text]
    for hit in known.listed.finditer(text):
        words += re.findall(r"[\w.#@:+/-]+", hit["ids"])
    if known.named:
        words += [hit["name"] for hit in known.named.finditer(text)]
    parts = [part for word in words for part in word.split()]
    return frozenset(_keys(parts, known))


def _claimed(parts: Sequence[Assertion], known: Names) -> frozenset[str]:
    cites = [cite for part in parts for cite in part.cites]
    scopes = [value for part in parts for name, value in part.scope if name == "task"]
    return frozenset(_keys([*cites, *scopes], known))


def _keys(words: Iterable[str], known: Names) -> set[str]:
    """Words as keys of tasks; a repeat after a slash is left out, and so is the run before one."""
    found = set()
    for word in words:
        word = word.strip("`.,;:")
        for told in (
            word,
            word.rpartition("/")[0],
            word.partition("/")[2],
            word.partition("/")[2].rpartition("/")[0],
        ):
            if told in known.tasks and (told == word or "/" in word):
                found.add(known.tasks[told])
                break
    return found


def is_note(unit: Unit) -> bool:
    """Whether a unit tells of files and methods, not of what the rollouts show."""
    return bool(unit.section) and bool(_NOTES.search(" ".join(unit.section)))
