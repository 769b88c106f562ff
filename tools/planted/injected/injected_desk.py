"""A help desk with read and write tools, with or without a simulated user: rollouts that pass."""

from __future__ import annotations

from random import Random
from typing import Any

from tools.planted import planted_rows
from tools.planted.injected.quiz_scene import Domain, Scene, Task, request, text_of
from tools.planted.parcel_desk import OPENINGS, desk_task
from tools.planted.parcel_desk import TOOLS as DESK_TOOLS
from tools.planted.planted_rows import Item, encode, talk

POLICY = """You work at a help desk and act only through the tools. Follow these rules.
1. Read the ticket first. It names the account, never the order.
2. Several accounts have similar names. Look the account up by its full name before you touch an order.
3. Change exactly one order: the open one of that account. A list may have further pages.
4. When a tool answers with an error, read it and act on it.
5. After the change, send the customer a message that says what was changed.
6. Close with one sentence that begins with "Done:" and names the order."""
CONFIRM = """
7. Before any change, say what you are going to do and wait for an explicit yes of the customer."""

TEXT = {"type": "string"}
STATUS = {"type": "string", "enum": ["open", "closed", "any"]}
_OF_DESK = {tool["name"]: tool for tool in DESK_TOOLS}
TOOLS = (
    _OF_DESK["lookup_ticket"],
    _OF_DESK["find_customer"],
    planted_rows.tool(
        "search_orders",
        "List the orders of an account.",
        {"customer_id": TEXT, "status": STATUS, "page": {"type": "integer"}},
        ["customer_id", "status"],
    ),
    _OF_DESK["search_policy"],
    planted_rows.tool("parcel_status", "Where the parcel of an order is.", {"order_id": TEXT}, ["order_id"]),
    _OF_DESK["update_order"],
    _OF_DESK["send_message"],
    planted_rows.tool("print_label", "Print a return label.", {"order_id": TEXT}, ["order_id"]),
)
WRITES = ("update_order", "send_message", "print_label")
MAX_TURNS = 16

PLANS = (
    "I start with ticket {ticket}.",
    "First the ticket, then the account.",
    "The rules ask me to read ticket {ticket} before anything else.",
    "Let me see what {ticket} is about.",
)
NOTES = (
    "We have changed your order {order}: {action} {value}.",
    "Hello, your order {order} now has {action} {value}. Kind regards, the desk.",
    "Order {order} was updated as you asked ({action}: {value}).",
)
CLOSINGS = (
    "Done: order {order} now has {action} {value}.",
    "Done: {action} {value} is set on order {order}, and the customer knows.",
    "Done: I applied {action} to order {order}.",
)
ASKS = (
    "I found order {order} of {account}. I would now apply {action} {value}. Is that right (yes or no)?",
    "Your open order is {order}. Shall I go ahead with {action} {value}?",
)
YES = ("Yes, please.", "yes, go ahead", "Yes, that is the one.")


def desk_world(number: int, options: frozenset[str]) -> Task:
    built = desk_task(number)
    facts = {
        "ticket": built.ticket, "account": built.account, "similar": built.similar, "customer": built.customer,
        "other_customer": built.other_customer, "order": built.order, "other_order": built.other_order,
        "closed": f"O-{Random(f'closed/{number}').randrange(90_000, 99_999)}", "action": built.action,
        "value": built.value, "wish": built.wish.removesuffix(" and tell me when it is done"),
        "category": built.category, "paged": "yes" if "paged" in options else "",
    }  # fmt: skip
    change = {"order_id": built.order, "action": built.action, "value": built.value}
    text = {"name": "send_message", "arguments": {"customer_id": built.customer}}
    fields: Item = {"task_id": f"desk-{number:04d}", "category": built.category, "max_turns": MAX_TURNS}
    if "gold" in options:
        fields["expected_actions"] = [{"name": "update_order", "arguments": change}, text]
    policy = POLICY + (CONFIRM if "user" in options else "")
    user = OPENINGS[number % len(OPENINGS)].format(ticket=built.ticket, wish=facts["wish"])
    return Task(number, request(policy, user, TOOLS), fields, facts)


def ok(**results: Any) -> str:
    return encode({"ok": True, **results}).decode()


def reply(task: Task, tool: str, arguments: Item) -> str:
    """What a tool tells is the same in every rollout of the task."""
    facts = task.facts
    if tool == "lookup_ticket":
        # Content may speak of errors without being one.
        plaint = " The card was denied once before." if task.number % 7 == 3 else ""
        text = f"The {facts['account']} account asks: {facts['wish']}.{plaint}"
        history = talk(Random(f"ticket/{task.number}"), 5)
        return ok(ticket_id=facts["ticket"], subject=facts["category"], text=text, history=history)
    if tool == "find_customer":
        names = (("customer", "account"), ("other_customer", "similar"))
        return ok(accounts=[{"customer_id": facts[entry], "name": facts[name]} for entry, name in names])
    if tool == "search_orders":
        return orders(task, arguments)
    if tool == "search_policy":
        return ok(topic=arguments["topic"], rule=talk(Random(f"rule/{arguments['topic']}"), 3))
    if tool == "parcel_status":
        return ok(order_id=arguments["order_id"], place=f"shelf {task.number % 9}")
    if tool == "update_order":
        return ok(order_id=arguments["order_id"], applied=arguments["action"], value=arguments["value"])
    return ok(sent=True) if tool == "send_message" else ok(printed=True)


def orders(task: Task, arguments: Item) -> str:
    facts = task.facts
    if arguments["customer_id"] != facts["customer"]:
        return ok(orders=[{"order_id": facts["other_order"], "status": "open"}])
    opened = {"order_id": facts["order"], "status": "open", "note": talk(Random(f"o/{task.number}"), 1)}
    closed = {"order_id": facts["closed"], "status": "closed", "note": ""}
    if not facts["paged"]:
        return ok(orders=[opened] if arguments["status"] == "open" else [opened, closed])
    if arguments.get("page", 1) > 1:
        return ok(orders=[opened], has_more=False)
    content = {"order_id": facts["other_order"], "status": "held", "note": ""}
    return ok(orders=[content, closed], has_more=True, next_page=2)


def locked(scene: Scene) -> str:
    return f"Error: order {scene.facts['order']} is locked by the packing line, nothing was changed."


def wording(scene: Scene, choices: tuple[str, ...], **instead: str) -> str:
    return scene.rng.choice(choices).format(**{**scene.facts, **instead})


def look_up(scene: Scene) -> None:
    """Everything that is read before the change; the order of the reads differs between repeats."""
    facts, rng = scene.facts, scene.rng
    scene.think(wording(scene, PLANS) + (" " + talk(rng, 2) if rng.random() < 0.6 else ""))
    scene.use("lookup_ticket", {"ticket_id": facts["ticket"]})
    # Who fails reads the optional rule too, so that its absence never looks like the reason.
    reads_rule = "lean" not in scene.options and (not scene.solved or sum(scene.key) % 3 == 0)
    if reads_rule and scene.parity:
        scene.use("search_policy", {"topic": facts["category"]})
    scene.use("find_customer", {"name": facts["account"]})
    if rng.random() < 0.4:
        scene.think(f"Two accounts begin alike. The ticket names {facts['account']}.")
    if reads_rule and not scene.parity:
        scene.use("search_policy", {"topic": facts["category"]})
    status = "any" if scene.parity else "open"
    scene.use("search_orders", {"customer_id": facts["customer"], "status": status})
    if facts["paged"]:
        scene.use("search_orders", {"customer_id": facts["customer"], "status": status, "page": 2})
    if rng.random() < 0.15:
        scene.think("I look at the ticket once more to get the value right.")
        scene.use("lookup_ticket", {"ticket_id": facts["ticket"]})


def change(scene: Scene, **instead: str) -> Item:
    """The arguments of the change that the ticket asks for."""
    facts = {**scene.facts, **instead}
    return {"order_id": facts["order"], "action": facts["action"], "value": facts["value"]}


def finish(scene: Scene, *, unlock: bool = False, **instead: str) -> tuple[int, int]:
    """Change the order, tell the customer, close; where the change and the message stand."""
    built = change(scene, **instead)
    place = len(scene.output)
    scene.use("update_order", {**built, "unlock": True} if unlock else built)
    note = wording(scene, NOTES, **instead)
    scene.use("send_message", {"customer_id": scene.facts["customer"], "text": note})
    scene.say(wording(scene, CLOSINGS, **instead))
    return place, place + 2


def act(scene: Scene, value: str) -> None:
    """Ask where there is someone to ask, meet a lock now and then, finish."""
    if "user" in scene.options:
        scene.say(wording(scene, ASKS, value=value))
        scene.output.append(scene.heard(scene.rng.choice(YES)))
    is_locked = scene.rng.random() < 0.2
    if is_locked:
        scene.use("update_order", change(scene, value=value), locked(scene))
        scene.think("The order is locked. The tool says that a locked order needs the flag `unlock`.")
    finish(scene, unlock=is_locked, value=value)


def solve(scene: Scene) -> None:
    look_up(scene)
    act(scene, scene.facts["value"])


def miss(scene: Scene, variant: int) -> None:
    """Change the right order to a wrong value."""
    look_up(scene)
    act(scene, wrong_value(scene, variant))


def wrong_value(scene: Scene, variant: int) -> str:
    """Too short to look like an identifier: the value is misread, not invented."""
    value = scene.facts["value"]
    digits = "".join(sign for sign in value if sign.isdigit())[:2]
    return value.replace(digits, f"{(int(digits) + 7 * (variant % 4 + 1)) % 50 + 10}", 1)


def effects(scene: Scene) -> list[tuple[str, Item, int]]:
    """The writes that took effect, in order."""
    results = []
    for index in scene.calls(*WRITES):
        place = scene.result_of(index)
        if place is not None and scene.output[place]["output"].startswith('{"ok":true'):
            results.append((scene.output[index]["name"], scene.arguments(index), index))
    return results


def agreed(scene: Scene, place: int) -> bool:
    """Has the simulated user said yes before this item."""
    turns = [item for item in scene.output[:place] if item.get("role") == "user"]
    return any("yes" in text_of(item).lower() for item in turns)


def judge(scene: Scene) -> Item:
    """Compare the end of the desk's records with what the ticket wants."""
    facts = scene.facts
    done = effects(scene)
    changes = [built for name, built, _ in done if name == "update_order"]
    wanted = {"order_id": facts["order"], "action": facts["action"], "value": facts["value"]}
    rest = [{name: built.get(name) for name in wanted} for built in changes]
    texts = [built.get("customer_id") for name, built, _ in done if name == "send_message"]
    names = [name for name, _, _ in done if name != "print_label"]
    labelled = any(name == "print_label" for name, _, _ in done)
    matches = rest == [wanted]
    if not matches:
        verdict = f"The records differ: expected {wanted}, found {rest or 'no change'}."
    elif texts != [facts["customer"]]:
        verdict = f"Messages went to {texts or 'nobody'}, expected {facts['customer']}."
    elif names != ["update_order", "send_message"]:
        verdict = "The customer was told of a change that had not been made yet."
    elif "needs_label" in scene.fields and not labelled:
        verdict = f"No return label was printed for {facts['order']}."
    elif "user" in scene.options and not all(agreed(scene, place) for name, _, place in done):
        verdict = "A change was made that the customer had not agreed to."
    elif facts["order"] not in scene.final:
        verdict = "The rollout has no closing sentence."
    else:
        verdict = ""
    text = verdict or "Order and messages are as expected."
    return {"reward": float(not verdict), "db_match": matches, "verifier_message": text}


DESK = Domain(desk_world, solve, miss, reply, judge, also=("wrong_arg_field", "extra_side_effect"))
