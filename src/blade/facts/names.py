"""Name what facts are about as readers do: our word for a subject, and phrases people use for it."""

from __future__ import annotations

# Subject -> phrases, lower case, the most telling first. {k} is the k of the measure.
MEASURES: dict[str, tuple[str, ...]] = {
    "pass_at_1": ("pass@1", "pass at 1", "pass_at_1", "pass rate", "success rate", "solve rate", "accuracy"),
    "clean_pass_at_1": ("clean pass@1", "clean pass rate", "clean score", "clean_pass_at_1"),
    "pass_at_1_micro": (
        "pass@1 over rows",
        "over rows instead of tasks, pass@1",
        "over rows",
        "micro pass@1",
        "pass rate over rows",
        "row-level pass rate",
    ),
    "weighting_effect": ("weighting effect",),
    "solved": ("solved", "solved tasks", "tasks solved at least once", "tasks with at least one pass"),
    "pass_at_k": ("pass@{k}", "pass at {k}", "pass_at_{k}", "best of {k}"),
    "pass_hat_k": ("pass^{k}", "pass hat {k}", "pass_hat_{k}", "all {k} tries succeed"),
    "majority_at_k": ("majority@{k}", "maj@{k}", "majority vote at {k}"),
    "consistency": ("consistency", "tasks where every repeat passed", "always-pass rate"),
    "retry_value": (
        "retry value",
        "perfect choice among the repeats",
        "value of retries",
        "gain from retries",
    ),
    "self_agreement": ("self-agreement", "agreement between repeats"),
    "expected_flip_rate": ("expected flip rate", "flip rate"),
    "mean_reward": ("mean reward", "average reward", "avg reward"),
    "mean_reward_micro": ("mean reward over rows", "average reward over rows"),
    "best_of_k": ("best of {k}", "best-of-{k}"),
    "worst_of_k": ("worst of {k}", "worst-of-{k}"),
    "coverage": ("coverage", "scored of expected rollouts", "share of rollouts scored"),
    "missing_as_fail": ("missing as failed", "counting missing as failed", "counted as failed"),
    "bound_low": ("lower bound", "lies between", "whatever they were, it lies between"),
    "bound_high": ("upper bound", "lies between", "whatever they were, it lies between"),
    "icc": ("icc", "intraclass correlation"),
    "between_task_variance": ("variance between tasks", "between-task variance"),
    "within_task_variance": ("variance within tasks", "within-task variance"),
    "design_effect": ("design effect",),
    "effective_n": ("effective n", "effective sample size"),
    "input_tokens": ("input tokens", "prompt tokens"),
    "output_tokens": ("output tokens", "completion tokens", "tokens"),
    "reasoning_tokens": ("reasoning tokens", "thinking tokens"),
    "total_tokens": ("total tokens",),
    "turns": ("turns", "model turns"),
    "tool_calls": ("tool calls", "calls"),
    "items": ("output items", "items"),
    "wall_s": ("seconds", "wall time", "duration", "latency"),
    "cost_usd": ("cost (usd)", "cost", "dollars"),
}
HEADLINE = (
    "score",
    "headline",
    "overall score",
    "result",
)  # what the measure that is the score is called too

# Measures by the kind of their value; what is not here is a plain number.
RATES = {
    "pass_at_1", "clean_pass_at_1", "pass_at_1_micro", "solved", "pass_at_k", "pass_hat_k", "majority_at_k",
    "consistency", "self_agreement", "expected_flip_rate", "coverage",
}  # fmt: skip
POINTS = {"weighting_effect", "retry_value"}
OF_SCORE = {"missing_as_fail", "bound_low", "bound_high"}  # of the kind of the score

BUCKETS: dict[str, tuple[str, ...]] = {
    "always": ("always-pass", "always pass", "always", "always passed", "passed in every repeat",
               "consistently solved", "pass in every repeat", "always-passing"),
    "sometimes": ("sometimes-pass", "sometimes pass", "sometimes", "flaky", "passed in some repeats",
                  "in some", "mixed", "inconsistent", "unstable"),
    "never": ("never-pass", "never pass", "never", "never passed", "always fail", "always failing",
              "passed in no repeat", "unsolved", "in none", "never solved"),
    "missing": ("missing tasks", "missing", "tasks without a scored rollout", "no scored rollout"),
}  # fmt: skip

# Fields of a run: subject (= field on the wire) -> unit, phrases.
COUNTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "n_tasks": ("tasks", ("tasks", "number of tasks", "task count", "total tasks", "problems")),
    "n_rollouts": ("rollouts", ("rollouts", "rollouts kept", "total rollouts", "rows", "trajectories",
                                "attempts")),
    "expected_rollouts": ("rollouts", ("expected rollouts", "expected", "rollouts expected")),
    "scored": ("rollouts", ("scored", "scored rollouts", "rows scored")),
    "failed": ("rollouts", ("failed (only in the failures file)", "in the failures file",
                            "failed to run", "failures file")),
    "masked": ("rollouts", ("masked", "masked rollouts")),
    "lost": ("rollouts", ("lost without trace", "lost", "lost rollouts", "left no trace")),
    "duplicates": ("rows", ("duplicate rows", "duplicates", "duplicate row")),
    "identical_duplicates": ("rows", ("of these identical, kept once", "identical duplicates")),
    "unnumbered_copies": ("rows", ("identical rows without a repeat number", "identical row without a number",
                                   "identical rows without a number")),
    "superseded": ("rows", ("superseded by a later attempt", "superseded")),
    "unexpected": ("rows", ("not expected by the inputs", "unexpected")),
    "repeats": ("repeats", ("repeats per task", "repeats", "rollouts per task", "attempts per task",
                            "samples per task", "tries")),
}  # fmt: skip

OUTCOMES: dict[str, tuple[str, ...]] = {
    "passed": ("passed", "passing rollouts", "rollouts passed", "successful rollouts", "passes"),
    "failed": ("failed", "failing rollouts", "rollouts failed", "unsuccessful rollouts", "failures"),
    "errored": ("errored", "rollouts with an error", "crashed"),
    "timed_out": ("timed out", "timeouts", "timed-out rollouts"),
    "malformed": ("malformed", "without a usable reward"),
    "masked": ("masked", "masked rollouts"),
    "missing": ("missing", "missing rollouts"),
}

CAUSES: dict[str, tuple[str, ...]] = {
    "KG": ("knowledge gap", "kg", "knowledge gaps"),
    "UK": ("unreliable knowledge", "uk"),
    "BI": ("behavioural issue", "behavioral issue", "bi", "behavioural issues", "behaviour"),
    "TI": ("task or verifier issue", "task issue", "verifier issue", "ti", "task or verifier"),
    "IR": ("infrastructure reliability", "infrastructure", "ir", "infrastructure issue"),
    "DA": ("data artifact", "data artefact", "da", "data"),
    "undetermined": ("undetermined", "unknown cause", "not determined"),
}
# Who answers for a cause, in the order of print.
SIDES: dict[str, tuple[str, ...]] = {
    "model": ("KG", "UK", "BI"),
    "infrastructure": ("IR",),
    "task or verifier": ("TI",),
    "data": ("DA",),
    "undetermined": ("undetermined",),
}


def phrases(name: str, k: int | None = None) -> tuple[str, ...]:
    """What a measure is called; a name of nobody's is called by itself."""
    told = MEASURES.get(name)
    if told is None and name.endswith("_median"):
        return tuple(f"median {one}" for one in phrases(name.removesuffix("_median")))
    if told is None:
        return (name.replace("_", " ").lower(), name.lower())
    return tuple(one.format(k="k" if k is None else k) for one in told)
