"""What the name of a top-level field says about where it comes from."""

from __future__ import annotations

import re
from functools import lru_cache

# The task as the dataset states it: its id, its question, its gold.
_TASK = re.compile(
    r"^(task|problem|instance|question|sample|example|row|doc|document|bunsen|scenario)_?(id|idx|index|name)?$"
    r"|^(verifier_metadata|metadata)(\.task_id)?$"
    r"|instruction|question|problem(_statement)?$|^prompt$|^options$|^choices$|unit_tests|^tests$"
    r"|expected|gold|ground_truth|^gt_|reference|^target|^label$|^answer$|^answers$|seed$"
)
# What an agent or a verifier made of it, however task-like the rest of the name sounds.
_MADE = re.compile(
    r"extracted|predicted|parsed|model_|generated|judge|rollout|reward|score|match|follow|verdict|_ms$|_s$"
)

# Wall time in the words of several environments, with what turns it into seconds; the first one wins.
SECONDS = (
    ("ng_perf.total_latency_ms", 1e-3),
    ("duration_s", 1.0),
    ("total_run_time", 1.0),
    ("agent_run_time", 1.0),
    ("wall_s", 1.0),
    ("duration_seconds", 1.0),
    ("elapsed_s", 1.0),
    ("generation_ms", 1e-3),
    ("duration_ms", 1e-3),
    ("gen_seconds", 1.0),
)
COST = ("agent_cost", "cost_usd", "total_cost", "cost")

# A row says that something broke around the model when one of these holds a text, a code or a yes.
ERRORS = (
    "error",
    "exception_type",
    "exception",
    "failure_kind",
    "agent_error_kind",
    "error_kind",
    "verifier_error",
    "judge_error",
    "evaluation_error",
    "osworld_error",
    "segale_error",
    "memory_limit_exceeded_error",
    "context_length_exceeded_error",
)
BROKEN_WHEN_FALSE = ("evaluation_completed",)
TIMEOUTS = ("timed_out", "agent_timed_out", "eval_timed_out", "container_timed_out", "agent_timeout_error")
NOTHING = frozenset(("", "none", "null", "no_error", "ok", "success"))


_NAMES = "id uuid name"
_NESTED = "result trajectory messages delegated_response subagent_trajectories info config ng_perf"
_TOLD = (*ERRORS, *TIMEOUTS, *BROKEN_WHEN_FALSE, *COST, *dict(SECONDS))
_USED = frozenset((*_TOLD, *_NAMES.split(), *_NESTED.split()))


@lru_cache(maxsize=10_000)
def rank(name: str) -> tuple[bool, str]:
    """Which fields become columns when there are too many: those we use first, then by spelling."""
    return name not in _USED and not is_task_field(name), name


def is_task_field(name: str) -> bool:
    """Does the field belong to the task rather than to what was made of it."""
    return bool(_TASK.search(name)) and not _MADE.search(name)
