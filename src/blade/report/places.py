"""Turn evidence into addresses, quotations and commands to read further."""

from __future__ import annotations

from collections.abc import Iterable

from blade import hostile
from blade.model import Evidence, Outcome, Run, TaskResult
from blade.report import words
from blade.report.facts import Facts
from blade.report.sections import Block, Code, Commands, Line, Para, Quote, Span, para

QUOTE = 700  # characters of a quotation; blade show has all of it
MAX_IDS = 8


def place(task: str, repeat: int | None) -> str:
    """TASK/REPEAT, as `blade show` takes it."""
    return task if repeat is None else f"{task}/{repeat}"


def address(evidence: Evidence) -> Line:
    """Where a quotation stands."""
    where: Line = ("task ", Code(hostile.line(place(evidence.task, evidence.repeat), 80)))
    if evidence.step is not None:
        return (*where, f", step {evidence.step}")
    if evidence.field is None:
        return (*where, ", a row that is not there")
    return (*where, ", field ", Code(hostile.line(evidence.field, 80)))


def quotation(evidence: Evidence, *before: Span) -> Block:
    """The quotation under its address; of an absent row the address alone."""
    if evidence.quote is None:
        return Para((*before, *address(evidence), "."))
    mark = (", redacted",) if evidence.is_redacted else ()
    return Quote((*before, *address(evidence), *mark), hostile.quoted(evidence.quote, QUOTE))


def quotations(facts: Facts, evidence: Iterable[Evidence], most: int) -> list[Block]:
    """The first quotations, each with how its rollout ended."""
    found = [one for one in evidence if one.quote] or list(evidence)[:1]
    return [quotation(one, side(facts, one)) for one in found[:most]]


def side(facts: Facts, evidence: Evidence) -> str:
    """`Failing, ` or `Passing, ` as the quoted rollout ended; nothing where that is not known."""
    task = facts.task(evidence.task) if evidence.run == facts.run.name else None
    ended = next((r.outcome for r in task.repeats if r.repeat == evidence.repeat), None) if task else None
    if ended is None or ended in (Outcome.MISSING, Outcome.MASKED):
        return ""
    return "Passing, " if ended is Outcome.PASSED else "Failing, "


def first_quoted(evidence: Iterable[Evidence]) -> Evidence | None:
    found = tuple(evidence)
    return next((one for one in found if one.quote), None) or next(iter(found), None)


def ids(rollouts: Iterable[tuple[str, int | None]], most: int = MAX_IDS) -> Line:
    """The first addresses and how many more there are."""
    found = list(rollouts)
    line: list[str | Code] = []
    for at, (task, repeat) in enumerate(found[:most]):
        line += [", "] if at else []
        line.append(Code(hostile.line(place(task, repeat), 60)))
    left = len(found) - most
    return (*line, f" and {left:,} more in report.json") if left > 0 else tuple(line)


def names(found: Iterable[str], most: int = MAX_IDS) -> Line:
    """The first names, and how many more there are."""
    names = list(found)
    line: list[str | Code] = []
    for at, name in enumerate(names[:most]):
        line += [", "] if at else []
        line.append(Code(hostile.line(name, 60)))
    left = len(names) - most
    return (*line, f" and {left:,} more") if left > 0 else tuple(line)


def run_argument(run: Run) -> str | None:
    """What to type for this run: its file when it is one, else its name."""
    return hostile.argument(run.sources[0].path if len(run.sources) == 1 else run.name)


def show(
    run: Run, task: str, repeat: int | None, shows: str, near: int | None = None
) -> list[tuple[str, str]]:
    """A `blade show` line, if it can be typed; `near` is a step to read around."""
    who, what = run_argument(run), hostile.argument(place(task, repeat))
    if who is None or what is None:
        return []
    steps = f" --steps {max(0, near - 2)}:{near + 3}" if near is not None else ""
    return [(f"blade show {who} {what}{steps}", shows)]


def to_read(task: TaskResult) -> list[int]:
    """A passing and a failing repeat, or the first two that failed."""
    passed = [r.repeat for r in task.repeats if r.outcome is Outcome.PASSED]
    unread = (Outcome.PASSED, Outcome.MISSING, Outcome.MASKED)
    # Differing duplicates share a repeat; one command opens them all.
    failed = list(dict.fromkeys(r.repeat for r in task.repeats if r.outcome not in unread))
    return [*passed[:1], *failed[: 1 if passed else 2]]


def commands(run: Run, tasks: list[TaskResult]) -> list[tuple[str, str]]:
    """`blade show` lines for the repeats worth reading, each with the outcome it shows."""
    found = []
    for task in tasks:
        outcomes = {r.repeat: r.outcome.value if r.outcome else "not judged" for r in task.repeats}
        for repeat in to_read(task):
            found += show(run, task.task, repeat, outcomes[repeat].replace("_", " "))
    return found


def read_next(lines: list[tuple[str, str]]) -> list[Block]:
    return [para("Read next:"), Commands(tuple(lines))] if lines else []


def left_out(total: int, shown: int, noun: str) -> list[Block]:
    """How many a table leaves out; nothing when it leaves out none."""
    left = words.count(total - shown, noun)
    are = "is" if total - shown == 1 else "are"
    return [para(f"{left} more {are} in report.json.")] if total > shown else []
