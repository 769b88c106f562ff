"""Put the limits of machine and harness into rollouts: errors, timeouts, cut outputs, lost results."""

from __future__ import annotations

from tools.planted.injected import desk
from tools.planted.injected.loops import TOPICS, after, put, stop
from tools.planted.injected.quiz import working
from tools.planted.injected.scene import Scene
from tools.planted.injected.truth import Mark
from tools.planted.words import prose

BREAKDOWNS = (
    "Connection reset by peer (ECONNRESET)",
    "sandbox failed to start: OOMKilled, exit 137",
    "503 Service Unavailable: upstream is not reachable",
    "write aborted: No space left on device",
)
SLOW = "Command timed out after 600 seconds."


def infra_error(scene: Scene) -> Mark:
    """The machine fails: under a tool, under the model, or under the verifier."""
    kind = scene.rng.randrange(3)
    if kind == 0:
        scene.ruled = {"reward": 0.0, "verifier_error": "Connection refused", "evaluation_completed": False}
        return Mark()
    scene.cut(scene.calls(*desk.WRITES)[0])
    if kind == 1:
        message = scene.rng.choice(("429 Too Many Requests", "502 Bad Gateway", "Connection refused"))
        scene.response = {"status": "failed", "error": {"code": "server_error", "message": message}}
        return Mark(also=("empty_output",))
    at = len(scene.output)
    scene.use("update_order", desk.change(scene), scene.rng.choice(BREAKDOWNS))
    scene.say("The order service does not answer; the order is as it was.")
    return Mark(at + 1, (at, at + 1))


def infra_recovered(scene: Scene) -> Mark:
    """The same breakdown, and the call is made again."""
    at = scene.calls("search_orders")[0]
    arguments = scene.arguments(at)
    scene.insert(at, scene.made("search_orders", arguments, scene.rng.choice(BREAKDOWNS)))
    return Mark(at)


def timeout(scene: Scene) -> Mark:
    """Run everything where a part would do, wait in vain, and stop."""
    stop(scene, "The test run does not come to an end; the line is not changed yet.")
    at = put(scene, scene.last, [("run_tests", {"target": "all"})], SLOW)[0]
    return Mark(at, (at, at + 1), also=("finish_on_red",))


def timeout_recovered(scene: Scene) -> Mark:
    at = scene.calls("edit_file")[0]
    put(scene, at, [("run_tests", {"target": "all"})], SLOW)
    scene.insert(at + 2, [scene.thought("Too slow; I run the tests of this module only.")])
    return Mark(at)


def timeout_verifier(scene: Scene) -> Mark:
    said = "verifier timed out after 300 s"
    scene.ruled = {"reward": 0.0, "resolved": False, "verifier_error": said, "verifier_message": said}
    return Mark(also=("infra_error", "self_check_pass_verifier_fail"))


def slow_verifier(scene: Scene) -> Mark:
    """Slow, but in time."""
    scene.ruled = {"verifier_message": "All hidden tests pass after 281 s of 300 s.", "verifier_error": None}
    return Mark()


def truncated(scene: Scene) -> Mark:
    limit = scene.task.asked["max_output_tokens"]
    work, _ = working(scene, 0)
    start = next(at for at, item in enumerate(scene.output) if item["type"] == "message")
    scene.cut(start)
    scene.think("Let me go over every number once more. " + prose(scene.rng, 6000))
    if scene.rng.random() < 0.5:
        scene.say(work[: len(work) // 2])
        scene.output[-1]["status"] = "incomplete"
    scene.response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    scene.used = {"output": limit, "reasoning": limit - 60}
    return Mark(scene.last, tuple(range(scene.last + 1)), also=("empty_output", "format_mismatch"))


def nearly_full(scene: Scene) -> Mark:
    """Long, and finished below the limit."""
    scene.insert(0, [scene.thought("Let me go over every number once more. " + prose(scene.rng, 6000))])
    limit = scene.task.asked["max_output_tokens"]
    scene.used = {"output": round(limit * 0.93), "reasoning": round(limit * 0.9)}
    return Mark(0)


def context_overflow(scene: Scene) -> Mark:
    """Read until the request no longer fits."""
    scene.cut(scene.calls("edit_file")[0])
    for pattern in ("def ", "import ", "return "):
        scene.use("search_code", {"pattern": pattern}, prose(scene.rng, 3000))
    message = "This model's maximum context length is 32768 tokens; the prompt has 33120 tokens."
    scene.response = {"status": "failed", "error": {"code": "context_length_exceeded", "message": message}}
    scene.used = {"input": 32_600}
    calls = scene.calls("search_code")[-3:]
    return Mark(scene.last, (*calls, scene.last), also=("infra_error", "empty_output"))


def reads_of_limits(scene: Scene) -> Mark:
    """A file speaks of the context length; the rollout is far below it."""
    at = scene.calls("edit_file")[0]
    folder = scene.made("list_files", {"folder": scene.facts["package"]})
    page = "# Limits\n\nThe maximum context length of the chat widget is set by its owner."
    scene.insert(at, [*folder, *scene.made("read_file", {"path": "docs/limits.md"}, page)])
    return Mark(at + 2)


def pad(scene: Scene, count: int) -> list[int]:
    """Read `count` rules that have nothing to do with the ticket."""
    _, at = after(scene, "search_orders")
    names = TOPICS + [f"old {topic}" for topic in TOPICS]
    topics = scene.rng.sample(names, count)
    return put(scene, at, [("search_policy", {"topic": topic}) for topic in topics])


def turn_limit(scene: Scene) -> Mark:
    scene.cut(scene.calls(*desk.WRITES)[0])
    calls = pad(scene, desk.MAX_TURNS - len(scene.calls()))
    last = scene.calls()[-1]
    return Mark(last, (*calls, last, last + 1), also=("empty_output",))


def just_in_time(scene: Scene) -> Mark:
    """The last turn that the cap allows is the closing message."""
    calls = pad(scene, desk.MAX_TURNS - len(scene.calls()) - 1)
    return Mark(calls[0])


def dangling_call(scene: Scene) -> Mark:
    """The result of the change never arrives, and the change is not made."""
    at = scene.calls("update_order")[-1]
    del scene.output[at + 1]
    return Mark(at, (at,))


def parallel_calls(scene: Scene) -> Mark:
    """Two calls at once; their results come in the other order."""
    _, at = after(scene, "search_orders")
    first = scene.made("parcel_status", {"order_id": scene.facts["order"]})
    second = scene.made("search_policy", {"topic": "parcels"})
    scene.insert(at, [first[0], second[0], second[1], first[1]])
    return Mark(at)
