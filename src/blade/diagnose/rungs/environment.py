"""Ask whether the world around the agent worked: rows never graded, and tools that fail where the same call works.

Fires on flaky servers, quotas and graders that crashed; stays silent on errors that answer the model's own arguments
(the same call fails every time) and on errors from which rollouts recover.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from blade import events
from blade.diagnose.evidence import Act, RowEvidence
from blade.diagnose.fact_cover import IMPURE, LEVEL, contrast
from blade.diagnose.fields import template
from blade.diagnose.groups import Findings, Group, ask_each, at_call, group, in_field, joined, short
from blade.diagnose.population import Mask, Population, most_common
from blade.diagnose.rungs.cut import USUAL, is_looping, shown_error
from blade.diagnose.rungs.ran import TRANSPORT, in_words, lines_of

LEAST = 3
DIFFERENT = 5  # different calls that must all fail alike before a tool is said not to work
MAX_PLACES = 60  # values of a field that names where rollouts ran
EVENT = 0.8  # share of the failures that carry a field, from which it is a verdict and no event


def ask_errors(people: Population, left: Mask) -> Findings:
    """What rows record of themselves: asked before how they end, since an error ends a rollout too."""
    return ask_each(people, left, (_events, _ungraded_whole), doubted=True)


def ask(people: Population, left: Mask) -> Findings:
    return ask_each(people, left, (_ungraded, _barred, _dead, _flaky, _logged, _assigned), doubted=True)


# ---- Was it graded ----------------------------------------------------------------------------------


def _ungraded_whole(people: Population, left: Mask) -> list[Group]:
    """Rows that were never graded, unless most of them end on an open call: then that says more."""
    groups = _ungraded(people, left)
    own = [row for proved in groups for row in people.of(proved.rows)]
    return [] if 2 * sum(row.is_pending for row in own) >= len(own) else groups


def _ungraded(people: Population, left: Mask) -> list[Group]:
    """Rows that lack every verdict field that all passes have."""
    open_ = people.passed | left  # rows that never ran lack more than their verdict
    columns = {path: people.codes(path)[0] for path in people.paths if people.passed.sum() >= 5}
    verdicts = [path for path, codes in columns.items() if not (codes[open_] >= 0).all() and (codes[people.passed] >= 0).all()]
    if not any(people.is_reward(path, 0) for path in verdicts):
        return []  # one absent field is not enough: an answer that could not be read leaves a gap too
    rows = open_ & np.all([columns[path] < 0 for path in verdicts], axis=0)
    for codes in columns.values():
        if (codes[rows] >= 0).any() and people.is_graded(codes) and not (codes[people.passed] < 0).any():
            return []  # another verdict field is there: they were graded
    n = int((rows & left).sum())
    if not n or people.passed[rows].any() or n > 0.9 * left.sum() or _never_handed_in(people, rows & left):
        return []
    claimed = rows & left & ~people.where(is_looping)  # a loop is what ended the others; that they were not graded follows from it
    if not claimed.any():
        return []
    n_loops = n - int(claimed.sum())
    turns = min(row.n_turns for row in people.of(rows & left))
    return [group(
        "environment.never graded", people, claimed, matched=rows, names=joined(verdicts), turns=turns, loops=n_loops,
        lacking="is absent" if len(verdicts) == 1 else "are absent", were="was" if n_loops == 1 else "were",
        long=turns > np.quantile([row.n_turns for row in people.of(~rows)], 0.9),
    )]  # fmt: skip


def _never_handed_in(people: Population, rows: Mask) -> bool:
    """Whether most of some rollouts ended of their own accord without the call by which nearly all passes hand in."""
    passes, ended = people.of(people.passed), people.of(rows)
    tool, n = most_common(row.acts[-1].tool for row in passes if row.acts and not row.is_spoken)
    without = sum(row.end == "message" and all(act.tool != tool for act in row.acts) for row in ended)
    return n > 0 and n >= 0.9 * len(passes) and without >= 0.5 * len(ended)


# ---- What rows and logs record ------------------------------------------------------------------------


def _events(people: Population, left: Mask) -> list[Group]:
    """Rows that carry an error which neither a pass nor most other failures carry: something happened to them."""
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    present: Counter[str] = Counter()
    for i, row in enumerate(people.rows):
        for path, value in row.fields.items():
            if isinstance(value, str) and value.strip():
                present[path] += 1
                if people.failed[i]:
                    places[path, template(value)].append(i)
    by_path: defaultdict[str, list[tuple[str, list[int]]]] = defaultdict(list)
    for (path, text), rows in sorted(places.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        # a field that every failure has is the verdict, whatever it says; so is what answers the work of the model
        if present[path] <= EVENT * people.failed.sum() and TRANSPORT.search(text):
            by_path[path].append((text, rows))
    result: list[Group] = []
    for path, texts in sorted(by_path.items(), key=lambda pair: -sum(len(rows) for _, rows in pair[1])):
        mask = people.mask(i for _, rows in texts for i in rows)
        if (mask & left).sum() >= LEAST and not any(row.fields.get(path) for row in people.of(people.passed)):
            result.append(_event(people, path, [text for text, _ in texts], mask, left))
            left = left & ~mask
    return result


def _event(people: Population, path: str, texts: Sequence[str], rows: Mask, left: Mask) -> Group:
    values = [str(row.fields.get(path) or "") for row in people.of(rows & left)]
    words = [short(next((value for value in values if template(value) == text), text), 110) for text in texts[:3]]
    more = f"; also: {'; '.join(words[1:])}" if len(words) > 1 else ""
    return group("environment.event", people, rows, left, path=path, words=words[0], more=more, place=in_field(path, texts[0]))


def _logged(people: Population, left: Mask) -> list[Group]:
    """Lines of logs that strike rollouts which did and said exactly what passing ones of the same task did."""
    passing = {(int(people.task[i]), _done(people.rows[i])) for i in np.flatnonzero(people.passed)}
    alike = np.array([(task, _done(row)) in passing for task, row in zip(people.task.tolist(), people.rows, strict=True)], bool)
    struck, guilty = people.none, []
    common = [(place, rows) for place, rows in people.places(lines_of).items() if len(rows) >= LEAST]
    for (path, line), rows in sorted(common, key=lambda pair: (-len(pair[1]), -len(pair[0][1]), pair[0])):
        mask = people.mask(rows)
        claimed = mask & left & ~struck
        n = int(claimed.sum())
        if n < LEAST or people.passed[mask].any() or not events.ERROR.search(line):
            continue
        if (claimed & alike).sum() >= max(LEAST, 0.5 * n) or (TRANSPORT.search(line) and n >= 5 and people.n_tasks(claimed) >= LEAST):
            guilty.append((path, line))
            struck |= mask & left
    if not guilty:
        return []
    words = [in_words(people, path, line, struck) for path, line in guilty[:2]]
    return [group(
        "environment.logged", people, struck, path=guilty[0][0], words=words[0], lines="; ".join(text[:120] for text in words),
        alike=int((struck & alike).sum()), confidence="proved" if (struck & alike).any() else "likely",
        place=lambda row: next((place for place in guilty if place[1] in row.lines.get(place[0], ())), None),
    )]  # fmt: skip


def _done(row: RowEvidence) -> tuple[int, ...]:
    """What a rollout did and handed in, so that equal ones are equal: of a text with a fence only what is in it."""
    calls = () if row.is_spoken else tuple(act.key for act in row.acts)
    return (*calls, hash(row.answers.get("fence") or row.final))


# ---- Tools that do not work --------------------------------------------------------------------------


def _barred(people: Population, left: Mask) -> list[Group]:
    """Rows in which the expected call itself, made exactly as expected, answers with an error."""
    result = []
    for barred, _ in sorted(Counter(row.barred for row in people.rows if row.barred).items(), key=lambda pair: (-pair[1], pair[0])):
        rows = people.where(lambda row: row.barred == barred)  # noqa: B023
        tool, _, error = barred.partition(": ")
        calls = [act.failed for row in people.rows for act in row.acts if act.tool == tool]
        ever_works = sum(calls) < 0.9 * len(calls)  # an error now and then may answer what the model did before
        if (rows & left).sum() < LEAST or people.rate(rows) > 0.1 or people.n_tasks(rows) < LEAST or ever_works:
            continue
        result.append(group("environment.barred", people, rows, left, tool=tool, error=error))
        result[-1].passed = 0  # a pass needed another call than the expected one
        left = left & ~rows
    return result


def _dead(people: Population, left: Mask) -> list[Group]:
    """Tools that answer every call of the run with one and the same error, whatever the arguments: they do not work here."""
    calls: defaultdict[str, list[Act]] = defaultdict(list)
    for row in people.rows:
        for act in () if row.is_spoken else row.acts:
            if act.is_answered:
                calls[act.tool].append(act)
    result = []
    declared = {tool for row in people.rows for tool in row.tools}
    for tool, acts in sorted((tool, acts) for tool, acts in calls.items() if tool in declared):
        errors, different = {act.template for act in acts}, len({act.key for act in acts})
        if len(errors) > 1 or "" in errors or different < DIFFERENT:
            continue
        rows = people.where(lambda row: any(act.tool == tool for act in row.acts))  # noqa: B023
        has_others = (~rows).any()
        if (rows & left).sum() < LEAST or people.n_tasks(rows) < LEAST:
            continue
        if people.rate(rows) > (USUAL * people.rate(~rows) if has_others else 0.1):
            continue
        brief, error = (shown_error(people, rows, next(iter(errors)), most) for most in (70, 120))
        result.append(group(
            "environment.dead", people, rows, left, tool=tool, calls=len(acts), different=different, brief=brief, error=error,
            elsewhere=f", {people.rate(~rows):.0%} of the others" if has_others else "", place=at_call(tool),
        ))  # fmt: skip
        left = left & ~rows
    return result


def _flaky(people: Population, left: Mask) -> list[Group]:
    """Errors of calls that succeed elsewhere after exactly the same acts, so that neither they nor the state differ."""
    works = {(prefix, act.key) for row in people.rows for prefix, act in _prefixed(row) if not act.failed and act.is_answered}
    errors: defaultdict[str, set[int]] = defaultdict(set)
    proved: defaultdict[str, set[int]] = defaultdict(set)
    for i, row in enumerate(people.rows):
        worked = {act.key for act in row.acts if not act.failed}
        for prefix, act in _prefixed(row):
            if act.template and act.key not in worked:  # a call that was repeated with success did no harm
                errors[act.template].add(i)
                if (prefix, act.key) in works:
                    proved[act.template].add(i)
    rows = people.none
    guilty: list[str] = []
    for error, places in sorted(proved.items(), key=lambda pair: -len(pair[1])):
        struck = people.mask(errors[error])
        others, rate = ~struck & ~rows, people.rate(struck)
        # where there are no others there is nothing to compare with
        if len(places) >= max(LEAST, 0.3 * struck.sum()) and rate <= 0.1 and rate < USUAL * people.rate(others):
            guilty.append(error)
            rows |= struck
    claimed = rows & left
    if claimed.sum() < LEAST:
        return []
    tools = Counter(tool for row in people.of(claimed) for tool in {act.tool for act in row.acts if act.template in guilty})
    return [group(
        "environment.flaky", people, rows, left, tools=joined(tool for tool, _ in tools.most_common()),
        brief=shown_error(people, claimed, guilty[0], 60), shown="; ".join(shown_error(people, claimed, error, 90) for error in guilty[:2]),
        place=lambda row: next(((act.step, act.template) for act in row.acts if act.template in guilty), None),
    )]  # fmt: skip


def _prefixed(row: RowEvidence) -> Iterator[tuple[int, Act]]:
    """Each act with a hash of all acts before it."""
    prefix = 0
    for act in row.acts:
        yield prefix, act
        prefix = hash((prefix, act.key))


# Names of what a harness assigns to a rollout; that rollouts pass less often there is what decides.
_PLACE = re.compile(
    r"node|worker|host|shard|region|machine|gpu|server|replica|zone|pool|runner|endpoint|instance|cluster|box|pod|container|executor|device",
    re.IGNORECASE,
)


def _assigned(people: Population, left: Mask) -> list[Group]:
    """Values of a field that names where a rollout ran, on which it passes far less often in the same tasks."""
    tests = []
    for path in people.paths if people.has_repeats else ():
        codes, values = people.codes(path)
        if _PLACE.search(path.rpartition(".")[2]) and 2 <= len(values) <= MAX_PLACES and not people.is_constant_within(codes):
            tests += [(path, value, codes == code) for code, value in enumerate(values)]
    guilty: dict[str, list[tuple[str, Mask]]] = {}
    for path, value, rows in tests:
        test = contrast(people, rows, left)
        if test is not None and test.p * len(tests) <= LEVEL and test.purity >= IMPURE and (test.rows & left).sum() >= LEAST:
            guilty.setdefault(path, []).append((f"`{str(value)[:60]}`", rows))
    result = []
    for path, places in guilty.items():
        rows = np.logical_or.reduce([present for _, present in places])
        test = contrast(people, rows, left)  # several bad places together, against all others
        if test is None or (test.rows & left).sum() < LEAST:
            continue
        names = [name for name, _ in places[:4]] + ([f"{len(places) - 4} more"] if len(places) > 4 else [])
        result.append(group(
            "environment.assigned", people, test.rows & left, matched=rows, path=path, named=" or ".join(names),
            each=" and ".join(names), there=test.pass_with, elsewhere=test.pass_without, place=in_field(path),
        ))  # fmt: skip
        left = left & ~test.rows
    return result
