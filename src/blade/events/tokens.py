"""Turn an episode into tokens at three granularities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from blade.events.episodes import CHECK, READ, WRITE, command_of
from blade.model import Call, Episode

_SALIENT = ("path", "file", "file_path", "filename", "command", "cmd", "action", "query", "name", "id")


def phases(episode: Episode) -> list[tuple[str, int]]:
    """What kind of thing happened, with the step: READ, WRITE, VERIFY, THINK, SAY, ERR."""
    by_step = {call.step: call for call in episode.calls}
    words = {READ: "READ", WRITE: "WRITE", CHECK: "VERIFY"}
    found = []
    for step in episode.trace.steps:
        if step.kind == "call" and step.index in by_step:
            call = by_step[step.index]
            found.append((words[call.does], step.index))
            if call.failed:
                found.append(("ERR", call.result_step if call.result_step is not None else step.index))
        elif step.kind == "reasoning":
            found.append(("THINK", step.index))
        elif step.kind == "message":
            found.append(("SAY", step.index))
    return found


def tool_tokens(episode: Episode) -> list[tuple[str, int]]:
    """Tool names with their steps; a call that failed is another token."""
    return [(f"{call.tool}!" if call.failed else call.tool, call.step) for call in episode.calls]


def salient_tokens(episode: Episode) -> list[tuple[str, int]]:
    """Tool names with the argument that says most: a path's last part, a sub-command."""
    named = zip(episode.calls, tool_tokens(episode), strict=True)
    return [(f"{name}({_salient(call)})", step) for call, (name, step) in named]


def _salient(call: Call) -> str:
    command = command_of(call.tool, call.arguments)
    if command is not None:
        return " ".join(command.split()[:1])
    if not isinstance(call.arguments, Mapping):
        return ""
    told = [call.arguments[key] for key in _SALIENT if isinstance(call.arguments.get(key), str)]
    return told[0].rstrip("/").rpartition("/")[2][:40] if told else ""


def without_runs(tokens: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Each run of one token as its first."""
    return [next(group) for _, group in groupby(tokens, key=lambda token: token[0])]
