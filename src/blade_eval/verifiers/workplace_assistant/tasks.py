"""The tasks as rows of a dataset: what the model is asked, and the calls that would be right."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from blade_eval.verifiers.workplace_assistant import asked_mail, asked_work
from blade_eval.verifiers.workplace_assistant.people import OWNER
from blade_eval.verifiers.workplace_assistant.quests import Quest, truth
from blade_eval.verifiers.workplace_assistant.tools import schemas
from blade_eval.verifiers.workplace_assistant.world import TODAY

POLICY = f"""You are the office assistant of Ines Vardal ({OWNER}) and act only through the tools.
Today is {TODAY:%A}, {TODAY}, 09:00; days without a year are of this year.
Dates are YYYY-MM-DD, times YYYY-MM-DD HH:MM; the limits of a search are included in it.
- Do what is asked and nothing else: no change that was not asked for, no message that was not asked for.
- Several colleagues share a first name. Look a person up in the directory and take the one who is meant.
- A search shows five results a page. If `pages` is more than 1, read them all.
- Use texts in quotes as they stand.
- An answer that begins with "Error" means that nothing was done. Correct the call; report only what was done.
- Nobody answers questions. When all is done, say in one or two sentences what you did."""

AGENT = "workplace_assistant_simple_agent"
EXAMPLES = ("email-01", "email-07", "email-12", "calendar-01", "calendar-04", "calendar-10", "crm-01",
            "crm-06", "crm-10",
            "projects-03", "projects-07", "analytics-05", "multi-01")  # fmt: skip


@cache
def quests() -> dict[str, Quest]:
    """All tasks by their id."""
    families = (
        asked_mail.emails, asked_mail.events, asked_work.customers, asked_work.projects, asked_work.analytics,
        asked_mail.mixed, asked_work.counted,
    )  # fmt: skip
    found: dict[str, Quest] = {}
    numbers: dict[str, int] = {}
    for quest in (quest for family in families for quest in family()):
        numbers[quest.category] = numbers.get(quest.category, 0) + 1
        found[f"{quest.category}-{numbers[quest.category]:02d}"] = quest
    return found


def row(ident: str) -> dict[str, Any]:
    """One line of the dataset."""
    quest = quests()[ident]
    truths = [
        {"name": name, "arguments": msgspec.json.encode(given).decode()} for name, given in truth(quest)
    ]
    return {
        "task_id": ident,
        "responses_create_params": {
            "input": [{"role": "system", "content": POLICY}, {"role": "user", "content": quest.request}],
            "tools": schemas(),
            "parallel_tool_calls": True,
        },
        "ground_truth": truths,
        "category": quest.category,
        "difficulty": quest.difficulty,
        "no_change": not truths,  # a rollout that does nothing passes it
        "agent_ref": {"type": "responses_api_agents", "name": AGENT},
    }


def rows(idents: tuple[str, ...] | None = None) -> list[dict[str, Any]]:
    return [row(ident) for ident in (quests() if idents is None else idents)]
