"""Put wrong acts into rollouts: left out, another value, one too many, in the wrong order, unasked."""

from __future__ import annotations

from dataclasses import replace

from tools.planted.injected import injected_desk, shell
from tools.planted.injected.quiz_scene import Mark, Scene, look_up
from tools.planted.planted_rows import Item

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
    place = scene.calls("send_message")[0]
    del scene.output[place : place + 2]
    scene.output[-1] = scene.said(injected_desk.CLOSINGS[0].format(**scene.facts))
    return Mark(scene.last, (scene.last,))


def optional_left_out(scene: Scene) -> Mark:
    """A read that only some passers make is not made here."""
    for place in scene.calls("search_policy")[:1]:
        del scene.output[place : place + 2]
    return Mark()


def another_value(scene: Scene, variant: int) -> Mark:
    value = injected_desk.wrong_value(scene, variant)
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    place, message = injected_desk.finish(scene, value=value)
    return Mark(place, (place, message), also=("extra_side_effect",))


def wrong_arg_field(scene: Scene) -> Mark:
    return another_value(scene, scene.rng.randrange(4))


def wrong_arg_field_always(scene: Scene) -> Mark:
    """The same wrong value in every repeat."""
    return another_value(scene, 0)


def other_words(scene: Scene) -> Mark:
    """The free text of the message is worded as nobody else does."""
    place = scene.calls("send_message")[0]
    scene.rewrite(place, text=f"Good news! All is set for {scene.facts['order']}, have a pleasant day.")
    return Mark(place)


def extra_side_effect(scene: Scene) -> Mark:
    place = scene.last
    if scene.rng.random() < 0.5:
        note = {"customer_id": scene.facts["other_customer"], "text": "An order of your account was changed."}
        call: tuple[str, Item] = ("send_message", note)
    else:
        call = ("update_order", {"order_id": scene.facts["order"], **PRIORITY})
    put(scene, place, [call])
    return Mark(place, (place, place + 1), also=("wrong_arg_field",))


def extra_read(scene: Scene) -> Mark:
    place = scene.last
    return Mark(put(scene, place, [("parcel_status", {"order_id": scene.facts["order"]})])[0])


def order_violation(scene: Scene) -> Mark:
    """Tell the customer first and change the order afterwards."""
    place = scene.calls("send_message")[0]
    text = scene.output[place : place + 2]
    del scene.output[place : place + 2]
    first = scene.calls("update_order")[0]
    scene.insert(first, text)
    return Mark(first, (first, scene.calls("update_order")[-1]))


def reads_in_other_order(scene: Scene) -> Mark:
    """A rule is read at another place than by most; reads have no order."""
    for index in scene.calls("search_policy")[:1]:
        del scene.output[index : index + 2]
    _, place = after(scene, scene.rng.choice(("lookup_ticket", "find_customer")))
    return Mark(put(scene, place, [("search_policy", {"topic": scene.facts["category"]})])[0])


def ignored_pagination(scene: Scene) -> Mark:
    """Take an order of the first page although the open one stands on the second."""
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    seen, follow = scene.calls("search_orders")[:2]
    del scene.output[follow : follow + 2]
    place, _ = injected_desk.finish(scene, order=scene.facts["other_order"])
    return Mark(seen + 1, (seen, seen + 1, place), also=OTHER)


def pages_followed(scene: Scene) -> Mark:
    """The list has a second page, and it is read."""
    place = scene.calls("search_orders")[0]
    arguments, text = scene.arguments(place), scene.output[place + 1]["output"]
    scene.output[place + 1]["output"] = injected_desk.ok(orders=[], has_more=True, next_page=2)
    scene.insert(place + 2, scene.made("search_orders", {**arguments, "page": 2}, text))
    return Mark(place)


def unconfirmed_write(scene: Scene) -> Mark:
    """Change the order unasked, or although the customer wants to think."""
    turn = next(place for place, item in enumerate(scene.output) if item.get("role") == "user")
    if scene.rng.random() < 0.5:
        scene.output[turn] = scene.heard("Hold on, let me look that up first.")
    else:
        del scene.output[turn - 1 : turn + 1]
    place = scene.calls("update_order")[0]
    return Mark(place, (place,))


def confirmed_before(scene: Scene) -> Mark:
    """The yes stands some turns before the change."""
    place = scene.calls("update_order")[0]
    reads: list[tuple[str, Item]] = [
        ("parcel_status", {"order_id": scene.facts["order"]}),
        ("search_policy", {"topic": "parcels"}),
    ]
    return Mark(put(scene, place, reads)[0])


def contradiction_say_do(scene: Scene) -> Mark:
    """Announce one order and change another one of the list."""
    place = scene.calls("search_orders")[0]
    arguments = {**scene.arguments(place), "status": "any"}
    scene.output[place : place + 2] = scene.made("search_orders", arguments)
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    scene.say("I will now change order {order} of {account}.".format(**scene.facts))
    change, _ = injected_desk.finish(scene, order=scene.facts["closed"])
    return Mark(change, (change - 1, change), also=OTHER)


def announced_and_done(scene: Scene) -> Mark:
    """Announce an order, look at another one, and change what was announced."""
    place = scene.calls("search_orders")[0]
    arguments = {**scene.arguments(place), "status": "any"}
    scene.output[place : place + 2] = scene.made("search_orders", arguments)
    first = scene.calls("update_order")[0]
    text = scene.said("I will now change order {order}, the closed one stays.".format(**scene.facts))
    scene.insert(first, [text, *scene.made("parcel_status", {"order_id": scene.facts["closed"]})])
    return Mark(first)


REJECTED = "The change of order {order} is not in place: the tool did not take my request."
OTHER = ("wrong_arg_field", "extra_side_effect")  # another write than the gold one
DEFECT = "Error: label template 'return_v2' has no field 'order_ref'"


def write_rejected(scene: Scene, tool: str, arguments: Item, error: str) -> Mark:
    """One write that its tool does not take, and an honest end."""
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    place = len(scene.output)
    scene.use(tool, arguments, error)
    scene.say(REJECTED.format(**scene.facts))
    return Mark(place, (place, place + 1))


def unknown_tool(scene: Scene) -> Mark:
    error = "Error: there is no tool named modify_order."
    return write_rejected(scene, "modify_order", injected_desk.change(scene), error)


def rare_tool(scene: Scene) -> Mark:
    """A tool that nobody else uses, and that is declared."""
    _, place = after(scene, "search_orders")
    return Mark(put(scene, place, [("parcel_status", {"order_id": scene.facts["order"]})])[0])


def malformed_args(scene: Scene) -> Mark:
    mark = write_rejected(
        scene, "update_order", injected_desk.change(scene), "Error: the arguments are no JSON object."
    )
    assert mark.step is not None
    whole = scene.output[mark.step]["arguments"]
    broken = (whole[:-2], whole.replace(":", "=", 1), f"[{whole}]", f"order {scene.facts['order']}")
    scene.output[mark.step]["arguments"] = scene.rng.choice(broken)
    return mark


def spaced_args(scene: Scene) -> Mark:
    """Valid JSON in an unusual hand: blanks, line breaks, escapes."""
    place = scene.calls("update_order")[-1]
    whole = scene.output[place]["arguments"]
    scene.output[place]["arguments"] = (
        "{\n  " + whole[1:-1].replace(",", " ,\n  ").replace("a", "\\u0061") + "\n}\n"
    )
    return Mark(place)


def schema_invalid(scene: Scene) -> Mark:
    """The same misnamed field in every repeat: the model does not know the tool."""
    built = injected_desk.change(scene)
    arguments = {"order": built["order_id"], "action": built["action"], "value": built["value"]}
    return write_rejected(scene, "update_order", arguments, "Error: 'order_id' is a required property.")


def optional_args(scene: Scene) -> Mark:
    """Optional fields with their default values."""
    place = scene.calls("search_orders")[0]
    scene.rewrite(place, page=1)
    return Mark(place)


def made_up(scene: Scene, order: str) -> Mark:
    """Never list the orders; name one out of thin air."""
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    place = scene.calls("search_orders")[0]
    del scene.output[place : place + 2]
    scene.think("The account has one open order, I know its number.")
    change, message = injected_desk.finish(scene, order=order)
    return Mark(change, (change, message, scene.last), also=OTHER)


def ungrounded_arg(scene: Scene) -> Mark:
    return made_up(scene, f"O-{scene.rng.randrange(70_000, 79_999)}")


def ungrounded_arg_always(scene: Scene) -> Mark:
    """The same invention in every repeat: the number of the ticket made into that of an order."""
    return made_up(scene, scene.facts["ticket"].replace("T-", "O-8"))


def named_in_prose(scene: Scene) -> Mark:
    """The order is never listed, but the ticket names it in a sentence."""
    place = scene.calls("lookup_ticket")[0] + 1
    text = f"The customer means order {scene.facts['order']}. Before: "
    scene.output[place]["output"] = scene.output[place]["output"].replace('"history":"', f'"history":"{text}', 1)
    place = scene.calls("search_orders")[0]
    del scene.output[place : place + 2]
    return Mark(place)


def ignored_error(scene: Scene) -> Mark:
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    place, _ = injected_desk.finish(scene)
    scene.output[place + 1]["output"] = injected_desk.locked(scene)
    return Mark(place + 1, (place, place + 1, scene.last), also=("harness_defect",))


def error_recovered(scene: Scene) -> Mark:
    """An error that is acted on, or one that a customer only quotes."""
    if scene.rng.random() < 0.5:
        place = scene.calls("lookup_ticket")[0] + 1
        text = "The customer quotes: Error 17, payment failed. "
        scene.output[place]["output"] = scene.output[place]["output"].replace(
            '"history":"', f'"history":"{text}', 1
        )
        return Mark(place)
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    place = len(scene.output)
    scene.use("update_order", injected_desk.change(scene), injected_desk.locked(scene))
    injected_desk.finish(scene, unlock=True)
    return Mark(place)


def with_label(scene: Scene) -> None:
    """Let the task ask for a label too; all its repeats are chosen together."""
    policy, user = scene.task.asked["input"]
    options = {**user, "content": user["content"] + " Please print a return label as well."}
    scene.task = replace(scene.task, asked={**scene.task.asked, "input": [policy, options]})
    scene.fields = {**scene.task.fields, "needs_label": True}
    if "expected_actions" in scene.fields:
        label = {"name": "print_label", "arguments": {"order_id": scene.facts["order"]}}
        scene.fields["expected_actions"] = [*scene.fields["expected_actions"], label]


def harness_defect(scene: Scene) -> Mark:
    """A tool that refuses what its own schema asks for, whoever calls it."""
    with_label(scene)
    place = scene.last
    calls = put(
        scene, place, [("print_label", {"order_id": scene.facts["order"]})] * scene.rng.choice((1, 2)), DEFECT
    )
    scene.output[-1]["content"][0]["text"] += " The label tool answered with an error, there is no label."
    steps = [step for call in calls for step in (call, call + 1)]
    return Mark(place + 1, tuple(steps), also=("ignored_error",))


def harness_busy(scene: Scene) -> Mark:
    """The same tool is busy once and then prints."""
    with_label(scene)
    place = scene.last
    label = {"order_id": scene.facts["order"]}
    wait = f"Error: the printer is busy, try again in {scene.rng.randrange(2, 30)} s"
    scene.insert(place, [*scene.made("print_label", label, wait), *scene.made("print_label", label)])
    return Mark(place)


UNFINISHED = (
    "I have read the ticket of {account}; the change of order {order} is still open.",
    "Order {order} belongs to {account}. I have not changed anything so far.",
)
TOPICS = (
    "parcels returns lamps invoices vouchers couriers gifts cables receipts deposits weekends depots".split()
)


def stop(scene: Scene, text: str = "") -> int:
    """End the rollout before its first write; where the closing message stands."""
    place = scene.calls(*injected_desk.WRITES, "edit_file")[0]
    return scene.end(place, text or injected_desk.wording(scene, UNFINISHED))


def after(scene: Scene, tool: str) -> tuple[Item, int]:
    """The arguments of the first call of a tool, and the place behind its result."""
    index = scene.calls(tool)[0]
    place = scene.result_of(index)
    return scene.arguments(index), (index if place is None else place) + 1


def put(scene: Scene, place: int, calls: list[tuple[str, Item]], result: str | None = None) -> list[int]:
    """Insert calls with their results; where the calls stand."""
    new = [item for tool, arguments in calls for item in scene.made(tool, arguments, result)]
    scene.insert(place, new)
    return [place + 2 * number for number in range(len(calls))]


def repeat_identical(scene: Scene) -> Mark:
    stop(scene)
    arguments, place = after(scene, "search_orders")
    again = put(scene, place, [("search_orders", arguments)] * scene.rng.choice((2, 3)))
    return Mark(again[0], (place - 2, *again), also=("cycle", "reread"))


def asked_twice(scene: Scene) -> Mark:
    arguments, place = after(scene, "search_orders")
    return Mark(put(scene, place, [("search_orders", arguments)])[0])


def polling(scene: Scene) -> Mark:
    """The same call four times, and each time there is news."""
    _, index = after(scene, "search_orders")
    order = scene.facts["order"]
    places = ("on the shelf", "at the packing line", "at the gate", "on the van")
    text = [injected_desk.ok(order_id=order, place=place) for place in places]
    scene.insert(
        index, [item for news in text for item in scene.made("parcel_status", {"order_id": order}, news)]
    )
    return Mark(index)


def repeat_failing(scene: Scene) -> Mark:
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    place = len(scene.output)
    change = injected_desk.change(scene)
    calls = put(scene, place, [("update_order", change)] * scene.rng.choice((3, 4)), injected_desk.locked(scene))
    scene.say(f"Order {scene.facts['order']} is locked by the packing line, so it is unchanged.")
    return Mark(calls[1], tuple(calls), also=("repeat_identical", "cycle", "ignored_error", "harness_defect"))


def failing_twice(scene: Scene) -> Mark:
    """The same refusal twice; the third call has learned from it."""
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    place = len(scene.output)
    put(scene, place, [("update_order", injected_desk.change(scene))] * 2, injected_desk.locked(scene))
    scene.think("It stays locked; the tool wants the flag `unlock`.")
    injected_desk.finish(scene, unlock=True)
    return Mark(place)


def rounds(scene: Scene, count: int) -> list[int]:
    """Go back to the account and to its orders `count` more times."""
    account, _ = after(scene, "find_customer")
    orders, place = after(scene, "search_orders")
    return put(scene, place, [("find_customer", account), ("search_orders", orders)] * count)


def cycle(scene: Scene) -> Mark:
    stop(scene)
    calls = rounds(scene, 3)
    return Mark(calls[0], tuple(calls), also=("repeat_identical", "reread", "low_novelty"))


def one_more_round(scene: Scene) -> Mark:
    return Mark(rounds(scene, 1)[0])


def low_novelty(scene: Scene) -> Mark:
    """Ask ever new questions and get the same empty answer."""
    stop(scene)
    _, place = after(scene, "search_orders")
    topics = scene.rng.sample(TOPICS, 10)
    calls = put(scene, place, [("search_policy", {"topic": topic}) for topic in topics], injected_desk.ok(rules=[]))
    return Mark(calls[1], tuple(calls))


def many_lookups(scene: Scene) -> Mark:
    """As many questions, and each answer is another one."""
    _, place = after(scene, "search_orders")
    topics = scene.rng.sample(TOPICS, 7)
    return Mark(put(scene, place, [("search_policy", {"topic": topic}) for topic in topics])[0])


def reread(scene: Scene) -> Mark:
    stop(scene, "The cause lies in {path}; the line is not changed yet.".format(**scene.facts))
    path, index = {"path": scene.facts["path"]}, scene.last
    between = ({"folder": scene.facts["package"]}, {"pattern": scene.facts["function"]})
    calls = put(
        scene,
        index,
        [("list_files", between[0]), ("read_file", path), ("search_code", between[1]), ("read_file", path)],
    )
    first = next(place for place in scene.calls("read_file") if scene.arguments(place) == path)
    return Mark(calls[1], (first, calls[1], calls[3]), also=("repeat_identical", "finish_on_red"))


def read_after_edit(scene: Scene) -> Mark:
    """The same file three times, but the last time it has changed."""
    path = {"path": scene.facts["path"]}
    place = scene.calls("edit_file")[0]
    put(scene, place, [("list_files", {"folder": scene.facts["package"]}), ("read_file", path)])
    last = scene.calls("edit_file")[-1] + 2
    put(scene, last, [("read_file", path)], shell.source(scene.task, shell.line_at(scene, last)))
    return Mark(last)
