"""Ask whether the world around the agent worked: rows never graded, and tools that fail where the same call works.

Fires on flaky servers, quotas and graders that crashed; stays silent on errors that answer the model's own arguments
(the same call fails every time) and on errors from which rollouts recover.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from blade import events
from blade.diagnose.evidence import Act, RowEvidence, template
from blade.diagnose.population import Findings, Group, Mask, Population, Trust, count, joined
from blade.diagnose.rungs.cut import USUAL, shown_error
from blade.diagnose.rungs.ran import SERVICE, alarm_level, in_words

LEAST = 3
EVENT = 0.8  # share of the failures that carry a field, from which it is a verdict and no event


def ask_errors(people: Population, left: Mask) -> Findings:
    """What rows record of themselves: asked before how they end, since an error ends a rollout too."""
    return _asked(people, left, (_events,))


def ask(people: Population, left: Mask) -> Findings:
    return _asked(people, left, (_ungraded, _barred, _flaky, _logged))


def _asked(
    people: Population, left: Mask, makes: Sequence[Callable[[Population, Mask], list[Group]]]
) -> Findings:
    found = Findings()
    for make in makes:
        for group in make(people, left):
            left = left & ~group.rows
            found.groups.append(group)
            found.trust.append(
                Trust(alarm_level(people, group), group.label, group.text, group.rows, group.fix)
            )
    return found


def _ungraded(people: Population, left: Mask) -> list[Group]:
    """Rows that lack every verdict field that all passes have."""
    if people.passed.sum() < 5:
        return []
    verdicts = []
    for path in people.paths:
        held = np.array([value is not None for value in people.columns[path]], bool)
        if not held.all() and held[people.passed].all():
            verdicts.append((path, held))
    if not any(_states_reward(people, path) for path, _ in verdicts):
        return []  # one absent field is not enough: an answer that could not be read leaves a gap too
    rows = ~np.logical_or.reduce([held for _, held in verdicts])
    for path in people.paths:
        codes, _ = people.codes(path)
        if (codes[rows] >= 0).any() and people.is_graded(codes) and not (codes[people.passed] < 0).any():
            return []  # another verdict field is there: they were graded
    n = int((rows & left).sum())
    if not n or people.passed[rows].any() or n > 0.9 * left.sum():
        return []
    turns = [people.rows[at].n_turns for at in np.flatnonzero(rows & left)]
    others = [people.rows[at].n_turns for at in np.flatnonzero(~rows)]
    long = (
        f" All of them run for {min(turns)} turns or more." if min(turns) > np.quantile(others, 0.9) else ""
    )
    names = joined(path for path, _ in verdicts)
    group = Group(
        rung="environment", label="TI", name="never graded", rows=rows & left,
        text=f"{count(n, 'rollout')}: never graded, but counted as failed; {names}, present in every pass, is absent.{long}",
        fix="Find out why these rollouts were not graded (a limit, a crash of the grader) and grade or rerun them.",
        why="all verdict fields that passing rows have are missing", confidence="proved", matched=rows,
    )  # fmt: skip
    return [group]


def _states_reward(people: Population, path: str) -> bool:
    """Whether a field, where it is there, has two values, one of which equals the passes."""
    codes, values = people.codes(path)
    held = codes >= 0
    return len(values) == 2 and any(
        bool(np.array_equal((codes == code)[held], people.passed[held])) for code in (0, 1)
    )


def _events(people: Population, left: Mask) -> list[Group]:
    """Rows that carry an error which neither a pass nor most other failures carry: something happened to them."""
    failing = people.failed
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    present: Counter[str] = Counter()
    for at, row in enumerate(people.rows):
        for path, value in row.fields.items():
            if isinstance(value, str) and value.strip():
                present[path] += 1
                if failing[at]:
                    places[path, template(value)].append(at)
    found: list[Group] = []
    for (path, text), rows in sorted(places.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        # a field that every failure has is the verdict, whatever it says
        if len(rows) < LEAST or present[path] > EVENT * failing.sum() or not events.ERROR.search(text):
            continue
        mask = people.none
        mask[rows] = True
        if (
            any(people.rows[at].fields.get(path) for at in np.flatnonzero(people.passed))
            or not (mask & left).any()
        ):
            continue
        if _ends_like_passes(people, mask & left) and not SERVICE.search(text):
            continue  # whole rollouts with a message: what the grader found, not what happened to them
        found.append(_event(people, path, text, mask & left, mask))
        left = left & ~mask
    return found


def _ends_like_passes(people: Population, rows: Mask) -> bool:
    """Whether most of some rollouts ended of their own accord, as nearly all passes do."""
    ends = Counter((people.rows[at].end, bool(people.rows[at].final)) for at in np.flatnonzero(people.passed))
    if not ends:
        return False
    usual, n = ends.most_common(1)[0]
    same = sum((people.rows[at].end, bool(people.rows[at].final)) == usual for at in np.flatnonzero(rows))
    return n >= 0.9 * ends.total() and same >= 0.5 * rows.sum()


def _logged(people: Population, left: Mask) -> list[Group]:
    """Lines of logs that strike rollouts which did and said exactly what passing ones of the same task did."""
    passing = {(int(people.task[at]), _done(people.rows[at])) for at in np.flatnonzero(people.passed)}
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for at, row in enumerate(people.rows):
        for path, lines in row.lines.items():
            for line in lines:
                places[path, line].append(at)
    found: list[Group] = []
    for (path, line), rows in sorted(places.items(), key=lambda pair: (-len(pair[1]), -len(pair[0][1]), pair[0])):
        mask = people.none
        mask[rows] = True
        claimed = mask & left
        n = int(claimed.sum())
        if n < LEAST or people.passed[mask].any() or not events.ERROR.search(line):
            continue
        alike = sum((int(people.task[at]), _done(people.rows[at])) in passing for at in np.flatnonzero(claimed))
        if alike >= max(LEAST, 0.5 * n):
            found.append(_stage(path, line, claimed, mask, alike))
            left = left & ~mask
    return found


def _done(row: RowEvidence) -> tuple[int, ...]:
    """What a rollout did and said, so that equal ones are equal."""
    return (*(act.key for act in row.acts), hash(row.final))


def _stage(path: str, line: str, rows: Mask, matched: Mask, alike: int) -> Group:
    n = int(rows.sum())
    return Group(
        rung="environment", label="IR", name=f"`{path}`: {line[:60]}", rows=rows, matched=matched, deciding=(path,),
        text=f"{count(n, 'rollout')}: `{path}` says: {line[:140]}. No pass has this line, and {alike:,} of these rollouts did and said "
        "exactly what a passing repeat of the same task did.",
        fix=f"Repair what `{path}` reports and rerun these rollouts; the model did nothing different.",
        why="the same acts pass in other repeats, so what surrounds the model differs", confidence="proved",
        place=lambda row: (path, line),
    )  # fmt: skip


def _event(people: Population, path: str, text: str, rows: Mask, matched: Mask) -> Group:
    n = int(rows.sum())
    said = in_words(people, path, text, rows)
    return Group(
        rung="environment", label="IR", name=f"`{path}`: {said[:60]}", rows=rows, matched=matched, deciding=(path,),
        text=f"{count(n, 'rollout')}: `{path}` says: {said[:120]}. No pass and few other failures have such an entry.",
        fix=f"Repair what `{path}` reports and rerun these rollouts.",
        why="the row records an error around the model that other rows do not have", confidence="likely",
        place=lambda row: (path, text), holds=lambda row: template(str(row.fields.get(path) or "")) == text,
    )  # fmt: skip


def _barred(people: Population, left: Mask) -> list[Group]:
    """Rows in which the expected call itself, made exactly as expected, answers with an error."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, row in enumerate(people.rows):
        if row.barred:
            places[row.barred].append(at)
    found = []
    for error, rows in sorted(places.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        mask = people.none
        mask[rows] = True
        n = int((mask & left).sum())
        tool, _, said = error.partition(": ")
        if n < LEAST or people.rate(mask) > 0.1 or people.n_tasks(mask) < LEAST or _works(people, tool):
            continue
        found.append(
            Group(
                rung="environment", label="TI", name=f"the expected call of `{tool}` fails", rows=mask & left, matched=mask,
                text=f"{count(n, 'rollout')}: `{tool}` is called exactly as expected and answers with an error: {said[:120]}.",
                fix=f"Repair `{tool}` in the environment, or the expected calls, and rerun these rollouts.",
                why="the call that the row itself expects does not work", confidence="likely", deciding=(tool,),
                holds=partial(_is_barred, error),
                place=lambda row: next(((act.step, "") for act in row.acts if act.failed), None),
            )
        )  # fmt: skip
        left = left & ~mask
    return found


def _is_barred(error: str, row: RowEvidence) -> bool:
    return row.barred == error


def _works(people: Population, tool: str) -> bool:
    """Whether a tool ever works: an error now and then may answer what the model did before."""
    calls = [act.failed for row in people.rows for act in row.acts if act.tool == tool]
    return sum(calls) < 0.9 * len(calls)


def _flaky(people: Population, left: Mask) -> list[Group]:
    """Errors of calls that succeed elsewhere after exactly the same acts, so that neither they nor the state differ."""
    works: set[tuple[int, int]] = set()
    for row in people.rows:
        works |= {(prefix, act.key) for prefix, act in _prefixed(row) if not act.failed and act.is_answered}
    errors: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    proved: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for at, row in enumerate(people.rows):
        for prefix, act in _prefixed(row):
            if act.template:
                errors[act.tool, act.template].add(at)
                if (prefix, act.key) in works:
                    proved[act.tool, act.template].add(at)
    found = []
    for (tool, error_text), places in sorted(proved.items(), key=lambda pair: -len(pair[1])):
        rows = people.none
        rows[list(errors[tool, error_text])] = True
        others = ~rows
        n = int((rows & left).sum())
        if n < LEAST or len(places) < max(LEAST, 0.3 * rows.sum()) or not others.any():
            continue
        if people.rate(rows) <= 0.1 and people.rate(rows) < USUAL * people.rate(others):
            found.append(_group(people, tool, error_text, rows & left, rows))
            left = left & ~rows
    return found


def _prefixed(row: RowEvidence) -> Iterator[tuple[int, Act]]:
    """Each act with a hash of all acts before it."""
    prefix = 0
    for act in row.acts:
        yield prefix, act
        prefix = hash((prefix, act.key))


def _group(people: Population, tool: str, error_text: str, rows: Mask, matched: Mask) -> Group:
    n = int(rows.sum())
    return Group(
        rung="environment", label="IR", name=f"`{tool}` fails: {shown_error(people, rows, error_text, 60)}", rows=rows,
        text=f"{n:,} failing rollouts met this error of `{tool}`: {shown_error(people, rows, error_text, 120)}. The same calls after "
        "the same acts succeed in other rollouts, so neither the arguments nor the state is the reason.",
        fix=f"Repair or retry `{tool}` in the environment and rerun these rollouts.",
        why="the same call succeeds elsewhere in this run", passed=int(people.passed[matched].sum()), matched=matched,
        place=lambda row: next(((act.step, error_text) for act in row.acts if act.template == error_text), None),
        deciding=(tool,),
    )  # fmt: skip
