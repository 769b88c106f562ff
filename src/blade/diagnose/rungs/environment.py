"""Ask whether the world around the agent worked: rows never graded, and tools that fail where the same call works.

Fires on flaky servers, quotas and graders that crashed; stays silent on errors that answer the model's own arguments
(the same call fails every time) and on errors from which rollouts recover.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from blade.diagnose.evidence import Act, RowEvidence
from blade.diagnose.population import Findings, Group, Mask, Population, Trust, count, joined
from blade.diagnose.rungs.cut import USUAL
from blade.diagnose.rungs.ran import alarm_level

LEAST = 3


def ask(people: Population, left: Mask) -> Findings:
    found = Findings()
    for group in (_ungraded(people, left), *_flaky(people, left)):
        if group is not None:
            left = left & ~group.rows
            found.groups.append(group)
            found.trust.append(
                Trust(alarm_level(people, group), group.label, group.text, group.rows, group.fix)
            )
    return found


def _ungraded(people: Population, left: Mask) -> Group | None:
    """Rows that lack every verdict field that all passes have."""
    if people.passed.sum() < 5:
        return None
    verdicts = []
    for path in people.paths:
        held = np.array([value is not None for value in people.columns[path]], bool)
        if not held.all() and held[people.passed].all():
            verdicts.append((path, held))
    if not any(people.is_reward(path) or people.is_graded(people.codes(path)[0]) for path, _ in verdicts):
        return None
    rows = ~np.logical_or.reduce([held for _, held in verdicts])
    n = int((rows & left).sum())
    if not n or people.passed[rows].any() or n > 0.9 * left.sum():
        return None
    turns = [people.rows[at].n_turns for at in np.flatnonzero(rows & left)]
    others = [people.rows[at].n_turns for at in np.flatnonzero(~rows)]
    long = (
        f" All of them run for {min(turns)} turns or more." if min(turns) > np.quantile(others, 0.9) else ""
    )
    names = joined(path for path, _ in verdicts)
    return Group(
        rung="environment", label="TI", name="never graded", rows=rows & left,
        text=f"{count(n, 'rollout')}: never graded, but counted as failed; {names}, present in every pass, is absent.{long}",
        fix="Find out why these rollouts were not graded (a limit, a crash of the grader) and grade or rerun them.",
        why="all verdict fields that passing rows have are missing", confidence="proved", matched=rows,
    )  # fmt: skip


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
    for (tool, template), places in sorted(proved.items(), key=lambda pair: -len(pair[1])):
        rows = people.none
        rows[list(errors[tool, template])] = True
        others = ~rows
        n = int((rows & left).sum())
        if n < LEAST or len(places) < max(LEAST, 0.3 * rows.sum()) or not others.any():
            continue
        if people.rate(rows) <= 0.1 and people.rate(rows) < USUAL * people.rate(others):
            found.append(_group(people, tool, template, rows & left, rows))
            left = left & ~rows
    return found


def _prefixed(row: RowEvidence) -> Iterator[tuple[int, Act]]:
    """Each act with a hash of all acts before it."""
    prefix = 0
    for act in row.acts:
        yield prefix, act
        prefix = hash((prefix, act.key))


def _group(people: Population, tool: str, template: str, rows: Mask, matched: Mask) -> Group:
    n = int(rows.sum())
    return Group(
        rung="environment", label="IR", name=f"`{tool}` fails: {template[:60]}", rows=rows,
        text=f"{n:,} failing rollouts met this error of `{tool}`: {template[:120]}. The same calls after the same acts "
        "succeed in other rollouts, so neither the arguments nor the state is the reason.",
        fix=f"Repair or retry `{tool}` in the environment and rerun these rollouts.",
        why="the same call succeeds elsewhere in this run", passed=int(people.passed[matched].sum()), matched=matched,
        place=lambda row: next(((act.step, template) for act in row.acts if act.template == template), None),
        deciding=(tool,),
    )  # fmt: skip
