"""Keep one simulated rollout while it is written (task, items, verdict), and play a quiz: rollouts that pass."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from tools.planted import planted_rows
from tools.planted.planted_rows import Item, encode, talk

Key = tuple[int, int]  # task index, repeat
MODEL, AGENT = "sim-model-a", "sim_injected_agent"


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a domain; the same number and options are the same task in every run."""

    number: int
    asked: Item  # the request
    fields: Item  # what the dataset says beside it; echoed into every row
    facts: Mapping[str, str]  # what the domain knows of its world


@dataclass(frozen=True, slots=True)
class Domain:
    """A kind of work: how its tasks look, are solved, are missed, and are judged."""

    task: Callable[[int, frozenset[str]], Task]
    solve: Callable[[Scene], None]
    miss: Callable[[Scene, int], None]  # the same variant is the same wrong content
    reply: Callable[[Task, str, Item], str]  # what a tool answers
    judge: Callable[[Scene], Item]  # reward and verifier fields
    also: tuple[str, ...]  # what rules may read into wrong content


@dataclass
class Scene:
    """A rollout that an injection may still change."""

    domain: Domain
    task: Task
    key: Key
    options: frozenset[str]
    rng: Random
    run: dict[Key, Scene]  # all rollouts of the run, for what only shows between them
    solved: bool = True
    variant: int = 0  # of the wrong content, where it is not solved
    output: list[Item] = field(default_factory=list)
    fields: Item = field(default_factory=dict)  # instead of the task's own
    response: Item = field(default_factory=dict)  # status, error and the like, where not as usual
    used: dict[str, int] = field(default_factory=dict)  # token counts, where not as long as the text
    ruled: Item = field(default_factory=dict)  # what the verifier says, whatever the output is

    @property
    def facts(self) -> Mapping[str, str]:
        return self.task.facts

    @property
    def parity(self) -> int:
        """Alternates between the repeats of a task, so that no order of reads is ever the rule."""
        return sum(self.key) % 2

    def ident(self) -> str:
        return f"{self.rng.getrandbits(48):012x}"

    def thought(self, text: str) -> Item:
        return planted_rows.reasoning(self.ident(), text)

    def said(self, text: str) -> Item:
        return planted_rows.message(self.ident(), text)

    def heard(self, text: str) -> Item:
        """A turn of the simulated user."""
        content = [{"type": "input_text", "text": text}]
        return {"id": f"msg_{self.ident()}", "type": "message", "role": "user", "content": content}

    def made(self, tool: str, arguments: Item, result: str | None = None) -> list[Item]:
        """A call and its result; the domain answers unless the result is given."""
        ident = self.ident()
        text = self.domain.reply(self.task, tool, arguments) if result is None else result
        return [planted_rows.call(ident, tool, arguments), planted_rows.result(ident, text)]

    def use(self, tool: str, arguments: Item, result: str | None = None) -> None:
        self.output += self.made(tool, arguments, result)

    def think(self, text: str) -> None:
        self.output.append(self.thought(text))

    def say(self, text: str) -> None:
        self.output.append(self.said(text))

    def calls(self, *tools: str) -> list[int]:
        """Where the calls of these tools stand; of all tools if none is named."""
        return [
            place
            for place, item in enumerate(self.output)
            if item["type"] == "function_call" and (not tools or item["name"] in tools)
        ]

    def result_of(self, index: int) -> int | None:
        wanted = self.output[index]["call_id"]
        for place, item in enumerate(self.output):
            if item["type"] == "function_call_output" and item["call_id"] == wanted:
                return place
        return None

    def arguments(self, place: int) -> Item:
        """The arguments of a call; empty when they are no object."""
        try:
            results = json.loads(self.output[place]["arguments"])
        except ValueError:
            return {}
        return results if isinstance(results, dict) else {}

    def rewrite(self, place: int, **changed: Any) -> None:
        """Change arguments of a call."""
        self.output[place]["arguments"] = encode({**self.arguments(place), **changed}).decode()

    def insert(self, place: int, new: Sequence[Item]) -> None:
        self.output[place:place] = new

    def cut(self, place: int) -> None:
        """Forget everything from an item on; the thought right before it goes too."""
        while place and self.output[place - 1]["type"] == "reasoning":
            place -= 1
        del self.output[place:]

    def end(self, place: int, text: str) -> int:
        """End the rollout before an item with a closing message; where that message stands."""
        self.cut(place)
        self.say(text)
        return self.last

    @property
    def last(self) -> int:
        return len(self.output) - 1

    @property
    def final(self) -> str:
        """The assistant's text after the last call."""
        texts: list[str] = []
        for item in reversed(self.output):
            if item["type"] in ("function_call", "function_call_output") or item.get("role") == "user":
                break
            if item["type"] == "message":
                texts.append(text_of(item))
        return "\n".join(reversed(texts)).strip()

    def tools(self) -> set[str]:
        return {self.output[place]["name"] for place in self.calls()}


def text_of(item: Item) -> str:
    """The text of a message or of a thought."""
    parts = item.get("content") or item.get("summary") or ()
    return "".join(part.get("text", "") for part in parts)


def row_of(scene: Scene) -> Item:
    """The row as Gym writes it."""
    index, repeat = scene.key
    options = scene.task.asked
    thoughts = [item for item in scene.output if item["type"] == "reasoning"]
    n_input, n_output = len(encode(options)) // 4, len(encode(scene.output)) // 4
    counted = {"input": n_input, "output": n_output, "reasoning": len(encode(thoughts)) // 4, **scene.used}
    used = planted_rows.usage(counted["input"], counted["output"], min(counted["reasoning"], counted["output"]))
    ident = f"{Random(f'{scene.key}/{len(scene.output)}').getrandbits(64):016x}"
    response = {**planted_rows.response(ident, MODEL, scene.output, used), **scene.response}
    return {
        "responses_create_params": options,
        "response": response,
        **scene.domain.judge(scene),
        **scene.ruled,
        **(scene.fields or scene.task.fields),
        "_ng_task_index": index,
        "_ng_rollout_index": repeat,
        "agent_ref": {"type": "responses_api_agents", "name": AGENT},
    }


def request(system: str, user: str, tools: Sequence[Item], limit: int = 4096) -> Item:
    """The request as Gym sends it."""
    return {
        "input": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        "tools": list(tools),
        "temperature": 1.0,
        "top_p": None,
        "max_output_tokens": limit,
        "parallel_tool_calls": False,
        "metadata": None,
    }


SYSTEM = "Answer the question. Show your work briefly and put the final answer in \\boxed{}."
LIBRARY = SYSTEM + " The library holds what you need; look the answer up, do not guess."
TEXT = {"type": "string"}
TOOLS = (
    planted_rows.tool("search", "Search the library; titles and document numbers.", {"query": TEXT}, ["query"]),
    planted_rows.tool("open_document", "Read a document.", {"doc_id": TEXT}, ["doc_id"]),
)
GOODS = ("lamps", "chairs", "kettles", "blankets", "clocks", "radios")
PLACES = ("Ashby", "Brindle", "Corwen", "Dunmore", "Elstow", "Farnley", "Garth", "Holmby", "Irnham", "Kelso")
THINGS = ("ferry", "depot", "observatory", "market hall")
SLIPS = (10, -20, 30, -40)
BOXED = re.compile(r"\\boxed\{([^{}]*)\}")

CLOSINGS = (
    "{work} So the answer is \\boxed{{{answer}}}.",
    "{work}\n\n**Answer:** \\boxed{{{answer}}}",
    "Working: {work} That leaves \\boxed{{{answer}}}.",
)
FOUND = (
    "The document says so directly: \\boxed{{{answer}}}.",
    "According to {doc} it was \\boxed{{{answer}}}.",
    "It opened in \\boxed{{{answer}}}.",
)


def quiz_world(number: int, options: frozenset[str]) -> Task:
    return library_task(number) if "library" in options else sum_task(number)


def sum_task(number: int) -> Task:
    rng = Random(f"quiz/{number}")
    crates, each, broken = rng.randrange(12, 40), rng.randrange(13, 60), rng.randrange(5, 12)
    goods = GOODS[number % len(GOODS)]
    question = f"Question {number + 1}. A depot receives {crates} crates with {each} {goods} in each. "
    question += f"{broken} {goods} are broken. How many {goods} can be sold?"
    facts = {"crates": str(crates), "each": str(each), "broken": str(broken), "goods": goods}
    gold = str(crates * each - broken)
    fields = {"question_id": f"sum-{number:04d}", "category": goods, "expected_answer": gold}
    return Task(number, request(SYSTEM, question, ()), fields, {**facts, "gold": gold})


def library_task(number: int) -> Task:
    rng = Random(f"library/{number}")
    place, thing = PLACES[number % len(PLACES)], THINGS[number // len(PLACES) % len(THINGS)]
    years = rng.sample(range(1850, 1990), 5)
    docs = [f"doc-{value}" for value in rng.sample(range(2000, 9999), 3)]
    facts = {"place": place, "thing": thing, "gold": str(years[0])}
    facts |= {f"doc{index}": doc for index, doc in enumerate(docs)}
    facts |= {f"wrong{index}": str(year) for index, year in enumerate(years[1:])}
    question = f"In which year was the {thing} of {place} opened?"
    fields = {"question_id": f"year-{number:04d}", "category": thing, "expected_answer": facts["gold"]}
    return Task(number, request(LIBRARY, question, TOOLS), fields, facts)


def reply(task: Task, tool: str, arguments: Item) -> str:
    facts = task.facts
    if tool == "search":
        if facts["thing"] not in arguments["query"]:
            return encode({"hits": [], "note": f"nothing under {arguments['query']}"}).decode()
        titles = (f"The {facts['thing']} of {facts['place']}", f"{facts['place']}: a town guide",
                  f"Every {facts['thing']} of the county")  # fmt: skip
        hits = [{"doc_id": facts[f"doc{place}"], "title": title} for place, title in enumerate(titles)]
        return encode({"hits": hits}).decode()
    world = Random(f"{arguments['doc_id']}")
    if arguments["doc_id"] == facts["doc0"]:
        years = f"The {facts['thing']} of {facts['place']} opened in {facts['gold']}."
    elif arguments["doc_id"] == facts["doc1"]:
        years = (
            f"The town hall of {facts['place']} opened in {facts['wrong0']} and burned in {facts['wrong2']}."
        )
    else:
        years = f"The oldest one opened in {facts['wrong1']}, the largest in {facts['wrong3']}."
    return f"{talk(world, 2)} {years} {talk(world, 2)}"


def reason(scene: Scene) -> None:
    if scene.rng.random() < 0.7:
        scene.think("Let me take it step by step. " + talk(scene.rng, 1 + scene.rng.randrange(4)))


def working(scene: Scene, slip: int) -> tuple[str, str]:
    """The derivation with a slip in its product, and the answer it leads to."""
    facts = scene.facts
    product = int(facts["crates"]) * int(facts["each"]) + slip
    answer = product - int(facts["broken"])
    work = f"{facts['crates']} × {facts['each']} = {product} and {product} − {facts['broken']} = {answer}."
    return work, str(answer)


def do_sum(scene: Scene, slip: int) -> None:
    reason(scene)
    if scene.rng.random() < 0.3:
        scene.say("I multiply first and take the broken ones off afterwards.")
    work, answer = working(scene, slip)
    scene.say(scene.rng.choice(CLOSINGS).format(work=work, answer=answer))


def look_up(scene: Scene, docs: tuple[str, ...], answer: str) -> None:
    facts, rng = scene.facts, scene.rng
    reason(scene)
    if rng.random() < 0.3:
        scene.use("search", {"query": f"{facts['place']} opening"})
        scene.think("Nothing yet, I name the kind of place.")
    scene.use("search", {"query": f"{facts['thing']} {facts['place']}"})
    for doc in docs:
        scene.use("open_document", {"doc_id": facts[doc]})
    scene.say(rng.choice(FOUND).format(answer=answer, doc=facts[docs[-1]]))


def solve(scene: Scene) -> None:
    if "library" not in scene.options:
        return do_sum(scene, 0)
    extra = (("doc1",), ("doc2",), (), ())[scene.rng.randrange(4)]
    return look_up(scene, (*extra, "doc0"), scene.facts["gold"])


def miss(scene: Scene, variant: int) -> None:
    """Slip in the product, or take the year of something else from the wrong document."""
    if "library" not in scene.options:
        return do_sum(scene, SLIPS[variant % 4])
    return look_up(scene, (f"doc{1 + variant % 2}",), scene.facts[f"wrong{variant % 4}"])


def judge(scene: Scene) -> Item:
    """Take the last boxed answer and compare it with the gold."""
    results = BOXED.findall(scene.final)
    answer = results[-1].strip() if results else None
    right = answer == scene.facts["gold"]
    if answer is None:
        text = "No boxed answer could be parsed."
    else:
        text = f"Extracted {answer}, expected {scene.facts['gold']}."
    return {"reward": float(right), "extracted_answer": answer, "verifier_message": text}


QUIZ = Domain(quiz_world, solve, miss, reply, judge, also=("right_then_wrong",))


# ---- What is true of a run that holds an injection ------------------------------------------------

Pick = Literal["rows", "tasks", "block", "run"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where an injection has worked: the decisive step, and every step that shows the fault."""

    step: int | None = None
    steps: tuple[int, ...] = ()
    also: tuple[str, ...] = ()  # behaviours that the same steps show by the letter of their rules


@dataclass(frozen=True, slots=True)
class Truth:
    """What is wrong with one rollout, and since which step."""

    task: str  # the task key, as a report prints it
    repeat: int
    behaviour: str
    causes: tuple[str, ...]  # KG UK BI TI IR DA; the first is preferred, the others are accepted
    step: int | None  # where the fault begins, into the flattened output; None: no step shows it
    steps: tuple[int, ...] = ()  # every step that evidence may cite
    also: tuple[str, ...] = ()  # true of the row as well, as a consequence: neither hit nor false alarm


@dataclass(frozen=True, slots=True)
class Injected:
    """A written run and the truth about it."""

    path: Path
    fault: str
    twin: bool
    prevalence: float  # as asked for; 1 where the fault is one of the whole run
    truths: tuple[Truth, ...]  # of the injected fault; a twin has none
    background: tuple[Truth, ...]  # rollouts that fail for their content, injected or not
    touched: tuple[tuple[str, int], ...]  # task and repeat of every row that was changed, twins too


@dataclass(frozen=True, slots=True)
class Injection:
    """How a fault, or what only looks like it, is put into rollouts that pass."""

    behaviour: str
    id: str  # the number of its rule; empty for what is a matter of the task or of the run
    domain: str
    causes: tuple[str, ...]  # empty: a near-miss twin, nothing is wrong
    inject: Callable[[Scene], Mark | None]  # None: this row is left as it was
    throughout: tuple[str, ...] = ()  # the causes where more than a tenth of the run has it
    least: int = 1  # tasks that must have it before its rule holds
    pick: Pick = "rows"
    passers: int = 1  # passing repeats that every task keeps: what some faults are seen against
    repeats: int = 1  # at the least
    options: frozenset[str] = frozenset()  # how the domain plays

    @property
    def twin(self) -> bool:
        return not self.causes
