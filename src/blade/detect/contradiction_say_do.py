"""Find messages that announce one tool, file or id before a write to another."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import touched
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, Step, TaskTraces

RULE = Rule(
    name="contradiction_say_do",
    number="B40",
    rule="A message announces a call of one tool, an edit of one file or a change to one id, and the next "
    "write uses another without the announced one having come first.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="training",
    remedy="Compare the announced tool, file or id with the call before it runs, and return the difference: "
    "{detail}.",
)
_MAX_TEXT = 2000  # characters at the end of a message: what comes next is announced last
_ANNOUNCES = (
    r"(?:\bI(?:['’]ll| will|['’]m going to| am going to| shall| need to| now)|\blet(?:['’]s| me| us)"
    r"|\bnow(?:,)? (?:I|call|use|run)"
    r"|\bnext(?:,)? (?:I|call|use|run)|\bcalling|\busing|\brunning)"
)
_TOOL = re.compile(
    rf"{_ANNOUNCES}[^.\n`]{{0,60}}?(?:`(?P<quoted>[\w.-]+)(?:\([^`]*\))?`|\b(?P<bare>\w+_\w+)\b)", re.I
)
_FILE = re.compile(
    rf"{_ANNOUNCES}[^.\n`]{{0,30}}?\b(?:edit|modify|update|create|write|change|fix|delete)\b[^.\n`]{{0,40}}?"
    r"`(?P<path>[\w./-]+\.\w{1,5})`",
    re.I,
)
_ID = re.compile(r"(?<![\w#-])#?[A-Z]+[-_]?\d{3,}\b")
_TARGET = re.compile(rf"(?i:{_ANNOUNCES})[^.\n`]{{0,60}}?(?<![\w#-])(?P<id>#?[A-Z]+[-_]?\d{{3,}})\b")
_NEGATED = re.compile(r"\b(?:not|n['’]t|never|without|instead of|after|once)\b", re.I)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    known = {call.tool for episode in task.episodes for call in episode.calls}
    for episode in task.episodes:
        if any(call.does == events.WRITE for call in episode.calls):
            yield from _in(episode, known | set(episode.tools) | set(facts.tools))


def _in(episode: Episode, known: set[str]) -> Iterator[Hit | None]:
    by_step = {call.step: call for call in episode.calls}
    said: Step | None = None
    called: list[Call] = []  # since that message
    for step in episode.trace.steps:
        if step.kind in ("user", "system"):
            said = None
        elif step.kind == "message" and step.text.strip():
            said, called = step, []
        elif said is not None and step.index in by_step:
            call = by_step[step.index]
            called.append(call)
            if call.does == events.WRITE:
                yield _compared(episode, said, called, known)
                said = None


def _compared(episode: Episode, said: Step, called: list[Call], known: set[str]) -> Hit | None:
    start = max(0, len(said.text) - _MAX_TEXT)
    text, write = said.text[start:], called[-1]
    tool = _announced_tool(text, known)
    if tool is not None and tool[0] not in {call.tool for call in called}:
        return _hit(episode, said, start + tool[1], write, tool[0], write.tool)
    target = _other_target(text, called)
    if target is not None:
        return _hit(episode, said, start + target[2], write, target[0], target[1])
    path = touched.path_of(write)
    file = _FILE.search(text) if path else None
    if path and file and not _NEGATED.search(file.group()):
        written = " ".join(call.raw[:_MAX_TEXT] for call in called)
        if _name(file["path"]) not in written and file["path"].count(".") == 1:
            return _hit(episode, said, start + file.start(), write, _name(file["path"]), _name(path))
    return None


def _announced_tool(text: str, known: set[str]) -> tuple[str, int] | None:
    """The one tool a message announces, and where; None if it announces several."""
    found: dict[str, int] = {}
    for one in _TOOL.finditer(text):
        name = one["quoted"] or one["bare"]
        if name in known and not _NEGATED.search(one.group()):
            found.setdefault(name, one.start())
    return next(iter(found.items())) if len(found) == 1 else None


def _other_target(text: str, called: list[Call]) -> tuple[str, str, int] | None:
    """An announced id and the id of its like that the write carries instead, and where it is announced."""
    announced: dict[str, int] = {}
    for one in _TARGET.finditer(text):
        if not _NEGATED.search(one.group()):
            announced.setdefault(one["id"].lstrip("#"), one.start())
    if len(announced) != 1:
        return None
    ((name, at),) = announced.items()
    if any(name in call.raw for call in called):
        return None
    like = [one for one in _ID.findall(called[-1].raw[:_MAX_TEXT]) if _shape(one) == _shape(name)]
    # An id named from there on belongs to the announcement: "from O-100 to O-200".
    return (name, like[0], at) if like and like[0].lstrip("#") not in text[at:] else None


def _shape(name: str) -> str:
    return re.sub(r"\d+", "0", name.lstrip("#"))


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _hit(episode: Episode, said: Step, at: int, write: Call, announced: str, done: str) -> Hit | None:
    return hit(
        episode,
        f"The message at step {said.index} announces `{announced}`; the next write, at step {write.step}, is "
        f"`{done}`.",
        2,
        events.at_step(episode, write.step),
        events.at_step(episode, said.index, at),
        detail=f"{announced} announced, {done} done",
    )
