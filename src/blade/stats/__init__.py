"""Intervals, paired tests, shrinkage and agreement: numbers in, numbers out."""

from blade.stats.intervals import *  # noqa: F403
from blade.stats.paired_changes import *  # noqa: F403
from blade.stats.passes_at_k import *  # noqa: F403
from blade.stats.shrinkage import *  # noqa: F403
from blade.stats.variance import *  # noqa: F403
