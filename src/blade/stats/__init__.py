"""Intervals, shrinkage and agreement: numbers in, numbers out."""

from __future__ import annotations

from blade.stats.extremes import best_of_k, best_of_k_by_task, worst_of_k, worst_of_k_by_task
from blade.stats.intervals import (
    Interval,
    beta11,
    clopper_pearson,
    jeffreys,
    mean_interval,
    score_interval,
    t_interval,
    upper_bound_zero,
    wald,
    wilson,
)
from blade.stats.majority import majority_at_k
from blade.stats.quantiles import t_quantile
from blade.stats.repeats import flip_rate, g_pass, pass_at_k, pass_hat_k, self_agreement
from blade.stats.seeds import seeded_rng
from blade.stats.shrinkage import BetaPrior, fit_beta_binomial, p_bucket, posterior
from blade.stats.significance import benjamini_hochberg, two_groups
from blade.stats.variance import Variance, variance_components

__all__ = [
    "BetaPrior",
    "Interval",
    "Variance",
    "benjamini_hochberg",
    "best_of_k",
    "best_of_k_by_task",
    "beta11",
    "clopper_pearson",
    "fit_beta_binomial",
    "flip_rate",
    "g_pass",
    "jeffreys",
    "majority_at_k",
    "mean_interval",
    "p_bucket",
    "pass_at_k",
    "pass_hat_k",
    "posterior",
    "score_interval",
    "seeded_rng",
    "self_agreement",
    "t_interval",
    "t_quantile",
    "two_groups",
    "upper_bound_zero",
    "variance_components",
    "wald",
    "wilson",
    "worst_of_k",
    "worst_of_k_by_task",
]
