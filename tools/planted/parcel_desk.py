"""Play an invented help desk: tasks, tools, and rollouts that pass or visibly fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tools.planted import planted_rows
from tools.planted.planted_rows import Item, encode, prose, talk

POLICY = """You work at a help desk and act only through the tools. Follow these rules.
1. Read the ticket first. It names the account, never the order.
2. Several accounts have similar names. Look the account up by its full name before you touch an order.
3. Change exactly one order: the open one of that account.
4. When a tool answers with an error, read it and act on it. Do not report a change that was refused.
5. When the ticket asks for it, tell the customer what was changed.
6. Close with one sentence that begins with "Done:" and names the order."""

TEXT = {"type": "string"}
TOOLS = (
    planted_rows.tool("lookup_ticket", "Read a ticket by its number.", {"ticket_id": TEXT}, ["ticket_id"]),
    planted_rows.tool("find_customer", "Find accounts whose name begins with a text.", {"name": TEXT}, ["name"]),
    planted_rows.tool(
        "search_orders",
        "List the orders of an account.",
        {"customer_id": TEXT, "status": {"type": "string", "enum": ["open", "closed", "any"]}},
        ["customer_id", "status"],
    ),
    planted_rows.tool("search_policy", "Read the desk's rule on a topic.", {"topic": TEXT}, ["topic"]),
    planted_rows.tool(
        "update_order",
        "Change one order. A locked order must be changed with the flag `unlock`.",
        {"order_id": TEXT, "action": TEXT, "value": TEXT, "unlock": {"type": "boolean"}},
        ["order_id", "action", "value"],
    ),
    planted_rows.tool(
        "send_message",
        "Send a message to the customer of an account.",
        {"customer_id": TEXT, "text": TEXT},
        ["customer_id", "text"],
    ),
)

COLOURS = ("Teal", "Amber", "Olive", "Coral", "Indigo", "Maroon", "Silver", "Lilac")
SIMILAR = (("Six", "Sixteen"), ("Seven", "Seventeen"), ("Eight", "Eighteen"), ("Nine", "Nineteen"))
CATEGORIES = ("address", "refund", "exchange")
DIFFICULTIES = ("easy", "medium", "hard")
WISHES = {
    "address": ("set_address", "locker {n}", "send the open order to {value} instead of the old address"),
    "refund": ("refund", "{n}.40", "refund {value} on the open order, because the lamp arrived damaged"),
    "exchange": ("exchange", "green lamp {n}", "exchange the grey lamp of the open order for the {value}"),
}
RATES = {  # by category, then easy, medium, hard
    "address": (1.0, 0.85, 0.5),
    "refund": (1.0, 0.65, 0.3),
    "exchange": (0.7, 0.35, 0.0),
}
OPENINGS = (
    "Hello, ticket {ticket} please: {wish}.",
    "Hi there. I wrote to you before, see {ticket}. Could you {wish}?",
    "It is about {ticket} again. I would like you to {wish}. Thanks.",
    "Good morning! Can you {wish}? The ticket should be {ticket}.",
)


@dataclass(frozen=True, slots=True)
class Task:
    """One request to the desk; the same number is the same task in every run."""

    number: int
    category: str
    difficulty: str
    account: str
    similar: str  # an account whose name only begins alike
    action: str
    value: str
    wish: str
    rate: float

    @property
    def ticket(self) -> str:
        return f"T-{1000 + self.number}"

    @property
    def customer(self) -> str:
        return f"C-{3000 + 2 * self.number}"

    @property
    def other_customer(self) -> str:
        return f"C-{3001 + 2 * self.number}"

    @property
    def order(self) -> str:
        return f"O-{20003 + 10 * self.number}"

    @property
    def other_order(self) -> str:
        return f"O-{20008 + 10 * self.number}"


def desk_task(number: int, rate: float | None = None) -> Task:
    rng = Random(f"desk/{number}")
    category, difficulty = CATEGORIES[number % 3], DIFFICULTIES[number // 3 % 3]
    action, value, wish = WISHES[category]
    value = value.format(n=rng.randrange(10, 60))
    colour, (short, long) = rng.choice(COLOURS), rng.choice(SIMILAR)
    asks = "" if difficulty == "easy" else " and tell me when it is done"
    usual = RATES[category][DIFFICULTIES.index(difficulty)]
    return Task(
        number, category, difficulty, f"{colour} {short}", f"{colour} {long}", action, value,
        wish.format(value=value) + asks, usual if rate is None else rate,
    )  # fmt: skip


def request(task: Task, opening: int = 0) -> Item:
    """The request as Gym sends it; `opening` picks the wording of a simulated user."""
    user = OPENINGS[opening % len(OPENINGS)].format(ticket=task.ticket, wish=task.wish)
    return {
        "input": [{"role": "system", "content": POLICY}, {"role": "user", "content": user}],
        "tools": list(TOOLS),
        "temperature": 1.0,
        "top_p": None,
        "max_output_tokens": 4096,
        "parallel_tool_calls": False,
        "metadata": None,
    }


def task_fields(task: Task) -> Item:
    """What the dataset says of a task beside the request; Gym echoes it into every row."""
    change = {"order_id": task.order, "action": task.action, "value": task.value}
    actions: list[Item] = [{"name": "update_order", "arguments": change}]
    if task.difficulty != "easy":
        actions.append({"name": "send_message", "arguments": {"customer_id": task.customer}})
    return {
        "task_id": f"desk-{task.number:04d}",
        "category": task.category,
        "difficulty": task.difficulty,
        "instruction": f"On ticket {task.ticket}, {task.wish}.",
        "expected_actions": actions,
        "expected_answer": task.order,
    }


@dataclass
class Played:
    """A rollout while it is played."""

    rng: Random
    output: list[Item] = field(default_factory=list)
    answer: str | None = None
    changed: str | None = None  # the order that was changed
    truncated: bool = False

    def ident(self) -> str:
        return f"{self.rng.getrandbits(48):012x}"

    def think(self, text: str) -> None:
        self.output.append(planted_rows.reasoning(self.ident(), text))

    def use(self, name: str, arguments: Item, result: str) -> None:
        ident = self.ident()
        self.output += [planted_rows.call(ident, name, arguments), planted_rows.result(ident, result)]

    def close(self, text: str, answer: str | None) -> None:
        self.output.append(planted_rows.message(self.ident(), text))
        self.answer = answer

    def count(self, *tools: str) -> int:
        return sum(item.get("name") in tools for item in self.output)


def ok(**results: Any) -> str:
    return encode({"ok": True, **results}).decode()


def read_ticket(task: Task, played: Played) -> None:
    played.think(f"I start with ticket {task.ticket}. " + talk(played.rng, 3))
    world = Random(f"ticket/{task.number}")  # what a tool tells is the same in every rollout
    text = f"The {task.account} account asks: {task.wish}."
    results = ok(ticket_id=task.ticket, subject=task.category, text=text, history=talk(world, 5))
    played.use("lookup_ticket", {"ticket_id": task.ticket}, results)


def find_order(task: Task, played: Played) -> None:
    world = Random(f"account/{task.number}")
    accounts = [
        {"customer_id": task.customer, "name": task.account},
        {"customer_id": task.other_customer, "name": task.similar},
    ]
    played.use("find_customer", {"name": task.account}, ok(accounts=accounts))
    if played.rng.random() < 0.5:
        played.think(f"Two accounts begin alike. The ticket names {task.account}, so it is {task.customer}.")
    orders = [
        {"order_id": task.order, "status": "open", "note": talk(world, 1)},
        {"order_id": f"O-{world.randrange(90_000, 99_999)}", "status": "closed", "note": ""},
    ]
    played.use("search_orders", {"customer_id": task.customer, "status": "any"}, ok(orders=orders))
    if task.difficulty == "hard" or played.rng.random() < 0.2:
        rule = ok(topic=task.category, rule=talk(world, 4))
        played.use("search_policy", {"topic": task.category}, rule)


def change_order(task: Task, played: Played, order: str, *, unlock: bool = False) -> None:
    arguments: Item = {"order_id": order, "action": task.action, "value": task.value}
    if unlock:
        arguments["unlock"] = True
    played.use("update_order", arguments, ok(order_id=order, applied=task.action, value=task.value))
    played.changed = order


def refuse_order(task: Task, played: Played) -> None:
    arguments = {"order_id": task.order, "action": task.action, "value": task.value}
    played.use(
        "update_order",
        arguments,
        f"Error: order {task.order} is locked by the packing line, nothing was changed.",
    )


def report(task: Task, played: Played, customer: str, order: str) -> None:
    if task.difficulty != "easy":
        text = f"We have changed your order {order}: {task.action} {task.value}."
        played.use("send_message", {"customer_id": customer, "text": text}, ok(sent=True))
    played.close(f"Done: order {order} now has {task.action} {task.value}.", order)


def solve(task: Task, played: Played) -> None:
    """Look everything up, change the right order; a locked order is unlocked after its error."""
    read_ticket(task, played)
    find_order(task, played)
    locked = played.rng.random() < 0.2
    if locked:
        refuse_order(task, played)
        played.think("The order is locked. The tool says that a locked order needs the flag `unlock`.")
    change_order(task, played, task.order, unlock=locked)
    report(task, played, task.customer, task.order)


def guess_record(task: Task, played: Played) -> None:
    """Never look the account up, and change the order of the account with the similar name."""
    read_ticket(task, played)
    played.think(
        f"The account is probably {task.other_customer}, and its open order should be {task.other_order}."
    )
    change_order(task, played, task.other_order)
    report(task, played, task.other_customer, task.other_order)


def stop_early(task: Task, played: Played) -> None:
    """Find the right order and end without changing it."""
    read_ticket(task, played)
    find_order(task, played)
    played.close("I have found the account and will take care of the request shortly.", None)


def ignore_error(task: Task, played: Played) -> None:
    """Claim a change that the tool has refused."""
    read_ticket(task, played)
    find_order(task, played)
    refuse_order(task, played)
    report(task, played, task.customer, task.order)


def run_out(task: Task, played: Played) -> None:
    """Think until the token limit cuts the output off."""
    read_ticket(task, played)
    find_order(task, played)
    played.think("Let me go over every rule once more. " + prose(played.rng, 3000))
    played.truncated = True


SOLVED = "solved"
MODES: dict[str, Callable[[Task, Played], None]] = {
    SOLVED: solve,
    "guessed_record": guess_record,
    "stopped_early": stop_early,
    "ignored_error": ignore_error,
    "truncated": run_out,
}
FAILING = tuple(mode for mode in MODES if mode != SOLVED)


def draw_mode(task: Task, rng: Random) -> str:
    """Pass at the task's rate; a task that fails does so mostly in its own way."""
    if rng.random() < task.rate:
        return SOLVED
    return FAILING[task.number % len(FAILING)] if rng.random() < 0.7 else rng.choice(FAILING)


def play(task: Task, rng: Random, mode: str, model: str) -> Item:
    """A row without the keys that Gym itself adds."""
    played = Played(rng)
    MODES[mode](task, played)
    matches = played.changed == task.order
    if matches:
        verdict = f"Order {task.order} holds the expected change."
    elif played.changed:
        verdict = f"Order {played.changed} was changed, expected {task.order}."
    else:
        verdict = f"Order {task.order} is unchanged, expected {task.action}."
    options = request(task)
    n_input, n_output = len(encode(options)) // 4, len(encode(played.output)) // 4
    n_thought = len(encode([item for item in played.output if item["type"] == "reasoning"])) // 4
    if played.truncated:
        n_output, n_thought = options["max_output_tokens"], options["max_output_tokens"] - n_output + n_thought
    used = planted_rows.usage(n_input, n_output, n_thought)
    ident = f"{rng.getrandbits(64):016x}"
    return {
        "responses_create_params": options,
        "response": planted_rows.response(ident, model, played.output, used, truncated=played.truncated),
        "reward": float(matches and played.answer == task.order),
        **task_fields(task),
        "extracted_answer": played.answer,
        "db_match": matches,
        "n_lookups": played.count("find_customer", "search_orders"),
        "n_updates": played.count("update_order"),
        "verifier_message": verdict,
    }
