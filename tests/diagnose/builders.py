"""Build runs as NeMo Gym rows, write them as JSONL, diagnose them, and look up what was concluded.

Two invented domains: a parcel desk, where a clerk works with tools, and a lending library, where a reader answers a
question in one turn. Both vary in length and wording, so that nothing but a planted fault sets rows apart.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from blade.model import Group, Report, Trust
from blade.pipeline.run_tables import ground_of
from blade.query.query_ground import Ground, Table
from blade.tables.index import Silent

Row = dict[str, Any]
Key = tuple[int, int]  # task index, repeat
Act = str | dict[str, Any] | tuple[str, dict[str, Any], str | None]


# ---- Rows ----------------------------------------------------------------------------------------


def message(text: str, role: str = "assistant") -> Row:
    """A message in the output of a rollout."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def items_of(acts: Iterable[Act]) -> list[Row]:
    """Output items: a text is a message, a triple is a call with its result (None: it was never answered)."""
    items: list[Row] = []
    for act in acts:
        if isinstance(act, str):
            items.append(message(act))
        elif isinstance(act, dict):
            items.append(act)
        else:
            tool, arguments, output = act
            number = f"call_{len(items)}"
            text = json.dumps(arguments)
            items.append({"type": "function_call", "call_id": number, "name": tool, "arguments": text})
            if output is not None:
                items.append({"type": "function_call_output", "call_id": number, "output": output})
    return items


def make_row(
    task: int,
    repeat: int,
    reward: float,
    acts: Iterable[Act] = (),
    *,
    prompt: str | None = None,
    tools: Sequence[str] = (),
    response: dict[str, Any] | None = None,
    **fields: Any,
) -> Row:
    """A rollout as Gym writes it; `response` adds to the response, `fields` to the row."""
    asked = f"Errand {task}: please see to the matter of folder {task * 7 + 3}." if prompt is None else prompt
    params: Row = {"input": [{"role": "user", "content": asked}]}
    if tools:
        schema = {"type": "object", "properties": {}}
        params["tools"] = [{"type": "function", "name": tool, "parameters": schema} for tool in tools]
    return {
        "_ng_task_index": task,
        "_ng_rollout_index": repeat,
        "reward": reward,
        "responses_create_params": params,
        "response": {"output": items_of(acts), **(response or {})},
        **fields,
    }


def keys_of(rows: Iterable[Row]) -> set[Key]:
    """Task index and repeat of some rows."""
    return {(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows}


def grid(n_tasks: int, n_repeats: int) -> list[Key]:
    """All tasks and repeats, task by task."""
    return [(task, repeat) for task in range(n_tasks) for repeat in range(n_repeats)]


# ---- The parcel desk: an agent with tools --------------------------------------------------------

STREETS = "Alder Lane,Birch Row,Cedar Walk,Dogwood Close,Elm Rise,Fern Hill,Gorse Way,Hazel Court".split(",")
DESK_TOOLS = ("find_parcel", "read_notice", "check_address", "redirect_parcel")
NOTES = (
    "The parcel is on its way to {street} now.",
    "Done: everything for number {number} was sent on to {street} this morning.",
    "I moved it to {street}.",
    "All settled. The owner will find number {number} at {street} from tomorrow on, and the old label is void.",
)


def desk_acts(task: int, repeat: int, chance: random.Random) -> list[Act]:
    """How a clerk settles an errand: find the parcel, read some notices, check the address, redirect, report."""
    number, street = f"P-{task + 100}", STREETS[task % len(STREETS)]
    notices: list[Act] = [
        ("read_notice", {"page": page}, f"Notice {page}: the counter opens at {page + 7}.")
        for page in chance.sample(range(9), chance.randrange(0, 4))
    ]
    return [
        ("find_parcel", {"number": number}, json.dumps({"number": number, "shelf": task % 5})),
        *notices,
        ("check_address", {"street": street}, f"{street} is on route {task % 4 + 1}."),
        ("redirect_parcel", {"number": number, "street": street}, f"{number} goes to {street}."),
        chance.choice(NOTES).format(street=street, number=number),
    ]


def desk_row(task: int, repeat: int, reward: float, acts: Iterable[Act] | None = None, **fields: Any) -> Row:
    """A rollout at the parcel desk; without `acts` an ordinary one."""
    chance = random.Random(task * 1000 + repeat)
    made = desk_acts(task, repeat, chance) if acts is None else acts
    return make_row(task, repeat, reward, made, tools=DESK_TOOLS, **fields)


def rewards(n_tasks: int, n_repeats: int, rate: float, seed: int = 0) -> dict[Key, float]:
    """Rewards that depend on nothing; the share of passes is exactly the rate, rounded down."""
    keys = grid(n_tasks, n_repeats)
    passes = set(random.Random(seed).sample(keys, int(rate * len(keys))))
    return {key: float(key in passes) for key in keys}


def desk(n_tasks: int = 12, n_repeats: int = 4, rate: float = 0.75, seed: int = 0) -> dict[Key, Row]:
    """An ordinary run at the parcel desk: what fails, fails for no reason that a row shows."""
    return {key: desk_row(*key, reward) for key, reward in rewards(n_tasks, n_repeats, rate, seed).items()}


# ---- The lending library: one question, one answer -----------------------------------------------


def quiz_row(task: int, repeat: int, reward: float, answer: str, gold: Any, **fields: Any) -> Row:
    """A question about the library, answered in a box; the gold is in the row."""
    ways = (
        "The register lists {shelf} shelves, so I count them. \\boxed{{{answer}}}",
        "Let me add up what the catalogue says about hall {shelf}.\nThat gives \\boxed{{{answer}}}",
        "From the opening hours and the {shelf} loans I get \\boxed{{{answer}}}",
    )
    chance = random.Random(task * 1000 + repeat)
    thought = "".join(f" Ledger {chance.randrange(10**4)} agrees." for _ in range(chance.randrange(8)))
    text = "Counting." + thought + " " + chance.choice(ways).format(shelf=chance.randrange(3, 800), answer=answer)
    prompt = fields.pop("prompt", f"How many volumes did branch {task} lend in week {task % 9 + 1}? Answer in \\boxed{{}}.")
    return make_row(task, repeat, reward, [text], prompt=prompt, expected_answer=gold, **fields)


def quiz(n_tasks: int = 12, n_repeats: int = 4, rate: float = 0.7, seed: int = 0) -> dict[Key, Row]:
    """An ordinary quiz with numbers as golds: wrong answers differ from repeat to repeat."""
    run = {}
    for (task, repeat), reward in rewards(n_tasks, n_repeats, rate, seed).items():
        gold = task * 13 + 41
        answer = gold if reward else gold + 1 + repeat
        run[task, repeat] = quiz_row(task, repeat, reward, str(answer), str(gold))
    return run


# ---- Diagnosis -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Diagnosed:
    """What was concluded of a run, with the rows of each conclusion."""

    report: Report = field(repr=False)
    path: Path
    rows: list[Row] = field(repr=False)
    loaded: list[Any] = field(repr=False)

    @cached_property
    def ground(self) -> Ground:
        return ground_of(self.loaded)

    def keys(self, part: Any) -> set[Key]:
        """The rows that the query of a group, a trust entry or the unexplained rest gives."""
        table = self.ground.ask(part.query)
        assert isinstance(table, Table)
        places = [table.columns.index(name) for name in ("task", "repeat")]
        return {(int(row[places[0]]), int(row[places[1]])) for row in table.rows}

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.report.groups

    @property
    def trust(self) -> tuple[Trust, ...]:
        return self.report.trust

    @property
    def alarms(self) -> list[Trust]:
        return [entry for entry in self.trust if entry.level == "alarm"]

    @property
    def score(self) -> float:
        score = self.report.runs[0].score
        assert score is not None
        return score

    @property
    def failing(self) -> set[Key]:
        return keys_of(row for row in self.rows if row["reward"] < 1)

    def of_rung(self, *rungs: str) -> list[Group]:
        return [group for group in self.groups if group.rung in rungs]

    def holders(self, keys: set[Key]) -> list[Group]:
        """The groups that hold any of some rows, the largest share first."""
        held = [(len(self.keys(group) & keys), group) for group in self.groups]
        return [group for n, group in sorted(held, key=lambda pair: -pair[0]) if n]

    def labels(self, keys: set[Key]) -> set[str]:
        """The labels of all groups that hold any of some rows."""
        return {group.label.value for group in self.holders(keys)}

    def causes(self, keys: set[Key]) -> set[str]:
        """The causes of the tasks that some rows belong to."""
        tasks = {str(task) for task, _ in keys}
        return {entry.cause.value for entry in self.report.attributions if entry.task in tasks}

    def group(self, keys: set[Key]) -> Group:
        """The one group that holds exactly these rows; fails with what holds them instead."""
        holders = self.holders(keys)
        shown = [(group.rung, group.label.value, group.name, sorted(self.keys(group))) for group in holders]
        assert len(holders) == 1, f"planted {sorted(keys)}, held by {shown or 'nothing'}"
        assert self.keys(holders[0]) == keys, f"planted {sorted(keys)}, held by {shown}"
        return holders[0]

    def proved(self, keys: set[Key], rung: str, label: str, level: str) -> Group:
        """The one group that holds exactly these rows, with its rung, its label and its level of trust."""
        group = self.group(keys)
        assert (group.rung, group.label.value) == (rung, label), group.text
        levels = [entry.level for entry in self.trust if entry.query and self.keys(entry) == keys]
        assert level in levels, [(entry.level, entry.text) for entry in self.trust]
        return group

    def shows(self, keys: set[Key], what: str, *words: str) -> Group:
        """The one group of exactly these rows, as `rung label` or `rung label level`; what is told of it holds some words."""
        rung, label, *level = what.split()
        group = self.proved(keys, rung, label, level[0]) if level else self.group(keys)
        assert (group.rung, group.label.value) == (rung, label), group.text
        missing = [word for word in words if word not in f"{told_of(group)}\n{group.fix}"]
        assert not missing, (missing, told_of(group))
        return group

    @property
    def said(self) -> str:
        """Everything that a reader is told."""
        parts = [f"{entry.text} {entry.fix}" for entry in self.trust]
        for group in self.groups:
            parts += [group.name, group.text, group.fix, group.why_label, *group.against, *group.consequences]
        parts += [cause.text for cause in self.report.run_causes]
        parts += [advice.action for advice in self.report.recommendations]
        parts += [attribution.mechanism for attribution in self.report.attributions]
        return "\n".join(dict.fromkeys(parts))


def told_of(group: Group) -> str:
    """Everything that a reader is told of a group."""
    return "\n".join([group.name, group.text, group.why_label, *group.consequences])


Diagnose = Callable[..., Diagnosed]
Made = tuple[Iterable[Row], set[Key]]  # a run, and the rows with the fault


def each(cases: dict[str, Any]) -> pytest.MarkDecorator:
    """One test for each case of a table, under its name."""
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


def proves(diagnose: Diagnose, case: tuple[Any, ...]) -> None:
    """A case is how to make a run and its struck rows, the `rung label level` of their group, and words that are told of it."""
    make, what, *words = case
    rows, keys = make()
    diagnose(rows).shows(keys, what, *words)


def clears(diagnose: Diagnose, rung: str, make: Callable[[], Any]) -> None:
    """A run in which a rung proves nothing, and of which no alarm is given."""
    made = make()
    run = diagnose(made[0] if isinstance(made, tuple) else made)
    assert [group.name for group in run.of_rung(rung)] == []
    assert [alarm.text for alarm in run.alarms] == []


def write(folder: Path, rows: Iterable[Row], inputs: Iterable[Row] | None = None) -> Path:
    """Write rollouts, and the materialised inputs beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rollouts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if inputs is not None:
        beside = folder / "rollouts_materialized_inputs.jsonl"
        beside.write_text("".join(json.dumps(row) + "\n" for row in inputs))
    return path


def diagnose(folder: Path, rows: Iterable[Row], inputs: Iterable[Row] | None = None) -> Diagnosed:
    """Write a run and diagnose it."""
    listed = list(rows)
    path = write(folder, listed, inputs)
    loaded = pipeline.load([str(path)], Silent())
    return Diagnosed(pipeline.diagnose(loaded, "test"), path, listed, loaded)
