"""Put loops into rollouts: the same call, the same error, the same round, the same nothing."""

from __future__ import annotations

from tools.planted.injected import desk, shell
from tools.planted.injected.scene import Scene
from tools.planted.injected.truth import Mark
from tools.planted.items import Item

UNFINISHED = (
    "I have read the ticket of {account}; the change of order {order} is still open.",
    "Order {order} belongs to {account}. I have not changed anything so far.",
)
TOPICS = (
    "parcels returns lamps invoices vouchers couriers gifts cables receipts deposits weekends depots".split()
)


def stop(scene: Scene, text: str = "") -> int:
    """End the rollout before its first write; where the closing message stands."""
    at = scene.calls(*desk.WRITES, "edit_file")[0]
    return scene.end(at, text or desk.wording(scene, UNFINISHED))


def after(scene: Scene, tool: str) -> tuple[Item, int]:
    """The arguments of the first call of a tool, and the place behind its result."""
    at = scene.calls(tool)[0]
    place = scene.result_of(at)
    return scene.arguments(at), (at if place is None else place) + 1


def put(scene: Scene, at: int, calls: list[tuple[str, Item]], result: str | None = None) -> list[int]:
    """Insert calls with their results; where the calls stand."""
    new = [item for tool, arguments in calls for item in scene.made(tool, arguments, result)]
    scene.insert(at, new)
    return [at + 2 * number for number in range(len(calls))]


def repeat_identical(scene: Scene) -> Mark:
    stop(scene)
    arguments, at = after(scene, "search_orders")
    again = put(scene, at, [("search_orders", arguments)] * scene.rng.choice((2, 3)))
    return Mark(again[0], (at - 2, *again), also=("cycle", "reread"))


def asked_twice(scene: Scene) -> Mark:
    arguments, at = after(scene, "search_orders")
    return Mark(put(scene, at, [("search_orders", arguments)])[0])


def polling(scene: Scene) -> Mark:
    """The same call four times, and each time there is news."""
    _, at = after(scene, "search_orders")
    order = scene.facts["order"]
    places = ("on the shelf", "at the packing line", "at the gate", "on the van")
    told = [desk.ok(order_id=order, place=place) for place in places]
    scene.insert(
        at, [item for news in told for item in scene.made("parcel_status", {"order_id": order}, news)]
    )
    return Mark(at)


def repeat_failing(scene: Scene) -> Mark:
    scene.cut(scene.calls(*desk.WRITES)[0])
    at = len(scene.output)
    change = desk.change(scene)
    calls = put(scene, at, [("update_order", change)] * scene.rng.choice((3, 4)), desk.locked(scene))
    scene.say(f"Order {scene.facts['order']} is locked by the packing line, so it is unchanged.")
    return Mark(calls[1], tuple(calls), also=("repeat_identical", "cycle", "ignored_error", "harness_defect"))


def failing_twice(scene: Scene) -> Mark:
    """The same refusal twice; the third call has learned from it."""
    scene.cut(scene.calls(*desk.WRITES)[0])
    at = len(scene.output)
    put(scene, at, [("update_order", desk.change(scene))] * 2, desk.locked(scene))
    scene.think("It stays locked; the tool wants the flag `unlock`.")
    desk.finish(scene, unlock=True)
    return Mark(at)


def rounds(scene: Scene, count: int) -> list[int]:
    """Go back to the account and to its orders `count` more times."""
    account, _ = after(scene, "find_customer")
    orders, at = after(scene, "search_orders")
    return put(scene, at, [("find_customer", account), ("search_orders", orders)] * count)


def cycle(scene: Scene) -> Mark:
    stop(scene)
    calls = rounds(scene, 3)
    return Mark(calls[0], tuple(calls), also=("repeat_identical", "reread", "low_novelty"))


def one_more_round(scene: Scene) -> Mark:
    return Mark(rounds(scene, 1)[0])


def low_novelty(scene: Scene) -> Mark:
    """Ask ever new questions and get the same empty answer."""
    stop(scene)
    _, at = after(scene, "search_orders")
    topics = scene.rng.sample(TOPICS, 10)
    calls = put(scene, at, [("search_policy", {"topic": topic}) for topic in topics], desk.ok(rules=[]))
    return Mark(calls[1], tuple(calls))


def many_lookups(scene: Scene) -> Mark:
    """As many questions, and each answer is another one."""
    _, at = after(scene, "search_orders")
    topics = scene.rng.sample(TOPICS, 7)
    return Mark(put(scene, at, [("search_policy", {"topic": topic}) for topic in topics])[0])


def reread(scene: Scene) -> Mark:
    stop(scene, "The cause lies in {path}; the line is not changed yet.".format(**scene.facts))
    path, at = {"path": scene.facts["path"]}, scene.last
    between = ({"folder": scene.facts["package"]}, {"pattern": scene.facts["function"]})
    calls = put(
        scene,
        at,
        [("list_files", between[0]), ("read_file", path), ("search_code", between[1]), ("read_file", path)],
    )
    first = next(place for place in scene.calls("read_file") if scene.arguments(place) == path)
    return Mark(calls[1], (first, calls[1], calls[3]), also=("repeat_identical", "finish_on_red"))


def read_after_edit(scene: Scene) -> Mark:
    """The same file three times, but the last time it has changed."""
    path = {"path": scene.facts["path"]}
    at = scene.calls("edit_file")[0]
    put(scene, at, [("list_files", {"folder": scene.facts["package"]}), ("read_file", path)])
    last = scene.calls("edit_file")[-1] + 2
    put(scene, last, [("read_file", path)], shell.source(scene.task, shell.line_at(scene, last)))
    return Mark(last)
