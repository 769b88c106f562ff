"""Put calls into rollouts that their tool cannot take: unknown, malformed, misnamed, made up."""

from __future__ import annotations

from dataclasses import replace

from tools.planted.injected import desk
from tools.planted.injected.loops import after, put
from tools.planted.injected.scene import Scene
from tools.planted.injected.truth import Mark
from tools.planted.items import Item

REJECTED = "The change of order {order} is not in place: the tool did not take my request."
OTHER = ("wrong_arg_field", "extra_side_effect")  # another write than the gold one
DEFECT = "Error: label template 'return_v2' has no field 'order_ref'"


def write_rejected(scene: Scene, tool: str, arguments: Item, error: str) -> Mark:
    """One write that its tool does not take, and an honest end."""
    scene.cut(scene.calls(*desk.WRITES)[0])
    at = len(scene.output)
    scene.use(tool, arguments, error)
    scene.say(REJECTED.format(**scene.facts))
    return Mark(at, (at, at + 1))


def unknown_tool(scene: Scene) -> Mark:
    error = "Error: there is no tool named modify_order."
    return write_rejected(scene, "modify_order", desk.change(scene), error)


def rare_tool(scene: Scene) -> Mark:
    """A tool that nobody else uses, and that is declared."""
    _, at = after(scene, "search_orders")
    return Mark(put(scene, at, [("parcel_status", {"order_id": scene.facts["order"]})])[0])


def malformed_args(scene: Scene) -> Mark:
    mark = write_rejected(
        scene, "update_order", desk.change(scene), "Error: the arguments are no JSON object."
    )
    assert mark.step is not None
    whole = scene.output[mark.step]["arguments"]
    broken = (whole[:-2], whole.replace(":", "=", 1), f"[{whole}]", f"order {scene.facts['order']}")
    scene.output[mark.step]["arguments"] = scene.rng.choice(broken)
    return mark


def spaced_args(scene: Scene) -> Mark:
    """Valid JSON in an unusual hand: blanks, line breaks, escapes."""
    at = scene.calls("update_order")[-1]
    whole = scene.output[at]["arguments"]
    scene.output[at]["arguments"] = (
        "{\n  " + whole[1:-1].replace(",", " ,\n  ").replace("a", "\\u0061") + "\n}\n"
    )
    return Mark(at)


def schema_invalid(scene: Scene) -> Mark:
    """The same misnamed field in every repeat: the model does not know the tool."""
    made = desk.change(scene)
    arguments = {"order": made["order_id"], "action": made["action"], "value": made["value"]}
    return write_rejected(scene, "update_order", arguments, "Error: 'order_id' is a required property.")


def optional_args(scene: Scene) -> Mark:
    """Optional fields with their default values."""
    at = scene.calls("search_orders")[0]
    scene.rewrite(at, page=1)
    return Mark(at)


def made_up(scene: Scene, order: str) -> Mark:
    """Never list the orders; name one out of thin air."""
    scene.cut(scene.calls(*desk.WRITES)[0])
    at = scene.calls("search_orders")[0]
    del scene.output[at : at + 2]
    scene.think("The account has one open order, I know its number.")
    change, message = desk.finish(scene, order=order)
    return Mark(change, (change, message, scene.last), also=OTHER)


def ungrounded_arg(scene: Scene) -> Mark:
    return made_up(scene, f"O-{scene.rng.randrange(70_000, 79_999)}")


def ungrounded_arg_always(scene: Scene) -> Mark:
    """The same invention in every repeat: the number of the ticket made into that of an order."""
    return made_up(scene, scene.facts["ticket"].replace("T-", "O-8"))


def named_in_prose(scene: Scene) -> Mark:
    """The order is never listed, but the ticket names it in a sentence."""
    at = scene.calls("lookup_ticket")[0] + 1
    told = f"The customer means order {scene.facts['order']}. Before: "
    scene.output[at]["output"] = scene.output[at]["output"].replace('"history":"', f'"history":"{told}', 1)
    at = scene.calls("search_orders")[0]
    del scene.output[at : at + 2]
    return Mark(at)


def ignored_error(scene: Scene) -> Mark:
    scene.cut(scene.calls(*desk.WRITES)[0])
    at, _ = desk.finish(scene)
    scene.output[at + 1]["output"] = desk.locked(scene)
    return Mark(at + 1, (at, at + 1, scene.last), also=("harness_defect",))


def error_recovered(scene: Scene) -> Mark:
    """An error that is acted on, or one that a customer only quotes."""
    if scene.rng.random() < 0.5:
        at = scene.calls("lookup_ticket")[0] + 1
        told = "The customer quotes: Error 17, payment failed. "
        scene.output[at]["output"] = scene.output[at]["output"].replace(
            '"history":"', f'"history":"{told}', 1
        )
        return Mark(at)
    scene.cut(scene.calls(*desk.WRITES)[0])
    at = len(scene.output)
    scene.use("update_order", desk.change(scene), desk.locked(scene))
    desk.finish(scene, unlock=True)
    return Mark(at)


def with_label(scene: Scene) -> None:
    """Let the task ask for a label too; all its repeats are chosen together."""
    policy, user = scene.task.asked["input"]
    asked = {**user, "content": user["content"] + " Please print a return label as well."}
    scene.task = replace(scene.task, asked={**scene.task.asked, "input": [policy, asked]})
    scene.fields = {**scene.task.fields, "needs_label": True}
    if "expected_actions" in scene.fields:
        label = {"name": "print_label", "arguments": {"order_id": scene.facts["order"]}}
        scene.fields["expected_actions"] = [*scene.fields["expected_actions"], label]


def harness_defect(scene: Scene) -> Mark:
    """A tool that refuses what its own schema asks for, whoever calls it."""
    with_label(scene)
    at = scene.last
    calls = put(
        scene, at, [("print_label", {"order_id": scene.facts["order"]})] * scene.rng.choice((1, 2)), DEFECT
    )
    scene.output[-1]["content"][0]["text"] += " The label tool answered with an error, there is no label."
    steps = [step for call in calls for step in (call, call + 1)]
    return Mark(at + 1, tuple(steps), also=("ignored_error",))


def harness_busy(scene: Scene) -> Mark:
    """The same tool is busy once and then prints."""
    with_label(scene)
    at = scene.last
    label = {"order_id": scene.facts["order"]}
    wait = f"Error: the printer is busy, try again in {scene.rng.randrange(2, 30)} s"
    scene.insert(at, [*scene.made("print_label", label, wait), *scene.made("print_label", label)])
    return Mark(at)
