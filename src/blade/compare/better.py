"""Turn paired tasks into the probability that each is done better by the candidate."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade import stats
from blade.compare import exchange
from blade.compare.pairing import Paired
from blade.model import SureFlips
from blade.stats.quantiles import special

if TYPE_CHECKING:
    from blade.model import Bools, Floats

LEVEL = 0.95  # at which a task is said to be better or worse
_REACH = NormalDist().inv_cdf(LEVEL)
_ROUNDING = 1e-9
_UNLIKELY = 1e-9


class Normal(NamedTuple):
    """Where the means of tasks lie, and how rows vary around them."""

    mean: float
    between: float  # variance of the tasks; 0: none is seen, and tasks are not drawn together
    within: float  # variance of the rows of a task

    def trust(self, n: Floats) -> Floats:
        """How much of a task's own mean is kept, the rest being the mean of all."""
        return self.between / (self.between + self.within / n) if self.between > 0 else np.ones(n.shape)


def p_better(pair: Paired) -> Floats | None:
    """P(the candidate is better) for every common task; None where no task says how repeats vary.

    The rates of both runs are drawn together by one prior, fitted to both: a Beta for scores of 0 and 1, else
    a normal one. So a task is called better by its own rows, and not because its run is better elsewhere.
    """
    upright, is_turned = exchange.upright(pair)
    prior = _prior(upright)
    if prior is None:
        return None
    found = _judged(upright, prior)
    return 1.0 - found if is_turned else found


def sure_flips(pair: Paired) -> SureFlips | None:
    """How many tasks moved up, or down, and are so with 95 %; and how many would if labels meant nothing.

    The latter deals the rollouts of each task anew between the runs and judges them by the same prior. None
    where no posterior can be given.
    """
    upright, is_turned = exchange.upright(pair)
    prior = _prior(upright)
    if prior is None:
        return None
    up, down = _sure(upright.d, _judged(upright, prior), exchange.moved(upright))
    null = _null_of_means(upright, prior) if isinstance(prior, _Marks) else _null_of_counts(upright, prior)
    found = SureFlips(int(up.sum()), int(down.sum()), *null)
    return SureFlips(found.down, found.up, found.null_down, found.null_up) if is_turned else found


def _prior(pair: Paired) -> stats.BetaPrior | _Marks | None:
    return _beta(pair) if exchange.is_binary(pair) else _marks(pair)


def _judged(pair: Paired, prior: stats.BetaPrior | _Marks) -> Floats:
    """P(the candidate is better) for every task."""
    if isinstance(prior, _Marks):
        found: Floats = special().ndtr((prior.ahead + prior.slope * pair.d) / prior.spread)
        return found
    c_a, c_b = exchange.passes(pair)
    return stats.p_better(pair.n_a, c_a, prior, pair.n_b, c_b, prior)


def _sure(d: Floats, p: Floats, moved: Bools) -> tuple[Bools, Bools]:
    least = LEVEL - _ROUNDING
    return moved & (d > 0) & (p >= least), moved & (d < 0) & (1 - p >= least)


# ---- Scores of 0 and 1 ----------------------------------------------------------------------------


def _beta(pair: Paired) -> stats.BetaPrior | None:
    return stats.fit_beta_binomial(
        np.concatenate([pair.n_a, pair.n_b]), np.concatenate(exchange.passes(pair))
    )


def _null_of_counts(pair: Paired, prior: stats.BetaPrior) -> tuple[float, float]:
    ways = exchange.ways(pair).likely(_UNLIKELY)
    p = stats.p_better(ways.n_a, ways.c_a, prior, ways.n_b, ways.c_b, prior)
    up, down = _sure(ways.d, p, np.abs(ways.d) > exchange.ZERO)
    return ways.over_tasks(up.astype(np.float64)), ways.over_tasks(down.astype(np.float64))


# ---- Other scores ---------------------------------------------------------------------------------


class _Marks(NamedTuple):
    """Where the posterior of a task's difference lies: (ahead + slope · d) / spread, in normal units."""

    ahead: Floats  # of the candidate where both means are the same
    slope: Floats
    spread: Floats


def _null_of_means(pair: Paired, marks: _Marks) -> tuple[float, float]:
    top = np.maximum((_REACH * marks.spread - marks.ahead) / marks.slope - _ROUNDING, exchange.ZERO)
    bottom = np.minimum((-_REACH * marks.spread - marks.ahead) / marks.slope + _ROUNDING, -exchange.ZERO)
    up = down = 0
    deals = exchange.deals(pair)
    for tasks, d in deals.parts:
        up += int(np.count_nonzero(d >= top[tasks, None]))
        down += int(np.count_nonzero(d <= bottom[tasks, None]))
    return up / deals.n, down / deals.n


def _marks(pair: Paired) -> _Marks | None:
    prior = _normal(pair)
    if prior is None:
        return None
    n_a, n_b = pair.n_a.astype(np.float64), pair.n_b.astype(np.float64)
    kept_a, kept_b = prior.trust(n_a), prior.trust(n_b)
    spread = np.sqrt(prior.within * (kept_a / n_a + kept_b / n_b))
    level = (n_a * pair.mean_a + n_b * pair.mean_b) / (n_a + n_b) - prior.mean
    slope = (kept_b * n_a + kept_a * n_b) / (n_a + n_b)
    return _Marks((kept_b - kept_a) * level, slope, spread)


def _normal(pair: Paired) -> Normal | None:
    n, starts = np.concatenate([pair.n_a, pair.n_b]), np.concatenate(exchange.first_rows(pair))
    starts[pair.n_a.size :] += pair.a.judged.score.size
    found = stats.variance_components(np.concatenate([pair.a.judged.score, pair.b.judged.score]), starts, n)
    if found is None or found.within <= 0:
        return None
    return Normal(float((pair.mean_a + pair.mean_b).mean()) / 2, found.between, found.within)
