"""Put bad endings into rollouts: stopped, given up, refused, empty, unreadable, or turned wrong."""

from __future__ import annotations

from tools.planted.injected import desk
from tools.planted.injected.loops import stop
from tools.planted.injected.quiz import SLIPS, working
from tools.planted.injected.scene import Scene
from tools.planted.injected.truth import Mark

UNREAD = ("format_mismatch",)  # no answer is extracted, whatever else is wrong
REFUSALS = (
    "I'm sorry, but I can't assist with that request.",
    "I can't help with questions about the goods of a depot.",
)
FOREIGN = (
    "Сначала умножаем число ящиков на число предметов, затем вычитаем сломанные. Ответ указан выше.",
    "まず箱の数と一箱の個数を掛け、そのあと壊れた物を引きます。答えは上のとおりです。",
    "Πρώτα πολλαπλασιάζουμε τα κιβώτια με τα είδη και μετά αφαιρούμε τα σπασμένα.",
)
LOOPED = ("I should check the product again.", "Let me take the broken ones off once more.")


def answer(scene: Scene, text: str) -> Mark:
    """Put another text in the place of the whole answer."""
    scene.cut(next(at for at, item in enumerate(scene.output) if item["type"] == "message"))
    scene.say(text)
    return Mark(scene.last, (scene.last,))


def right(scene: Scene) -> str:
    work, gold = working(scene, 0)
    return f"{work} So the answer is \\boxed{{{gold}}}."


def premature_stop(scene: Scene) -> Mark:
    at = scene.end(scene.calls()[1], "I have read the ticket and will take care of it shortly.")
    return Mark(at, (at,))


def short_way(scene: Scene) -> Mark:
    """Only what the task needs, and not one read more."""
    scene.output.clear()
    facts = scene.facts
    scene.use("lookup_ticket", {"ticket_id": facts["ticket"]})
    scene.use("find_customer", {"name": facts["account"]})
    scene.use("search_orders", {"customer_id": facts["customer"], "status": "open"})
    desk.finish(scene)
    return Mark(0)


def gave_up(scene: Scene) -> Mark:
    text = scene.rng.choice(
        (
            "I was unable to find the opening year of the {thing}.",
            "I could not find a document that names the year, so I give up.",
            "I cannot complete this with the library at hand.",
        )
    )
    at = scene.end(scene.calls("open_document")[0], text.format(**scene.facts))
    return Mark(at, (at,), also=UNREAD)


def found_later(scene: Scene) -> Mark:
    del scene.output[scene.last]
    text = "I could not find it in the town guide at first, but then {doc0} had it: \\boxed{{{gold}}}."
    scene.say(text.format(**scene.facts))
    return Mark(scene.last)


def asks_user(scene: Scene) -> Mark:
    text = scene.rng.choice(
        (
            "I found the account {account}. Which of its orders do you mean?",
            "There is order {order}. Please confirm that I may change it.",
            "Please provide the number of the order that should be changed.",
        )
    )
    at = stop(scene, text.format(**scene.facts))
    return Mark(at, (at,))


def asks_someone(scene: Scene) -> Mark:
    """A question to a simulated user, who answers it."""
    at = next(at for at, item in enumerate(scene.output) if item["type"] == "message")
    asked = scene.said("Just to be sure: is this about the account {account}?".format(**scene.facts))
    scene.insert(at, [asked, scene.heard("That is my account, please look at the ticket.")])
    return Mark(at)


def refusal(scene: Scene) -> Mark:
    text = scene.rng.choice(REFUSALS)
    mark = answer(scene, text)
    if scene.rng.random() < 0.4:
        scene.output[-1]["content"] = [{"type": "refusal", "refusal": text}]
    return Mark(mark.step, mark.steps, also=(*UNREAD, "empty_output"))


def speaks_of_refusal(scene: Scene) -> Mark:
    return answer(scene, f"Clerks can't assist buyers of broken goods, so those do not count. {right(scene)}")


def empty_output(scene: Scene) -> Mark:
    mark = answer(scene, scene.rng.choice(("", "  \n", "\n\n")))
    return Mark(mark.step, mark.steps, also=UNREAD)


def empty_then_full(scene: Scene) -> Mark:
    at = next(at for at, item in enumerate(scene.output) if item["type"] == "message")
    scene.insert(at, [scene.said("")])
    return Mark(at)


def format_mismatch(scene: Scene) -> Mark:
    """Words about the answer, and no answer in them."""
    text = "The number of {goods} follows from the product of both numbers, less the broken ones."
    return answer(scene, text.format(**scene.facts))


def format_mismatch_gold(scene: Scene) -> Mark:
    """The right answer stands there, only not in the form that the parser wants."""
    return answer(scene, f"{working(scene, 0)[0]} The answer is **{scene.facts['gold']}**.")


def odd_format(scene: Scene) -> Mark:
    return answer(scene, f"{working(scene, 0)[0]}\n\n$$\\boxed{{ {scene.facts['gold']} }}$$")


def right_then_wrong(scene: Scene) -> Mark:
    work, wrong = working(scene, scene.rng.choice(SLIPS))
    mark = answer(scene, f"{working(scene, 0)[0]} The answer should be {scene.facts['gold']}.")
    scene.think("Wait, I do not trust that product. I multiply again.")
    scene.say(f"On second thoughts, {work} So the answer is \\boxed{{{wrong}}}.")
    return Mark(scene.last, (*mark.steps, scene.last))


def wrong_then_right(scene: Scene) -> Mark:
    work, wrong = working(scene, scene.rng.choice(SLIPS))
    mark = answer(scene, f"{work} The answer should be {wrong}.")
    scene.think("Wait, I do not trust that product. I multiply again.")
    scene.say(f"On second thoughts, {right(scene)}")
    return mark


def degenerate_text(scene: Scene) -> Mark:
    line = scene.rng.choice(LOOPED)
    joint = scene.rng.choice(("\n", " "))
    mark = answer(scene, joint.join([line] * scene.rng.randrange(60, 90)))
    return Mark(mark.step, mark.steps, also=UNREAD)


def long_table(scene: Scene) -> Mark:
    """Many lines alike, and each with its own numbers."""
    each = int(scene.facts["each"])
    lines = [f"{count} crates hold {count * each}" for count in range(1, int(scene.facts["crates"]) + 1)]
    return answer(scene, "\n".join([*lines, right(scene)]))


def language_switch(scene: Scene) -> Mark:
    mark = answer(scene, scene.rng.choice(FOREIGN))
    return Mark(mark.step, mark.steps, also=UNREAD)


def foreign_word(scene: Scene) -> Mark:
    return answer(scene, f"A crate («ящик») is counted whole, as the question does. {right(scene)}")
