"""Put wrong acts into rollouts: left out, another value, one too many, in the wrong order, unasked."""

from __future__ import annotations

from tools.planted.injected import desk
from tools.planted.injected.calls import OTHER
from tools.planted.injected.loops import after, put
from tools.planted.injected.quiz import look_up
from tools.planted.injected.scene import Scene
from tools.planted.injected.truth import Mark
from tools.planted.items import Item

PRIORITY = {"action": "set_priority", "value": "high"}


def tool_never_used(scene: Scene) -> Mark:
    """Answer from memory, and wrongly, although there is a library."""
    scene.output.clear()
    if scene.rng.random() < 0.5:
        scene.think("I believe I remember this one.")
    year = int(scene.facts["gold"]) + scene.rng.choice((-11, -6, 4, 9))
    scene.say(f"It opened in \\boxed{{{year}}}.")
    return Mark(scene.last, (scene.last,))


def used_once(scene: Scene) -> Mark:
    """One search and one document are enough."""
    scene.output.clear()
    look_up(scene, ("doc0",), scene.facts["gold"])
    return Mark(scene.last)


def missing_required_tool(scene: Scene) -> Mark:
    """The change is right, and the customer is never told."""
    at = scene.calls("send_message")[0]
    del scene.output[at : at + 2]
    scene.output[-1] = scene.said(desk.CLOSINGS[0].format(**scene.facts))
    return Mark(scene.last, (scene.last,))


def optional_left_out(scene: Scene) -> Mark:
    """A read that only some passers make is not made here."""
    for at in scene.calls("search_policy")[:1]:
        del scene.output[at : at + 2]
    return Mark()


def another_value(scene: Scene, variant: int) -> Mark:
    value = desk.wrong_value(scene, variant)
    scene.cut(scene.calls(*desk.WRITES)[0])
    at, message = desk.finish(scene, value=value)
    return Mark(at, (at, message), also=("extra_side_effect",))


def wrong_arg_field(scene: Scene) -> Mark:
    return another_value(scene, scene.rng.randrange(4))


def wrong_arg_field_always(scene: Scene) -> Mark:
    """The same wrong value in every repeat."""
    return another_value(scene, 0)


def other_words(scene: Scene) -> Mark:
    """The free text of the message is worded as nobody else does."""
    at = scene.calls("send_message")[0]
    scene.rewrite(at, text=f"Good news! All is set for {scene.facts['order']}, have a pleasant day.")
    return Mark(at)


def extra_side_effect(scene: Scene) -> Mark:
    at = scene.last
    if scene.rng.random() < 0.5:
        note = {"customer_id": scene.facts["other_customer"], "text": "An order of your account was changed."}
        call: tuple[str, Item] = ("send_message", note)
    else:
        call = ("update_order", {"order_id": scene.facts["order"], **PRIORITY})
    put(scene, at, [call])
    return Mark(at, (at, at + 1), also=("wrong_arg_field",))


def extra_read(scene: Scene) -> Mark:
    at = scene.last
    return Mark(put(scene, at, [("parcel_status", {"order_id": scene.facts["order"]})])[0])


def order_violation(scene: Scene) -> Mark:
    """Tell the customer first and change the order afterwards."""
    at = scene.calls("send_message")[0]
    told = scene.output[at : at + 2]
    del scene.output[at : at + 2]
    first = scene.calls("update_order")[0]
    scene.insert(first, told)
    return Mark(first, (first, scene.calls("update_order")[-1]))


def reads_in_other_order(scene: Scene) -> Mark:
    """A rule is read at another place than by most; reads have no order."""
    for at in scene.calls("search_policy")[:1]:
        del scene.output[at : at + 2]
    _, place = after(scene, scene.rng.choice(("lookup_ticket", "find_customer")))
    return Mark(put(scene, place, [("search_policy", {"topic": scene.facts["category"]})])[0])


def ignored_pagination(scene: Scene) -> Mark:
    """Take an order of the first page although the open one stands on the second."""
    scene.cut(scene.calls(*desk.WRITES)[0])
    seen, follow = scene.calls("search_orders")[:2]
    del scene.output[follow : follow + 2]
    at, _ = desk.finish(scene, order=scene.facts["other_order"])
    return Mark(seen + 1, (seen, seen + 1, at), also=OTHER)


def pages_followed(scene: Scene) -> Mark:
    """The list has a second page, and it is read."""
    at = scene.calls("search_orders")[0]
    arguments, told = scene.arguments(at), scene.output[at + 1]["output"]
    scene.output[at + 1]["output"] = desk.ok(orders=[], has_more=True, next_page=2)
    scene.insert(at + 2, scene.made("search_orders", {**arguments, "page": 2}, told))
    return Mark(at)


def unconfirmed_write(scene: Scene) -> Mark:
    """Change the order unasked, or although the customer wants to think."""
    turn = next(at for at, item in enumerate(scene.output) if item.get("role") == "user")
    if scene.rng.random() < 0.5:
        scene.output[turn] = scene.heard("Hold on, let me look that up first.")
    else:
        del scene.output[turn - 1 : turn + 1]
    at = scene.calls("update_order")[0]
    return Mark(at, (at,))


def confirmed_before(scene: Scene) -> Mark:
    """The yes stands some turns before the change."""
    at = scene.calls("update_order")[0]
    reads: list[tuple[str, Item]] = [
        ("parcel_status", {"order_id": scene.facts["order"]}),
        ("search_policy", {"topic": "parcels"}),
    ]
    return Mark(put(scene, at, reads)[0])


def contradiction_say_do(scene: Scene) -> Mark:
    """Announce one order and change another one of the list."""
    at = scene.calls("search_orders")[0]
    arguments = {**scene.arguments(at), "status": "any"}
    scene.output[at : at + 2] = scene.made("search_orders", arguments)
    scene.cut(scene.calls(*desk.WRITES)[0])
    scene.say("I will now change order {order} of {account}.".format(**scene.facts))
    change, _ = desk.finish(scene, order=scene.facts["closed"])
    return Mark(change, (change - 1, change), also=OTHER)


def announced_and_done(scene: Scene) -> Mark:
    """Announce an order, look at another one, and change what was announced."""
    at = scene.calls("search_orders")[0]
    arguments = {**scene.arguments(at), "status": "any"}
    scene.output[at : at + 2] = scene.made("search_orders", arguments)
    first = scene.calls("update_order")[0]
    told = scene.said("I will now change order {order}, the closed one stays.".format(**scene.facts))
    scene.insert(first, [told, *scene.made("parcel_status", {"order_id": scene.facts["closed"]})])
    return Mark(first)
