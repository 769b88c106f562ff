"""One run against another: what goes into a comparison, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from blade.model.enums import Bucket, Count, Effect, GateVerdict, PairVerdict, Share, ShiftKind, Tier, Verdict
from blade.model.run_rows import Judged

if TYPE_CHECKING:
    from blade.model.run_rows import Bools, Floats, Hashes, Ints


class Side(msgspec.Struct, frozen=True):
    """One run as a comparison needs it: columns by counted row, in the order of `Judged`, and by task."""

    run: str
    judged: Judged
    task_names: tuple[str, ...]  # by task code
    score_name: str  # pass_at_1 or mean_reward
    threshold: float | None  # None: nothing says what passes
    is_bounded: bool  # scores stay in [0, 1], so that there is a full score to lose from
    is_binary: bool  # every row scores 0 or 1
    model: str | None
    agent: str | None
    expected: Ints  # rows expected, by task code
    settings: Mapping[str, str]
    row_hash: Hashes  # of the whole row, to know identical rows again; 0: unknown
    fingerprints: Mapping[str, Hashes]  # task field -> hash of its value by task code; 0: varies or unknown
    slices: Mapping[str, tuple[Ints, tuple[str, ...]]]  # field -> code by task code (-1: none), labels
    mode: Ints  # by row: code into `modes`; -1 where the row loses nothing
    modes: tuple[tuple[str, str], ...]  # side of the loss and failure group, one table for all runs compared
    flags: Mapping[str, Bools]  # by row: errored, timed out, truncated, no usable reward
    effort: Mapping[str, Floats]  # by row: tokens, turns, calls, seconds, cost; nan: not reported
    behaviours: Mapping[str, Ints]  # fact that names a failure group -> rows that show it; empty: no trace was read
    signatures: Mapping[str, Ints]  # error template -> rows that show it
    # what rows ended with, so that equal results are known, by row; 0: nothing. In grains: "result" is what
    # was meant, "read" what the verifier wrote down, "words" every word; what nobody looked at is not there
    content: Mapping[str, Hashes] = msgspec.field(default_factory=dict)
    coverage: tuple[int, int] = (0, 0)  # keys scored, keys expected
    n: Ints | None = None  # counted rows by task code, if they were counted already


# The sides of a loss, in the order in which the bridge lists them.
SIDES = ("infrastructure", "task or verifier", "data", "model", "undetermined")
OTHER = "unexplained"  # of the undetermined losses: those that no failure group explains
MARGIN = 0.03  # points of score within which two runs count as equivalent; fixed before the data are seen


class Alignment(msgspec.Struct, frozen=True):
    """Which tasks two runs share, and which they do not."""

    matched_by: str  # in words
    common: tuple[str, ...]  # task keys
    added: tuple[str, ...] = ()  # only the candidate has them
    removed: tuple[str, ...] = ()  # only the baseline has them
    modified: tuple[str, ...] = ()  # the same key, another content
    missing_baseline: tuple[str, ...] = ()  # expected of the baseline, without a scored row there
    missing_candidate: tuple[str, ...] = ()
    changed_fields: tuple[str, ...] = ()  # by which modified tasks are told
    # what the candidate calls the tasks of `common` and `modified` where contents match, not keys; else empty
    common_candidate: tuple[str, ...] = ()
    modified_candidate: tuple[str, ...] = ()
    changed_everywhere: tuple[str, ...] = ()  # fields that differ in nearly all tasks: a template or a format


class Setting(msgspec.Struct, frozen=True):
    """A setting that differs between two runs."""

    key: str
    baseline: str | None  # None: not stated
    candidate: str | None
    kind: str  # model, sampling, limit, tools, prompt, data, verifier, repeats, skills, harness, other
    mechanical: bool  # can change the score without the model being any different
    known: bool = True  # False: one side does not state it
    counts: bool = True  # False: it cannot change what a rollout scores (repeats, seed, number of tasks)


class Tested(msgspec.Struct, frozen=True):
    """One question put to the paired tasks."""

    question: str  # "these tasks" or "new tasks", or the name of a derived measure
    name: str  # of the test
    p: Share | None
    estimate: float | None
    low: float | None
    high: float | None
    low90: float | None = None  # ends of the 90% interval: one-sided 95% bounds
    high90: float | None = None


class Term(msgspec.Struct, frozen=True):
    """One addend of a change of score."""

    term: str
    value: float
    low: float | None
    high: float | None
    p: Share | None  # that it is 0; None: cannot be tested
    side: str  # one of SIDES, or composition, missing, slice, mix, task, outcome, setting
    n: Count  # what it rests on: tasks
    expected: float | None = None  # what it would be if it took its share and no more
    p_excess: Share | None = None  # that it takes no more than its share


class View(msgspec.Struct, frozen=True):
    """A way to add up to the change."""

    name: str
    terms: tuple[Term, ...]
    note: str = ""  # what a reader must know before trusting it


class Mover(msgspec.Struct, frozen=True):
    """A term that is claimed to have moved the score, strongest claim first."""

    view: str
    term: str
    side: str
    value: float
    low: float | None
    high: float | None
    p_adjusted: Share
    share: float | None  # of the change; None where the change is near 0
    mechanical: bool  # limit, timeout, verifier, composition or infrastructure: told first
    text: str
    rollouts: tuple[tuple[str, str, int], ...] = ()  # run, task, repeat: some that show it
    beside: tuple[str, ...] = ()  # what the same rollouts show as well, in words


class Flip(msgspec.Struct, frozen=True):
    """A task whose rate differs between the runs."""

    task: str
    task_name: str
    baseline: tuple[float, int]  # passes (or sum of scores), repeats
    candidate: tuple[float, int]
    change: float
    p_better: Share | None  # posterior probability that the candidate is better at it
    p_class_change: Share | None  # that its bucket truly changed
    classes: tuple[str, str]  # buckets by counts


class Churn(msgspec.Struct, frozen=True):
    """How much tasks moved, beside what repeats of one and the same model would move."""

    gains: float  # points of score
    losses: float  # negative
    n_up: Count
    n_down: Count
    null_churn: float  # mean of gains - losses if labels of rollouts are exchanged within tasks
    null_low: float
    null_high: float
    null_changed: float  # tasks that would change
    p: Share | None  # that churn is no larger than that


class SureFlips(msgspec.Struct, frozen=True):
    """Tasks that look better or worse at 95%, beside how many would if the runs were one."""

    up: Count
    down: Count
    null_up: float | None  # None: nothing says how repeats vary
    null_down: float | None


class Transition(msgspec.Struct, frozen=True):
    before: Bucket  # always, sometimes, never
    after: Bucket
    n: Count  # tasks by counts
    sure: Count  # of these, with P(class change) >= .8; on the diagonal: with P(no change) >= .8


class Shift(msgspec.Struct, frozen=True):
    """Something other than the score that changed: a behaviour, an error, tokens, turns."""

    kind: ShiftKind  # behaviour, signature, outcome, effort
    name: str
    baseline: float  # rate over tasks, or mean over tasks
    candidate: float
    change: float
    low: float | None
    high: float | None
    p: Share | None
    p_adjusted: Share | None
    n: Count  # tasks
    status: Effect  # appeared, disappeared, more, less, unclear


class Power(msgspec.Struct, frozen=True):
    """What the comparison could have seen, and what would resolve it."""

    se: float | None  # of the change on new tasks
    mde: float | None  # smallest true change that would be seen in 80 of 100 comparisons, on new tasks
    mde_these: float | None
    omega2: float | None  # variance of the true change over tasks
    sigma2_a: float | None  # variance between repeats of a task
    sigma2_b: float | None
    p_heterogeneity: Share | None
    target: float | None  # the change that more data should resolve
    repeats_needed: Count | None  # of each run; None: no number of repeats is enough
    tasks_needed: Count | None  # further tasks, as these with as many repeats


class Derived(msgspec.Struct, frozen=True):
    """A measure beside the score, of both runs over the common tasks."""

    name: str
    k: Count | None
    baseline: float
    candidate: float
    change: float
    low: float | None
    high: float | None
    n: Count
    method: str
    unit: str = "rate"  # rate, or what it counts


class Comparison(msgspec.Struct, frozen=True):
    """Why the score of one run differs from another's."""

    baseline: str
    candidate: str
    score_name: str
    score_baseline: float | None
    score_candidate: float | None
    delta: float | None  # of the headline scores; None where refused
    delta_common: float | None  # over the tasks both have
    common_baseline: float | None
    common_candidate: float | None
    alignment: Alignment
    verdict: Verdict | None  # on these tasks: improved, regressed, equivalent, inconclusive
    verdict_new_tasks: Verdict | None  # on new tasks like these
    margin: float  # of equivalence, in points of score: a setting, whatever the rows
    power: Power | None
    tests: tuple[Tested, ...] = ()
    bridge: tuple[Term, ...] = ()  # the default view: its values add up to delta
    bridge_note: str = ""
    views: tuple[View, ...] = ()
    movers: tuple[Mover, ...] = ()
    flips: tuple[Flip, ...] = ()  # the surest, ranked; `churn` counts all
    churn: Churn | None = None
    sure: SureFlips | None = None
    transitions: tuple[Transition, ...] = ()
    shifts: tuple[Shift, ...] = ()
    derived: tuple[Derived, ...] = ()
    config_diff: tuple[Setting, ...] = ()
    separable: bool | None = None  # False: several settings changed at once
    missing_run: str = ""  # the run that would separate them
    identical: bool = False  # the runs hold the same rows
    refused: str | None = None  # why there is no comparison
    notes: tuple[str, ...] = ()
    p_adjusted: Share | None = None  # on these tasks, over all candidates compared with one baseline
    p_adjusted_new: Share | None = None
    quick: bool = False  # from the columns alone: no trace was read


class Placed(msgspec.Struct, frozen=True):
    """A run among several: its score against what it costs."""

    run: str
    score: float | None  # over the tasks that all runs have
    cost: float | None  # mean dollars of a rollout
    tokens: float | None  # mean output tokens of a rollout
    on_front_cost: bool | None  # no other run is better and cheaper; None: not reported
    on_front_tokens: bool | None


class Alone(msgspec.Struct, frozen=True):
    """A task that one run alone ever solves."""

    run: str
    task: str
    task_name: str
    passes: Count
    repeats: Count
    others: Count  # repeats of the other runs, none of which passes
    p_chance: Share  # that so many passes, dealt to the runs at random, all fall to one run


class Matrix(msgspec.Struct, frozen=True):
    """Several runs against one another."""

    runs: tuple[str, ...]
    n_tasks: Count  # that all of them have
    verdicts: tuple[tuple[PairVerdict, ...], ...]  # row against column, on new tasks; "" on the diagonal
    deltas: tuple[tuple[float | None, ...], ...]
    p_adjusted: tuple[tuple[float | None, ...], ...]
    placed: tuple[Placed, ...]
    only_one: Mapping[str, tuple[str, ...]]  # run -> tasks that it alone ever solves
    none_solves: tuple[str, ...]
    all_solve: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()  # setting -> what the runs together say of its effect
    alone: tuple[Alone, ...] = ()  # of `only_one`, the surest of each run
    # run -> tasks it alone would solve if the passes of each task were dealt anew
    expected_alone: Mapping[str, float] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Checkpoint(msgspec.Struct, frozen=True):
    run: str
    score: float
    change: float | None  # against the first
    low: float | None
    high: float | None
    p_adjusted: Share | None


class Series(msgspec.Struct, frozen=True):
    """Checkpoints in order."""

    runs: tuple[str, ...]
    n_tasks: Count
    slope: float | None  # points of score a checkpoint, over tasks
    low: float | None
    high: float | None
    p: Share | None
    checkpoints: tuple[Checkpoint, ...]
    first_different: str | None
    learned: tuple[tuple[str, float], ...]  # task, posterior probability
    forgotten: tuple[tuple[str, float], ...]
    n_learned: int = 0  # those above the limit of the list included
    n_forgotten: int = 0
    null_learned: float | None = None  # tasks that would be told so if labels of rollouts meant nothing
    null_forgotten: float | None = None  # likewise
    notes: tuple[str, ...] = ()


class Checked(msgspec.Struct, frozen=True):
    """One line of a gate."""

    candidate: str
    metric: str
    tier: Tier  # critical, supporting, advisory
    verdict: GateVerdict  # PASS, WARN, FAIL, INCONCLUSIVE
    text: str
    waived: str = ""  # why a failure is let pass, and until when
    baseline: float | None = None  # the metric itself
    value: float | None = None
    change: float | None = None
    low: float | None = None  # 95% interval of the change
    high: float | None = None
    bound: float | None = None  # how much worse it may be: one-sided 95% bound of the change
    allowed: float | None = None  # how much worse it is allowed to be
    n: Count | None = None  # tasks
    remark: str = ""  # of a query: that it meets no rollout, or names what no row has; stands in `text` too


class Gate(msgspec.Struct, frozen=True):
    policy: str  # where it was read
    verdict: GateVerdict
    checks: tuple[Checked, ...]
    notes: tuple[str, ...] = ()
    baseline: str = ""
    question: str = "new tasks"  # that the policy asks: these tasks or new tasks
