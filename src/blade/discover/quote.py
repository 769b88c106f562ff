"""Turn a predicate and a rollout that shows it into a quotation."""

from __future__ import annotations

from blade import answers, events
from blade.discover import grammar, texts
from blade.discover.choose import Predicate
from blade.model import Call, Episode, Evidence


def quote(episode: Episode, one: Predicate) -> Evidence | None:
    """Where the rollout shows it; the output as a whole where no step of it says a word."""
    return _at_step(episode, one) or events.in_field(episode, "response.output")


def _at_step(episode: Episode, one: Predicate) -> Evidence | None:
    """Where the rollout shows it; for what it never did, where it went on without."""
    name, inner, cut, _ = grammar.split(one.feature)
    if name == "field":
        found = _in_field(episode, inner)
        if found is not None:
            return found
    if one.absent or name == "misses_gold_write":
        return _went_on(episode, grammar.tool_of(one.feature))
    if cut is not None:
        return _at_count(episode, name, inner, int(float(cut))) or _last(episode)
    return _shown(episode, name, inner) or _last(episode)


def _in_field(episode: Episode, inner: str) -> Evidence | None:
    return events.in_field(episode, inner.partition("=")[0].removesuffix(" is given"))


def _went_on(episode: Episode, tool: str) -> Evidence | None:
    """The first call that changes something, else the final text, else the last step."""
    writes = (call for call in episode.calls if call.does == events.WRITE and call.tool != tool)
    first = next(writes, None)
    if first is not None:
        return events.at_step(episode, first.step)
    return _final(episode, 0) or _last(episode)


def _at_count(episode: Episode, name: str, inner: str, cut: int) -> Evidence | None:
    """The call that makes the count full; the final text for its length."""
    if name == "final_chars":
        return _final(episode, 0)
    seen: set[str] = set()
    counted = []
    for call in episode.calls:
        counts = {
            "n_calls": True,
            "calls": call.tool[:60] == inner,
            "n_writes": call.does == events.WRITE,
            "n_failed": call.failed,
            "n_repeated": call.key in seen,
        }.get(name, False)
        seen.add(call.key)
        if counts:
            counted.append(call)
    if not counted:
        return None
    call = counted[min(max(cut, 1), len(counted)) - 1]
    at_result = name == "n_failed" and call.result_step is not None
    return events.at_step(
        episode, call.result_step if at_result and call.result_step is not None else call.step
    )


def _shown(episode: Episode, name: str, inner: str) -> Evidence | None:
    if (name, inner) == ("final_has", "abstention"):
        return _final(episode, max(0, answers.abstains(episode.final)))
    if name in ("says", "opens_with", "final_has", "final_is", "final_script"):
        return _final(episode, max(0, episode.final.lower().find(inner)) if name == "says" else 0)
    if name == "closes_with":
        return _final(episode, len(episode.final))
    for call in episode.calls if name != "last_call" else reversed(episode.calls):
        if _shows(call, name, inner):
            at_result = name in ("call_failed", "output_says") and call.result_step is not None
            return events.at_step(
                episode, call.result_step if at_result and call.result_step is not None else call.step
            )
    return None


def _shows(call: Call, name: str, inner: str) -> bool:
    if name == "runs":
        return inner in (events.command_of(call.tool, call.arguments) or "")
    tool, _, template = inner.partition(": ")
    if name == "output_says":
        return call.tool[:40] == tool and texts.template(call.output).startswith(template)
    if name == "arg":
        place, _, value = inner.partition("=")
        tool, _, key = place.rpartition(".")
        given = call.arguments.get(key) if isinstance(call.arguments, dict) else None
        told = str(given).lower() if isinstance(given, bool) else str(given)
        return call.tool[:60] == tool and given is not None and (not value or told.startswith(value))
    if name == "call_failed" and not call.failed:
        return False
    return call.tool[:60] == inner


def _final(episode: Episode, at: int) -> Evidence | None:
    return events.at_step(episode, episode.final_step, at) if episode.final_step is not None else None


def _last(episode: Episode) -> Evidence | None:
    for step in reversed(episode.trace.steps):
        found = events.at_step(episode, step.index)
        if found is not None:
            return found
    return None
