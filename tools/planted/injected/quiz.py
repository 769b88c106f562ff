"""Questions with one right answer, with a library to search or without tools: rollouts that pass."""

from __future__ import annotations

import re
from random import Random

from tools.planted import items
from tools.planted.injected.scene import Domain, Scene, Task, request
from tools.planted.items import Item, encode
from tools.planted.words import talk

SYSTEM = "Answer the question. Show your work briefly and put the final answer in \\boxed{}."
LIBRARY = SYSTEM + " The library holds what you need; look the answer up, do not guess."
TEXT = {"type": "string"}
TOOLS = (
    items.tool("search", "Search the library; titles and document numbers.", {"query": TEXT}, ["query"]),
    items.tool("open_document", "Read a document.", {"doc_id": TEXT}, ["doc_id"]),
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
    facts |= {f"doc{at}": doc for at, doc in enumerate(docs)}
    facts |= {f"wrong{at}": str(year) for at, year in enumerate(years[1:])}
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
        hits = [{"doc_id": facts[f"doc{at}"], "title": title} for at, title in enumerate(titles)]
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
    found = BOXED.findall(scene.final)
    answer = found[-1].strip() if found else None
    right = answer == scene.facts["gold"]
    if answer is None:
        said = "No boxed answer could be parsed."
    else:
        said = f"Extracted {answer}, expected {scene.facts['gold']}."
    return {"reward": float(right), "extracted_answer": answer, "verifier_message": said}


QUIZ = Domain(quiz_world, solve, miss, reply, judge, also=("right_then_wrong",))
