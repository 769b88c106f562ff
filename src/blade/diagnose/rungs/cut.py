"""Ask whether rollouts were stopped from outside: a stop reason, a pending call, a spike at a maximum, an open end.

Fires on limits of turns, calls, tokens or time under whatever field name; refuted where rows that end so pass at the usual
rate, where nearly all rows below the limit pass (the episode stops on success), and where the acts before the limit
repeat one call or one error: then the loop is the cause.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from blade.diagnose.evidence import Act, RowEvidence
from blade.diagnose.fields import is_limit
from blade.diagnose.groups import Findings, Group, at_act, count, doubt, group, in_field, sentence, short
from blade.diagnose.population import Ints, Mask, Population, as_float, most_common, tells_the_end
from blade.diagnose.rungs.ran import TRANSPORT

USUAL = 0.6  # share of the usual pass rate from which rows that end so are innocent
PENDING = 0.1  # pass rate up to which a pending call is guilty
SPIKE, SPIKE_ROWS = 2.0, 0.02
MANY = 20  # values of an amount that is the same in all repeats of a task, from which it is a measure
MAX_VALUES = 30  # of a field that says how rollouts end
LEAST_LINE, MAX_LINE = 5, 120  # characters of a line that can be told unfinished, and that are compared
LEAST_LOOPS = 3  # rollouts at a limit that repeat themselves, from which they are a group of their own
ENDED = 0.9  # share of the passes that end on the result of one act
OFTEN = 0.1  # share of the passes that end in one way, from which it is a way to end
LEAST_FORMS, WHOLE_FORM = 3, 0.95  # passes that show how long a form is, and the share of it from which it counts as filled in
FIRST_TRIES, BARRED = 20, 0.9  # first tries, and the share of them that ends in an error, from which the surroundings are in doubt
STOPS = 0.95  # pass rate below the limit from which episodes stop on success


def ask_recorded(people: Population, left: Mask) -> Findings:
    """Limits that rows record of themselves: asked before outputs are called empty, since a limit leaves them so."""
    return _asked(people, left, _stop_reason)


def ask(people: Population, left: Mask) -> Findings:
    return _asked(people, left, _pending, _spike, _open_end)


def _asked(people: Population, left: Mask, *makes: Callable[[Population, Mask], Group | None]) -> Findings:
    """The groups that each question proves, until it proves none of the rows that are left."""
    findings = Findings()
    for make in makes:
        while (proved := make(people, findings.rest(left))) is not None:
            findings.groups.append(proved)
    findings.trust = [doubt(people, proved) for proved in findings.groups if proved.label == "TI"]
    return findings


def _is_innocent(people: Population, rows: Mask, left: Mask) -> bool:
    """Whether rows that end so pass as often as the others that are left to explain."""
    others = ~rows & (left | people.passed) & people.where(lambda row: row.has_output)
    usual = people.rate(others) if others.any() else 0.0
    return usual > 0 and people.rate(rows) >= USUAL * usual


# ---- A recorded limit ------------------------------------------------------------------------------


def _stop_reason(people: Population, left: Mask) -> Group | None:
    """Rows whose recorded stop reason is a limit."""
    limits: list[tuple[int, str, str, Mask]] = []
    for path, codes, values in _ends(people, 0):
        if not path.startswith("response.") and people.is_graded(codes):
            continue  # a limit that the grader reports about the submitted work is a verdict
        for code, value in enumerate(values):
            rows = codes == code
            # a rate limit of a service is no limit of the rollout
            if is_limit(value) and not TRANSPORT.search(value) and (rows & left).any() and not _is_innocent(people, rows, left):
                limits.append((int((rows & left).sum()), path, value, rows))
    if not limits:
        return None
    # of equal rows the longer value says more: a reason before a status
    _, path, value, rows = max(limits, key=lambda limit: (limit[0], len(limit[2])))
    if _is_loop(people, rows & left):
        return _loop(people, rows, left, f"a limit (`{path}` is `{value}`)")
    return group(
        "cut.limit", people, rows, left, path=path, value=value, at_most=_at_most(people, rows & left),
        without=_without(people, rows), place=in_field(path, value),
    )  # fmt: skip


def _at_most(people: Population, rows: Mask) -> str:
    """The amount at which all of some rows ended, where another amount of the row is the same in nearly all, as a sentence."""
    for path, column in people.columns.items():
        values = Counter(column[i] for i in np.flatnonzero(rows) if isinstance(column[i], int))
        if not values or isinstance(next(iter(values)), bool):
            continue
        value, n = values.most_common(1)[0]
        amounts = (amount for amount in column if isinstance(amount, int | float) and not isinstance(amount, bool))
        is_top = value > 1 and n >= 0.9 * rows.sum() and value == max(amounts)
        if is_top and not any(column[i] == value for i in np.flatnonzero(~rows)):
            which = "It ends" if rows.sum() == 1 else f"{n:,} of them end"
            return sentence("cut.at most", which=which, path=path, value=value)
    return ""


def _without(people: Population, rows: Mask) -> str:
    """The pass rate of all other rollouts that have an output, as a sentence; where none passes it says nothing."""
    others = ~rows & people.where(lambda row: row.has_output)
    n, passes = int(others.sum()), int(people.passed[others].sum())
    return sentence("cut.without", n=n, passes=passes, rate=people.rate(others)) if n >= 3 and passes else ""


# ---- A turn that never came ------------------------------------------------------------------------


def _pending(people: Population, left: Mask) -> Group | None:
    """Rows that end on a call that nothing answers, or on a result that the model was not asked to answer."""
    for kind, rows in (
        ("pending", people.where(lambda row: row.is_pending)), ("unanswered", people.where(lambda row: row.end == "result")),
    ):  # fmt: skip
        usual = rows[people.passed].mean() if people.passed.any() else 0.0
        if not (rows & left).any() or max(people.rate(rows), usual) > PENDING or _is_innocent(people, rows, left):
            continue
        # the last call is made for the third time or more within six
        calls = [[(act.tool, act.key) for act in row.acts[-6:]] for row in people.rows]
        again = people.mask(i for i, last in enumerate(calls) if last and last.count(last[-1]) >= 3)
        loops = rows if _is_loop(people, rows & left) else rows & again
        if (loops & left).any():
            return _loop(people, loops, left, _stopped_by(people, loops & left))
        return _cut_off(people, rows, left, kind)
    return None


def _span(people: Population, rows: Mask) -> str:
    """The numbers of turns of some rows: `10`, `8 to 12`."""
    turns = sorted({row.n_turns for row in people.of(rows)})
    return " to ".join(map(str, dict.fromkeys((turns[0], turns[-1]))))


def _stopped_by(people: Population, rows: Mask) -> str:
    """What ended some rollouts, as far as a field says it in the same way for all of them; else after how many turns it happened."""
    for path, codes, values in _ends(people):
        if len(set(codes[rows].tolist())) == 1 and codes[rows][0] >= 0:
            return f"the end (`{path}` is `{short(str(values[codes[rows][0]]), 60)}`)"
    return f"the rollout is stopped after {_span(people, rows)} turns"


def _ends(people: Population, least: int = 2) -> Iterator[tuple[str, Ints, list[Any]]]:
    """Fields that say how rollouts ended, in a few values."""
    columns = ((path, *people.codes(path)) for path in people.paths if tells_the_end(path))
    return (column for column in columns if least <= len(column[2]) <= MAX_VALUES)


def _cut_off(people: Population, rows: Mask, left: Mask, kind: str) -> Group:
    own, turns = people.of(rows & left), _span(people, rows & left)
    is_one_length = turns.isdecimal()
    goal = goal_of(people, lambda act: act.tool)
    never = sum(all(act.tool != goal for act in row.acts) for row in own) if goal else 0
    template, n_met = common_error(people, rows & left)
    error = f" {n_met:,} of them lost a turn to an error like: {shown_error(people, rows & left, template, 80)}." if template else ""
    return group(
        f"cut.{kind}", people, rows, left, turns=turns, errors=error, without=_without(people, rows),
        limit="a turn limit is the likely reason" if is_one_length else "the rows do not say what stopped them",
        never=f" {never:,} never reached `{goal}`, the call that ends the passing rollouts." if never else "",
        against=[] if is_one_length else ["the number of turns varies, so the limit itself is not shown by the rows"],
        detail=lambda i: _last_call(people.rows[i], goal),
    )  # fmt: skip


def _last_call(row: RowEvidence, goal: str) -> str:
    """How a cut row ends, what it never got to, and what became of its calls."""
    if not row.acts:
        return ""
    never = f", and `{short(goal, 60)}` is never called" if goal and all(act.tool != goal for act in row.acts) else ""
    errors = f"; {row.n_failed:,} of {count(row.n_acts, 'call')} end in an error" if row.n_failed >= 0.5 * row.n_acts else ""
    loop = f"; {repeated(row)}" if is_looping(row) and not errors else ""
    return f"the last of {row.n_turns:,} turns calls `{short(row.acts[-1].tool, 60)}`{never}{errors}{loop}"


def goal_of(people: Population, name: Callable[[Act], str]) -> str:
    """The call that ends the passes, under a name for calls; empty where they end in several."""
    passes = people.of(people.passed)
    call, n = most_common(name(row.acts[-1]) for row in passes if row.acts)
    return call if n >= ENDED * len(passes) else ""


# ---- A spike at the maximum ------------------------------------------------------------------------


_NAMED = {"n_turns": "turns", "n_acts": "tool calls", "final_length": "characters of text"}
_OUTPUT = re.compile(r"tokens?|length|chars|characters", re.IGNORECASE)
_GIVEN = re.compile(r"prompt|input|context", re.IGNORECASE)


def _spike(people: Population, left: Mask) -> Group | None:
    """Rows that pile up at the maximum of an amount: a limit, whatever it is called."""
    best = max(_spikes(people, left), key=lambda spike: int((spike[2] & left).sum()), default=None)
    if best is None:
        return None
    name, top, rows = best
    amount = f"{top:,.0f} {_NAMED.get(name, f'`{name}`')}"
    if name in ("n_turns", "n_acts"):  # some get to the maximum and end there by themselves
        rows = rows & ~_finished(people)
        for _, codes, texts in _ends(people):  # or say themselves that they ended otherwise than by a limit
            if all(isinstance(text, str) for text in texts):
                rows = rows & ~np.isin(codes, [code for code, text in enumerate(texts) if not is_limit(text)])
        if not (rows & left).any():
            return None
    loops = rows if _is_loop(people, rows & left) else rows & people.where(is_looping)
    if loops is rows or (loops & left).sum() >= LEAST_LOOPS:  # the limit only ended what had already failed in these
        return _loop(people, loops, left, f"a limit ({amount})")
    is_beside = _is_beside(name) and _is_finished(people, rows & left)
    kind = "input" if _is_given(people, name, rows) else "beside" if is_beside else "spike"
    return group(
        f"cut.{kind}", people, rows, left, path="" if name in _NAMED else name, top=top, amount=amount,
        owner=name.rpartition(".")[0], without=_without(people, rows),
    )  # fmt: skip


def _spikes(people: Population, left: Mask) -> Iterator[tuple[str, float, Mask]]:
    """Amounts with far more rows at the maximum than just below it, which pass seldom and do not end as passes do."""
    for name, values in _amounts(people):
        top = np.nanmax(values) if np.isfinite(values).any() else np.nan
        rows = values == top
        n, below = int(rows.sum()), values[np.isfinite(values) & ~rows]
        if not 1 < top < np.inf or n < max(3, SPIKE_ROWS * people.n) or below.size < 3 or (rows & left).sum() < 3:
            continue
        if any(n < SPIKE * (values == step).sum() for step in np.unique(below)[-2:]):
            continue
        is_given = _is_given(people, name, rows)
        # of a cut input what counts may be left; a cut rollout hardly ever passes
        if _is_innocent(people, rows, left) or (people.rate(rows) > 0.25 and not is_given) or _stops_on_success(people, rows):
            continue
        if name in ("n_turns", "n_acts") and ends_on_success(people):
            continue  # what fails goes on to the limit, whatever it fails for
        if not is_given and _is_finished(people, rows & left) and not (_is_beside(name) and not people.passed[rows].any()):
            continue
        # texts of one length that were cut say different things, most without a sign that closes a sentence, a block or an answer
        texts, ends = {row.final for row in people.of(rows)}, [row.final.rstrip()[-1:] for row in people.of(rows & left)]
        breaks_off = sum(end not in ".!?)]}>\"'`”*$" for end in ends) >= 0.5 * len(ends)
        if name != "final_length" or (len(texts) >= 0.8 * n and breaks_off):
            yield name, float(top), rows


def _amounts(people: Population) -> Iterator[tuple[str, np.ndarray]]:
    for name in _NAMED:
        yield name, np.array([getattr(row, name) for row in people.rows], float)
    for path, column in people.columns.items():
        if any(isinstance(value, bool | str) for value in column):
            continue
        numbers = np.array([as_float(value) for value in column], float)
        present = numbers[np.isfinite(numbers)]
        n_values = len(np.unique(present))
        if present.size < 0.5 * people.n or n_values < 5 or (present < 0).any():
            continue
        # of what a task is given only an amount of many values can pile up at a limit: a length, not a level
        if (n_values >= MANY and _GIVEN.search(path)) or not people.is_constant_within(people.codes(path)[0]):
            yield path, numbers


def _is_beside(name: str) -> bool:
    """Whether an amount of text belongs to something else that the row records, such as the reply of a judge."""
    return "." in name and not name.startswith("response.") and not _GIVEN.search(name) and _OUTPUT.search(name) is not None


def _is_given(people: Population, name: str, rows: Mask) -> bool:
    """Whether an amount is of what the task gives, as its name says: all repeats of a task reach its maximum, or none."""
    if name in _NAMED or not _GIVEN.search(name):
        return False
    return not people.has_repeats or (bool(np.isin(people.task, people.task[rows]).sum() == rows.sum()) and people.n_tasks(rows) >= 3)


# ---- Loops and errors ------------------------------------------------------------------------------


def _loop(people: Population, rows: Mask, left: Mask, limit: str) -> Group:
    """Rows that repeat one call or one error until they are stopped: the loop is the cause, the limit its end."""
    own, without = people.of(rows & left), _without(people, rows)
    if sum(row.is_repeating for row in own) >= 0.5 * len(own):
        return group("cut.babble", people, rows, left, limit=limit, without=without)
    template, n_met = common_error(people, rows & left)
    error = ""
    if template:
        error = f" In {n_met:,} the same kind of error comes again and again, such as: {shown_error(people, rows & left, template)}."
    elif not any(act.failed for row in own for act in row.acts[-3:]):
        error = " No error comes back, and nothing new does."
    has_limit = limit.startswith("a limit")
    return group(
        "cut.loop", people, rows, left, limit=limit, what="a failing" if template else "one", failing=template, error=error,
        until="the limit" if has_limit else "it is stopped", ends=" ends the rollout" if has_limit else "", without=without,
        place=at_act(lambda act: act.template == template) if template else None, detail=lambda i: repeated(people.rows[i]),
    )  # fmt: skip


def repeated(row: RowEvidence) -> str:
    """The call or the error that a row repeats most, for a sentence."""
    if row.most_met >= max(2, row.most_made):
        template, _ = most_common(act.template for act in row.acts if act.template)
        error = next(act.error for act in row.acts if act.template == template)
        return f"{row.most_met:,} of {count(row.n_acts, 'call')} end in an error like: {short(error, 100)}"
    if row.most_made < 2:
        return ""
    (tool, _), _ = most_common((act.tool, act.key) for act in row.acts)
    what = "the same message is sent" if row.is_spoken else f"`{short(tool, 60)}` is called"
    return f"{what} {row.most_made:,} times{'' if row.is_spoken else ' with the same arguments'}"


def shown_error(people: Population, rows: Mask, template: str, most: int = 110) -> str:
    """An error as one of some rows words it."""
    errors = (act.error for row in people.of(rows) for act in row.acts if act.template == template)
    return short(next(errors, template).strip().rstrip("."), most)


def common_error(people: Population, rows: Mask, share: float = 0.5) -> tuple[str, int]:
    """The error that most of some rows meet, and how many do."""
    own = people.of(rows)
    template, n = most_common(error for row in own for error in dict.fromkeys(act.template for act in row.acts if act.template))
    return (template, n) if n >= share * len(own) else ("", 0)


def is_looping(row: RowEvidence, last: int = 6, times: int = 3, end: int = 6) -> bool:
    """Whether the last acts of a rollout repeat one call or meet one error again and again, one of the last `end` too; or its text does."""
    if row.is_repeating:
        return True
    if max(row.most_made, row.most_met) < times:
        return False
    acts = row.acts[-last:]
    calls, errors = Counter((act.tool, act.key) for act in acts), Counter(act.template for act in acts if act.template)
    return any(calls[act.tool, act.key] >= times or errors[act.template] >= times for act in acts[-end:])


def _is_loop(people: Population, rows: Mask) -> bool:
    """Whether most of some rollouts repeat one call or one error before their end."""
    own = people.of(rows)
    return bool(own) and sum(map(is_looping, own)) >= 0.5 * len(own)


# ---- How rollouts end ------------------------------------------------------------------------------


def _stops_on_success(people: Population, rows: Mask) -> bool:
    """Whether nearly all rows below the maximum pass: then failing is what makes a rollout long."""
    below = ~rows
    if below.sum() >= 10:
        return people.rate(below) >= STOPS
    # with few rows below only a clean cut tells: all of them pass, and none at the maximum does
    return bool(below.sum() >= 3 and people.passed[below].all() and not people.passed[rows].any())


def ends_on_success(people: Population) -> bool:
    """Whether the act that ends the passes is a try: failing rollouts that make it go on, so success is what ends a rollout."""
    last, n = most_common(last_act(row) for row in people.of(people.passed) if row.end == "result")
    if not last or n < ENDED * people.passed.sum():
        return False
    tried = [row for row in people.of(people.failed) if any(act_name(act) == last for act in row.acts)]
    went_on = sum(any(act_name(act) == last for act in row.acts[:-1]) for row in tried)
    return went_on >= max(3, 0.5 * len(tried))


def is_best_of_many(people: Population) -> bool:
    """Whether episodes stop on success, so that what fails goes on to the maximum of calls."""
    most = max((row.n_acts for row in people.rows), default=0)
    return most >= 3 and (_stops_on_success(people, people.where(lambda row: row.n_acts == most)) or ends_on_success(people))


def fails_at_first(people: Population) -> tuple[int, int] | None:
    """How many first tries end in an error and of how many, where nearly all do, whatever the task: the model alone is not to blame."""
    first = [row.acts[0].failed for row in people.rows if row.acts and row.acts[0].is_answered]
    return (sum(first), len(first)) if len(first) >= FIRST_TRIES and sum(first) >= BARRED * len(first) else None


def _is_finished(people: Population, rows: Mask) -> bool:
    """Whether most of some rollouts end as the passing ones do."""
    return bool(rows.any() and _finished(people)[rows].mean() >= 0.5)


def _finished(people: Population) -> Mask:
    """Rollouts that end as some share of the passing ones do: on the same kind of step, after the same last act where that counts."""
    passes = people.of(people.passed)
    n_usual = most_common(map(last_act, passes))[1]

    def end_of(row: RowEvidence) -> tuple[str, str]:
        return row.end, last_act(row) if n_usual >= ENDED * len(passes) or row.end in ("call", "result") else ""

    usual = {end for end, n in Counter(map(end_of, passes)).items() if n >= OFTEN * len(passes)}
    return people.where(lambda row: end_of(row) in usual and not row.is_open)


def last_act(row: RowEvidence) -> str:
    """The tool of the last call, with the command where it runs one."""
    return act_name(row.acts[-1]) if row.acts else ""


def act_name(act: Act) -> str:
    return f"{act.tool} {act.verb}".strip()


# ---- An answer that breaks off ---------------------------------------------------------------------


def _open_end(people: Population, left: Mask) -> Group | None:
    """Rows whose final text stops in the middle."""
    # a character that opens something, such as a comma or a bracket, is an open end where hardly any passing text ends so
    opens = people.where(lambda row: row.final.rstrip().endswith(tuple(",([{<\\=+-")))
    n = int((people.passed & people.where(lambda row: row.final.strip())).sum())
    rare = opens if n >= 10 and (people.passed & opens).sum() < max(1, 0.05 * n) else people.none
    ends = people.where(lambda row: row.is_open) | rare | _unfinished_lines(people) | _unfinished_forms(people)
    # where nearly as much of a form is filled in as by passes, what is cut off can hardly be what a row fails for
    lengths = [len(row.labels) for row in people.of(people.passed) if row.labels]
    least = WHOLE_FORM * float(np.median(lengths)) if len(lengths) >= LEAST_FORMS else np.inf
    rows = ends & people.where(lambda row: len(row.labels) < least)
    if (rows & left).sum() < max(2, 0.1 * left.sum()) or _is_innocent(people, rows, left) or people.rate(rows) > 0.25:
        return None
    return group(
        "cut.open end", people, rows, left, without=_without(people, rows),
        detail=lambda i: f'it ends "…{short(people.rows[i].final.strip()[-60:], 60)}"; what comes before the cut is not checked here',
    )  # fmt: skip


def _unfinished_lines(people: Population) -> Mask:
    """Rows whose last line is a proper beginning of a line that other rollouts wrote in full."""
    texts = (line.strip() for row in people.rows for line in row.final.splitlines()[:-1])
    lines = sorted({line[:MAX_LINE] for line in texts if len(line) > LEAST_LINE})

    def is_cut(row: RowEvidence) -> bool:
        _, newline, last = row.final.rpartition("\n")
        last = last.strip()
        # the first line that does not come before it is the line itself, where some row has it
        longer = lines[bisect_left(lines, last) :][:1]
        return bool(newline and len(last) >= LEAST_LINE and longer and longer[0] != last and longer[0].startswith(last))

    return people.where(is_cut)


def _unfinished_forms(people: Population) -> Mask:
    """Rows that end with a line after which the form goes on: nearly all others that have it do, or the prompt, as others show."""
    having: Counter[bytes] = Counter()
    ending: Counter[bytes] = Counter()
    for row in people.rows:
        if row.labels:
            having.update(_parts(row))
            ending[row.labels[-8:]] += 1

    def is_cut(row: RowEvidence) -> bool:
        last = row.labels[-8:]
        if last and having[last] >= 5 and ending[last] <= 0.2 * having[last]:
            return True
        return having[row.next_label] >= 2 and row.next_label not in _parts(row)

    return people.where(is_cut)


def _parts(row: RowEvidence) -> set[bytes]:
    return {row.labels[i : i + 8] for i in range(0, len(row.labels), 8)}
