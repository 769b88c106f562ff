"""Compare loaded runs: why their scores differ, and whether a gate accepts that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import combinations
from pathlib import Path

from msgspec.structs import replace

from blade import compare as stage
from blade.compare.alignment import group_of
from blade.compare.gate import judge
from blade.compare.gate_policy import Policy
from blade.errors import UsageError
from blade.formats import run_splits
from blade.formats.assemble import Assembled
from blade.model import Gap, Outcome, Report, Side
from blade.pipeline import report_pages, stages
from blade.pipeline.comparison_sides import column_sides
from blade.pipeline.load import Loaded
from blade.pipeline.run_tables import ground_of
from blade.pipeline.stages import Clock
from blade.query import select
from blade.query.measures import by_task, measure_of
from blade.query.query_ground import unknown
from blade.tables.index import Watcher

MARGIN = stage.MARGIN
MAX_PAIRWISE = 40  # runs up to which every pair is compared
_FIELDS = "blade fields RUN lists what a query can name; try it with blade query RUN"
_NAMING = ("id", "text")  # fields that tell one task from all others; answers are often the same


def compare(
    loaded: Sequence[Loaded], command: str, *, threshold: float | None = None, margin: float = MARGIN,
    baseline: str | None = None, ordered: bool = False, quick: bool = False, policy: Policy | None = None,
    watcher: Watcher | None = None, clock: Clock | None = None,
) -> Report:
    """Every run against the baseline, all against one another, and in order where they are checkpoints."""
    loaded = stages.baseline_first(loaded, baseline)
    threshold = shared_threshold(loaded, threshold)
    scored = [report_pages.scoring_of(entry, threshold) for entry in loaded]
    answers = _answers(policy, loaded, threshold) if policy is not None else None
    if quick:
        report, sides = report_pages.listed(loaded, scored, command), column_sides(loaded, scored)
        unread = Gap("health of each run, behaviours and most failure modes", "no trajectory was read, as asked")
        report = replace(report, gaps=(unread, *report.gaps))
    else:
        report, sides = stages.diagnosed(loaded, scored, command, watcher, clock)
    if margin >= 1 and all(side.is_bounded for side in sides):
        raise UsageError(f"--margin {margin:g} is as wide as the score", "give a fraction such as 0.03", "bad-margin")
    report = with_comparisons(report, sides, margin, ordered, quick)
    if policy is None or answers is None:
        return report
    coverages = {
        run.name: (run.coverage.scored - run.outcomes.get(Outcome.MALFORMED, 0), run.coverage.expected)
        for run in report.runs
    }
    values, remarks = answers
    gate = judge(
        policy, report.comparisons, coverages, date.today(), {side.run: side for side in sides},  # waivers expire
        lambda query, run: values[query, run], remarks,
    )  # fmt: skip
    return replace(report, gate=gate)


def shared_threshold(loaded: Sequence[Loaded], threshold: float | None) -> float | None:
    """The reward at which rows of every run pass; None where the runs are scored alike by themselves.

    Whether a run is told by its pass rate hangs on how many of its rows reach 1. Where runs differ in that,
    all are judged at 1.
    """
    if threshold is not None:
        return threshold
    return 1.0 if len({report_pages.scoring_of(entry, None).score_name for entry in loaded}) > 1 else None


def with_comparisons(
    report: Report, sides: Sequence[Side], margin: float = MARGIN, ordered: bool = False, quick: bool = False
) -> Report:
    """The report with the comparisons of its runs, the first being the baseline."""
    if len(sides) < 2:
        return report
    first, *others = sides
    comparisons = stage.adjusted([replace(stage.compare(first, other, margin), quick=quick) for other in others])
    pairs = {(pair.baseline, pair.candidate): pair for pair in comparisons}
    matrix, gaps = None, report.gaps
    if len(sides) > MAX_PAIRWISE:
        why = f"{len(sides)} runs make too many pairs; each is compared with the baseline"
        gaps = (*gaps, Gap("every run against every other", why))
    elif len(sides) > 2:
        for a, b in combinations(others, 2):
            pairs[a.run, b.run] = stage.brief(a, b, margin)
        deltas: dict[tuple[str, str], tuple[float | None, float | None, float | None]] = {}
        for names, pair in pairs.items():
            new = next((test for test in pair.tests if test.question == "new tasks"), None)
            deltas[names] = (pair.delta_common, *((new.low, new.high) if new is not None else (None, None)))
        matrix = replace(stage.matrix(sides, pairs), settings=stage.effects(sides, deltas))
    series = stage.series(sides, pairs) if ordered else None
    return replace(report, comparisons=tuple(comparisons), matrix=matrix, gaps=gaps, series=series)


def split_runs(loaded: Sequence[Loaded], field: str) -> list[Loaded]:
    """One run as several, by the value of a field of its rows."""
    if len(loaded) != 1:
        names = ", ".join(entry.name for entry in loaded[:4])
        hint = "give a single rollouts file, or compare the runs without --by"
        raise UsageError(f"--by splits one run, and {len(loaded)} were given: {names}", hint, "compare-by")
    entry = loaded[0]
    shared = {key: value for key, value in entry.settings.items() if key not in entry.run.settings}
    unplaced = entry.run.coverage.failed + entry.run.coverage.lost
    gaps = entry.gaps
    if unplaced:
        why = f"{unplaced:,} expected rollouts left no row, so nothing says which part they belong to"
        gaps = (*gaps, Gap(f"coverage of the parts of {entry.name}", why))
    parts = run_splits.split(entry.run, field)
    if not _share_tasks(parts):
        why = f"{field} does not vary within the tasks of {entry.name}: the parts would have no task in common"
        raise UsageError(why, "--by needs a field that varies within tasks, such as skills_ref.hash", "cannot-split")
    return [
        replace(entry, name=part.rollouts.run, run=part, settings={**shared, **part.settings}, gaps=gaps, reported=())
        for part in parts
    ]


def _share_tasks(parts: Sequence[Assembled]) -> bool:
    """Is any task in two parts, by its key, or by its id or question under a key of its own."""
    keys = [part.rollouts.task_keys for part in parts]
    if len(set().union(*keys)) < sum(map(len, keys)):
        return True
    seen: set[tuple[str, int]] = set()
    for part in parts:
        prints = run_splits.fingerprints(part).items()
        named = {(name, entry) for name, values in prints if group_of(name) in _NAMING for entry in values.tolist()}
        here = {(name, entry) for name, entry in named if entry}
        if seen & here:
            return True
        seen |= here
    return False


# ---- The gate ------------------------------------------------------------------------------------


def _answers(
    policy: Policy, loaded: Sequence[Loaded], threshold: float | None
) -> tuple[Mapping[tuple[str, str], Mapping[str, float]], Mapping[str, str]]:
    """What the queries of a policy give, by query and run for each task, and names that no row has.

    They are asked before anything else is done: one that is wrong fails at once.
    """
    import duckdb

    values: dict[tuple[str, str], Mapping[str, float]] = {}
    remarks: dict[str, str] = {}
    ground = ground_of(loaded, threshold)
    for query in [limit.query for limit in policy.metrics if limit.query is not None]:
        try:
            for run in ground.runs:
                values[query, run] = by_task(query, run, ground.connection)
            measure = measure_of(query)
            sql = f"select 1 from rollouts where ({measure.where or 'true' if measure else 'true'})"
            used = select.tables_in(select.parsed(sql, ground.connection(False)))
            # names that no row of any run has
            remarks[query] = "; ".join(unknown(query, ground.connection(bool(used & select.OF_TRACES))))
        except UsageError as error:
            raise _bad_query(policy.path, query, error.message, error.hint) from error
        except duckdb.Error as error:
            first, *lines = str(error).splitlines() or ["the query failed"]
            names = next((line for line in lines if line.startswith(("Did you mean", "Candidate"))), "")
            raise _bad_query(policy.path, query, first.partition("Error: ")[2] or first, names.strip()) from error
    return values, remarks


def _bad_query(path: str, query: str, message: str, hint: str) -> UsageError:
    return UsageError(
        f"the policy {path} cannot be used: metric {query!r}: {message}",
        f"{hint}; blade fields RUN lists what a query can name" if hint else _FIELDS,
        "bad-query",
    )


def apart(runs: Sequence[str]) -> tuple[str, ...]:
    """The runs as they were given; one that is given twice is compared with itself under a second name."""
    names: list[str] = []
    for run in runs:
        again = run in names and "=" not in run
        names.append(f"{Path(run).name.split('.')[0]} again={run}" if again else run)
    return tuple(names)
