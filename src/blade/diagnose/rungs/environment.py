"""Ask whether the world around the agent worked: rows never graded, and tools that fail where the same call works.

Fires on flaky servers, quotas and graders that crashed; stays silent on errors that answer the model's own arguments
(the same call fails every time) and on errors from which rollouts recover.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from blade import events
from blade.diagnose.evidence import Act, RowEvidence
from blade.diagnose.fact_cover import IMPURE, LEVEL, Contrast, contrast
from blade.diagnose.fields import template
from blade.diagnose.population import Findings, Group, Mask, Population, Trust, count, joined, short
from blade.diagnose.rungs.cut import USUAL, is_looping, shown_error
from blade.diagnose.rungs.ran import TRANSPORT, alarm_level, in_words

LEAST = 3
DIFFERENT = 5  # different calls that must all fail alike before a tool is said not to work
MAX_PLACES = 60  # values of a field that names where rollouts ran
EVENT = 0.8  # share of the failures that carry a field, from which it is a verdict and no event


def ask_errors(people: Population, left: Mask) -> Findings:
    """What rows record of themselves: asked before how they end, since an error ends a rollout too."""
    return _asked(people, left, (_events, _ungraded_whole))


def ask(people: Population, left: Mask) -> Findings:
    return _asked(people, left, (_ungraded, _barred, _dead, _flaky, _logged, _assigned))


def _asked(people: Population, left: Mask, makes: Sequence[Callable[[Population, Mask], list[Group]]]) -> Findings:
    findings = Findings()
    for make in makes:
        for group in make(people, left):
            left = left & ~group.rows
            findings.groups.append(group)
            findings.trust.append(Trust(alarm_level(people, group), group.label, group.text, group.rows, group.fix))
    return findings


def _ungraded_whole(people: Population, left: Mask) -> list[Group]:
    """Rows that were never graded, unless most of them end on an open call: then that says more."""
    groups = _ungraded(people, left)
    own = [row for group in groups for row in people.of(group.rows)]
    return [] if 2 * sum(row.is_pending for row in own) >= len(own) else groups


def _ungraded(people: Population, left: Mask) -> list[Group]:
    """Rows that lack every verdict field that all passes have."""
    if people.passed.sum() < 5:
        return []
    verdicts = []
    open_ = people.passed | left  # rows that never ran lack more than their verdict
    for path in people.paths:
        present = np.array([value is not None for value in people.columns[path]], bool)
        if not present[open_].all() and present[people.passed].all():
            verdicts.append((path, present))
    if not any(_states_reward(people, path) for path, _ in verdicts):
        return []  # one absent field is not enough: an answer that could not be read leaves a gap too
    rows = open_ & ~np.logical_or.reduce([present for _, present in verdicts])
    for path in people.paths:
        codes, _ = people.codes(path)
        if (codes[rows] >= 0).any() and people.is_graded(codes) and not (codes[people.passed] < 0).any():
            return []  # another verdict field is there: they were graded
    n = int((rows & left).sum())
    if not n or people.passed[rows].any() or n > 0.9 * left.sum() or _never_handed_in(people, rows & left):
        return []
    claimed = rows & left & ~people.where(is_looping)  # a loop is what ended the others; that they were not graded follows from it
    if not claimed.any():
        return []
    n, n_loops = int(claimed.sum()), n - int(claimed.sum())
    loops = f" {count(n_loops, 'more rollout')} {'was' if n_loops == 1 else 'were'} not graded after a loop." if n_loops else ""
    turns = [row.n_turns for row in people.of(rows & left)]
    others = [row.n_turns for row in people.of(~rows)]
    long = f" Each runs for {min(turns)} turns or more." if min(turns) > np.quantile(others, 0.9) else ""
    names = joined(path for path, _ in verdicts)
    lacking = "is absent" if len(verdicts) == 1 else "are absent"
    group = Group(
        rung="environment", label="TI", name="never graded", rows=claimed,
        text=f"{count(n, 'rollout')}: never graded, but counted as failed; {names}, present in every pass, {lacking}.{long}{loops}",
        fix="Find out why these rollouts were not graded (a limit, a crash of the grader) and grade or rerun them.",
        why="all verdict fields that passing rows have are missing", confidence="proved", matched=rows,
    )  # fmt: skip
    return [group]


def _never_handed_in(people: Population, rows: Mask) -> bool:
    """Whether most of some rollouts ended of their own accord without the call by which nearly all passes hand in."""
    passes = people.of(people.passed)
    ends = Counter(row.acts[-1].tool for row in passes if row.acts and not row.is_spoken)
    if not ends or ends.most_common(1)[0][1] < 0.9 * len(passes):
        return False
    tool = ends.most_common(1)[0][0]
    ended = people.of(rows)
    return sum(row.end == "message" and all(act.tool != tool for act in row.acts) for row in ended) >= 0.5 * len(ended)


def _states_reward(people: Population, path: str) -> bool:
    """Whether a field, where it is there, has two values, one of which equals the passes."""
    codes, values = people.codes(path)
    present = codes >= 0
    return len(values) == 2 and any(np.array_equal((codes == code)[present], people.passed[present]) for code in (0, 1))


def _events(people: Population, left: Mask) -> list[Group]:
    """Rows that carry an error which neither a pass nor most other failures carry: something happened to them."""
    failing = people.failed
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    present: Counter[str] = Counter()
    for i, row in enumerate(people.rows):
        for path, value in row.fields.items():
            if isinstance(value, str) and value.strip():
                present[path] += 1
                if failing[i]:
                    places[path, template(value)].append(i)
    by_path: defaultdict[str, list[tuple[str, list[int]]]] = defaultdict(list)
    for (path, text), rows in sorted(places.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        # a field that every failure has is the verdict, whatever it says; so is what answers the work of the model
        if present[path] <= EVENT * failing.sum() and TRANSPORT.search(text):
            by_path[path].append((text, rows))
    result: list[Group] = []
    for path, texts in sorted(by_path.items(), key=lambda pair: -sum(len(rows) for _, rows in pair[1])):
        mask = people.mask([i for _, rows in texts for i in rows])
        claimed = mask & left
        if claimed.sum() < LEAST or any(row.fields.get(path) for row in people.of(people.passed)):
            continue
        result.append(_event(people, path, [text for text, _ in texts], claimed, mask))
        left = left & ~mask
    return result


def _logged(people: Population, left: Mask) -> list[Group]:
    """Lines of logs that strike rollouts which did and said exactly what passing ones of the same task did."""
    passing = {(int(people.task[i]), _done(people.rows[i])) for i in np.flatnonzero(people.passed)}
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for i, row in enumerate(people.rows):
        for path, lines in row.lines.items():
            for line in lines:
                places[path, line].append(i)
    alike = np.array([(task, _done(row)) in passing for task, row in zip(people.task.tolist(), people.rows, strict=True)], bool)
    struck, guilty = people.none, []
    common = [(place, rows) for place, rows in places.items() if len(rows) >= LEAST]
    for (path, line), rows in sorted(common, key=lambda pair: (-len(pair[1]), -len(pair[0][1]), pair[0])):
        mask = people.mask(rows)
        claimed = mask & left & ~struck
        n = int(claimed.sum())
        if n < LEAST or people.passed[mask].any() or not events.ERROR.search(line):
            continue
        if (claimed & alike).sum() >= max(LEAST, 0.5 * n) or (TRANSPORT.search(line) and n >= 5 and people.n_tasks(claimed) >= LEAST):
            guilty.append((path, line))
            struck |= mask & left
    return [_stage(people, guilty, struck, int((struck & alike).sum()))] if guilty else []


def _done(row: RowEvidence) -> tuple[int, ...]:
    """What a rollout did and handed in, so that equal ones are equal: of a text with a fence only what is in it."""
    calls = () if row.is_spoken else tuple(act.key for act in row.acts)
    return (*calls, hash(row.answers.get("fence") or row.final))


def _stage(people: Population, guilty: Sequence[tuple[str, str]], rows: Mask, alike: int) -> Group:
    path, line = guilty[0]
    name = f"`{path}`: {in_words(people, path, line, rows)[:60]}"
    phrase = "; ".join(in_words(people, place, text, rows)[:120] for place, text in guilty[:2])
    return Group(
        rung="environment", label="IR", name=name, rows=rows, matched=rows, deciding=(path,),
        text=f"{count(int(rows.sum()), 'rollout')}: `{path}` says: {phrase}. No pass has such a line"
        + (f", and {alike:,} of these rollouts did or handed in exactly what a passing repeat of the same task did." if alike else "."),
        fix=f"Repair what `{path}` reports and rerun these rollouts; the model did nothing different.",
        why="the same acts pass in other repeats, so what surrounds the model differs" if alike
        else "a service that the model has no part in failed", confidence="proved" if alike else "likely",
        place=lambda row: next(((path, line) for path, line in guilty if line in row.lines.get(path, ())), None),
    )  # fmt: skip


def _event(people: Population, path: str, texts: Sequence[str], rows: Mask, matched: Mask) -> Group:
    n = int(rows.sum())
    values = [str(row.fields.get(path) or "") for row in people.of(rows)]
    phrase = [short(next((value for value in values if template(value) == text), text), 110) for text in texts[:3]]
    more = f"; also: {'; '.join(phrase[1:])}" if len(phrase) > 1 else ""
    return Group(
        rung="environment", label="IR", name=f"`{path}`: {phrase[0][:60]}", rows=rows, matched=matched, deciding=(path,),
        text=f"{count(n, 'rollout')}: `{path}` says: {phrase[0]}{more}. No pass and few other failures have such an entry.",
        fix=f"Repair what `{path}` reports and rerun these rollouts.",
        why="the row records an error around the model that other rows do not have", confidence="likely",
        place=lambda row: (path, texts[0]), holds=lambda row: template(str(row.fields.get(path) or "")) in texts,
    )  # fmt: skip


def _barred(people: Population, left: Mask) -> list[Group]:
    """Rows in which the expected call itself, made exactly as expected, answers with an error."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(people.rows):
        if row.barred:
            places[row.barred].append(i)
    result = []
    for error, rows in sorted(places.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        mask = people.mask(rows)
        n = int((mask & left).sum())
        tool, _, phrase = error.partition(": ")
        if n < LEAST or people.rate(mask) > 0.1 or people.n_tasks(mask) < LEAST or _works(people, tool):
            continue
        result.append(
            Group(
                rung="environment", label="TI", name=f"the expected call of `{tool}` fails", rows=mask & left, matched=mask,
                text=f"{count(n, 'rollout')}: `{tool}` is called exactly as expected and answers with an error: {phrase[:120]}.",
                fix=f"Repair `{tool}` in the environment, or the expected calls, and rerun these rollouts.",
                why="the call that the row itself expects does not work", confidence="likely", deciding=(tool,),
                holds=partial(_is_barred, error),
                place=lambda row: next(((act.step, "") for act in row.acts if act.failed), None),
            )
        )  # fmt: skip
        left = left & ~mask
    return result


def _is_barred(error: str, row: RowEvidence) -> bool:
    return row.barred == error


def _works(people: Population, tool: str) -> bool:
    """Whether a tool ever works: an error now and then may answer what the model did before."""
    calls = [act.failed for row in people.rows for act in row.acts if act.tool == tool]
    return sum(calls) < 0.9 * len(calls)


def _dead(people: Population, left: Mask) -> list[Group]:
    """Tools that answer every call of the run with one and the same error, whatever the arguments: they do not work here."""
    calls: defaultdict[str, list[Act]] = defaultdict(list)
    for row in people.rows:
        for act in () if row.is_spoken else row.acts:
            if act.is_answered:
                calls[act.tool].append(act)
    result = []
    declared = {tool for row in people.rows for tool in row.tools}
    for tool, acts in sorted(calls.items()):
        if tool not in declared:
            continue  # a tool that there is not
        errors = Counter(act.template for act in acts)
        error, n_error = errors.most_common(1)[0]
        if not error or n_error < len(acts) or len({act.key for act in acts}) < DIFFERENT:
            continue
        rows = people.where(lambda row: any(act.tool == tool for act in row.acts))  # noqa: B023
        n = int((rows & left).sum())
        if n < LEAST or people.n_tasks(rows) < LEAST:
            continue
        if people.rate(rows) > (USUAL * people.rate(~rows) if (~rows).any() else 0.1):
            continue
        others = f", {people.rate(~rows):.0%} of the others" if (~rows).any() else ""
        result.append(
            Group(
                rung="environment", label="TI", name=f"`{tool}` never works: {shown_error(people, rows, error, 70)}", rows=rows & left,
                text=f"{count(n, 'failure')}: every call of `{tool}` in the run ({len(acts):,}, with {len({act.key for act in acts}):,} "
                f"different arguments) answers with this error: {shown_error(people, rows, error, 120)}. {people.rate(rows):.0%} of the "
                f"rollouts that call it pass{others}.",
                fix=f"Repair `{tool}` in the environment (settings, keys, service) and rerun these rollouts.", matched=rows,
                why="no call of it ever works, whatever the model asks", confidence="proved", deciding=(tool,),
                passed=int(people.passed[rows].sum()), holds=partial(_calls_tool, tool),
                place=lambda row: next(((act.step, "") for act in row.acts if act.tool == tool), None),  # noqa: B023
            )
        )  # fmt: skip
        left = left & ~rows
    return result


def _calls_tool(tool: str, row: RowEvidence) -> bool:
    return any(act.tool == tool for act in row.acts)


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
            guilty.setdefault(path, []).append((str(value), rows))
    result = []
    for path, places in guilty.items():
        rows = np.logical_or.reduce([present for _, present in places])
        test = contrast(people, rows, left)  # several bad places together, against all others
        if test is not None and (test.rows & left).sum() >= LEAST:
            result.append(_placed(people, path, [value for value, _ in places], rows, test, left))
            left = left & ~test.rows
    return result


def _placed(people: Population, path: str, values: list[str], rows: Mask, test: Contrast, left: Mask) -> Group:
    named = " or ".join(f"`{value[:60]}`" for value in values[:4]) + (f" or {len(values) - 4} more" if len(values) > 4 else "")
    n = int((test.rows & left).sum())
    return Group(
        rung="environment", label="IR", name=f"`{path}` = {named}", rows=test.rows & left, matched=rows,
        text=f"{count(n, 'failure')}: `{path}` is {named}. On the same tasks {test.pass_with:.0%} pass there and "
        f"{test.pass_without:.0%} elsewhere, and the model does not choose where it runs.",
        fix=f"Check {named.replace(' or ', ' and ')} (load, version, network) and rerun these rollouts elsewhere.", deciding=(path,),
        why="the same tasks pass elsewhere", passed=int(people.passed[rows].sum()), place=lambda row: (path, str(row.fields.get(path, ""))),
    )  # fmt: skip


def _flaky(people: Population, left: Mask) -> list[Group]:
    """Errors of calls that succeed elsewhere after exactly the same acts, so that neither they nor the state differ."""
    works: set[tuple[int, int]] = set()
    for row in people.rows:
        works |= {(prefix, act.key) for prefix, act in _prefixed(row) if not act.failed and act.is_answered}
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
        others = ~struck & ~rows
        if len(places) < max(LEAST, 0.3 * struck.sum()) or not others.any():
            continue
        if people.rate(struck) <= 0.1 and people.rate(struck) < USUAL * people.rate(others):
            guilty.append(error)
            rows |= struck
    return [_group(people, guilty, rows & left, rows)] if (rows & left).sum() >= LEAST else []


def _prefixed(row: RowEvidence) -> Iterator[tuple[int, Act]]:
    """Each act with a hash of all acts before it."""
    prefix = 0
    for act in row.acts:
        yield prefix, act
        prefix = hash((prefix, act.key))


def _group(people: Population, errors: Sequence[str], rows: Mask, matched: Mask) -> Group:
    n = int(rows.sum())
    tools = Counter(
        tool for row in people.of(rows) for tool in {act.tool for act in row.acts if act.template in errors}
    )
    called = joined(tool for tool, _ in tools.most_common())
    shown = "; ".join(shown_error(people, rows, error, 90) for error in errors[:2])
    return Group(
        rung="environment", label="IR", name=f"the environment fails: {shown_error(people, rows, errors[0], 60)}", rows=rows,
        text=f"{n:,} failing rollouts met an error of the environment ({called}): {shown}. The same "
        "calls after the same acts succeed in other rollouts, so neither the arguments nor the state is the reason.",
        fix="Repair the service behind these calls, or retry them, and rerun these rollouts.",
        why="the same call succeeds elsewhere in this run", passed=int(people.passed[matched].sum()), matched=matched,
        place=lambda row: next(((act.step, act.template) for act in row.acts if act.template in errors), None),
        deciding=tuple(tool for tool, _ in tools.most_common(3)),
    )  # fmt: skip
