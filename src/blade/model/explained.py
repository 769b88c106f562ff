"""What is made of it: findings, signatures, mechanisms, contrasts, causes, recommendations."""

from __future__ import annotations

import msgspec

from blade.model.measured import Evidence
from blade.model.words import Cause, Confidence


class Finding(msgspec.Struct, frozen=True):
    """Something the rows show, with where they show it."""

    id: str
    run: str
    detector: str
    task: str
    repeat: int | None
    summary: str
    severity: int  # 0 note .. 3 breaks the score
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    cause: Cause = Cause.UNDETERMINED

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"finding {self.id} has no evidence")


class Found(msgspec.Struct, frozen=True):
    """A finding and where it belongs."""

    finding: Finding
    detail: str  # the tool, field or limit concerned
    position: int  # of the row in `Rollouts`


class Suspicion(msgspec.Struct, frozen=True):
    """What speaks against a task or its verifier."""

    task: str
    flag: str
    points: int
    cause: Cause  # TI or DA
    text: str
    evidence: tuple[Evidence, ...]


class Rule(msgspec.Struct, frozen=True):
    """What a detector looks for, told to a reader."""

    name: str
    number: str  # in the catalogue of behaviours: B12
    rule: str  # when it fires, in a sentence or two
    cause: Cause  # the likely root cause if it explains a failure
    otherwise: str  # when another cause is likelier, in words; may be empty
    procedural: bool  # how the model went about it, rather than what it knew
    needs: tuple[str, ...]  # what it cannot do without, in words
    kind: str  # of intervention: harness, prompt, training, data, verifier, infrastructure
    remedy: str  # what to change; {tool} and {detail} are filled from the findings
    terminal: bool = False  # it makes the reward 0 by construction, so its gain is an upper bound


class Behaviour(msgspec.Struct, frozen=True):
    """How often a detector fires among failures and among passes, and whether that makes it a cause."""

    run: str
    detector: str
    n_rollouts: int  # rollouts it fires on
    n_tasks: int
    in_fail: int  # of `of_fail` failing rollouts
    of_fail: int
    in_pass: int
    of_pass: int
    odds_ratio: float | None  # of failing with it against without, within tasks (Mantel-Haenszel)
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    standing: str  # cause, style, unproven


class Signature(msgspec.Struct, frozen=True):
    """Error texts that say the same thing."""

    id: str
    run: str
    kind: str  # the class: an exception type, an HTTP class, a code of the verifier; `class` on the wire
    template: str
    source: str  # where the text stands: a field, or `tool NAME`
    n_rollouts: int
    n_tasks: int
    n_failed: int  # of these rollouts, how many fail
    n_exact: int  # distinct masked texts under the template
    spread: str  # systemic, idiosyncratic, flaky
    slice: str | None  # `field=value` in which it is concentrated
    slice_ratio: float | None  # rate inside : rate outside
    slice_p_adjusted: float | None
    rollouts: tuple[tuple[str, int], ...]  # task, repeat
    evidence: tuple[Evidence, ...]


class Meaning(msgspec.Struct, frozen=True):
    """What a value of a verifier field means, and how well the rows support it."""

    run: str
    field: str
    value: str  # as quoted in the rows
    cause: Cause | None  # None: a restatement of the reward, or nothing to blame
    mode: str  # in words
    origin: str  # blade.toml, known, proposed
    n_rollouts: int
    n_passed: int
    n_tasks: int


class Mechanism(msgspec.Struct, frozen=True):
    """A condition on rollouts that goes with failing, found in the rows themselves."""

    id: str
    run: str
    text: str
    predicate: str  # for a program: e.g. `never_calls(get_x) within gold_has(exchange_x)`
    n_with: int
    pass_with: float
    n_without: int
    pass_without: float
    low: float | None  # 95% interval of the difference pass_without - pass_with
    high: float | None
    p: float | None
    p_adjusted: float | None
    within_task: bool  # tested among repeats of the same tasks
    control: str  # how difficulty was held fixed, in words
    standing: str  # mechanism, lead
    share_of_failures: float  # failing rollouts it covers, of all failing rollouts
    actionable: str  # the tool, field or setting concerned
    rollouts: tuple[tuple[str, int], ...]  # task, repeat: failing rollouts that show it
    evidence: tuple[Evidence, ...]
    explains: bool = False  # something the rollout did or left undone, rather than how it reads
    near_reward: bool = False  # comes close to restating the reward
    feature: str = ""  # the parts of `predicate`, to look it up elsewhere
    condition: str = ""
    absent: bool = False  # it is the absence of the feature that goes with failing


class Contrast(msgspec.Struct, frozen=True):
    """What sets passing from failing rollouts: of one task, or over all tasks that do both."""

    id: str
    run: str
    task: str | None
    feature: str
    in_pass: float
    in_fail: float
    n_pass: int
    n_fail: int
    p: float | None
    p_adjusted: float | None
    text: str
    other_run: str | None  # the run the passes were borrowed from
    evidence: tuple[Evidence, ...]


class Divergence(msgspec.Struct, frozen=True):
    """Where a failing rollout leaves the passing one that is most like it."""

    run: str
    task: str
    repeat: int
    position: int  # of the failing row in `Rollouts`
    passer: int  # repeat of the passing rollout
    passer_run: str  # another run, where the passes were borrowed
    step: int  # the last parting that nothing later makes good
    passer_step: int
    does: str  # what each side does there, as a verb phrase
    passer_does: str
    first_step: int  # the first parting
    first_passer_step: int
    distance: float  # acts that differ, of the longer side
    fitness: float  # transitions of the failing rollout that passing ones make too
    missing: tuple[str, ...]  # tools that nearly all passing rollouts use and this one does not
    unusual: tuple[str, ...]  # transitions that hardly any passing rollout makes: `a > b`
    evidence: tuple[Evidence, ...]  # the failing side, then the passing side


ENDS = "no rule finds an earlier step; the rollout ends here"  # the reason of a step that nothing points to


class Blame(msgspec.Struct, frozen=True):
    """A step that may have decided a rollout."""

    step: int
    weight: float
    reason: str


class Located(msgspec.Struct, frozen=True):
    """Where one failing rollout went wrong."""

    task: str
    repeat: int
    position: int  # in `Rollouts`
    step: int | None  # None: the candidates disagree
    steps: tuple[Blame, ...]  # ranked, at most three
    evidence: tuple[Evidence, ...]


class Attribution(msgspec.Struct, frozen=True):
    """The root cause of one failed task, with its grounds."""

    id: str
    run: str
    task: str
    cause: Cause
    confidence: float
    mode: str
    mechanism: str  # what happened, in a sentence
    repeat: int | None  # the rollout that shows it best
    step: int | None
    steps: tuple[Blame, ...]
    grounds: tuple[str, ...]
    against: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    lost: float  # points of score this task loses
    judged_by: str = ""  # who gave the cause, where a judgement stands in for the engine's proposal
    proposed: Cause | None = None  # what the engine proposes instead
    proposed_confidence: float | None = None
    disputed: bool = False  # several authors judged it, and not alike


class RunCause(msgspec.Struct, frozen=True):
    """A cause that concerns the run as a whole."""

    run: str
    cause: Cause
    mode: str
    text: str
    n_rollouts: int
    lost: float
    score_without: float | None
    n_without: int  # tasks left in `score_without`
    evidence: tuple[Evidence, ...]


class Gain(msgspec.Struct, frozen=True):
    """What an intervention could win, in points of score."""

    low: float
    point: float
    high: float


class Recommendation(msgspec.Struct, frozen=True):
    """What to change, and what it could win."""

    rank: int
    run: str
    kind: str  # harness, prompt, training, data, verifier, infrastructure
    action: str
    cause: Cause
    mode: str
    gain: Gain
    is_measurement: bool  # repairs the measurement rather than the model
    effort: str  # config, prompt, harness, verifier, data, training
    basis: str  # how the gain was estimated, in words
    tasks: tuple[str, ...]
    evidence: tuple[Evidence, ...]
