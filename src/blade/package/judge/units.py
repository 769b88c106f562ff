"""Turn a checked report into units: sentences, rows and quotations, with what they claim and cite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from blade.check.held import STANDS
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion, Report
from blade.package.judge.coherence import is_sentence
from blade.package.judge.frames import DENIED, TOLD, denies
from blade.package.judge.plainly import is_mode, is_told, meant, verb
from blade.prose.document import Document, Quotation, Row, Statement, Table, document
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
    denied: bool = False  # it says that what it says is not so, or words around it may
    advice: bool = False  # an item of the recommendations
    foreign: bool = False  # it is about another model
    near: frozenset[str] = frozenset()  # tasks named in the passage it opens
    jumbled: bool = False  # its words stand in an order that makes no sentence

    @property
    def fabricated(self) -> tuple[str, ...]:
        """Ids that do not exist, and false quotations but for those that are known to stand elsewhere."""
        return tuple(
            one.found
            for one in self.assertions
            if one.verdict == CONTRADICTED and one.kind in ("id", "quote")
            if one.kind == "id" or not (one.expected or "").startswith(STANDS)
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
    modes: Mapping[str, frozenset[tuple[str, str, str]]] = {}  # by task: cause, its mode, what happened


def names(report: Report, ours: Sequence[str] = (), others: Sequence[str] = ()) -> Names:
    """The names of a report's tasks."""
    tasks: dict[str, str] = {}
    for row in report.tasks:
        tasks[row.task] = row.task
        tasks.setdefault(row.task_name, row.task)
    tasks.pop("", None)
    modes: dict[str, frozenset[tuple[str, str, str]]] = {}
    for one in report.attributions:
        modes[one.task] = modes.get(one.task, frozenset()) | {(one.cause.value, one.mode, one.mechanism)}
    return replace(_names(tasks, ours, others), causes=_labels(report), steps=_blamed(report), modes=modes)


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
    asides = [one for one in read.asides if _is_quoted(one, told)]
    inside = {line for one in asides for line in range(one.line, one.last_line + 1)}
    found = [_sentence(one, told, known, about) for one in read.statements if one.line not in inside]
    found += [_row(table, at, told, known, about) for table in read.tables for at in range(len(table.rows))]
    found += [_quotation(one, told, known, about) for one in (*read.quotations, *asides)]
    return _with_passages(sorted(found, key=lambda unit: (unit.line, unit.last_line)))


def _is_quoted(one: Quotation, told: _Told) -> bool:
    """Whether a block quote was looked up as words of a rollout; a remark set off in the same way was not."""
    return any(part.kind == "quote" and part.text == one.text for part in told.at(one.line))


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


_POINTER = re.compile(r"[\w\s]{3,40}?[\s:,]*(?:[`\d/,.&\s]|\band\b|\btasks?\b|\brollouts?\b)+", re.IGNORECASE)


def is_pointer(text: str) -> bool:
    """Whether a sentence lists rollouts to look at, and says nothing of them."""
    return bool(_POINTS.match(text) and _POINTER.fullmatch(text))


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
        if not name or name not in text:
            return False
        return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None

    return any(map(has, known.ours)), any(map(has, known.others))


def _foreign(text: str, known: Names, about: bool) -> bool:
    ours, others = _models(text, known)
    return about if ours == others else others


# Where files lie and which command was typed is no claim about the rollouts.
_FILES = re.compile(r"SHA-256|\.jsonl\b|\bblade (?:diagnose|compare|show)\b")


_NAMING = ("id", "step")  # that a task and a step exist bears out nothing that is said of them


def _verdict(assertions: Sequence[Assertion], denied: bool) -> str | None:
    assertions = [one for one in assertions if not _FILES.search(one.text)]
    verdicts = {one.verdict for one in assertions}
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    for kind in ("label", "blame"):
        told = [one.verdict for one in assertions if one.kind == kind]
        if UNVERIFIABLE in told and SUPPORTED not in told:
            return UNVERIFIABLE
    if any(one.verdict == SUPPORTED and one.kind not in _NAMING for one in assertions):
        return CONTRADICTED if denied else SUPPORTED
    return UNVERIFIABLE if verdicts else None


def _sentence(one: Statement, told: _Told, known: Names, about: bool) -> Unit:
    parts = tuple(told.of(one.line, one.text))
    how = denies(one.text)
    no_cause = bool(_NO_CAUSE.search(one.text))
    denied = how == DENIED or bool(_NO_STEP.search(one.text))
    own = _cited(one.text, known) | _claimed(parts, known)
    above = _cited(" ; ".join(one.headings), known)
    is_quote = any(part.kind == "quote" and part.verdict == SUPPORTED for part in parts)
    if not own and not above and (is_quote or _LEANS.match(one.text)):
        before = reversed(re.split(r"(?<=[.!?])\s+(?=[A-Z`])", one.before))
        above = next((cites for part in before if (cites := _cited(part, known))), above)
    tasks, causes = own or above, causes_in(one.text)
    parts += _labelled(one, tasks, parts, known, bool(denied or how or no_cause))
    if not (causes or denied or how or no_cause) and one.kind == "sentence":
        causes = _plain_causes(one.text, tasks, known)
        parts += tuple(_of_rules(one, "label", cause, SUPPORTED, tasks, known) for cause in causes)
    found = slots(one.text)
    section = " ".join(one.headings)
    again = any(part.why == SAME for part in parts)
    jumbled = one.kind == "sentence" and not again and not is_sentence(one.text)
    # To deny a cause is wrong if it is the cause; that a task has not another one cannot be shown.
    is_cause = no_cause and bool(tasks) and _of_causes(causes, tasks, known) == SUPPORTED
    verdict = _verdict(parts, denied or is_cause)
    unproved = jumbled or no_cause or how == TOLD or not (again or _is_reasoned(one.text, parts))
    verdict = UNVERIFIABLE if verdict == SUPPORTED and unproved else verdict
    is_pointing = one.text.endswith(":") or is_pointer(one.text)
    if verdict == UNVERIFIABLE and is_pointing and all(part.kind in _NAMING for part in parts):
        verdict = None  # it says where to look, and no more
    return Unit(
        one.line, one.last_line, "heading" if one.kind == "heading" else "sentence", one.text, one.headings,
        verdict, parts, tasks, own, causes, _steps(one.text),
        tuple(slot.text for slot in found if slot.kind == QUOTED and len(slot.text) >= MIN_QUOTE),
        tuple(slot for slot in found if slot.kind in (NUMBER, RATIO)), bool(denied or no_cause or how),
        one.kind == "sentence" and bool(_ADVICE.search(section)), _foreign(one.text, known, about),
        jumbled=jumbled,
    )  # fmt: skip


_BECAUSE = re.compile(
    r"\b(?:because|due to|owing to|as a result of|thanks to|the reason (?:is|being)|caused by)\b",
    re.IGNORECASE,
)


def _is_reasoned(text: str, parts: Sequence[Assertion]) -> bool:
    """Whether something in the reason that a sentence gives is borne out, beyond that a task fails."""
    hit = _BECAUSE.search(text)
    if hit is None:
        return True
    borne = [part for part in parts if part.verdict == SUPPORTED and part.kind not in _NAMING]
    return any(part.start > hit.start() or part.kind in ("label", "blame", "quote") for part in borne)


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
    one: Statement, tasks: frozenset[str], parts: Sequence[Assertion], known: Names, denied: bool
) -> tuple[Assertion, ...]:
    """What rules and anchors say of a cause or a step that a sentence names.

    A sentence that the rows give again is known by its words alone, so it may stand under another task.
    """
    if not 0 < len(tasks) <= _FEW:
        return ()
    again = any(part.why == SAME or _is_settled(part, "label") for part in parts)
    found = []
    causes, steps = causes_in(one.text), _steps(one.text)
    if len(causes) == 1 and _LINKED.search(one.text):
        verdict = verb(one.text, _of_causes(causes, tasks, known))
        if verdict == CONTRADICTED and denied:
            verdict = UNVERIFIABLE  # that a task has not another cause may be true
        if verdict == CONTRADICTED or not again:
            found.append(_of_rules(one, "label", next(iter(causes)), verdict, tasks, known))
    if steps and BLAMES.search(one.text) and not again:
        held = any(steps & known.steps.get(task, frozenset()) for task in tasks)
        told = ", ".join(map(str, sorted(steps)))
        found.append(_of_rules(one, "blame", told, SUPPORTED if held else UNVERIFIABLE, tasks, known))
    return tuple(found)


def _plain_causes(text: str, tasks: frozenset[str], known: Names) -> frozenset[str]:
    """The one cause of all tasks of a sentence that its plain words mean, or its words for a rule's mode."""
    if not 0 < len(tasks) <= _FEW:
        return frozenset()
    words = meant(text)
    if len(words) == 1:
        return words if _of_causes(words, tasks, known) == SUPPORTED else frozenset()
    found = [
        {
            cause
            for cause, mode, happened in known.modes.get(task, ())
            if cause in CAUSES and (is_mode(text, mode) or is_told(text, happened))
        }
        for task in tasks
    ]
    held = frozenset(set.intersection(*found)) if not words else frozenset()
    return held if len(held) == 1 else frozenset()


def _is_settled(part: Assertion, kind: str) -> bool:
    return part.kind == kind and part.verdict != UNVERIFIABLE


def _of_causes(causes: frozenset[str], tasks: frozenset[str], known: Names) -> str:
    """A cause against those that rules and anchors hold; a task for which they hold none says nothing."""
    if all(causes <= known.causes.get(task, frozenset()) for task in tasks):
        return SUPPORTED
    wrong = any(known.causes.get(task) and not causes <= known.causes[task] for task in tasks)
    return CONTRADICTED if wrong else UNVERIFIABLE


def _of_rules(
    one: Statement | Row, kind: str, found: str, verdict: str, tasks: frozenset[str], known: Names
) -> Assertion:
    why = "the rules or the anchors say the same"
    expected = None
    if verdict != SUPPORTED:
        why = "neither the rules nor the anchors say so"
    if verdict == CONTRADICTED:
        expected = ", ".join(
            f"task {task}: {' or '.join(sorted(known.causes[task]))}"
            for task in sorted(tasks & known.causes.keys())
        )
    text = one.text if isinstance(one, Statement) else " | ".join(one.cells)
    last = one.last_line if isinstance(one, Statement) else one.line
    return Assertion(verdict, kind, one.line, last, text, found, expected, why, cites=tuple(sorted(tasks)))


def _row(table: Table, at: int, told: _Told, known: Names, about: bool) -> Unit:
    row = table.rows[at]
    text = " | ".join(row.cells)
    parts = tuple(told.at(row.line))
    own = _cited(text, known) | _claimed(parts, known)
    for head, cell in zip(table.header, row.cells, strict=False):
        own |= _column(head, cell, known)
        causes = causes_in(cell)
        if len(own) == 1 == len(causes) and _CAUSE_COLUMN.search(head):
            verdict = _of_causes(causes, own, known)
            parts += (_of_rules(row, "label", next(iter(causes)), verdict, own, known),)
    found = [slot for cell in row.cells for slot in slots(cell)]
    denied = any(denies(cell) == DENIED for cell in row.cells)
    return Unit(
        row.line, row.line, "row", text, table.headings, _verdict(parts, denied), parts,
        frozenset(own or _cited(" ; ".join(table.headings), known)), frozenset(own),
        causes_in(text), _steps(text),
        tuple(slot.text for slot in found if slot.kind == QUOTED and len(slot.text) >= MIN_QUOTE),
        tuple(slot for slot in found if slot.kind in (NUMBER, RATIO)), denied,
        bool(_ADVICE.search(" ".join(table.headings))), _foreign(text, known, about),
    )  # fmt: skip


_CAUSE_COLUMN = re.compile(r"\b(?:cause|label|reason|diagnosis|why)\b", re.IGNORECASE)
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


def causes_in(text: str) -> frozenset[str]:
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
