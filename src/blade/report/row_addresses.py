"""Point at the rows: addresses, quotations, lists of names, and commands to read further."""

from __future__ import annotations

from collections.abc import Iterable

from blade import hostile, number_format
from blade.model import Evidence, Outcome, Run, TaskResult
from blade.model.run_rows import MAPPED
from blade.report.blocks import Block, Code, Commands, Line, Para, Quote, Span, para
from blade.report.phrases import code, joined, line, paragraph
from blade.report.queried_numbers import count, less, whole
from blade.report.run_facts import Facts

QUOTE = 700  # characters of a quotation; blade show has all of it
MAX_IDS = 8


def place(task: str, repeat: int | None) -> str:
    """TASK/REPEAT, as `blade show` takes it."""
    return task if repeat is None else f"{task}/{repeat}"


def task_name(task: str, name: str) -> Line:
    """The key of a task, and its readable name where that is another."""
    key, readable = code(task, 60), code(name, 60)
    return (key, " ", readable) if readable.text and readable != key else (key,)


def address(evidence: Evidence) -> Line:
    """Where a quotation stands: TASK/REPEAT#STEP, as a citation names a step, or its field."""
    where = hostile.line(place(evidence.task, evidence.repeat), 80)
    if evidence.step is not None:
        return ("task ", Code(f"{where}#{evidence.step}"))
    if evidence.field is None:
        return ("task ", Code(where), ", a row that is not there")
    return ("task ", Code(f"{where}#{hostile.line(evidence.field, 80)}"))


def quotation(evidence: Evidence, *before: Span) -> Block:
    """The quotation under its address; of an absent row the address alone."""
    if evidence.quote is None:
        return Para((*before, *address(evidence), "."))
    mark = (", redacted",) if evidence.is_redacted else ()
    return Quote((*before, *address(evidence), *mark), hostile.quoted(evidence.quote, QUOTE))


def side(facts: Facts, evidence: Evidence) -> str:
    """`Failing, ` or `Passing, ` as the quoted rollout ended; nothing where that is not known."""
    task = facts.task(evidence.task) if evidence.run == facts.run.name else None
    ended = next((r.outcome for r in task.repeats if r.repeat == evidence.repeat), None) if task else None
    if ended is None or ended in (Outcome.MISSING, Outcome.MASKED):
        return ""
    return "Passing, " if ended is Outcome.PASSED else "Failing, "


def names(listed: Iterable[str], query: str, most: int = MAX_IDS) -> Line:
    """The first names and how many more there are; `query` counts them all."""
    every = list(listed)
    return and_more([(code(name, 60),) for name in every[:most]], len(every), query)


def and_more(shown: list[Line], total: int, query: str) -> Line:
    """The first of a list, and how many more it has; the mark for none where it is empty."""
    first, left = joined(shown, ", ", ", "), total - len(shown)
    if left > 0:
        return line("{} and {} more", first, whole(left, less(query, len(shown))))
    return first or (number_format.NONE,)


def run_argument(run: Run) -> str | None:
    """What to type for this run: its file when it is one, else its name; with the fields that were mapped."""
    if MAPPED in run.settings:
        path, _, fields = str(run.settings[MAPPED]).partition(" --map ")
        who, mapped = hostile.argument(path), hostile.argument(fields)
        return f"{who} --map {mapped}" if who is not None and mapped is not None else None
    return hostile.argument(run.sources[0].path if len(run.sources) == 1 else run.name)


def show(run: Run, task: str, repeat: int | None, shows: str) -> list[tuple[str, str]]:
    """A `blade show` line, if it can be typed."""
    who, what = run_argument(run), hostile.argument(place(task, repeat))
    return [] if who is None or what is None else [(f"blade show {who} {what}", shows)]


def to_read(task: TaskResult) -> list[int]:
    """A passing and a failing repeat, or the first two that failed."""
    passed = [r.repeat for r in task.repeats if r.outcome is Outcome.PASSED]
    unread = (Outcome.PASSED, Outcome.MISSING, Outcome.MASKED)
    # Differing duplicates share a repeat; one command opens them all.
    failed = list(dict.fromkeys(r.repeat for r in task.repeats if r.outcome not in unread))
    return [*passed[:1], *failed[: 1 if passed else 2]]


def read_next(lines: list[tuple[str, str]]) -> list[Block]:
    return [para("Read next:"), Commands(tuple(lines))] if lines else []


def left_out(total: int, shown: int, noun: str, query: str = "", file: str = "report.json") -> list[Block]:
    """How many a table leaves out; nothing when it leaves out none. `query` counts them all, if one does."""
    left = total - shown
    if left <= 0:
        return []
    if not query:
        return [para(f"More {noun}s are in {file}.")]
    verb = "is" if left == 1 else "are"
    return [paragraph(f"{{}} {verb} in {file}.", count(left, f"more {noun}", less(query, shown)))]
