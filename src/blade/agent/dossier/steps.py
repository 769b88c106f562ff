"""Lay out steps of a rollout: in one line each, or in full where something points to them."""

from __future__ import annotations

from blade import events, hostile
from blade.agent.dossier import frame
from blade.model import Call, Step

KINDS = frozenset("message user system reasoning call result other".split())


def head(step: Step, calls: dict[int, Call], mark: str = "") -> str:
    """Head a step in our words: `[12] call, failed`."""
    kind = step.kind if step.kind in KINDS else "other"
    made = calls.get(step.index)
    failed = made.failed if made is not None else step.failed
    unanswered = step.kind == "call" and step.answered is False
    words = f"[{step.index}]{mark} {kind}"
    return f"{words}{', failed' if failed else ''}{', never answered' if unanswered else ''}"


def text(step: Step) -> str:
    """Give what a step says, the tool of a call first."""
    said = events.step_text(step)
    if step.kind == "call":
        tool = hostile.line(step.tool or "", 80)
        return f"{tool} {said}" if said != tool else tool
    return said


def brief(step: Step, calls: dict[int, Call], room: int, mark: str = "", around: str = "") -> list[str]:
    """Lay a step out in one line."""
    return [frame.behind(head(step, calls, mark), text(step), room, around)]


def full(step: Step, calls: dict[int, Call], room: int, mark: str = "", around: str = "") -> list[str]:
    """Lay a step out in as many lines as it has, thinking before the text."""
    lines = [head(step, calls, mark)]
    if step.reasoning and step.text:
        lines += frame.block(f"(thinking) {step.reasoning}", room // 3)
        room -= room // 3
    body = frame.block(text(step), room, around)
    if len(lines) == 1 and len(body) == 1:
        return [f"{lines[0]} {body[0]}"]
    return [*lines, *(body or [f"{frame.BAR} (empty)"])]
