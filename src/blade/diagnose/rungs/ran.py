"""Ask whether behaviour was recorded and whether the agent ran: rows without output, and what their fields say of it.

Fires on crashed sandboxes, provider errors, agents that never started and answers that came back empty; stays silent
where rows without output pass at about the usual rate, because then only the recording is missing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np

from blade import events
from blade.diagnose.fields import LIMIT, template
from blade.diagnose.population import (
    Findings,
    Group,
    Mask,
    Population,
    Trust,
    at_end,
    count,
    passing,
    short,
    tells_the_end,
)
from blade.stats.significance import hypergeometric_tail

AT_LEAST, SHARE = 3, 0.1  # rows, and share of the rows without output, that one text must cover
LEVEL = 0.05
LONGEST = 400  # characters of an answer that may be an error message as a whole
# Words that name a fault of a service; that the same text answers different tasks is what decides.
SERVICE = re.compile(
    r"\b(?:error|exception|overloaded|unavailable|rate limit|quota|timed? ?out|connection|gateway|refused|unauthorized)\b",
    re.IGNORECASE,
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
    findings.trust += [_trust(people, group) for group in findings.groups]
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
        text = (
            f"{n:,} of {people.n:,} rollouts have no recorded output, and {passes:,} of them pass: the transcripts were "
            "not recorded. Nothing is concluded from their absence; causes come from the other fields."
        )
        return Findings([], [] if _elsewhere(people, silent) else [Trust("note", None, text, silent)])
    if passes <= 0.1 * n and (left & silent).any() and people.where(lambda row: row.has_response)[silent].any():
        group = _unrecorded(people, silent, left)
        is_few = group.rows.sum() <= FEW * people.n
        return Findings([group], [] if is_few else [_trust(people, group)])
    return Findings()


def _elsewhere(people: Population, silent: Mask) -> list[Trust]:
    """That the trace stands under another name, where rows have no `response` at all."""
    names = Counter(row.transcript for row in people.of(silent) if row.transcript)
    if not names or names.most_common(1)[0][1] < 0.5 * silent.sum():
        return []
    name, n = names.most_common(1)[0]
    text = (
        f"{count(n, 'row')} without `response`; `{name}` looks like the transcript: use --map trace={name} (with the other "
        "fields of these rows that need it: task, repeat, reward). Until then only the other fields are diagnosed."
    )
    return [Trust("warning", None, text, silent)]


def _is_right_act(people: Population, silent: Mask) -> bool:
    """Whether empty is right: where no call is due, making none passes."""
    none_due = people.where(lambda row: row.expected == ())
    due = silent & none_due
    return bool(due.sum() >= 3 and due.sum() >= 0.5 * silent.sum() and people.rate(due) > 0.5)


def _by_text(people: Population, silent: Mask, left: Mask) -> list[Group]:
    """Rows without output that share a line of a log, an error or a stop text, which no pass has."""
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    is_recorded = not silent.all() and people.rate(silent) < 0.5 * people.rate(~silent)
    graded = {path for path in people.paths if not is_recorded and people.is_graded(people.codes(path)[0])}
    spoken = _verdict_fields(people, silent)
    for i, row in enumerate(people.rows):
        for path, value in row.fields.items():
            # a field that goes with the outcome, or that failures with output fill too, is the grader's word
            is_told = isinstance(value, str) and value.strip() and path not in graded and path not in spoken
            if is_told and not (tells_the_end(path) and LIMIT.search(value.replace("_", " "))):  # what a limit ended did run
                places[path, template(value)].append(i)
        for path, lines in row.lines.items():
            for line in lines:
                places[path, line].append(i)
    enough = max(AT_LEAST, SHARE * silent.sum())
    guilty = []
    for place, rows in places.items():
        if len(rows) < enough:
            continue
        mask = people.mask(rows)
        of_silent = int((mask & silent).sum())
        if of_silent < enough or people.passed[mask].any() or of_silent < SPECIFIC * mask.sum():
            continue
        # without rows that ran, nothing sets a message apart but its own words
        is_message = events.ERROR.search(place[1]) if silent.all() else _chance(people, mask, silent) * len(places) <= LEVEL
        if is_message:
            guilty.append((place, mask & silent & left))
    result: list[Group] = []
    taken = people.none
    # of equal cover the line that reads as an error, then the last one of a log, which says how it ended
    last = {place: number for number, place in enumerate(places)}
    guilty.sort(key=lambda pair: (-int(pair[1].sum()), not events.ERROR.search(pair[0][1]), -last[pair[0]], -len(pair[0][1])))
    for (path, line), mask in guilty:
        fresh = mask & ~taken
        if fresh.sum() >= enough:
            taken |= fresh
            result.append(_named(people, path, line, fresh))
    return result


def _verdict_fields(people: Population, silent: Mask) -> set[str]:
    """Fields that go with the outcome of rows with output: what the grader says, not the harness."""
    others = np.flatnonzero(~silent)
    result = set()
    for path in people.paths if others.size else ():
        outcomes: defaultdict[str, set[bool]] = defaultdict(set)
        for i in others:
            value = people.rows[i].fields.get(path)
            outcomes[template(value) if isinstance(value, str) else ""].add(bool(people.passed[i]))
        phrase = [seen for text, seen in outcomes.items() if text]
        # a message for every failure with output, and never the same for a pass
        if (phrase and outcomes.get("", {True}) == {True}) or (len(phrase) > 1 and all(len(seen) == 1 for seen in phrase)):
            result.add(path)
    return result


def _canned(people: Population, left: Mask) -> list[Group]:
    """Rollouts whose whole output is one and the same error text, whatever the task."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(people.rows):
        if row.n_acts <= 1 and row.is_spoken and row.final_length and row.final_length <= LONGEST:
            places[template(row.final)].append(i)
    result = []
    for line, rows in places.items():
        if len(rows) < AT_LEAST:
            continue
        mask = people.mask(rows)
        n_tasks = people.n_tasks(mask & left)
        if n_tasks < AT_LEAST or people.passed[mask].any() or not SERVICE.search(line):
            continue
        n = int((mask & left).sum())
        result.append(
            Group(
                rung="ran", label="IR", name=f"the answer is an error of the service: {line[:60]}", rows=mask & left, matched=mask,
                text=f"{count(n, 'rollout')} in {count(n_tasks, 'task')}: the whole answer is an error message: {line[:120]}.",
                fix="Repair or wait for the service, retry such answers, and rerun these rollouts.",
                why="the same text stands in the answers to different tasks, and it is not an answer", confidence="proved",
                place=at_end,
            )
        )  # fmt: skip
    return result


def _chance(people: Population, rows: Mask, silent: Mask) -> float:
    """How likely so many of some rows have no output if their text had nothing to do with it."""
    n_silent, n_other = int(silent.sum()), int((rows & ~silent).sum())
    return hypergeometric_tail(n_other, int(rows.sum()), people.n - n_silent, people.n)


def _named(people: Population, path: str, line: str, rows: Mask) -> Group:
    n = int(rows.sum())
    phrase = in_words(people, path, line, rows)
    return Group(
        rung="ran", label="IR", name=f"never ran: {phrase[:70]}", rows=rows,
        text=f"{count(n, 'rollout')}: no output; `{path}` says: {phrase[:140]}. No rollout with this message passes.{_rest(people, rows)}",
        fix=f"Repair what `{path}` reports and rerun these {count(n, 'rollout')}; they say nothing about the model.",
        why="the agent produced nothing, and the same message stands in all of these rows and in no passing one",
        place=lambda row: (path, line), confidence="proved", deciding=(path,), matched=rows,
    )  # fmt: skip


def in_words(people: Population, path: str, line: str, rows: Mask) -> str:
    """A message as one of some rows words it; of a long text only the end is known so."""
    own = people.of(rows)
    values = [value for row in own if isinstance(value := row.fields.get(path), str) and value.strip()]
    tails = (text for row in own for text in row.tails.get(path, "").splitlines() if template(text) == line)
    return short(values[0] if values else next(tails, line), 400).rstrip(".")


def _rest(people: Population, rows: Mask) -> str:
    """How the rollouts outside a group do, as a sentence."""
    others = ~rows
    if others.sum() < 3:
        return ""
    return f" Of the other {int(others.sum()):,}, {int(people.passed[others].sum()):,} pass ({people.rate(others):.1%})."


class _Why(NamedTuple):
    """What the rows tell of why an output is empty."""

    text: str
    label: str = "IR"
    is_reached: bool = True  # whether the model was reached at all
    is_recorded: bool = True
    spent: str = ""  # field that shows that the model was at work


def _unrecorded(people: Population, silent: Mask, left: Mask) -> Group:
    rows = silent & left
    n, actual = int(rows.sum()), ~silent
    why = _why_empty(people, rows, silent)
    answered = f" Of the {int(actual.sum()):,} answers given, {passing(int(people.passed[actual].sum()))}." if actual.any() else ""
    return Group(
        rung="ran", label=why.label, name="empty output" if why.is_recorded else "empty output, stop reason not recorded",
        rows=rows, text=f"{n:,} of {people.n:,} rollouts {'ends' if n == 1 else 'end'} with an empty answer, and "
        f"{'it fails' if n == 1 else 'none of them passes'}. {why.text}{answered}",
        fix="Check max_tokens and the stop reasons of the empty rollouts, raise the limit, and rerun them." if why.is_reached
        else "Check the client, its key and the logs of the run, and rerun it.",
        why="no text, no call and no pass among them; an empty answer is no attempt at the task",
        against=[] if why.is_recorded else ["an agent that chooses to say nothing would look the same"],
        passed=int(people.passed[silent].sum()), confidence="likely", matched=silent,
        holds=lambda row: not row.has_output,
        detail=lambda i: _spent_by(people, i, why.spent) or (f"{n:,} of {people.n:,} rollouts of the run end so" if n > 1 else ""),
    )  # fmt: skip


def _spent_by(people: Population, i: int, path: str) -> str:
    amount = people.rows[i].fields.get(path)
    return f"`{path}` is {amount:,.0f}, as much as an answer takes, so an output limit probably ended it" if amount is not None else ""


def _why_empty(people: Population, rows: Mask, silent: Mask) -> _Why:
    tokens = Counter(
        value for i in np.flatnonzero(rows) for path, value in people.rows[i].fields.items()
        if path.rpartition(".")[2] in ("output_tokens", "completion_tokens") and isinstance(value, int | float)
    )  # fmt: skip
    if tokens and max(tokens) == 0:
        return _Why("No output token was counted: the model was never reached.", is_reached=False)
    if silent.all():
        text = "No rollout of the run has any output: the model was never reached, or its output was not saved."
        return _Why(text, is_reached=False)
    if tokens and tokens.most_common(1)[0][1] >= 0.5 * rows.sum() and _is_limit(people, tokens.most_common(1)[0][0]):
        limit = tokens.most_common(1)[0][0]
        return _Why(f"Most stop at exactly {limit:,.0f} output tokens: the token limit was spent before any answer.", "TI")
    usual = "the usual reason is an output token limit (max_tokens) that reasoning uses up before any answer."
    if (spent := _spent(people, rows, ~silent)) is not None:
        path, low, other = spent
        text = f"The model did work on them (median `{path}` {low:,.0f}, against {other:,.0f} where there is an answer): {usual}"
        return _Why(text, "TI", is_recorded=False, spent=path)
    lacks = "" if tokens else " (no stop reason, no token usage)"
    return _Why(f"The rows do not record why{lacks}; {usual}", is_recorded=False)


_WORK = frozenset("ms seconds secs sec time duration latency elapsed tokens".split())
_NOT_OUTPUT = frozenset("input prompt total judge grader grading verifier".split())  # given, or of somebody else


def _spent(people: Population, rows: Mask, actual: Mask) -> tuple[str, float, float] | None:
    """A time or an amount of output that some rows took, where it is about as much as what rows with an answer took."""
    for path in people.paths:
        words = set(re.split(r"[^a-z]+", path.lower()))
        if not words & _WORK or words & _NOT_OUTPUT:
            continue
        amounts = np.array([value if isinstance(value := row.fields.get(path), int | float) else np.nan for row in people.rows], float)
        present = np.isfinite(amounts) & (amounts < MOST_WORK)
        if (rows & present).sum() >= 0.8 * rows.sum() and (actual & present).sum() >= 0.8 * actual.sum() > 0:
            low, other = float(np.median(amounts[rows & present])), float(np.median(amounts[actual & present]))
            if low >= 0.5 * other > 0:
                return path, low, other
    return None


def _is_limit(people: Population, tokens: float) -> bool:
    """Whether a number of output tokens is the most that any row has, and no pass has it."""
    most, passing = 0.0, False
    for row, passed in zip(people.rows, people.passed, strict=True):
        for path, value in row.fields.items():
            if path.rpartition(".")[2] in ("output_tokens", "completion_tokens") and isinstance(value, int | float):
                most = max(most, value)
                passing |= bool(passed) and value == tokens
    return tokens == most > 1 and not passing


def _trust(people: Population, group: Group) -> Trust:
    return Trust(alarm_level(people, group), group.label, group.text, group.rows, group.fix)


def alarm_level(people: Population, group: Group) -> str:
    """Alarm where so many rows are concerned that the score cannot be used as it stands; else a warning."""
    n, failed = int(group.rows.sum()), int(people.failed.sum())
    is_alarm = n >= 0.25 * failed and n >= 0.1 * people.n and group.passed <= 0.1 * (n + group.passed)
    return "alarm" if is_alarm else "warning"
