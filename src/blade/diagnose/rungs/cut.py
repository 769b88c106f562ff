"""Ask whether rollouts were stopped from outside: a stop reason, a pending call, a spike at a maximum, an open end.

Fires on limits of turns, calls, tokens or time under whatever field name; refuted where rows that end so pass at the usual
rate, where nearly all rows below the limit pass (the episode stops on success), and where the acts before the limit
repeat one call or one error: then the loop is the cause.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from blade.diagnose.evidence import Act, RowEvidence
from blade.diagnose.fields import LIMIT
from blade.diagnose.population import (
    Findings,
    Group,
    Mask,
    Population,
    Trust,
    as_float,
    at_end,
    count,
    passing,
    short,
    tells_the_end,
)
from blade.diagnose.rungs.ran import TRANSPORT, alarm_level

USUAL = 0.6  # share of the usual pass rate from which rows that end so are innocent
PENDING = 0.1  # pass rate up to which a pending call is guilty
SPIKE, SPIKE_ROWS = 2.0, 0.02
MANY = 20  # values of an amount that is the same in all repeats of a task, from which it is a measure
LEAST_LINE, MAX_LINE = 5, 120  # characters of a line that can be told unfinished, and that are compared
LEAST_LOOPS = 3  # rollouts at a limit that repeat themselves, from which they are a group of their own
ENDED = 0.9  # share of the passes that end on the result of one act
OFTEN = 0.1  # share of the passes that end in one way, from which it is a way to end
LEAST_FORMS, WHOLE_FORM = 3, 0.95  # passes that show how long a form is, and the share of it from which it counts as filled in
FIRST_TRIES, BARRED = 20, 0.9  # first tries, and the share of them that ends in an error, from which the surroundings are in doubt
BARRED_WHY = "nearly every first try ends in an error, so that the model and its surroundings cannot be told apart"
SHOW_TOOL = "Show the model what the tool accepts (names, schema, formats) before it guesses, and have it change the call after an error."
STOPS = 0.95  # pass rate below the limit from which episodes stop on success


def ask_recorded(people: Population, left: Mask) -> Findings:
    """Limits that rows record of themselves: asked before outputs are called empty, since a limit leaves them so."""
    return _asked(people, left, (_stop_reason,))


def ask(people: Population, left: Mask) -> Findings:
    return _asked(people, left, (_pending, _spike, _open_end))


def _asked(people: Population, left: Mask, makes: Sequence[Callable[[Population, Mask], Group | None]]) -> Findings:
    findings = Findings()
    rest = left.copy()
    for make in makes:
        group = make(people, rest)
        while group is not None:
            findings.groups.append(group)
            rest &= ~group.rows
            if group.label == "TI":
                findings.trust.append(
                    Trust(alarm_level(people, group), group.label, group.text, group.rows, group.fix)
                )
            group = make(people, rest) if make in (_stop_reason, _pending, _spike) else None
    return findings


def _is_innocent(people: Population, rows: Mask, left: Mask) -> bool:
    """Whether rows that end so pass as often as the others that are left to explain."""
    others = ~rows & (left | people.passed) & people.where(lambda row: row.has_output)
    usual = people.rate(others) if others.any() else 0.0
    return usual > 0 and people.rate(rows) >= USUAL * usual


def _stop_reason(people: Population, left: Mask) -> Group | None:
    """Rows whose recorded stop reason is a limit."""
    best: tuple[str, str, Mask] | None = None
    for path in people.paths:
        if not tells_the_end(path):
            continue
        codes, values = people.codes(path)
        if len(values) > 30 or (not path.startswith("response.") and people.is_graded(codes)):
            continue  # a limit that the grader reports about the submitted work is a verdict
        for code, value in enumerate(values):
            if not isinstance(value, str) or not LIMIT.search(value.replace("_", " ")) or TRANSPORT.search(value):
                continue  # a rate limit of a service is no limit of the rollout
            rows = codes == code
            n = int((rows & left).sum())
            is_guilty = n >= 1 and not _is_innocent(people, rows, left)
            # of equal rows the longer value says more: a reason before a status
            if is_guilty and (best is None or (n, len(value)) > (int((best[2] & left).sum()), len(best[1]))):
                best = path, value, rows
    if best is None:
        return None
    path, value, rows = best
    if _is_loop(people, rows & left):
        return _loop(people, rows, left, f"a limit (`{path}` is `{value}`)")
    n = int((rows & left).sum())
    return Group(
        rung="cut", label="TI", name=f"stopped by a limit ({value})", rows=rows & left,
        text=f"{count(n, 'rollout')}: cut off, since `{path}` is `{value}`.{_at_tokens(people, rows & left)}{_without(people, rows)}",
        fix=f"Raise the limit behind `{path}` = `{value}` and rerun these rollouts.",
        why="the row itself records that a limit ended the rollout", passed=int(people.passed[rows].sum()),
        place=lambda row: (path, value), confidence="proved", deciding=(path,), matched=rows,
        holds=lambda row: row.fields.get(path) == value,
    )  # fmt: skip


def _at_tokens(people: Population, rows: Mask) -> str:
    """The amount at which all of some rows ended, where another amount of the row is the same in nearly all, as a sentence."""
    for path in people.paths:
        values = Counter(people.columns[path][i] for i in np.flatnonzero(rows) if isinstance(people.columns[path][i], int))
        if not values or isinstance(next(iter(values)), bool):
            continue
        value, n = values.most_common(1)[0]
        is_top = value > 1 and n >= 0.9 * rows.sum() and value == max(filter(_is_amount, people.columns[path]))
        if is_top and not any(people.columns[path][i] == value for i in np.flatnonzero(~rows)):
            which = "It ends" if rows.sum() == 1 else f"{n:,} of them end"
            return f" {which} at `{path}` = {value:,}, the maximum in the run."
    return ""


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pending(people: Population, left: Mask) -> Group | None:
    """Rows that end on a call that nothing answers, or on a result that the model was not asked to answer."""
    for holds, end in (
        (_is_pending, "a tool call unanswered"),
        (_ends_on_result, "a tool result that it could not answer"),
    ):
        rows = people.where(holds)
        n = int((rows & left).sum())
        usual = people.where(holds)[people.passed].mean() if people.passed.any() else 0.0
        if n and people.rate(rows) <= PENDING and usual <= PENDING and not _is_innocent(people, rows, left):
            is_same_call = people.where(_repeats_a_call)
            loops = rows if _is_loop(people, rows & left) else rows & is_same_call
            if (loops & left).any():
                return _loop(people, loops, left, _stopped_by(people, loops & left))
            return _cut_off(people, rows, left, end, holds)
    return None


def _stopped_by(people: Population, rows: Mask) -> str:
    """What ended some rollouts, as far as a field says it in the same way for all of them; else after how many turns it happened."""
    for path in people.paths:
        codes, values = people.codes(path)
        if tells_the_end(path) and 2 <= len(values) <= 30 and len(set(codes[rows].tolist())) == 1 and codes[rows][0] >= 0:
            return f"the end (`{path}` is `{short(str(values[codes[rows][0]]), 60)}`)"
    turns = [row.n_turns for row in people.of(rows)]
    low, high = min(turns), max(turns)
    return f"the rollout is stopped after {low if low == high else f'{low} to {high}'} turns"


def _repeats_a_call(row: RowEvidence) -> bool:
    """Whether the last call is made for the third time or more within six."""
    calls = [(act.tool, act.key) for act in row.acts[-6:]]
    return bool(calls) and calls.count(calls[-1]) >= 3


def _is_pending(row: RowEvidence) -> bool:
    return row.is_pending


def _ends_on_result(row: RowEvidence) -> bool:
    return row.end == "result"


def _cut_off(people: Population, rows: Mask, left: Mask, end: str, holds: Callable[[RowEvidence], bool]) -> Group:
    n = int((rows & left).sum())
    turns = Counter(row.n_turns for row in people.of(rows & left))
    low, high = min(turns), max(turns)
    length = f"after {low} turns" if low == high else f"after {low} to {high} turns"
    limit = "a turn limit is the likely reason" if low == high else "the rows do not say what stopped them"
    goal = goal_of(people, lambda act: act.tool)
    never = _never_called(people, rows & left, goal)
    against = ["the number of turns varies, so the limit itself is not shown by the rows"] if len(turns) > 1 else []
    return Group(
        rung="cut", label="TI", rows=rows & left, holds=holds,
        name="cut off with a tool call still pending" if holds is _is_pending else "cut off before the model could answer",
        text=f"{count(n, 'rollout')}: cut off {length} with {end} ({limit})."
        f"{never}{_errors(people, rows & left)}"
        f"{_without(people, rows)}",
        fix="Find out what stopped them (a limit of turns, tokens or time) and raise it, or give the model a last turn without tools; "
        "then rerun these rollouts.",
        why="the model never got the turn to finish, and hardly any such rollout passes",
        against=against, passed=int(people.passed[rows].sum()), confidence="proved",
        place=lambda row: (row.acts[-1].step, "") if row.acts else None, matched=rows,
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
    last = Counter(name(row.acts[-1]) for row in passes if row.acts)
    call, n = last.most_common(1)[0] if last else ("", 0)
    return call if n >= ENDED * len(passes) else ""


def _never_called(people: Population, rows: Mask, tool: str) -> str:
    """How many of the cut rows never got to the tool that ends the passes."""
    if not tool:
        return ""
    without = sum(all(act.tool != tool for act in row.acts) for row in people.of(rows))
    return f" {without:,} never reached `{tool}`, the call that ends the passing rollouts." if without else ""


def _errors(people: Population, rows: Mask) -> str:
    """The tool error that most of some rows met on the way, as a sentence."""
    template, n = common_error(people, rows)
    return f" {n:,} of them lost a turn to an error like: {shown_error(people, rows, template, 80)}." if template else ""


def _without(people: Population, rows: Mask) -> str:
    """The pass rate of all other rollouts that have an output, as a sentence; where none passes it says nothing."""
    others = ~rows & people.where(lambda row: row.has_output)
    n = int(others.sum())
    if n < 3 or not people.passed[others].any():
        return ""
    return f" Of the other {n:,} with an output, {passing(int(people.passed[others].sum()))} ({people.rate(others):.0%})."


_NAMED = {"n_turns": "turns", "n_acts": "tool calls", "final_length": "characters of text"}


def _spike(people: Population, left: Mask) -> Group | None:
    """Rows that pile up at the maximum of an amount: a limit, whatever it is called."""
    best: tuple[int, str, float, Mask] | None = None
    for name, values in _amounts(people):
        top = np.nanmax(values) if np.isfinite(values).any() else np.nan
        if not np.isfinite(top) or top <= 1:
            continue
        rows = values == top
        n = int(rows.sum())
        below = values[np.isfinite(values) & ~rows]
        if n < max(3, SPIKE_ROWS * people.n) or below.size < 3 or (rows & left).sum() < 3:
            continue
        steps = np.unique(below)[-2:]
        if any(n < SPIKE * (values == step).sum() for step in steps):
            continue
        is_given = _is_given(people, name, rows)
        # of a cut input what counts may be left; a cut rollout hardly ever passes
        if _is_innocent(people, rows, left) or (people.rate(rows) > 0.25 and not is_given) or _stops_on_success(people, rows):
            continue
        if name in ("n_turns", "n_acts") and ends_on_success(people):
            continue  # what fails goes on to the limit, whatever it fails for
        if not is_given and _is_finished(people, rows & left) and not (_is_beside(name) and not people.passed[rows].any()):
            continue
        if name == "final_length" and (not _differ(people, rows) or not _breaks_off(people, rows & left)):
            continue
        covered = int((rows & left).sum())
        if best is None or covered > best[0]:
            best = covered, name, float(top), rows
    if best is None:
        return None
    covered, name, top, rows = best
    label = _NAMED.get(name, f"`{name}`")
    if name in ("n_turns", "n_acts"):  # some get to the maximum and end there by themselves
        rows = rows & ~_finished(people) & ~_ended_otherwise(people)
        covered = int((rows & left).sum())
        if not covered:
            return None
    loops = rows & people.where(is_looping)
    if _is_loop(people, rows & left):
        return _loop(people, rows, left, f"a limit ({top:,.0f} {label})")
    if (loops & left).sum() >= LEAST_LOOPS:  # the limit only ended what had already failed in these
        return _loop(people, loops, left, f"a limit ({top:,.0f} {label})")
    if _is_given(people, name, rows):
        return _cut_input(people, rows, left, name, top)
    if _is_beside(name) and _is_finished(people, rows & left):
        return _cut_beside(people, rows, left, name, top)
    return Group(
        rung="cut", label="TI", name=f"stopped at {top:,.0f} {label}", rows=rows & left,
        text=f"{count(covered, 'rollout')}: the end comes at exactly {top:,.0f} {label}, the maximum in the run, so a limit cut them off."
        f"{_without(people, rows)}",
        fix=f"Raise the limit of {top:,.0f} {label} and rerun these rollouts.",
        why="far more rollouts end at the maximum than just below it, and they pass less often",
        passed=int(people.passed[rows].sum()), against=["the limit itself is not recorded"], matched=rows,
        place=at_end,
    )  # fmt: skip


_OUTPUT = re.compile(r"tokens?|length|chars|characters", re.IGNORECASE)


def _is_beside(name: str) -> bool:
    """Whether an amount of text belongs to something else that the row records, such as the reply of a judge."""
    return "." in name and not name.startswith("response.") and not _GIVEN.search(name) and _OUTPUT.search(name) is not None


_GIVEN = re.compile(r"prompt|input|context", re.IGNORECASE)


def _is_given(people: Population, name: str, rows: Mask) -> bool:
    """Whether an amount is of what the task gives, as its name says: all repeats of a task reach its maximum, or none."""
    if name in _NAMED or not _GIVEN.search(name):
        return False
    return not people.has_repeats or (bool(np.isin(people.task, people.task[rows]).sum() == rows.sum()) and people.n_tasks(rows) >= 3)


def _cut_beside(people: Population, rows: Mask, left: Mask, name: str, top: float) -> Group:
    """Rows that end as passes do, while what another model wrote about them ends at exactly the largest amount."""
    n = int((rows & left).sum())
    return Group(
        rung="cut", label="TI", name=f"`{name}` ends at its limit of {top:,.0f}", rows=rows & left, matched=rows,
        text=f"{count(n, 'failure')}: `{name}` is exactly {top:,.0f}, the maximum in the run, and none of these rollouts passes, though "
        f"they end as passes do: what `{name.rpartition('.')[0]}` records, such as a judge's reply, was probably cut off."
        f"{_without(people, rows)}",
        fix=f"Raise the limit behind `{name}` and score the stored answers again; the model need not be asked again.",
        why="far more rows end at the maximum than just below it, and the rollouts themselves are complete",
        against=["the limit itself is not recorded"], place=lambda row: (name, ""), blame=lambda row: None, deciding=(name,),
        detail=lambda i: f"`{name}` is {top:,.0f}",
    )  # fmt: skip


def _breaks_off(people: Population, rows: Mask) -> bool:
    """Whether most of some texts end without a sign that closes a sentence, a block or an answer."""
    ends = [row.final.rstrip()[-1:] for row in people.of(rows)]
    return sum(end not in ".!?)]}>\"'`”*$" for end in ends) >= 0.5 * len(ends)


def _cut_input(people: Population, rows: Mask, left: Mask, name: str, top: float) -> Group:
    """Rows whose task is given in exactly the largest amount, repeat by repeat: the input was cut to a limit."""
    n = int((rows & left).sum())
    return Group(
        rung="cut", label="TI", name=f"input at the limit of {top:,.0f} `{name}`", rows=rows & left, matched=rows,
        text=f"{count(n, 'failure')}: `{name}` is exactly {top:,.0f} in all repeats of these tasks, the maximum in the run, so what the "
        f"model was given was probably cut to a limit.{_without(people, rows)}",
        fix=f"Check whether the input of these tasks was truncated at {top:,.0f}, raise the limit, and rerun them.",
        why="many tasks have exactly the largest amount, and they hardly ever pass", passed=int(people.passed[rows].sum()),
        against=["the limit itself is not recorded", "tasks of this size may be hard in themselves"],
        place=lambda row: (name, ""), blame=lambda row: None,
    )  # fmt: skip


def _differ(people: Population, rows: Mask) -> bool:
    """Whether some texts are of one length because they were cut: then they say different things."""
    texts = [row.final for row in people.of(rows)]
    return len(set(texts)) >= 0.8 * len(texts)


def _loop(people: Population, rows: Mask, left: Mask, limit: str) -> Group:
    """Rows that repeat one call or one error until they are stopped: the loop is the cause, the limit its end."""
    n = int((rows & left).sum())
    if sum(row.is_repeating for row in people.of(rows & left)) >= 0.5 * n:
        return _babble(people, rows, left, limit)
    is_limit = limit.startswith("a limit")
    template, n_template = common_error(people, rows & left)
    error = (
        f" In {n_template:,} the same kind of error comes again and again, such as: {shown_error(people, rows & left, template)}."
        if template
        else " No error comes back, and nothing new does."
        if not any(act.failed for row in people.of(rows & left) for act in row.acts[-3:])
        else ""
    )
    until = "the limit" if is_limit else "it is stopped"
    return Group(
        rung="cut", label="BI", name=f"repeats {'a failing' if template else 'one'} call until {until}",
        rows=rows & left, matched=rows, passed=int(people.passed[rows].sum()), confidence="likely",
        text=f"{count(n, 'failure')}: the same call or the same error is repeated until {limit}{' ends the rollout' if is_limit else ''}."
        f"{error}{_without(people, rows)}",
        fix=("Have the model change the call after an error, with what the tool accepts in view, and stop it when one repeats; " if template
             else "Stop or redirect the model when it repeats a call that brings nothing new; ")
        + ("a higher limit would only prolong the loop." if is_limit else "more turns would only prolong the loop."),
        why="the last acts repeat one call or one error, so the limit only ended what had already failed",
        place=lambda row: next(((act.step, "") for act in row.acts if act.template == template), None) if template else None,
        detail=lambda i: repeated(people.rows[i]),
    )  # fmt: skip


def repeated(row: RowEvidence) -> str:
    """The call or the error that a row repeats most, for a sentence."""
    if row.most_met >= max(2, row.most_made):
        template = Counter(act.template for act in row.acts if act.template).most_common(1)[0][0]
        error = next(act.error for act in row.acts if act.template == template)
        return f"{row.most_met:,} of {count(row.n_acts, 'call')} end in an error like: {short(error, 100)}"
    if row.most_made < 2:
        return ""
    (tool, _), _ = Counter((act.tool, act.key) for act in row.acts).most_common(1)[0]
    what = "the same message is sent" if row.is_spoken else f"`{short(tool, 60)}` is called"
    return f"{what} {row.most_made:,} times{'' if row.is_spoken else ' with the same arguments'}"


def _babble(people: Population, rows: Mask, left: Mask, limit: str) -> Group:
    """Rows whose text repeats one passage until it is cut."""
    n = int((rows & left).sum())
    return Group(
        rung="cut", label="BI", name="repeats one passage until the limit", rows=rows & left, matched=rows,
        passed=int(people.passed[rows].sum()), confidence="likely",
        text=f"{count(n, 'failure')}: the answer says one passage again and again until {limit} ends it.{_without(people, rows)}",
        fix="Break the repetition (repetition penalty, another temperature, a stop on repeats); a higher limit would only prolong it.",
        why="the end of the text repeats itself, so the limit only ended what had already failed",
        place=lambda row: (row.final_step, row.final[-80:]) if row.final_step is not None else None,
    )  # fmt: skip


def shown_error(people: Population, rows: Mask, template: str, most: int = 110) -> str:
    """An error as one of some rows words it."""
    errors = (act.error for row in people.of(rows) for act in row.acts if act.template == template)
    return short(next(errors, template).strip().rstrip("."), most)


def common_error(people: Population, rows: Mask, share: float = 0.5) -> tuple[str, int]:
    """The error that most of some rows meet, and how many do."""
    seen = Counter(
        template for i in np.flatnonzero(rows)
        for template in dict.fromkeys(act.template for act in people.rows[i].acts if act.template)
    )  # fmt: skip
    if not seen:
        return "", 0
    template, n = seen.most_common(1)[0]
    return (template, n) if n >= share * rows.sum() else ("", 0)


def _amounts(people: Population) -> list[tuple[str, np.ndarray]]:
    result = [(name, np.array([getattr(row, name) for row in people.rows], float)) for name in _NAMED]
    for path in people.paths:
        values = people.columns[path]
        if any(isinstance(value, bool | str) for value in values):
            continue
        numbers = np.array([as_float(value) for value in values], float)
        present = numbers[np.isfinite(numbers)]
        n_values = len(np.unique(present))
        if present.size < 0.5 * people.n or n_values < 5 or (present < 0).any():
            continue
        # of what a task is given only an amount of many values can pile up at a limit: a length, not a level
        if (n_values >= MANY and _GIVEN.search(path)) or not people.is_constant_within(people.codes(path)[0]):
            result.append((path, numbers))
    return result


def _stops_on_success(people: Population, rows: Mask) -> bool:
    """Whether nearly all rows below the maximum pass: then failing is what makes a rollout long."""
    below = ~rows
    if below.sum() >= 10:
        return people.rate(below) >= STOPS
    # with few rows below only a clean cut tells: all of them pass, and none at the maximum does
    return bool(below.sum() >= 3 and people.passed[below].all() and not people.passed[rows].any())


def ends_on_success(people: Population) -> bool:
    """Whether the act that ends the passes is a try: failing rollouts that make it go on, so success is what ends a rollout."""
    passes = [row for row in people.of(people.passed) if row.end == "result"]
    last, n = Counter(last_act(row) for row in passes).most_common(1)[0] if passes else ("", 0)
    if not last or n < ENDED * people.passed.sum():
        return False
    tried = [row for row in people.of(people.failed) if any(act_name(act) == last for act in row.acts)]
    went_on = sum(any(act_name(act) == last for act in row.acts[:-1]) for row in tried)
    return went_on >= max(3, 0.5 * len(tried))


def is_best_of_many(people: Population) -> bool:
    """Whether episodes stop on success, so that what fails goes on to the maximum of calls."""
    acts = np.array([row.n_acts for row in people.rows])
    if not acts.size or acts.max() < 3:
        return False
    return _stops_on_success(people, acts == acts.max()) or ends_on_success(people)


def fails_at_first(people: Population) -> tuple[int, int] | None:
    """How many first tries end in an error and of how many, where nearly all do, whatever the task: the model alone is not to blame."""
    first = [row.acts[0].failed for row in people.rows if row.acts and row.acts[0].is_answered]
    return (sum(first), len(first)) if len(first) >= FIRST_TRIES and sum(first) >= BARRED * len(first) else None


def _is_loop(people: Population, rows: Mask) -> bool:
    """Whether most of some rollouts repeat one call or one error before their end."""
    places = np.flatnonzero(rows)
    return bool(places.size) and sum(is_looping(people.rows[i]) for i in places) >= 0.5 * places.size


def is_looping(row: RowEvidence, last: int = 6, times: int = 3, end: int = 6) -> bool:
    """Whether the last acts of a rollout repeat one call or meet one error again and again, one of the last `end` too; or its text does."""
    if row.is_repeating:
        return True
    if max(row.most_made, row.most_met) < times:
        return False
    acts = row.acts[-last:]
    calls, errors = Counter((act.tool, act.key) for act in acts), Counter(act.template for act in acts if act.template)
    return any(calls[act.tool, act.key] >= times or errors[act.template] >= times for act in acts[-end:])


def _is_finished(people: Population, rows: Mask) -> bool:
    """Whether most of some rollouts end as the passing ones do."""
    return bool(rows.any() and _finished(people)[rows].mean() >= 0.5)


def _finished(people: Population) -> Mask:
    """Rollouts that end as some share of the passing ones do: on the same kind of step, after the same last act where that counts."""
    passes = people.of(people.passed)
    acts = Counter(last_act(row) for row in passes)
    is_usual = bool(acts) and acts.most_common(1)[0][1] >= ENDED * len(passes)

    def end_of(row: RowEvidence) -> tuple[str, str]:
        return row.end, last_act(row) if is_usual or row.end in ("call", "result") else ""

    usual = {end for end, n in Counter(map(end_of, passes)).items() if n >= OFTEN * len(passes)}
    return people.where(lambda row: end_of(row) in usual and not row.is_open)


def _ended_otherwise(people: Population) -> Mask:
    """Rollouts that record themselves how they ended, and it is no limit."""
    rows = people.none
    for path in people.paths:
        codes, values = people.codes(path)
        if tells_the_end(path) and 2 <= len(values) <= 30 and all(isinstance(value, str) for value in values):
            rows |= np.isin(codes, [code for code, value in enumerate(values) if not LIMIT.search(value.replace("_", " "))])
    return rows


def last_act(row: RowEvidence) -> str:
    """The tool of the last call, with the command where it runs one."""
    return act_name(row.acts[-1]) if row.acts else ""


def act_name(act: Act) -> str:
    return f"{act.tool} {act.verb}".strip()


def _open_end(people: Population, left: Mask) -> Group | None:
    """Rows whose final text stops in the middle."""
    ends = people.where(lambda row: row.is_open) | _rare_ends(people) | _unfinished_lines(people) | _unfinished_forms(people)
    rows = ends & ~_nearly_whole(people)
    n = int((rows & left).sum())
    if n < max(2, 0.1 * left.sum()) or _is_innocent(people, rows, left) or people.rate(rows) > 0.25:
        return None
    return Group(
        rung="cut", label="TI", name="answer cut off in the middle", rows=rows & left,
        text=f"{count(n, 'answer')}: truncated in the middle, inside a block or in an unfinished line, as an output "
        f"token limit leaves them. Some may be wrong before the cut as well.{_without(people, rows)}",
        fix="Raise max_tokens for the answer and rerun these rollouts.",
        why="the text ends where no author would end it", passed=int(people.passed[rows].sum()),
        against=["no stop reason is recorded", "what was said before the cut may be wrong as well"], matched=rows,
        detail=lambda i: f'it ends "…{short(people.rows[i].final.strip()[-60:], 60)}"; what comes before the cut is not checked here',
        place=lambda row: (row.final_step, row.final[-80:]) if row.final_step is not None else None,
    )  # fmt: skip


def _rare_ends(people: Population) -> Mask:
    """Rows whose last character is of a kind that hardly any passing text ends with: a comma, an open bracket."""
    passes = [row.final.rstrip() for row in people.of(people.passed)]
    if sum(map(bool, passes)) < 10:
        return people.none
    ends = Counter(_kind(text) for text in passes if text)
    usual = {kind for kind, n in ends.items() if n >= 0.05 * sum(ends.values())}
    return people.where(lambda row: row.final.strip() and _kind(row.final.rstrip()) == "open" and "open" not in usual)


def _unfinished_lines(people: Population) -> Mask:
    """Rows whose last line is a proper beginning of a line that other rollouts wrote in full."""
    texts = (line.strip() for row in people.rows for line in row.final.splitlines()[:-1])
    lines = {line[:MAX_LINE] for line in texts if len(line) > LEAST_LINE}
    longer = sorted(lines)

    def is_cut(row: RowEvidence) -> bool:
        last = row.final.rpartition("\n")[2].strip()
        if "\n" not in row.final or len(last) < LEAST_LINE or last in lines:
            return False
        i = bisect_left(longer, last)
        return any(line.startswith(last) and line != last for line in longer[i : i + 2])

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


def _nearly_whole(people: Population) -> Mask:
    """Rows that fill in nearly as much of a form as passes do: what is cut off can hardly be what they fail for."""
    lengths = [len(row.labels) for row in people.of(people.passed) if row.labels]
    if len(lengths) < LEAST_FORMS:
        return people.none
    least = WHOLE_FORM * float(np.median(lengths))
    return people.where(lambda row: len(row.labels) >= least)


def _kind(text: str) -> str:
    return "open" if text[-1] in ",([{<\\=+-" else "closed"
