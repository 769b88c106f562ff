"""Find tools that the task needs and the rollout never calls, or not for all that is expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from blade import events
from blade.detect import expected, passers, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="missing_required_tool",
    number="B19",
    rule="A tool of the expected actions, or one that every other passing rollout of the task calls (the "
    "task passes twice or more), is never called; or some of the calls that are expected of it are left out. "
    "Weak where fewer than three passes say so, or where another rollout passes without it.",
    cause=Cause.UNRELIABLE_KNOWLEDGE,
    otherwise="KG if no rollout of the task ever calls it",
    procedural=False,
    needs=("steps",),
    kind="prompt",
    remedy="Name `{tool}` in the instructions as a step that such a task needs, for each thing it asks for, "
    "and have the harness hold what was found against what was acted on before it finishes.",
)
_ENOUGH = 3  # passing rollouts of a task that must agree
_ORDERS = 20  # passing rollouts whose order is looked at


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    tools = passers.Tally(task, passers.tools_called)
    wanted = list(dict.fromkeys(tool for tool, _ in task.gold.actions))
    if not wanted and tools.n < 2:
        return
    does = expected.tool_does(task)
    called_by_some = {tool for episode in task.episodes for tool in passers.tools_called(episode)}
    sequences = _sequences(task)
    near: dict[str, tuple[list[str], list[str]]] = {}
    for episode in task.episodes:
        if passers.end_of(episode) is None:
            continue
        for tool in wanted or sorted(map(str, tools.in_all(episode))):
            if tool in tools.of(episode) or (episode.tools and tool not in episode.tools):
                continue
            near[tool] = near.get(tool) or passers.neighbours(sequences, tool)
            place = passers.place_of(episode, *near[tool])
            others = tools.others(episode)
            severity = 3 if does.get(tool) == events.WRITE else 2
            # of the task, not of the row: else passing and failing rows would be judged by different numbers
            few = tools.n < _ENOUGH
            optional = does.get(tool) != events.WRITE and few  # what is read may be known otherwise
            if tools.count(episode, tool) < others or (not wanted and few) or optional:
                severity = 1  # some pass without it, or too few say that none does
            cause = None if tool in called_by_some else Cause.KNOWLEDGE_GAP
            if place is not None:
                yield _hit(task, tools, episode, tool, place, severity, cause)
    if wanted:
        yield from _left_out(task)


def _left_out(task: TaskTraces) -> Iterator[Hit | None]:
    """Expected calls that are not made although their tool is called: two of three are deleted."""
    expectation = expected.Expectation(task)
    found = [(episode, expectation.left_out(episode)) for episode in task.episodes]
    callers = Counter(tool for episode in task.episodes for tool in passers.tools_called(episode))
    lacking = Counter(who for _, left in found for who in _ids(left))
    # of the task, not of the row, as above: a task that passes without them
    optional = {who for episode, left in found if episode.passed for who in _ids(left)}
    for episode, left in found:
        for tool, (last, total, actions) in left.items():
            place = _goes_on(episode, last)
            if place is None:
                continue
            severity = 3 if last.does == events.WRITE else 2
            always = all(lacking[id(action)] == callers[tool] for action in actions)
            told = wording.short(", ".join(map(_said, actions)), 100)
            yield hit(
                episode,
                f"`{tool}` is called for {total - len(actions)} of the {total} calls that "
                f"`{expectation.field}` lists; left out after step {last.step}: {told}",
                1 if any(id(action) in optional for action in actions) else severity,
                events.at_step(episode, place),
                expected.quoted(episode, expectation.field, tool) if expectation.field else None,
                detail=tool,
                cause=Cause.KNOWLEDGE_GAP if always else None,
                certain=True,
            )


def _ids(left: Mapping[str, expected.LeftOut]) -> Iterator[int]:
    return (id(action) for one in left.values() for action in one.actions)


def _goes_on(episode: Episode, last: Call) -> int | None:
    """The step at which a rollout turns to something else, or ends."""
    return next((call.step for call in episode.calls if call.step > last.step), passers.end_of(episode))


def _said(action: expected.Action) -> str:
    name = expected.naming(action.arguments)
    return f"{name} {wording.short(action.arguments[name], 40)}" if name else "one without arguments"


def _sequences(task: TaskTraces) -> list[list[str]]:
    """In which order the tools are to be called: as expected, else as some passing rollouts do it."""
    if task.gold.actions:
        return [[tool for tool, _ in task.gold.actions]]
    return [[call.tool for call in episode.calls] for episode in passers.passing(task)[:_ORDERS]]


def _hit(
    task: TaskTraces,
    tools: passers.Tally,
    episode: Episode,
    tool: str,
    place: int,
    severity: int,
    cause: Cause | None,
) -> Hit | None:
    field = task.gold.actions_field
    n = tools.others(episode)
    grounds = (
        f"`{field}` asks for it" if field else f"all of {wording.count(n, 'other passing rollout')} call it"
    )
    if field and n:
        grounds += f" and {tools.count(episode, tool)} of {n} other passing rollouts call it"
    return hit(
        episode,
        f"`{tool}` is never called; {grounds}. It belongs before step {place} "
        f"({wording.short(events.step_text(episode.trace.steps[place]), 40)}).",
        severity,
        events.at_step(episode, place),
        expected.quoted(episode, field, tool) if field else None,
        detail=tool,
        cause=cause,
        certain=True,
    )
