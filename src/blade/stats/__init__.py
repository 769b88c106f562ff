"""Intervals, paired tests, shrinkage and agreement: numbers in, numbers out."""

from __future__ import annotations

from blade.stats.intervals import (
    Interval,
    mean_interval,
    score_interval,
    seeded_rng,
    t_interval,
    t_quantile,
    task_bootstrap,
    wilson,
)
from blade.stats.paired_changes import (
    Change,
    Rows,
    exchange_se,
    is_lopsided,
    mcnemar,
    mean_change,
    sign_flips,
    student,
    tost,
    two_means,
    within_change,
)
from blade.stats.passes_at_k import (
    best_of_k_by_task,
    flip_rate,
    majority_at_k,
    pass_at_k,
    pass_hat_k,
    self_agreement,
)
from blade.stats.shrinkage import (
    BetaPrior,
    class_probabilities,
    fit_beta_binomial,
    p_better,
    p_bucket,
    posterior,
)
from blade.stats.significance import benjamini_hochberg, holm, two_groups
from blade.stats.variance import (
    Design,
    Variance,
    cohen_kappa,
    detectable,
    kitagawa,
    repeats_needed,
    tasks_needed,
    variance_components,
)

__all__ = [
    "BetaPrior", "Change", "Design", "Interval", "Rows", "Variance", "benjamini_hochberg",
    "best_of_k_by_task", "class_probabilities", "cohen_kappa", "detectable", "exchange_se",
    "fit_beta_binomial", "flip_rate", "holm", "is_lopsided", "kitagawa", "majority_at_k", "mcnemar",
    "mean_change", "mean_interval", "p_better", "p_bucket", "pass_at_k", "pass_hat_k", "posterior",
    "repeats_needed", "score_interval", "seeded_rng", "self_agreement", "sign_flips", "student", "t_interval",
    "t_quantile", "task_bootstrap", "tasks_needed", "tost", "two_groups", "two_means",
    "variance_components", "wilson", "within_change",
]  # fmt: skip
