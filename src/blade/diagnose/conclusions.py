"""Write down what the ladder concluded: trust, groups, unexplained rows, causes of tasks, losses, recommendations."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import msgspec
import numpy as np
from msgspec.structs import replace

from blade import events, model, stats
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.fact_cover import gain
from blade.diagnose.groups import Group, sentence, short
from blade.diagnose.ladder import Diagnosis
from blade.diagnose.population import Mask, Population
from blade.diagnose.rungs import kinds

EXAMPLES = 5
MEASUREMENT = (model.Cause.INFRASTRUCTURE, model.Cause.TASK_OR_VERIFIER, model.Cause.DATA_ARTIFACT)
UNEXPLAINED = "unexplained"
TWIN = 0.95  # share of rows that two slices have in common, from which they are one
RANGES = 3  # rows in a row from which a query names their range
Judged = Mapping[str, Sequence[model.Judgement]]  # task -> the last word of each author, the newest last
Opener = Callable[[int], model.Episode]
Modes = dict[int, tuple[model.Cause, str]]  # row -> cause, name of its group


class Concluded(msgspec.Struct, frozen=True):
    """What became of every lost point of a run."""

    trust: tuple[model.Trust, ...]
    groups: tuple[model.Group, ...]
    unexplained: model.Unexplained
    slices: tuple[model.Slice, ...]
    attributions: tuple[model.Attribution, ...]
    losses: tuple[model.Loss, ...]
    run_causes: tuple[model.RunCause, ...]
    recommendations: tuple[model.Recommendation, ...]
    modes: Modes  # position of each row that loses points -> cause and group
    blamed: Mapping[str, tuple[str, str, int | None]]  # address of each row of a group -> label, name, step


def conclude(diagnosis: Diagnosis, index: Sequence[int], opener: Opener, judgements: Judged) -> Concluded:
    """Everything in the nouns of a report; `index` is the task of each row as the file numbers it."""
    people, rest, task = diagnosis.people, diagnosis.unexplained, np.asarray(index)
    # too many and too few calls of one tool have one fix: it is one finding about choosing it
    for many in (result for result in diagnosis.groups if result.name.startswith("calls `")):
        few = [result for result in diagnosis.groups if f"never calls `{many.tool}`" in result.name]
        n_many, n_few = int(many.rows.sum()), int(sum(result.rows.sum() for result in few))
        for result in (many, *few) if few else ():
            result.fix = sentence("conclusions.choosing", tool=many.tool, many=n_many, few=n_few)
    groups = tuple(_group(people, task, result, number, opener) for number, result in enumerate(diagnosis.groups, 1))
    attributions, modes = _attributions(diagnosis, task, groups, opener, judgements)
    return Concluded(
        trust=tuple(
            model.Trust(people.run, entry.level, label, entry.text, int(entry.rows.sum()), select(people, entry.rows), entry.fix)
            for entry in diagnosis.trust for label in [model.Cause(entry.label) if entry.label else None]
        ),
        groups=groups,
        unexplained=model.Unexplained(people.run, _points(people, rest), int(rest.sum()), select(people, rest)),
        slices=_slices(people, diagnosis.slices),
        attributions=tuple(attributions),
        losses=_losses(people, modes),
        run_causes=_run_causes(people, diagnosis, groups),
        recommendations=_recommendations(people, task, diagnosis, groups),
        modes={people.rows[i].position: mode for i, mode in modes.items()},
        blamed={
            _key(people, task, int(i)): (group.label.value, group.name, _blamed(result, people.rows[i]))
            for group, result in zip(groups, diagnosis.groups, strict=True)
            for i in np.flatnonzero(result.rows)
        },
    )


def _blamed(result: Group, row: RowEvidence) -> int | None:
    """The step that forecloses the task, where the group has one."""
    place = (result.blame or result.place)(row)
    return place[0] if place is not None and isinstance(place[0], int) else None


def select(people: Population, rows: Mask) -> str:
    """A SELECT that gives some rows by their number in the run."""
    positions = sorted(row.position for row in people.of(rows))
    consecutive = groupby(enumerate(positions), lambda place: place[1] - place[0])
    spans = [[position for _, position in span] for _, span in consecutive]
    single = [str(position) for span in spans if len(span) < RANGES for position in span]
    parts = [f"row between {span[0]} and {span[-1]}" for span in spans if len(span) >= RANGES]
    parts += [f"row in ({', '.join(single)})"] if single else []
    name, condition = people.run.replace("'", "''"), " or ".join(parts) or "false"
    condition = f"({condition})" if len(parts) > 1 else condition
    return f"select run, task, repeat, row from rollouts where run = '{name}' and {condition}"


def _slices(people: Population, pieces: Sequence[kinds.Slice]) -> tuple[model.Slice, ...]:
    """Kinds of task with their rate over tasks and that of all others; of nearly the same rows under two names the first."""
    result: list[tuple[kinds.Slice, model.Slice]] = []
    for piece in pieces:
        alike = (other.rows for other, _ in result if other.n_tasks == piece.n_tasks)
        if all((piece.rows & rows).sum() < TWIN * (piece.rows | rows).sum() for rows in alike):
            inside, rest = (people.rates(rows) for rows in (piece.rows, ~piece.rows))
            low, high, _ = stats.mean_interval(inside, 0.0, 1.0) or (None, None, None)
            rates = len(inside), float(inside.mean()), low, high, float(rest.mean())
            result.append((piece, model.Slice(people.run, piece.field, piece.value, *rates, piece.p)))
    return tuple(entry for _, entry in result)


def _points(people: Population, rows: Mask) -> float:
    return math.fsum(people.lost[rows].tolist())


def _key(people: Population, task: np.ndarray, i: int) -> str:
    return f"{people.keys[int(task[i])]}/{int(people.repeat[i])}"


def _group(people: Population, task: np.ndarray, result: Group, number: int, opener: Opener) -> model.Group:
    first = people.example(result.rows)
    places = [first, *(int(i) for i in np.flatnonzero(result.rows) if i != first)][:EXAMPLES]
    quotes = (_quote(people, i, result.place(people.rows[i]), opener) for i in places)
    points = _points(people, result.rows)
    return model.Group(
        id=f"g{number}", run=people.run, rung=result.rung, label=model.Cause(result.label or "undetermined"),
        confidence=model.Confidence(result.confidence), name=result.name, text=result.text, points=points, rows=int(result.rows.sum()),
        tasks=len(np.unique(task[result.rows])), passed_rows=result.passed, query=select(people, result.rows),
        examples=tuple(_key(people, task, i) for i in places), quote=next(filter(None, quotes), None), why_label=result.why,
        against=tuple(result.against), consequences=tuple(result.consequences), fix=result.fix, gain=gain(people, result),
        most=points if result.most is None else result.most,
    )  # fmt: skip


def _quote(people: Population, i: int, place: tuple[int | str, str] | None, opener: Opener) -> model.Evidence | None:
    """The words at a step or in a field of a row."""
    if place is None:
        return None
    (where, hint), row = place, people.rows[i]
    episode = opener(row.position)
    if isinstance(where, str):
        return events.in_field(episode, where, _near(events.field_text(episode.trace.row, where) or "", hint))
    steps = episode.trace.steps
    if not 0 <= where < len(steps):
        return None
    shown = next((call.result_step for call in episode.calls if call.step == where and call.failed), None)
    if row.is_spoken and any(act.step == where and act.failed and act.is_answered for act in row.acts):
        shown = where + 1  # the error is what the other party says next
    shown = where if shown is None else shown
    return events.at_step(episode, shown, _near(events.step_text(steps[shown]), hint))


def _near(text: str, hint: str) -> int:
    """Where a text says what a template says: by its longest plain part."""
    parts = sorted(re.split(r"<\w+>", hint), key=len, reverse=True)
    return next((text.find(part.strip()) for part in parts if part.strip() and part.strip() in text), 0)


# ---- Tasks ---------------------------------------------------------------------------------------


def _attributions(
    diagnosis: Diagnosis, task: np.ndarray, groups: Sequence[model.Group], opener: Opener, judgements: Judged
) -> tuple[list[model.Attribution], Modes]:
    """One cause for each task that loses points; and of each such row its cause and the name of its group."""
    people = diagnosis.people
    owner = np.full(people.n, -1)
    for number, result in enumerate(diagnosis.groups):
        owner[result.rows] = number
    attributions = []
    modes: Modes = {}
    losing: defaultdict[int, list[int]] = defaultdict(list)
    for i in np.flatnonzero(people.lost > 1e-12).tolist():
        losing[int(task[i])].append(i)
        modes[i] = model.Cause.UNDETERMINED, UNEXPLAINED
        if (number := int(owner[i])) >= 0:
            modes[i] = _label(groups[number], diagnosis.groups[number], i), groups[number].name
    for code, rows in losing.items():
        lost = Counter[int]()
        for i in rows:
            lost[int(owner[i])] += people.lost[i]
        best = max(lost, key=lambda number: (lost[number], number >= 0, -number))
        key = people.keys[code]
        proposed = _attribution(diagnosis, groups, key, rows, owner, best, opener)
        if words := judgements.get(key):
            proposed = _overruled(proposed, words)
            for i in rows:
                if modes[i][0] not in MEASUREMENT or int(owner[i]) == best:
                    modes[i] = (proposed.cause, proposed.mode)
        attributions.append(proposed)
    return attributions, modes


def _attribution(
    diagnosis: Diagnosis, groups: Sequence[model.Group], key: str, rows: list[int], owner: np.ndarray, best: int,
    opener: Opener,
) -> model.Attribution:  # fmt: skip
    people = diagnosis.people
    mine = [i for i in rows if owner[i] == best]
    i, n, repeat = mine[0], len(mine), int(people.repeat[mine[0]])
    total = int((people.indexed == people.indexed[i]).sum())
    lost = math.fsum(people.lost[row] for row in rows)
    of = f"{n} of its {total} rollouts" if total > 1 else "its rollout"
    if people.is_regrouped and total > 1:
        of = f"{n} of the {total} rollouts under this index, which have different prompts"
    names = Counter(groups[int(owner[row])].name if owner[row] >= 0 else UNEXPLAINED for row in rows if owner[row] != best)
    others = f" Other failures: {', '.join(f'{name} ({m:,})' for name, m in names.most_common())}." if names else ""
    if best < 0:
        row = people.rows[i]
        end = f' It ends: "{short(row.final, 120)}"' if row.final.strip() else ""
        text = f"{of[0].upper()}{of[1:]} fail{'s' if n == 1 else ''}, and BLADE found no reason.{end}{others}"
        return model.Attribution(
            f"cause:{key}", people.run, key, "", model.Cause.UNDETERMINED, model.Confidence.UNSURE, UNEXPLAINED, text, repeat, None, (),
            ("no question of the ladder is answered by these rows",), (), (), lost,
        )  # fmt: skip
    group, result = groups[best], diagnosis.groups[best]
    # the words of the blamed step first; what shows the group may stand elsewhere
    places = dict.fromkeys(place for make in (result.blame, result.place) if make and (place := make(people.rows[i])))
    quotes = tuple(quote for place in places if (quote := _quote(people, i, place, opener)) is not None)
    step = _blamed(result, people.rows[i])
    steps = (model.Blame(step, 1.0, group.name),) if step is not None else ()
    detail = result.detail(i) if result.detail is not None else ""
    shown = (f". {_key(people, people.indexed, i)}: " if n > 1 else ": ") + detail if detail else ""
    name = f"{of}: {group.name}" if total > 1 else group.name
    text = f"{name[0].upper()}{name[1:]}{shown}.{others}".replace("….", "…")
    return model.Attribution(
        f"cause:{key}", people.run, key, group.id, _label(group, result, i), group.confidence, group.name, text, repeat, step, steps,
        (group.why_label,), group.against, quotes, lost,
    )  # fmt: skip


def _label(group: model.Group, result: Group, i: int) -> model.Cause:
    """The label of one row: the group's, unless its rows differ."""
    return model.Cause(result.label_of(i)) if result.label_of is not None else group.label


def _overruled(engine: model.Attribution, words: Sequence[model.Judgement]) -> model.Attribution:
    """The attribution of a judged task, with the engine's proposal among what speaks against it."""
    last, others = words[-1], words[:-1]
    disputed = [entry for entry in others if entry.cause is not last.cause]
    shown = last.shown(engine.run)
    who = f"judged by {last.by} on {last.at[:10]}"
    by_condition = [f"the rollout meets the condition {last.condition}"] if last.condition else []
    agreed = [f"{entry.by} says the same: {entry.mechanism}" for entry in others if entry.cause is last.cause]
    against = [f"{entry.by} says {entry.cause.value}: {entry.mechanism}" for entry in disputed]
    if engine.cause is not last.cause:
        against.append(f"the engine proposes {engine.cause.value}: {engine.mechanism}")
    mode = last.mode or (engine.mode if engine.cause is last.cause else f"judged {last.cause.value}")
    steps = (model.Blame(last.step, 1.0, f"{who}: {last.mechanism}"),) if last.step is not None else ()
    return replace(
        engine, group=engine.group if engine.mode == mode else "", cause=last.cause,
        confidence=model.Confidence.UNSURE if disputed else model.Confidence.PROVED, mode=mode, mechanism=last.mechanism,
        repeat=last.repeat, step=last.step, steps=steps, grounds=(f"{who}: {last.mechanism}", *by_condition, *agreed),
        against=(*against, *engine.against), evidence=(*shown, *(entry for entry in engine.evidence if entry not in shown)),
        judged_by=last.by, proposed=engine.cause, proposed_confidence=engine.confidence, disputed=bool(disputed),
    )  # fmt: skip


def _losses(people: Population, modes: Modes) -> tuple[model.Loss, ...]:
    grouped: defaultdict[tuple[model.Cause, str], list[float]] = defaultdict(list)
    for i, mode in modes.items():
        grouped[mode].append(float(people.lost[i]))
    losses = [model.Loss(people.run, cause, mode, math.fsum(values)) for (cause, mode), values in grouped.items()]
    return tuple(sorted(losses, key=lambda loss: (-loss.lost, loss.cause, loss.mode)))


def _run_causes(people: Population, diagnosis: Diagnosis, groups: Sequence[model.Group]) -> tuple[model.RunCause, ...]:
    """The alarms, and a group that takes more than half of the lost points."""
    total = _points(people, people.failed)
    named = {group.text: group for group in groups}
    result = []
    for entry in diagnosis.trust:
        if entry.level == "alarm" and entry.label:
            group = named.get(entry.text)
            name = group.name if group else "rows are grouped wrongly" if entry.label == "DA" else entry.text[:80]
            quote, lost = (_quotes(group), group.points) if group else ((), 0.0)
            result.append(model.RunCause(people.run, model.Cause(entry.label), name, entry.text, int(entry.rows.sum()), lost, quote))
    alarms = {cause.text for cause in result}
    return (*result, *(
        model.RunCause(people.run, group.label, group.name, group.text, group.rows, group.points, _quotes(group))
        for group in groups if group.points > 0.5 * total and group.text not in alarms
    ))  # fmt: skip


def _quotes(group: model.Group) -> tuple[model.Evidence, ...]:
    return (group.quote,) if group.quote else ()


def _recommendations(
    people: Population, task: np.ndarray, diagnosis: Diagnosis, groups: Sequence[model.Group]
) -> tuple[model.Recommendation, ...]:
    """The fixes: what repairs the measurement first, then by points; one for each thing to change."""
    texts = {group.text for group in groups}
    result = [
        model.Recommendation(
            0, people.run, "", entry.fix, model.Cause(entry.label or "undetermined"), "", None, 0.0, True,
            "fixes the measurement, not the model", (), (),
        )
        for entry in diagnosis.trust if entry.level in ("alarm", "note") and entry.fix and entry.text not in texts
    ]  # fmt: skip
    alarms = {entry.text for entry in diagnosis.trust if entry.level == "alarm"}
    pairs = sorted(zip(groups, diagnosis.groups, strict=True), key=lambda pair: pair[0].text not in alarms)
    by_fix: dict[str, tuple[model.Group, Group]] = {}
    for group, source in pairs:
        by_fix.setdefault(group.fix, (group, source))
    for group, source in by_fix.values():
        keys = tuple(dict.fromkeys(people.keys[int(code)] for code in task[source.rows]))
        result.append(model.Recommendation(
            0, people.run, group.id, group.fix, group.label, group.name, group.gain, group.most, group.label in MEASUREMENT,
            sentence(f"conclusions.{'not ' if group.gain is None else ''}identified"), keys, _quotes(group),
        ))  # fmt: skip
    return tuple(replace(entry, rank=rank) for rank, entry in enumerate(result, 1))
