"""Intervals, paired tests, shrinkage and agreement: numbers in, numbers out."""

from __future__ import annotations

from blade.stats.agreement import brier, calibration_error, cohen_kappa, log_loss, macro_f1
from blade.stats.changes import (
    Change,
    Rows,
    exchange_se,
    is_lopsided,
    mcnemar,
    mean_change,
    sign_flips,
    tost,
    two_means,
    within_change,
)
from blade.stats.decompose import kitagawa
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
from blade.stats.power import Design, detectable, repeats_needed, tasks_needed
from blade.stats.quantiles import t_quantile
from blade.stats.repeats import flip_rate, g_pass, pass_at_k, pass_hat_k, self_agreement
from blade.stats.resample import task_bootstrap
from blade.stats.seeds import seeded_rng
from blade.stats.shares import shapley
from blade.stats.shrinkage import (
    BetaPrior,
    class_probabilities,
    fit_beta_binomial,
    p_better,
    p_bucket,
    posterior,
)
from blade.stats.significance import benjamini_hochberg, holm, two_groups
from blade.stats.strata import (
    MantelHaenszel,
    Spectrum,
    exact_stratified,
    log_odds_dirichlet,
    mantel_haenszel,
    spectrum,
)
from blade.stats.variance import Variance, variance_components

__all__ = [
    "BetaPrior",
    "Change",
    "Design",
    "Interval",
    "MantelHaenszel",
    "Rows",
    "Spectrum",
    "Variance",
    "benjamini_hochberg",
    "best_of_k",
    "best_of_k_by_task",
    "beta11",
    "brier",
    "calibration_error",
    "class_probabilities",
    "clopper_pearson",
    "cohen_kappa",
    "detectable",
    "exact_stratified",
    "exchange_se",
    "fit_beta_binomial",
    "flip_rate",
    "g_pass",
    "holm",
    "is_lopsided",
    "jeffreys",
    "kitagawa",
    "log_loss",
    "log_odds_dirichlet",
    "macro_f1",
    "majority_at_k",
    "mantel_haenszel",
    "mcnemar",
    "mean_change",
    "mean_interval",
    "p_better",
    "p_bucket",
    "pass_at_k",
    "pass_hat_k",
    "posterior",
    "repeats_needed",
    "score_interval",
    "seeded_rng",
    "self_agreement",
    "shapley",
    "sign_flips",
    "spectrum",
    "t_interval",
    "t_quantile",
    "task_bootstrap",
    "tasks_needed",
    "tost",
    "two_groups",
    "two_means",
    "upper_bound_zero",
    "variance_components",
    "wald",
    "wilson",
    "within_change",
    "worst_of_k",
    "worst_of_k_by_task",
]
