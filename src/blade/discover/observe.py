"""Turn the rollouts of a task into features: short strings that say what each rollout did and said.

`name(inner)` is a yes, `#name=number` a number that is cut later, and `task:` goes before either if it
belongs to the task and not to what the model did.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from blade import events
from blade.discover import expected, texts
from blade.discover.expected import Expected
from blade.model import Call, Episode, Gold, TaskTraces

MAX_FEATURES = 300  # of one rollout
MAX_LENGTH = 120  # of one feature
MAX_CALLS = 400  # read of one rollout; a longer one repeats itself
MAX_ARGUMENTS = 60
MAX_LEAVES = 40
MAX_OUTPUTS = 5
MAX_DEPTH = 3

_VALUE = re.compile(
    r"(?!.*\d{3})(?:[A-Za-z][\w .,:+-]{0,28}|-?\d{1,2})$"
)  # a choice among few, no id and no free text
_SEGMENT = re.compile(r"(?:^|[|;&(`\n]|\$\()\s*(?:sudo\s+)?([a-z][\w.+-]*)")
_VERIFIER = re.compile(r"verif|judge|eval|metric|grad(?:e|ing)|test|check|rubric", re.IGNORECASE)
_JUDGE = re.compile(
    r"judge|rationale|feedback|explanation|critique|comment|reason|justification", re.IGNORECASE
)
_NOT_VERIFIER = frozenset({"response", "responses_create_params", "agent_ref"})


def observe(task: TaskTraces) -> list[tuple[int, tuple[str, ...]]]:
    """The position of each rollout of a task with its features."""
    if not task.episodes:
        return []
    prompt, gold = events.prompt(task.episodes[0].trace.row), expected.gold(task)
    wanted = expected.expected(task, gold, prompt)
    about = (*_task_features(gold, wanted, len(prompt)), *expected.about(wanted))
    given = texts.words_of(prompt[-texts.MAX_GIVEN :])
    return [(episode.position, _features(episode, about, wanted, given)) for episode in task.episodes]


def _features(
    episode: Episode, about: tuple[str, ...], wanted: Expected, given: frozenset[str]
) -> tuple[str, ...]:
    found = dict.fromkeys(about)
    for part in (
        expected.features(episode, wanted),
        _calls(episode),
        _arguments(episode),
        _form(episode, wanted.asked),
        _fields(episode),
        _words(episode, given),
    ):
        for feature in part:
            if len(found) >= MAX_FEATURES:
                break
            found[sys.intern(feature[:MAX_LENGTH])] = None
    return tuple(found)


def _task_features(gold: Gold, wanted: Expected, length: int) -> Iterator[str]:
    for tool in sorted({tool for tool, _ in gold.actions}):
        yield f"task:gold_has({tool[:60]})"
        if tool in wanted.writes:
            yield f"task:gold_writes({tool[:60]})"
    if gold.actions:
        yield f"task:#gold_actions={len(gold.actions)}"
    if length:
        yield f"task:#prompt_chars={texts.rounded(length)}"


# ---- What it did ------------------------------------------------------------------------------


def _calls(episode: Episode) -> Iterator[str]:
    """Which tools, how often, in which role, and how they fared."""
    calls = episode.calls[:MAX_CALLS]
    yield f"#n_calls={len(episode.calls)}"
    if not calls:
        return
    yield f"first_call({calls[0].tool[:60]})"
    yield f"last_call({episode.calls[-1].tool[:60]})"
    keys = Counter(call.key for call in calls)
    for tool, count in Counter(call.tool for call in calls).items():
        name = tool[:60]
        yield f"calls({name})"
        yield f"#calls({name})={count}"
    for call in calls:
        name = call.tool[:60]
        if call.does != events.READ:
            yield f"{'writes' if call.does == events.WRITE else 'checks'}({name})"
        if call.failed:
            yield f"call_failed({name})"
        if keys[call.key] > 1:
            yield f"repeats({name})"
    yield f"#n_tools={len({call.tool for call in calls})}"
    yield f"#n_writes={sum(call.does == events.WRITE for call in calls)}"
    yield f"#n_failed={sum(call.failed for call in calls)}"
    yield f"#n_repeated={sum(keys.values()) - len(keys)}"
    if calls[-1].failed:
        yield "last_call_failed"


def _arguments(episode: Episode) -> Iterator[str]:
    """Argument fields, values that are a choice among few, and the commands of a shell."""
    seen: set[str] = set()
    for call in episode.calls[:MAX_CALLS]:
        for feature in _of_call(call):
            if feature not in seen:
                seen.add(feature)
                yield feature
        if len(seen) >= MAX_ARGUMENTS:
            return


def _of_call(call: Call) -> Iterator[str]:
    name = call.tool[:60]
    command = events.command_of(call.tool, call.arguments)
    if command is not None:
        for hit in _SEGMENT.findall(command[:500]):
            yield f"runs({hit[:30]})"
        return
    if not isinstance(call.arguments, Mapping):
        if call.raw and call.arguments is None:
            yield f"arguments_no_json({name})"
        return
    for key, value in list(call.arguments.items())[:20]:
        place = f"{name}.{str(key)[:30]}"
        yield f"arg({place})"
        if isinstance(value, bool):
            yield f"arg({place}={str(value).lower()})"
        elif isinstance(value, str | int) and _VALUE.match(str(value)):
            yield f"arg({place}={value})"
        elif isinstance(value, list):
            yield f"#length({place})={min(len(value), 50)}"


# ---- What it said -----------------------------------------------------------------------------


def _form(episode: Episode, asked: bool) -> Iterator[str]:
    """How the rollout ends, and what its final text looks like."""
    steps = episode.trace.steps
    yield f"ends({steps[-1].kind if steps else 'nothing'})"
    if not any(step.kind == "message" for step in steps):
        yield "no_message"
    if episode.has_user:
        yield f"#n_user_turns={sum(step.kind == 'user' for step in steps)}"
    response = episode.trace.row.get("response")
    details = response.get("incomplete_details") if isinstance(response, Mapping) else None
    if isinstance(details, Mapping) and details.get("reason"):
        yield f"cut_off({str(details['reason'])[:40]})"
    yield from texts.form(episode.final, asked)


def _words(episode: Episode, given: frozenset[str]) -> Iterator[str]:
    """Line templates and words, of the results first: they are fewer and say more."""
    seen = 0
    for call in episode.calls[:MAX_CALLS]:
        if call.output and (call.failed or len(call.output) <= 80) and seen < MAX_OUTPUTS:
            seen += 1
            template = texts.template(call.output)
            if template:
                yield f"output_says({call.tool[:40]}: {template})"
    said = given
    if episode.has_user:  # a word that the user brought up is no choice of the model
        heard = " ".join(step.text[:300] for step in episode.trace.steps if step.kind == "user")
        said = given | texts.words_of(heard[: texts.MAX_GIVEN])
    yield from texts.final_lines(episode.final)
    for word in texts.words(episode.final):
        if word not in said:
            yield f"says({word})"


# ---- What the verifier wrote ------------------------------------------------------------------


def _fields(episode: Episode) -> Iterator[str]:
    """Scalars inside the objects of a verifier, and the words of a judge."""
    row = episode.trace.row
    n = 0
    for top in sorted(row):
        if top in _NOT_VERIFIER or not isinstance(top, str):
            continue
        value = row[top]
        if isinstance(value, str) and _JUDGE.search(top):
            yield from (f"judge_says({word})" for word in texts.judged_words(value))
        elif isinstance(value, Mapping) and (_VERIFIER.search(top) or _JUDGE.search(top)):
            for path, leaf in _leaves(value, top, 1):
                n += 1
                if n > MAX_LEAVES:
                    return
                yield from _leaf(path, leaf)


def _leaves(value: Mapping[Any, Any], path: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key in sorted(value, key=str)[:MAX_LEAVES]:
        inner, place = value[key], f"{path}.{str(key)[:40]}"
        if isinstance(inner, Mapping):
            if depth < MAX_DEPTH:
                yield from _leaves(inner, place, depth + 1)
        elif isinstance(inner, bool | int | float | str):
            yield place, inner


def _leaf(path: str, leaf: Any) -> Iterator[str]:
    if isinstance(leaf, bool):
        yield f"field({path}={str(leaf).lower()})"
    elif isinstance(leaf, int | float):
        yield f"#field({path})={texts.rounded(leaf)}"
    elif _JUDGE.search(path) and len(leaf) > 30:
        yield from (f"judge_says({word})" for word in texts.judged_words(leaf))
    elif _VALUE.match(leaf):
        yield f"field({path}={leaf})"
