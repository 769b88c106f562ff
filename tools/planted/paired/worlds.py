"""Play a rollout: right, wrong in some way, cut off, or broken off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from tools.planted.injected import acts, calls, finals
from tools.planted.injected.desk import DESK
from tools.planted.injected.loops import put
from tools.planted.injected.quiz import QUIZ, working
from tools.planted.injected.scene import Domain, Scene
from tools.planted.items import Item
from tools.planted.words import talk

WRONG = "wrong content"  # the result is not the right one, and that is all
# Ways to fail that a trace shows. Those of the quiz end in a wrong answer, and what led to it no row tells.
VISIBLE = frozenset({"wrong_arg_field", "extra_side_effect", "missing_required_tool", "ignored_error"})
OUTAGES = (
    "model endpoint answered 503: service unavailable, request dropped after 3 tries",
    "Connection reset by peer (ECONNRESET)",
    "429 Too Many Requests: rate limit exceeded",
)


@dataclass(frozen=True, slots=True)
class World:
    """A kind of work: how it fails, and how a right result can be written otherwise."""

    domain: Domain
    options: frozenset[str]
    ways: Mapping[str, Callable[[Scene], object]]
    forms: Mapping[str, Callable[[Scene], Item]]  # loose forms: write it so, say what a strict verifier says


def unboxed(scene: Scene) -> Item:
    """The right number in bold type instead of the box that was asked for."""
    scene.output[-1] = scene.said(f"{working(scene, 0)[0]} The answer is **{scene.facts['gold']}**.")
    return {"extracted_answer": None, "verifier_message": "No boxed answer could be parsed."}


def with_unit(scene: Scene) -> Item:
    """The right number with what it counts."""
    gold, goods = scene.facts["gold"], scene.facts["goods"]
    scene.output[-1] = scene.said(f"{working(scene, 0)[0]} So the answer is \\boxed{{{gold} {goods}}}.")
    said = f"Extracted {gold} {goods}, expected {gold}."
    return {"extracted_answer": f"{gold} {goods}", "verifier_message": said}


def other_closing(scene: Scene) -> Item:
    """The right change, and a closing sentence that begins with other words."""
    scene.output[-1] = scene.said("All set: order {order} now has {action} {value}.".format(**scene.facts))
    return {"verifier_message": 'The closing sentence does not begin with "Done:".'}


def other_spelling(scene: Scene) -> Item:
    """The right value in another spelling: a capital, or no last zero."""
    value = scene.facts["value"]
    spelled = value.capitalize() if value[0].isalpha() else value.rstrip("0")
    scene.rewrite(scene.calls("update_order")[-1], value=spelled)
    said = f"The records differ: expected {value!r}, found {spelled!r}."
    return {"db_match": False, "verifier_message": said}


def cut_off(scene: Scene, limit: int) -> None:
    """End in the middle, at the limit of tokens."""
    places = scene.calls() or [at for at, item in enumerate(scene.output) if item["type"] == "message"]
    scene.cut(scene.rng.choice(places[1:] or places))
    scene.think("Let me go over all of it once more. " + talk(scene.rng, 4))
    scene.response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    scene.used = {"output": limit, "reasoning": limit - 60}


def break_off(scene: Scene) -> None:
    """The provider fails before anything is said."""
    scene.output.clear()
    scene.response = {"usage": None}
    message = scene.rng.choice(OUTAGES)
    if scene.rng.random() < 0.3:
        error = {"code": "server_error", "message": message}
        scene.response |= {"status": "failed", "error": error}
    scene.ruled = {"reward": 0.0, "error": message, "verifier_message": "Nothing to verify: no output."}


def wrong(scene: Scene) -> None:
    """Another result than the right one; which, depends on the task and on chance."""
    scene.output.clear()
    often = Random(f"slip/{scene.task.number}").randrange(4)
    scene.domain.miss(scene, often if scene.rng.random() < 0.5 else scene.rng.randrange(4))


def tell_another(scene: Scene) -> None:
    """Tell the customer, and then a second one who has nothing to do with it."""
    note = {"customer_id": scene.facts["other_customer"], "text": "An order of your account was changed."}
    put(scene, scene.last, [("send_message", note)])


WORLDS: dict[str, World] = {
    "desk": World(
        DESK,
        frozenset({"gold"}),
        {
            "wrong_arg_field": wrong,
            "extra_side_effect": tell_another,
            "missing_required_tool": acts.missing_required_tool,
            "ignored_error": calls.ignored_error,
        },
        {"closing": other_closing, "spelling": other_spelling},
    ),
    "quiz": World(
        QUIZ,
        frozenset(),
        {
            WRONG: wrong,
            "right_then_wrong": finals.right_then_wrong,
            "refusal": finals.refusal,
            "degenerate_text": finals.degenerate_text,
            "language_switch": finals.language_switch,
        },
        {"unboxed": unboxed, "unit": with_unit},
    ),
}
# A loose form that differs from the expected call would hide wrong calls where it is no part of the cause.
HARMLESS = {"desk": ("closing",), "quiz": ("unboxed", "unit")}

__all__ = ["HARMLESS", "VISIBLE", "WORLDS", "WRONG", "World", "break_off", "cut_off"]
