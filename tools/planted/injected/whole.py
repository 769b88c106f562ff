"""Put faults into whole tasks and runs: no output, an erring verifier, wrong tasks, a cap."""

from __future__ import annotations

from dataclasses import replace

from tools.planted.injected.limits import infra_recovered, just_in_time
from tools.planted.injected.scene import Scene
from tools.planted.injected.truth import Mark

SPARED = 20  # one row in so many of an empty run has an output all the same
CAP = 6
OUTAGE = (
    "Error code: 503 - the model service is overloaded, please try again later",
    "Error code: 529 - upstream model provider returned an error",
)
NOTHING = {"input": 0, "output": 0, "reasoning": 0}


def empty_run(scene: Scene) -> Mark | None:
    index, repeat = scene.key
    if (index * 7 + repeat) % SPARED == 0:
        return None
    scene.output.clear()
    scene.used = NOTHING
    return Mark(also=("empty_output", "infra_error", "agent_never_started"))


def no_usage(scene: Scene) -> Mark | None:
    """Nobody counts tokens, and the rollouts are all there."""
    scene.response = {"usage": None}
    return Mark() if scene.solved else None


def broken_verifier(scene: Scene) -> Mark | None:
    scene.ruled = {"reward": 0.0}
    return Mark(scene.last, (scene.last,), also=("gold_rejected",)) if scene.solved else None


def hopeless(scene: Scene) -> None:
    """Nothing passes because nothing is right."""


def gold_rejected(scene: Scene) -> Mark:
    """The gold of the task is written in a form that the verifier does not see through."""
    gold = f"{scene.facts['gold']}.00"
    said = f"Extracted {scene.facts['gold']}, expected {gold}."
    scene.fields = {**scene.task.fields, "expected_answer": gold}
    scene.ruled = {"reward": 0.0, "verifier_message": said}
    return Mark(scene.last, (scene.last,))


def gold_seen_through(scene: Scene) -> Mark:
    gold = f"{scene.facts['gold']}.00"
    scene.fields = {**scene.task.fields, "expected_answer": gold}
    scene.ruled = {"verifier_message": f"Extracted {scene.facts['gold']}, expected {gold}: equal."}
    return Mark(scene.last)


def nondeterministic_verifier(scene: Scene) -> Mark | None:
    """The same answer passes in one repeat and fails in the next."""
    if not scene.parity:
        return None
    scene.ruled = {"reward": 0.0}
    return Mark(scene.last, (scene.last,), also=("gold_rejected",))


def same_answer_other_dress(scene: Scene) -> Mark:
    """The same answer in other words each time, and the same reward."""
    scene.output[-1] = scene.said(f"That makes \\boxed{{ {scene.facts['gold']} }}{'.' * scene.parity}")
    return Mark(scene.last)


def wrong_tasks(scene: Scene) -> Mark:
    """The request is that of this task, everything the verifier knows is that of the next one."""
    index, repeat = scene.key
    other = scene.run.get((index + 1, repeat)) or scene.run[0, repeat]
    scene.fields = other.task.fields
    expected = other.task.fields["expected_answer"]
    said = f"Extracted {scene.facts['gold']}, expected {expected}."
    scene.ruled = {"reward": 0.0, "verifier_message": said}
    return Mark()


def other_opening(scene: Scene) -> Mark:
    """The same task, asked in other words."""
    system, user = scene.task.asked["input"]
    asked = {**user, "content": "Good morning! " + user["content"] + " Thank you."}
    scene.task = replace(scene.task, asked={**scene.task.asked, "input": [system, asked]})
    return Mark()


def provider_outage(scene: Scene) -> Mark:
    scene.output.clear()
    scene.say(scene.rng.choice(OUTAGE))
    scene.used = NOTHING
    return Mark(0, (0,), also=("infra_error", "format_mismatch", "tool_never_used"))


def outage_recovered(scene: Scene) -> Mark | None:
    return infra_recovered(scene) if scene.solved else None


def agent_never_started(scene: Scene) -> Mark:
    scene.output.clear()
    scene.used = NOTHING
    said = "agent exited before its first turn (exit code 1)"
    scene.response = {"status": "failed", "error": {"code": "agent_start", "message": said}}
    return Mark(also=("infra_error", "empty_output", "format_mismatch"))


def terse(scene: Scene) -> Mark:
    """One short message and hardly a token, but the answer is there."""
    scene.output.clear()
    scene.say(f"\\boxed{{{scene.facts['gold']}}}")
    return Mark(0)


def format_rejected(scene: Scene) -> Mark | None:
    """The parser finds no answer in any row, although the answers stand where they should."""
    said = "No boxed answer could be parsed."
    scene.ruled = {"reward": 0.0, "extracted_answer": None, "verifier_message": said}
    also = ("format_mismatch", "gold_rejected", "broken_verifier")
    return Mark(scene.last, (scene.last,), also=also) if scene.solved else None


def format_accepted(scene: Scene) -> Mark | None:
    """No row is boxed as asked, and the parser takes them all the same."""
    if not scene.solved:
        return None
    gold = scene.facts["gold"]
    scene.output[-1] = scene.said(f"The answer is **{gold}**.")
    said = f"Extracted {gold}, expected {gold}."
    scene.ruled = {"reward": 1.0, "extracted_answer": gold, "verifier_message": said}
    return Mark(scene.last)


def turn_limit_run(scene: Scene) -> Mark | None:
    """A cap that most rollouts need more than."""
    scene.fields = {**scene.task.fields, "max_turns": CAP}
    calls = scene.calls()
    if len(calls) < CAP:  # the closing message is a turn too
        return None
    last = calls[CAP - 1]
    del scene.output[last + 2 :]
    return Mark(last, (last, last + 1), also=("turn_limit", "empty_output", "no_verification"))


def cap_reached(scene: Scene) -> Mark | None:
    return just_in_time(scene) if scene.solved else None
