"""Turn the traces of one task into what its verdicts can be checked by."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from blade import answers, events
from blade.measure.soundness import matching
from blade.measure.soundness.sounding import EQUAL, EXPLICIT, NEAR, OTHER, SCALED, Heard, Sounding, digest
from blade.model import Episode, Evidence, Gold, TaskTraces

MAX_ANSWER = 80  # characters of an answer that are kept
MAX_EXPECTED = 48  # words of one expected field
MAX_QUOTES = 6  # of one task
LEAK_LENGTH = 12  # characters from which a gold answer is distinctive by its length
MAX_WORDS = 400  # of one trajectory
_TRAJECTORY = 6_000  # characters of a trajectory in which words are looked for
_OF_STEP = 1_000  # of a result less: what is expected mostly stands in what the model wrote
_OF_RESULT = 400
# Bytes of UTF-8 text: letters small, digits and what is not ASCII as they are, all else as a space.
_LETTERS = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(128)
) + bytes(range(128, 256))
_INSTRUCTIONS = (
    "user_instruction instruction instructions question problem problem_statement task_description query goal"
).split()
_MATERIAL = "options choices context passage document documents image images seed".split()
_SAYINGS = (
    "expected_outputs expected_output expected_answer communicate_info communicate_checks nl_assertions "
    "env_assertions gold_answer ground_truth reference_answer target"
).split()
_HOLDERS = ("", "verifier_metadata", "metadata", "verifier")


def observe(task: TaskTraces) -> Sounding:
    """What the verdicts on one task can be checked by."""
    golds = [events.gold(episode.trace.row) for episode in task.episodes]
    found = [matching.answer_of(episode) for episode in task.episodes]
    heard = tuple(
        _heard(episode, gold, kind, text)
        for episode, gold, (kind, text, _) in zip(task.episodes, golds, found, strict=True)
    )
    prompts = {events.prompt(episode.trace.row) for episode in task.episodes}
    asked = {_asked(episode) for episode in task.episodes}
    answer = task.gold.answer or ""
    leak = _leak(answer, prompts, task.episodes)
    expected = expected_words(task)
    spoke, words = trajectory_words(task.episodes) if expected else (-1, b"")
    told = _telling(task.episodes)
    listed, field = _listed_actions(told)
    return Sounding(
        task=task.task,
        heard=heard,
        gold=answers.normalised(answer)[:MAX_ANSWER],
        gold_field=task.gold.answer_field,
        is_plain=matching.is_plain(answer) if answer else False,
        same_gold=len({gold.answer for gold in golds if gold.answer is not None}) <= 1,
        identity=_identity(task.gold),
        prompt=next(iter(asked)) if len(asked) == 1 else 0,
        leak=leak,
        leaked=_leaked(task.episodes[0], leak, answer) if leak else None,
        undeclared=_undeclared(task),
        n_expected_writes=-1 if listed is None else _n_writes(listed, task.episodes),
        asks_words=not _asks_nothing(told),
        actions_field=field,
        expected=expected,
        spoke=spoke,
        words=words,
        quotes=_quotes(task, heard, found),
    )


def _heard(episode: Episode, gold: Gold, kind: str, text: str) -> Heard:
    tried = [call for call in episode.calls if call.does == events.WRITE]
    known = all(call.result_step is not None for call in tried)  # what came of them all is on record
    writes = [f"{call.key} {events.masked(call.output)}" for call in tried] if known else []
    steps = episode.trace.steps
    told = [f"{step.kind}\0{step.tool or ''}\0{step.arguments or ''}\0{step.text}" for step in steps]
    final = " ".join(episode.final.split())
    return Heard(
        position=episode.position,
        kind=kind,
        answer=answers.normalised(text)[:MAX_ANSWER] if kind else "",
        spelled=digest(text) if kind else 0,
        relation=matching.relation(text, gold.answer) if kind and gold.answer else "",
        final=digest(final) if final else 0,
        has_user=episode.has_user,
        state=digest(*writes) if writes else 0,
        made=_made(episode),
        output=digest(*told) if any(step.text or step.tool for step in steps) else 0,
        size=sum(map(len, told)),
        n_items=len(steps),
        n_calls=len(episode.calls),
        n_writes=len(tried),
    )


def _made(episode: Episode) -> int:
    """Of the ids that the server of the model gave to its response: no two responses share them."""
    response = episode.trace.row.get("response")
    name = response.get("id") if isinstance(response, Mapping) else None
    ids = [step.call_id for step in episode.trace.steps[:8] if step.kind == "call" and step.call_id]
    return digest(str(name or ""), *ids) if name or ids else 0


def _asked(episode: Episode) -> int:
    """Of all that a rollout is asked: the request, pictures included, and what the row says of the task.

    Where somebody answers the model the request is only how a talk begins, and says nothing.
    """
    row = episode.trace.row
    params = row.get("responses_create_params")
    if episode.has_user or not isinstance(params, Mapping) or not params.get("input"):
        return 0
    told = [events.canonical(row[name]) for name in (*_INSTRUCTIONS, *_MATERIAL) if row.get(name)]
    return digest(events.canonical(params["input"]), events.canonical(params.get("instructions")), *told)


def _identity(gold: Gold) -> int:
    if gold.answer is None and not gold.actions:
        return 0
    return digest(gold.answer or "", *(f"{tool} {events.canonical(told)}" for tool, told in gold.actions))


# ---- Evidence ----------------------------------------------------------------------------------


def _quotes(
    task: TaskTraces, heard: Sequence[Heard], found: Sequence[tuple[str, str, str | None]]
) -> dict[int, Evidence]:
    """The answers of those rows that a flag may be about."""
    chosen: dict[int, Evidence] = {}
    verdicts: dict[tuple[int, int], set[bool | None]] = {}
    for episode, one in zip(task.episodes, heard, strict=True):
        for key in _identities(one):
            verdicts.setdefault(key, set()).add(episode.passed)
    kept: Counter[tuple[str, bool | None]] = Counter()
    wrong = Counter(one.answer for one in heard if one.relation == OTHER)
    for episode, one, (_, _, field) in zip(task.episodes, heard, found, strict=True):
        split = any(len(verdicts[key]) > 1 for key in _identities(one))
        rejected = not episode.passed and one.relation in (*EQUAL, NEAR, SCALED)
        accepted = bool(episode.passed) and one.relation not in (*EQUAL, "") and one.kind in EXPLICIT
        idle = bool(episode.passed) and not one.n_calls and any(call.n_writes for call in heard)
        agreed = one.relation == OTHER and 4 * wrong[one.answer] >= 3 * len(heard)
        reasons = {"split": split, "rejected": rejected, "accepted": accepted, "idle": idle, "agreed": agreed}
        why = next((name for name, holds in reasons.items() if holds), "")
        if not why or kept[why, episode.passed] >= 2 or len(chosen) >= MAX_QUOTES:
            continue
        quote = events.in_field(episode, field) if field else None
        if quote is None and episode.final_step is not None:
            quote = events.at_step(episode, episode.final_step, at=len(episode.final))
        if quote is not None:
            kept[why, episode.passed] += 1
            chosen[episode.position] = quote
    return chosen


def _identities(one: Heard) -> list[tuple[int, int]]:
    """Under what a rollout may be found to be the same as another; see the verdicts."""
    return [(0, one.output)] * bool(one.output) + [(1, one.spelled)] * bool(one.spelled)


# ---- What a task expects ------------------------------------------------------------------------


def _telling(episodes: Sequence[Episode]) -> Mapping[str, Any]:
    """The first row that says what its task is: one that an error cut short may not."""
    names = {*events.ACTIONS, *_SAYINGS, *_INSTRUCTIONS}
    rows = [episode.trace.row for episode in episodes]
    return next((row for row in rows if any(row.get(name) for name in names)), rows[0] if rows else {})


def _listed_actions(row: Mapping[str, Any]) -> tuple[Sequence[tuple[str, Any]] | None, str | None]:
    """The calls a row expects and their field; None where it has no such list, or not all are the model's."""
    for holder in _HOLDERS:
        inner = row.get(holder) if holder else row
        if isinstance(inner, Mapping):
            for name in events.ACTIONS:
                if isinstance(inner.get(name), list):
                    calls = events.gold({name: inner[name]}).actions
                    field = f"{holder}.{name}" if holder else name
                    return (calls if len(calls) == len(inner[name]) else None), field
    return None, None


def _asks_nothing(row: Mapping[str, Any]) -> bool:
    """Whether a row expects no words either."""
    inner = [row.get(holder) if holder else row for holder in _HOLDERS]
    return not any(part.get(name) for part in inner if isinstance(part, Mapping) for name in _SAYINGS)


def _n_writes(actions: Iterable[tuple[str, Any]], episodes: Sequence[Episode]) -> int:
    tools = episodes[0].tools if episodes else {}
    told = (events.what_it_does(tool, arguments, tools.get(tool), {}) for tool, arguments in actions)
    return sum(does == events.WRITE for does in told)


def _undeclared(task: TaskTraces) -> tuple[str, ...]:
    """Tools of the expected calls that are neither declared nor answer in any rollout of the task."""
    if not task.gold.actions or any(not episode.tools for episode in task.episodes):
        return ()
    known = {_bare(name) for episode in task.episodes for name in episode.tools}
    known |= {_bare(call.tool) for e in task.episodes for call in e.calls if call.output and not call.failed}
    return tuple(sorted({tool for tool, _ in task.gold.actions if _bare(tool) not in known}))


def _bare(tool: str) -> str:
    """The name of a tool without the server or module it is reached by."""
    return re.split(r"__|[.:/]", tool)[-1].casefold()


def _leak(gold: str, prompts: Iterable[str], episodes: Sequence[Episode]) -> str:
    """Where a distinctive gold answer stands word for word before the model has said anything."""
    wanted = gold.strip()
    if len(wanted) < LEAK_LENGTH or len(wanted) > answers.MAX_ANSWER or not episodes:
        return ""
    if answers.mentions(events.compact(list(episodes[0].tools.values()))[:100_000], wanted) >= 0:
        return "tools"
    told = sorted(prompts)
    return "prompt" if told and all(answers.mentions(text[:100_000], wanted) >= 0 for text in told) else ""


def _leaked(episode: Episode, leak: str, gold: str) -> Evidence | None:
    """The passage that gives the gold away."""
    field = "responses_create_params.input" if leak == "prompt" else "responses_create_params.tools"
    params = episode.trace.row["responses_create_params"]
    value = params.get(field.rpartition(".")[2])
    text = value if isinstance(value, str) else events.compact(value)
    return events.in_field(episode, field, at=max(0, answers.mentions(text, gold.strip())))


# ---- Words, for the question whether trajectory and task belong together ------------------------


def expected_words(task: TaskTraces) -> dict[str, tuple[int, ...]]:
    """Hashes of the telling words of what the task asks and expects, by field."""
    if not task.episodes:
        return {}
    found: dict[str, str] = {}
    gold, row = task.gold, _telling(task.episodes)
    if gold.answer is not None and gold.answer_field is not None:
        found[gold.answer_field] = gold.answer
    if gold.actions and gold.actions_field is not None:
        found[gold.actions_field] = " ".join(events.canonical(told) for _, told in gold.actions)
    for name in _INSTRUCTIONS:
        if isinstance(row.get(name), str):
            found[name] = row[name][:4000]
            break
    hashed = {name: sorted(_hashes([text], MAX_EXPECTED)) for name, text in found.items()}
    return {name: tuple(words) for name, words in hashed.items() if words}


def trajectory_words(episodes: Sequence[Episode]) -> tuple[int, bytes]:
    """The position of the first rollout that passed or did anything, and hashes of its telling words."""
    for episode in sorted(episodes, key=lambda one: not one.passed):
        steps = episode.trace.steps
        if any(step.text for step in steps):
            # what the model wrote first: a long result must not push it out
            texts = [step.text[:_OF_STEP] for step in steps if step.kind != "result"]
            texts += [step.text[:_OF_RESULT] for step in steps if step.kind == "result"]
            return episode.position, array("I", sorted(_hashes(texts, MAX_WORDS))).tobytes()
    return -1, b""


def _hashes(texts: Iterable[str], limit: int) -> set[int]:
    """Of words that are no plain word, such as ids, then of words long enough to say something."""
    told = " ".join(texts)[:_TRAJECTORY].encode("utf-8", "surrogatepass")
    words = set(told.translate(_LETTERS).split())
    ids = {crc32(word) for word in words if len(word) >= 4 and not word.isalpha()}
    plain = {crc32(word) for word in words if len(word) >= 6 and word.isalpha()}
    if len(ids) + len(plain) <= limit:
        return ids | plain
    kept = sorted(ids)[:limit]
    return {*kept, *sorted(plain - ids)[: limit - len(kept)]}
