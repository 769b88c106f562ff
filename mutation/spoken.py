"""Turn runs into sentences that a person would write of them, each with a false twin, and check both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from blade.check import checked
from blade.check.world import World
from blade.model import CONTRADICTED, Assertion
from blade.report.facts import Facts, facts

NOBODY = "90417"  # a task that no run has

# What a person says, by the kind of fault that its twin holds. A name in braces is filled with what is so, in
# the twin those before the colon with what is not. Two sentences: the second is the opposite of the first.
SAID: dict[str, tuple[str, ...]] = {
    "number": (
        "p: Pass@1 comes out at {p:.1%}.",
        "p: We measured a pass@1 of {p:.1%} over {n} tasks.",
        "p: Its success rate is {p:.1%}.",
        "p: Overall accuracy: {p:.1%} (mean over tasks).",
        "p: A pass rate of {p:.1%} is where this model stands today.",
        "passed: In total {passed} rollouts passed.",
        "failed: {failed} rollouts ended in failure.",
        "n: There were {n} tasks in this run.",
        "rows: The file holds {rows} rollouts.",
        "k: Each task was tried {k} times.",
        "passk: Given {k} attempts, {passk:.1%} of the tasks get solved at least once.",
        "passk: pass@{k} reaches {passk:.1%}.",
        "never: We found {never} tasks that never pass.",
        "always: {always} tasks pass every single time.",
        "sometimes: {sometimes} of the tasks pass only some of the time.",
    ),
    "denominator": (
        "rows: {passed} of {rows} rollouts passed.",
        "rows: Of {rows} rollouts, {failed} failed.",
        "n: {always} out of {n} tasks always pass.",
        "n: {never} of the {n} tasks were never solved.",
        "rows: Only {passed}/{rows} rollouts got the reward.",
        "k: Task {some} succeeded {hits} times out of {k}.",
    ),
    "bucket": (
        "sure: Task {sure} passes in every repeat.",
        "lost: Task {lost} is never solved.",
        "lost: No repeat of task {lost} succeeds.",
        "sure: All {k} attempts at task {sure} were successful.",
        "lost: The agent fails task {lost} every time.",
        "some: Task {some} is solved in some repeats and not in others.",
        "hits: Task {some} passes in {hits} of {k} repeats.",
        "sure: The never-failing ones include task {sure}.",
    ),
    "id": (
        "lost: Rollout {lost}/0 failed.",
        "some: Task {some} is the one to read first.",
        "some: For an example see rollout `{some}/0`.",
        "lost: Tasks {lost} and {some} deserve a look.",
        "sure: Start from task {sure}, which is easy.",
    ),
    "negation": (
        "Rollout {good} passed. | Rollout {good} did not pass.",
        "Rollout {bad} failed. | Rollout {bad} passed.",
        "Not one repeat of task {lost} passed. | Every repeat of task {lost} passed.",
        "Most rollouts {mostly}. | Most rollouts {hardly}.",
        "More than half of the rollouts {mostly}. | Fewer than half of the rollouts {mostly}.",
        "Task {sure} never fails. | Task {sure} never passes.",
        "Rollout {good} got its reward. | Rollout {good} got no reward.",
    ),
    "quote": (
        "quote: At step {step} of rollout {place} we read “{quote}”.",
        "quote: Rollout {place} says “{quote}” and leaves it at that.",
        "quote: In rollout {place}, step {step}: “{quote}”",
    ),
    "swapped": (
        "`{field}` = `{better}` scores higher than `{worse}`. | "
        "`{field}` = `{worse}` scores higher than `{better}`.",
        "By {field}, {better} is at {high:.1%} and {worse} at {low:.1%}. | "
        "By {field}, {better} is at {low:.1%} and {worse} at {high:.1%}.",
        "The {worse} tasks ({field}) do worse than the {better} ones. | "
        "The {better} tasks ({field}) do worse than the {worse} ones.",
    ),
    "table": (
        "p: | pass@1 | {p:.1%} |",
        "n: | tasks | {n} |",
        "rows: | rollouts | {rows} |",
        "passed: | rollouts that passed | {passed} |",
        "always: | tasks that always pass | {always} |",
        "never: | tasks that never pass | {never} |",
    ),
}  # fmt: skip


class Said(msgspec.Struct, frozen=True):
    """A sentence that is true of a run, and one that is not."""

    kind: str
    true: str
    false: str


class Heard(msgspec.Struct, frozen=True):
    """What the checker made of one of them."""

    dataset: str
    said: Said
    caught: bool
    alarm: str  # what it holds against the true sentence; empty: nothing


Check = Callable[[str, World], Iterable[Assertion]]


def said(run: Facts) -> Iterator[Said]:
    """Every sentence for which the run has what it speaks of."""
    so, other = _values(run)
    for kind, templates in SAID.items():
        for template in templates:
            true, bar, false = template.partition(" | ") if not _LEAD.match(template) else (template, "", "")
            lead = _LEAD.match(true)
            text = true[lead.end() :] if lead else true
            told = {**so, lead[1]: NOBODY if kind == "id" else other.get(lead[1])} if lead else so
            needed = re.findall(r"\{(\w+)", template)
            if any(so.get(name) is None or told.get(name) is None for name in needed):
                continue
            made = Said(kind, text.format(**so), (false if bar else text).format(**told))
            if made.true != made.false:
                yield made


_LEAD = re.compile(r"(\w+): ")


def _values(run: Facts) -> tuple[dict[str, object], dict[str, object]]:
    """What is so of a run, and what is not; None: the run has no such thing."""
    score, k, n = run.run.score or 0.0, run.run.coverage.repeats, run.run.n_tasks
    held, rows = run.buckets, run.run.n_rollouts
    passed = sum(task.passed or 0 for task in run.tasks)
    at_k = run.measure("pass_at_k", k)
    sure, lost, some = (next(iter(keys), None) for keys in (held.always, held.never, held.sometimes))
    mixed = run.task(some) if some is not None else None
    hits = mixed.passed if mixed is not None and mixed.n == k else None
    ends = [(f"{task.task}/{one.repeat}", str(one.outcome)) for task in run.tasks for one in task.repeats]
    so: dict[str, object] = {
        "p": score, "n": n, "rows": rows, "k": k if k > 1 else None, "passed": passed,
        "failed": rows - passed,
        "passk": at_k.value if at_k is not None and k > 1 else None, "always": len(held.always) or None,
        "sometimes": len(held.sometimes) or None, "never": len(held.never) or None,
        "sure": sure, "lost": lost, "some": some, "hits": hits,
        "good": next((place for place, how in ends if how == "passed"), None),
        "bad": next((place for place, how in ends if how == "failed"), None),
        "mostly": None if abs(passed / rows - 0.5) < 0.1 else "pass" if passed > rows / 2 else "fail",
        "hardly": "fail" if passed > rows / 2 else "pass",
    }  # fmt: skip
    other: dict[str, object] = {
        "p": score + 0.083 if score < 0.5 else score - 0.083, "n": n + 3, "rows": rows + 5, "k": k + 1,
        "passed": passed + 4, "failed": rows - passed + 3, "always": len(held.always) + 2,
        "sometimes": len(held.sometimes) + 2, "never": len(held.never) + 2, "sure": lost, "lost": sure,
        "some": lost, "hits": hits + 1 if hits is not None else None,
        "passk": at_k.value - 0.07 if at_k is not None and at_k.value is not None else None,
    }  # fmt: skip
    _told(run, so, other)
    return so, other


def _told(run: Facts, so: dict[str, object], other: dict[str, object]) -> None:
    """A quotation and two slices, where there are any."""
    for label in run.attributions:
        for one in label.evidence:
            quote = one.quote or ""
            if (
                one.repeat is not None
                and one.step is not None
                and re.fullmatch(r"[^\n“”\"`|*]{20,160}", quote)
            ):
                so |= {"place": f"{one.task}/{one.repeat}", "step": one.step, "quote": quote}
                other["quote"] = " ".join(reversed(quote.split()))
    rated = sorted((one.pass_rate, one.value, one.field) for one in run.slices if one.pass_rate is not None)
    fields = [field for *_, field in rated]
    of_one = [one for one in rated if fields.count(one[2]) > 1 and one[2] == fields[0]]
    if of_one and of_one[-1][0] - of_one[0][0] > 0.1:
        (low, worse, field), (high, better, _) = of_one[0], of_one[-1]
        so |= {"field": field, "better": better, "worse": worse, "high": high, "low": low}


def page(sentences: Sequence[Said], false: Callable[[int], bool]) -> tuple[str, list[int]]:
    """A report of these sentences, some false; and the line of each, from 1."""
    lines = ["# Notes on the run", "", "## What we saw", ""]
    at: list[int] = []
    for place, one in enumerate(sentences):
        row = one.kind == "table"
        if row and (not place or sentences[place - 1].kind != "table"):
            lines += ["## Numbers", "", "| What | Value |", "| --- | ---: |"]
        lines.append(one.false if false(place) else one.true)
        at.append(len(lines))
        lines += [] if row else [""]
    return "\n".join(lines) + "\n", at


def heard(dataset: str, world: World, check: Check = checked) -> list[Heard]:
    """Every sentence on a run of one, true and false; every third one is false at a time."""
    (run,) = facts(world.report)
    told = [*said(run)]
    text, at = page(told, lambda place: False)
    alarms = _against(check(text, world), at)
    caught: dict[int, str] = {}
    for turn in range(3):
        held = set(range(turn, len(told), 3))
        text, at = page(told, held.__contains__)
        found = _against(check(text, world), at)
        caught |= {place: why for place, why in found.items() if place in held and place not in alarms}
    return [Heard(dataset, one, place in caught, alarms.get(place, "")) for place, one in enumerate(told)]


def _against(found: Iterable[Assertion], at: Sequence[int]) -> dict[int, str]:
    """What is contradicted, by the place of the sentence."""
    wrong = [one for one in found if one.verdict == CONTRADICTED]
    return {
        place: f"{one.found}: {one.why or one.expected}"
        for place, line in enumerate(at)
        for one in wrong
        if one.line <= line <= one.last_line
    }


def is_whole(world: World) -> bool:
    """Whether a world is one run with pass rates and without gaps, of which every sentence here is true."""
    if len(world.report.runs) != 1 or world.is_comparison:
        return False
    run = world.report.runs[0]
    counted = run.coverage
    return run.has_pass_rate and counted.expected == counted.scored == run.n_rollouts and run.n_tasks > 1


def told(found: Sequence[Heard]) -> str:
    """The table by kind, as Markdown, with what was missed below it."""
    lines = ["In a person's words: sentences no report of ours holds, each true and false", ""]
    lines += [
        "| Fault | Sentences | Caught | False alarms on the true ones |",
        "| --- | ---: | ---: | ---: |",
    ]
    for kind in (*SAID, "**all**"):
        held = [one for one in found if kind in (one.said.kind, "**all**")]
        caught = sum(one.caught for one in held)
        share = f"{caught} ({caught / len(held):.0%})" if held else "–"
        lines.append(f"| {kind} | {len(held)} | {share} | {sum(bool(one.alarm) for one in held)} |")
    return "\n".join(lines)


def missed(found: Sequence[Heard]) -> str:
    """Every false sentence that passed, and every true one that did not."""
    lines = [f"not caught: {one.dataset}: {one.said.false}" for one in found if not one.caught]
    lines += [f"false alarm: {one.dataset}: {one.said.true} ({one.alarm})" for one in found if one.alarm]
    return "\n".join(lines)
