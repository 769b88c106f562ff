"""Ask whether behaviour was recorded and whether the agent ran: rows without output, and what their fields say of it.

Fires on crashed sandboxes, provider errors, agents that never started and answers that came back empty; stays silent
where rows without output pass at about the usual rate, because then only the recording is missing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from blade import events
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.fields import is_limit, template
from blade.diagnose.groups import Findings, Group, Trust, doubt, explained, group, in_field, short, warning
from blade.diagnose.population import Mask, Population, most_common, tells_the_end
from blade.stats.paired_changes import hypergeometric_tail

AT_LEAST, SHARE = 3, 0.1  # rows, and share of the rows without output, that one text must cover
LEVEL = 0.05
LONGEST = 400  # characters of an answer that may be an error message as a whole
# Words that name a fault of a service; that the same text answers different tasks is what decides.
SERVICE = re.compile(
    r"\b(?:error|exception|overloaded|unavailable|rate limit|quota|timed? ?out|connection|gateway|refused|unauthorized)\b", re.IGNORECASE
)
FEW = 0.05  # share of the rows up to which empty outputs say nothing about the run
# Words of a service that failed, as opposed to an error that answers what the model or its work did.
TRANSPORT = re.compile(
    r"\b(?:connection|overloaded|unavailable|rate.?limit\w*|too many requests|quota|gateway|unauthorized|resolve host|name resolution"
    r"|InternalServerError|APIError|APITimeoutError|APIConnectionError|\w*ConnectionError|50[0234]|429|ECONN\w+|socket|reset by peer)\b",
    re.IGNORECASE,
)
MOST_WORK = 1e8  # from which a number is a point in time rather than an amount
SPECIFIC = 0.8  # share of the rows with the text that have no output


def ask(people: Population, left: Mask) -> Findings:
    """Rows whose answer is an error, and rows without output that share a message."""
    silent = people.where(lambda row: not row.has_output)
    findings = Findings(_canned(people, left))
    if silent.any() and not _is_right_act(people, silent):
        findings.trust += _elsewhere(people, silent)
        findings.groups += _by_text(people, silent, left)
    findings.trust += [doubt(people, proved) for proved in findings.groups]
    return findings


def ask_empty(people: Population, left: Mask) -> Findings:
    """Rows without output for which nothing has been found: not recorded where they pass, else empty without a reason."""
    silent = people.where(lambda row: not row.has_output) & (left | people.passed)
    n, passes = int(silent.sum()), int(people.passed[silent].sum())
    if not n or _is_right_act(people, silent):
        return Findings()
    others = people.where(lambda row: row.has_output)
    usual = people.rate(others) if others.any() else 0.0
    if passes and passes / n >= 0.5 * usual:
        return Findings([], [] if _elsewhere(people, silent) else [warning("ran.not recorded", people, silent, passes=passes)])
    if passes <= 0.1 * n and (left & silent).any() and people.where(lambda row: row.has_response)[silent].any():
        proved = _unrecorded(people, silent, left)
        is_few = proved.rows.sum() <= FEW * people.n
        return Findings([proved], [] if is_few else [doubt(people, proved)])
    return Findings()


def _elsewhere(people: Population, silent: Mask) -> list[Trust]:
    """That the trace stands under another name, where rows have no `response` at all."""
    name, n = most_common(row.transcript for row in people.of(silent) if row.transcript)
    return [warning("ran.elsewhere", people, silent, name=name, n_named=n)] if n and n >= 0.5 * silent.sum() else []


def _is_right_act(people: Population, silent: Mask) -> bool:
    """Whether empty is right: where no call is due, making none passes."""
    due = silent & people.where(lambda row: row.expected == ())
    return bool(due.sum() >= 3 and due.sum() >= 0.5 * silent.sum() and people.rate(due) > 0.5)


# ---- Messages that rows share -----------------------------------------------------------------------


def _by_text(people: Population, silent: Mask, left: Mask) -> list[Group]:
    """Rows without output that share a line of a log, an error or a stop text, which no pass has."""
    is_recorded = not silent.all() and people.rate(silent) < 0.5 * people.rate(~silent)
    graded = {path for path in people.paths if not is_recorded and people.is_graded(people.codes(path)[0])}
    graded |= _verdict_fields(people, silent)

    def messages(row: RowEvidence) -> Iterator[tuple[str, str]]:
        for path, value in row.fields.items():
            # a field that goes with the outcome, or that failures with output fill too, is the grader's word
            is_message = isinstance(value, str) and value.strip() and path not in graded
            if is_message and not (tells_the_end(path) and is_limit(value)):  # what a limit ended did run
                yield path, template(value)
        yield from lines_of(row)

    places = people.places(messages)
    enough = max(AT_LEAST, SHARE * silent.sum())
    guilty = []
    for number, (place, rows) in enumerate(places.items()):
        mask = people.mask(rows)
        n_silent = int((mask & silent).sum())
        if n_silent < enough or people.passed[mask].any() or n_silent < SPECIFIC * mask.sum():
            continue
        is_error = events.ERROR.search(place[1]) is not None
        # without rows that ran, nothing sets a message apart but its own words
        n_ran = int(mask.sum()) - n_silent  # how likely so few ran, if the message had nothing to do with it
        chance = hypergeometric_tail(n_ran, int(mask.sum()), people.n - int(silent.sum()), people.n)
        if is_error if silent.all() else chance * len(places) <= LEVEL:
            mask = mask & silent & left
            # of equal cover the line that reads as an error, then the last one of a log, which says how it ended
            guilty.append(((-int(mask.sum()), not is_error, -number), *place, mask))
    result: list[Group] = []
    for _, path, line, mask in sorted(guilty, key=lambda entry: entry[0]):
        fresh = mask & ~explained(people, result)
        if fresh.sum() >= enough:
            words, rest = in_words(people, path, line, fresh), int((~fresh).sum())
            result.append(group(
                "ran.never ran", people, fresh, path=path, words=words, place=in_field(path, line),
                rest=rest if rest >= 3 else 0, rest_passed=int(people.passed[~fresh].sum()),
            ))  # fmt: skip
    return result


def lines_of(row: RowEvidence) -> Iterator[tuple[str, str]]:
    """The lines of the long texts of a row, with the field that each is in."""
    return ((path, line) for path, lines in row.lines.items() for line in lines)


def _verdict_fields(people: Population, silent: Mask) -> set[str]:
    """Fields that go with the outcome of rows with output: what the grader says, not the harness."""
    others = np.flatnonzero(~silent)
    result = set()
    for path in people.paths if others.size else ():
        outcomes: defaultdict[str, set[bool]] = defaultdict(set)
        for i in others:
            value = people.rows[i].fields.get(path)
            outcomes[template(value) if isinstance(value, str) else ""].add(bool(people.passed[i]))
        spoken = [seen for text, seen in outcomes.items() if text]
        # a message for every failure with output, and never the same for a pass
        if (spoken and outcomes.get("", {True}) == {True}) or (len(spoken) > 1 and all(len(seen) == 1 for seen in spoken)):
            result.add(path)
    return result


def in_words(people: Population, path: str, line: str, rows: Mask) -> str:
    """A message as one of some rows words it; of a long text only the end is known so."""
    own = people.of(rows)
    values = [value for row in own if isinstance(value := row.fields.get(path), str) and value.strip()]
    tails = (text for row in own for text in row.tails.get(path, "").splitlines() if template(text) == line)
    return short(values[0] if values else next(tails, line), 400).rstrip(".")


def _canned(people: Population, left: Mask) -> list[Group]:
    """Rollouts whose whole output is one and the same error text, whatever the task."""
    places = people.places(
        lambda row: [template(row.final)] if row.n_acts <= 1 and row.is_spoken and 0 < row.final_length <= LONGEST else []
    )
    masks = ((line, people.mask(rows)) for line, rows in places.items() if len(rows) >= AT_LEAST and SERVICE.search(line))
    return [
        group("ran.canned", people, mask, left, line=line)
        for line, mask in masks if people.n_tasks(mask & left) >= AT_LEAST and not people.passed[mask].any()
    ]  # fmt: skip


# ---- Empty outputs ---------------------------------------------------------------------------------


def _unrecorded(people: Population, silent: Mask, left: Mask) -> Group:
    rows, actual = silent & left, ~silent
    n, why = int(rows.sum()), _why_empty(people, rows, silent)
    # without a reason the agent itself may have said nothing
    is_chosen = "spent" in why or "unknown" in why

    def detail(i: int) -> str:
        if (amount := people.rows[i].fields.get(path := why.get("spent", ""))) is not None:
            return f"`{path}` is {amount:,.0f}, as much as an answer takes, so an output limit probably ended it"
        return f"{n:,} of {people.n:,} rollouts of the run end so" if n > 1 else ""

    return group(
        "ran.empty", people, silent, left, label="TI" if "limit" in why or "spent" in why else "IR", one=n == 1,
        answers=int(actual.sum()), chosen=is_chosen, detail=detail,
        given=int(people.passed[actual].sum()), unreached="uncounted" in why or "silent" in why,
        against=["an agent that chooses to say nothing would look the same"] if is_chosen else [], **why,
    )  # fmt: skip


def _why_empty(people: Population, rows: Mask, silent: Mask) -> dict[str, Any]:
    """What the rows tell of why an output is empty: one reason, with its numbers."""
    tokens = [value for row in people.of(rows) for value in _output_tokens(row)]
    limit, n = most_common(tokens)
    if tokens and max(tokens) == 0:
        return {"uncounted": True}
    if silent.all():
        return {"silent": True}
    # the most that any row has, and no pass has it
    most = max((value for row in people.rows for value in _output_tokens(row)), default=0)
    is_top = limit == most > 1 and all(limit not in _output_tokens(row) for row in people.of(people.passed))
    if tokens and n >= 0.5 * rows.sum() and is_top:
        return {"limit": limit}
    return _spent(people, rows, ~silent) or {"unknown": True, "lacks": "" if tokens else " (no stop reason, no token usage)"}


def _output_tokens(row: RowEvidence) -> list[float]:
    names = ("output_tokens", "completion_tokens")
    return [value for path, value in row.fields.items() if path.rpartition(".")[2] in names and isinstance(value, int | float)]


_WORK = frozenset("ms seconds secs sec time duration latency elapsed tokens".split())
_NOT_OUTPUT = frozenset("input prompt total judge grader grading verifier".split())  # given, or of somebody else


def _spent(people: Population, rows: Mask, actual: Mask) -> dict[str, Any]:
    """A time or an amount of output that some rows took, where it is about as much as what rows with an answer took."""
    for path, column in people.columns.items():
        words = set(re.split(r"[^a-z]+", path.lower()))
        if not words & _WORK or words & _NOT_OUTPUT:
            continue
        amounts = np.array([value if isinstance(value, int | float) else np.nan for value in column], float)
        present = np.isfinite(amounts) & (amounts < MOST_WORK)
        if (rows & present).sum() >= 0.8 * rows.sum() and (actual & present).sum() >= 0.8 * actual.sum() > 0:
            low, other = float(np.median(amounts[rows & present])), float(np.median(amounts[actual & present]))
            if low >= 0.5 * other > 0:
                return {"spent": path, "low": low, "other": other}
    return {}
