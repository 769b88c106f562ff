"""Plant sentences that say the opposite, and statements that name the other run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from mutation.lines import PROSE, ROW, Line, cells, masked, replaced, sentences, with_cell
from mutation.numbers import fault
from mutation.page import NUMBER, Fault, Page

# What a sentence says, and its opposite: where one is true, the other is false.
OPPOSITES: tuple[tuple[str, str], ...] = (
    (r"\bfires on(?= \d)", "does not fire on"),
    (r"\bnever call\b", "always call"),
    (r"\bis never called\b", "is always called"),
    (r"\bleave out\b", "do not leave out"),
    (r"\bof those that do\b", "of those that do not"),
    (r"\bof them pass\b", "of them do not pass"),
    (r"\bis not made good\b", "is made good"),
    (r"\bclaims success\b", "does not claim success"),
    (r"\bCovers (?=\d)", "Does not cover "),
    (r"\bare lost\b", "are won"),
    (r"\bis better\b", "is worse"),
    (r"\bis worse\b", "is better"),
    (r"\brose\b", "did not rise"),
    (r"\bfell\b", "did not fall"),
    (r"\baccounts for\b", "does not account for"),
    (r"\btasks moved by more than noise\b", "tasks moved by no more than noise"),
    (r"\bcarry an error\b", "carry no error"),
    (r"\bleft no trace\b", "left a trace"),
    (r"\bare scored as failures\b", "are not scored as failures"),
    (r"\bhave no score\b", "have a score"),
    (r"\bIt loses\b", "It does not lose"),
    (r"\bThe task loses\b", "The task does not lose"),
    (r"\bfailing repeats show it\b", "failing repeats do not show it"),
    (r"\bpassing repeats show it\b", "passing repeats do not show it"),
    (r"\bis the only stated setting that changed\b", "is not the only stated setting that changed"),
    (r"\bhit their token limit\b", "do not hit their token limit"),
    (r"\bare expected and\b", "are not expected and"),
    (r"\bends? in one and the same wrong result\b", "end in different wrong results"),
    (r"\brepeats fail\b", "repeats pass"),
)
# These say something of a run though no number, id or name stands in them.
STATED: tuple[tuple[str, str], ...] = (
    (r"\bthe score is the same\b", "the score is not the same"),
    (r"^\*\*Improved\b", "**Regressed"),
    (r"^\*\*Regressed\b", "**Improved"),
    (r"\bNo line was skipped\b", "A line was skipped"),
    (r"\bno repeat of this task passes\b", "a repeat of this task passes"),
    (r"\bNo step is blamed\b", "A step is blamed"),
    (r"\bNo health check found\b", "A health check found"),
    (r"\bno cause is claimed\b", "a cause is claimed"),
    (r"\bNo mechanism or behaviour is proved\b", "A mechanism is proved"),
    (r"\bTasks have unequal numbers of rows\b", "Tasks have equal numbers of rows"),
    (r"\bRewards are binary\b", "Rewards are not binary"),
    (r"\bthe failing repeat shows it\b", "the failing repeat does not show it"),
    (r"\bThe change differs by task\b", "The change does not differ by task"),
    (r"\bThere is one run\b", "There are two runs"),
)
_PASSED = re.compile(r"\b(?P<passed>\d+) of (?P<n>\d+) repeats? passed\b")
# The only words of a table that have an opposite.
CELLS = {
    "present": "absent", "absent": "present", "improved": "regressed", "regressed": "improved",
    "more": "less", "less": "more", "cause": "unproven", "unproven": "cause", "agrees": "differs",
    "problem": "info", "flaky": "systemic", "idiosyncratic": "systemic", "systemic": "idiosyncratic",
    "within": "across",
}  # fmt: skip


def negation(page: Page, rng: Random) -> Iterator[Fault]:
    """A sentence, or a word of a table, says the opposite."""
    for line in page.lines:
        if line.role == PROSE:
            for start, end in sentences(line.text):
                for text in negated(line.text[start:end]):
                    yield fault("negation", line, replaced(line.text, start, end, text))
        elif line.role == ROW:
            for column, cell in enumerate(cells(line.text)):
                if cell in CELLS and column < len(line.header) and not (cell == "within" and column == 0):
                    yield fault("negation", line, with_cell(line.text, column, CELLS[cell]))


def negated(sentence: str) -> Iterator[str]:
    """The ways in which a sentence says the opposite; none if there is no sure one."""
    hidden = masked(sentence)
    states = "\x00" in hidden or NUMBER.search(hidden)
    for pattern, opposite in (*STATED, *(OPPOSITES if states else ())):
        hit = re.search(pattern, hidden)
        if hit is None or is_even(sentence, hit):
            continue
        yield replaced(sentence, *hit.span(), opposite)
    hit = _PASSED.search(hidden)
    if hit is not None and 2 * int(hit["passed"]) != int(hit["n"]):
        yield replaced(sentence, hit.end() - len("passed"), hit.end(), "did not pass")


def is_even(sentence: str, hit: re.Match[str]) -> bool:
    """Would the opposite be as true: half of them do and half do not, or nothing at all is lost."""
    pairs = re.findall(r"(\d+) of (?:the )?(\d+)", sentence)
    half = any(2 * int(some) == int(whole) for some, whole in pairs) or re.search(r"\b50(?:\.0)?%", sentence)
    last = re.findall(r"\d+", sentence[: hit.start()])[-1:]
    evenly = last and any(2 * int(last[0]) == int(one) for one in re.findall(r"\d+", sentence))
    nothing = re.search(r"loses 0 points|\b0 points are lost", sentence)
    return bool(half or evenly or nothing)


def swapped(page: Page, rng: Random) -> Iterator[Fault]:
    """Two runs, or baseline and candidate, exchange their names in a statement that is true of one."""
    for line in page.lines:
        if line.role == PROSE:
            yield from _in_prose(page, line, rng)
    for table in page.tables:
        yield from _in_table(page, table)


def _in_prose(page: Page, line: Line, rng: Random) -> Iterator[Fault]:
    for start, end in sentences(line.text):
        sentence = line.text[start:end]
        for new in renamed(sentence, page.runs, rng):
            yield fault("swapped", line, replaced(line.text, start, end, new))
    told = re.match(r"- `([^`]+)`: ", line.text)
    if told and told[1] in page.runs and NUMBER.search(line.text) and len(page.runs) > 1:
        other = rng.choice([run for run in page.runs if run != told[1]])
        yield fault("swapped", line, replaced(line.text, *told.span(1), other))


def renamed(sentence: str, runs: tuple[str, ...], rng: Random) -> Iterator[str]:
    """A sentence in which another run does what one of them does."""
    named = [run for run in runs if f"`{run}`" in sentence]
    numbers = [hit[0] for hit in NUMBER.finditer(masked(sentence))]
    if len(named) == 2 and re.search(r"` scores .* and `", sentence) and len(set(numbers)) > 1:
        first, second = named
        yield (
            sentence.replace(f"`{first}`", "\x00")
            .replace(f"`{second}`", f"`{first}`")
            .replace("\x00", f"`{second}`")
        )
    for one, other in (("candidate", "baseline"), ("baseline", "candidate")):
        if re.search(rf"\bthe {one} is (?:better|worse)\b", sentence):
            yield sentence.replace(f"the {one} is", f"the {other} is", 1)


def _in_table(page: Page, table: list[Line]) -> Iterator[Fault]:
    """The name of a run in its row, and the heads of the columns of two runs."""
    for line in table:
        if line.header[0] not in ("Run", "Candidate"):
            continue
        found = cells(line.text)
        for other in table:
            theirs = cells(other.text)
            if other is not line and theirs[0] != found[0] and theirs[1:] != found[1:]:
                yield fault("swapped", line, with_cell(line.text, 0, theirs[0]))
    header = table[0].header
    if "Baseline" in header and "Candidate" in header:
        left, right = header.index("Baseline"), header.index("Candidate")
        differing = [line for line in table if cells(line.text)[left] != cells(line.text)[right]]
        for line in differing:
            found = cells(line.text)
            text = with_cell(with_cell(line.text, left, found[right]), right, found[left])
            yield fault("swapped", line, text)
        if differing:
            head = next(one for one in page.lines if one.number == table[0].table)
            names = list(header)
            names[left], names[right] = names[right], names[left]
            text = f"| {' | '.join(names)} |"
            told = (head.number, *(line.number for line in differing))
            yield Fault("swapped", "table", head.section, ((head.number, text),), told, head.text, text)
