"""Draw the fault of a scripted rollout from the seed, the task and the repeat, so that it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from blade_eval.models.scripted_model.plays import play
from blade_eval.verifiers.workplace_assistant import changes, opened
from blade_eval.verifiers.workplace_assistant.quests import Quest, quests
from blade_eval.verifiers.workplace_assistant.quests import truth as right_calls
from blade_eval.verifiers.workplace_assistant.tools import call
from blade_eval.verifiers.workplace_assistant.world import State, fresh

NONE = "none"

# Each changes what is left behind; a task can have those that would change its own outcome.
FAULTS = {
    "unresolved_name": "never asks the directory, searches by the first name and acts on all who share it",
    "first_match": "asks the directory and takes a namesake from the top of its answer",
    "dropped_boundary": "leaves the date out of the search, filters in its head, and drops the day itself",
    "first_page": "acts on the first page of results alone",
    "ignored_condition": "takes the branch whose condition does not hold",
    "ignored_error": "a call is refused; it is not corrected, and reported as done",
    "stopped_early": "looks everything up, announces the change, and ends",
    "reworded_text": "puts its own words where the task gives a text in quotes",
    "unasked_message": "does what was asked, and sends a message that nobody asked for",
}


@dataclass(frozen=True)
class Script:
    """How often rollouts of a task go wrong, by its difficulty, and in which ways."""

    easy: float
    medium: float
    hard: float
    weights: Mapping[str, float]


_HASTY = {
    "unresolved_name": 5.0, "first_match": 2.0, "dropped_boundary": 8.0, "first_page": 8.0,
    "ignored_condition": 3.0, "ignored_error": 1.5, "stopped_early": 0.7, "reworded_text": 0.7,
    "unasked_message": 0.5,
}  # fmt: skip
_CAREFUL = {
    "dropped_boundary": 6.0, "first_page": 1.5, "ignored_error": 1.0, "stopped_early": 1.0,
    "first_match": 0.5, "unasked_message": 0.5,
}  # fmt: skip

# From the best to the worst.
SCRIPTS = {
    "flawless": Script(0.0, 0.0, 0.0, {}),
    "careful": Script(0.0, 0.08, 0.25, _CAREFUL),
    "hasty": Script(0.08, 0.4, 0.65, _HASTY),
    "novice": Script(0.35, 0.7, 0.9, dict.fromkeys(FAULTS, 1.0)),
}


def drawn(script: str, seed: int, ident: str, repeat: int) -> str:
    """The fault of one rollout, or `none`.

    Half of what goes wrong is a task's own: it goes wrong in every repeat. The rest is spread evenly.
    """
    quest, rule = quests()[ident], SCRIPTS[script]
    possible = [fault for fault in applicable(ident) if rule.weights.get(fault)]
    if not possible:
        return NONE
    weights = [rule.weights[fault] for fault in possible]
    rate = {"easy": rule.easy, "medium": rule.medium, "hard": rule.hard}[quest.difficulty]
    own = Random(f"{seed}/{script}/{ident}")
    usual = own.choices(possible, weights)[0]
    chance = 1.0 if own.random() < rate / 2 else rate / 2 / (1 - rate / 2)
    rng = Random(f"{seed}/{script}/{ident}/{repeat}")
    if rng.random() >= chance:
        return NONE
    return usual if rng.random() < 0.8 else rng.choices(possible, weights)[0]


@cache
def applicable(ident: str) -> tuple[str, ...]:
    """The faults after which the office is not as the task wants it, whatever else is drawn."""
    want = fresh()
    for name, arguments in right_calls(quests()[ident]):
        call(want, name, arguments)
    wanted = changes(want)
    return tuple(
        fault
        for fault in FAULTS
        if _meant(quests()[ident], fault)
        and all(changes(played(ident, fault, Random(f"try/{draw}"))) != wanted for draw in range(2))
    )


def _meant(quest: Quest, fault: str) -> bool:
    """Whether the task has what the fault is about."""
    if fault == "ignored_condition":
        return quest.condition is not None
    if fault == "unresolved_name":
        return quest.read is not None and "{0}" in quest.read[1].values() and bool(quest.people[0].namesakes)
    return True


def played(ident: str, fault: str, rng: Random) -> State:
    """The office after a play."""
    state = fresh()
    course = play(quests()[ident], fault, rng)
    turn = next(course, None)
    while turn is not None:
        answers = [call(state, name, opened(arguments)) for name, arguments in turn.calls]
        try:
            turn = course.send(answers)
        except StopIteration:
            turn = None
    return state


def asked(settings: Mapping[str, Any]) -> tuple[str, int]:
    return str(settings.get("script") or "careful"), int(settings.get("seed") or 0)


def truth(row: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The fault that the scripted model of these settings has, or had, in this row."""
    ident = row.get("task_id")
    if ident not in quests():
        return NONE
    return drawn(*asked(settings), str(ident), int(row.get("_ng_rollout_index") or 0))
