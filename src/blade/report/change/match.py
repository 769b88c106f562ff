"""Say how far two runs can be compared: which tasks they share, which settings differ."""

from __future__ import annotations

from blade import hostile, number_format
from blade.model import Comparison, Setting
from blade.report import numbers, places, queries
from blade.report.blocks import Badge, Block, Code, Line, Para, Span, Strong, Table, cells, para
from blade.report.change import words as say
from blade.report.change.sentences import sentence
from blade.report.change.verdict import pair

MAX_SETTINGS = 40
KINDS = (
    ("common", "in both runs, compared"),
    ("added", "only in the candidate"),
    ("removed", "only in the baseline"),
    ("modified", "same key, other content: not compared"),
    ("missing_baseline", "expected of the baseline, without a scored row there"),
    ("missing_candidate", "expected of the candidate, without a scored row there"),
)


def comparability(comparison: Comparison, file: str) -> list[Block]:
    """The tasks that can be compared, then the settings that changed with the model."""
    blocks: list[Block] = [] if comparison.refused is None else [Para(_refused(comparison))]
    return [*blocks, *_tasks(comparison), *_settings(comparison, file)]


def _refused(comparison: Comparison) -> Line:
    query = f"{say.query(comparison)}.refused"
    return (Strong("Refused: "), *sentence(comparison.refused or "", query, names=pair(comparison)))


def _tasks(comparison: Comparison) -> list[Block]:
    found, query = comparison.alignment, f"{say.query(comparison)}.alignment"
    rows = []
    for name, means in KINDS:
        keys: tuple[str, ...] = getattr(found, name)
        listed = places.names(keys, f"{query}.{name}.count") if keys else (number_format.NONE,)
        rows.append(cells(means, numbers.whole(len(keys), f"{query}.{name}.count"), listed))
    matched = numbers.said(found.matched_by, f"{query}.matched_by", 200)
    blocks: list[Block] = [
        para("Tasks were matched by ", matched if matched.text else "nothing: no task was matched", "."),
        Table(("Tasks", "n", "First keys"), tuple(rows), "lrl"),
    ]
    if say.is_partial(comparison) and found.common:
        blocks.append(Para(_common_only(comparison)))
    if found.changed_fields:
        told = places.names(found.changed_fields, f"{query}.changed_fields.count")
        blocks.append(para("Tasks with the same key that are not the same differ in ", *told, "."))
    if found.changed_everywhere:
        told = places.names(found.changed_everywhere, f"{query}.changed_everywhere.count")
        blocks.append(
            para("Different in nearly all tasks, so treated as a change of template or format: ", *told, ".")
        )
    return blocks


def _common_only(comparison: Comparison) -> Line:
    """That the verdicts are about a part of the tasks."""
    found, query = comparison.alignment, f"{say.query(comparison)}.alignment"
    both = len(found.common) + len(found.modified)
    n_a = both + len(found.removed) + len(found.missing_candidate)
    n_b = both + len(found.added) + len(found.missing_baseline)
    of_a, of_b = (
        numbers.whole(n, queries.measure("tasks", run, "not masked"))
        for n, run in ((n_a, comparison.baseline), (n_b, comparison.candidate))
    )
    return (
        Strong("Common tasks only: "),
        "the verdicts are about ",
        numbers.whole(len(found.common), f"{query}.common.count"),
        " of the baseline's ",
        of_a,
        " and of the candidate's ",
        of_b,
        " tasks. The effect of the other tasks on the score is a separate term of the bridge.",
    )


def _settings(comparison: Comparison, file: str) -> list[Block]:
    diff = comparison.config_diff
    blocks: list[Block] = []
    if diff:
        rows = tuple(_setting(one) for one in diff[:MAX_SETTINGS])
        header = ("Setting that differs", "Baseline", "Candidate", "Kind", "Can move the score by itself")
        blocks.append(Table(header, rows, "lllll"))
        every = f"{say.query(comparison)}.config_diff.count"
        blocks += places.left_out(len(diff), len(rows), "setting", every, file)
    return [*blocks, Para(separability(comparison))]


def _setting(one: Setting) -> tuple[Line, ...]:
    mark: Span = Badge("mechanical", "warning") if one.mechanical and one.counts else number_format.NONE
    return cells(
        Code(hostile.line(one.key, 80)),
        _value(one.baseline),
        _value(one.candidate),
        numbers.name(hostile.line(one.kind, 40)),
        mark,
    )


def _value(value: str | None) -> Span:
    return Code(hostile.line(value, 120)) if value is not None else "not stated"


def separability(comparison: Comparison) -> Line:
    """Whether the change can be laid to one setting, and the run that would tell."""
    query = f"{say.query(comparison)}.config_diff"
    known = [one for one in comparison.config_diff if one.known and one.counts]
    unknown = [one.key for one in comparison.config_diff if not one.known]
    n_known, n_unknown = f"{query}(known=True, counts=True).count", f"{query}(known=False).count"
    if not comparison.config_diff:
        return (
            "No setting that the files state differs between the runs. What no file states (a harness, an "
            "image, a machine) may still differ.",
        )
    if comparison.separable is False:
        keys = places.names([one.key for one in known] or unknown, n_known if known else n_unknown)
        run = sentence(comparison.missing_run, f"{say.query(comparison)}.missing_run", names=pair(comparison))
        ask: Line = (" The run that would separate them: ", *run) if run else ()
        return (
            Strong("Not separable: "),
            *keys,
            " changed together, so these runs cannot say which of them moved the score.",
            *ask,
        )
    said: Line = ("No setting that both runs state and that can move a score differs.",)
    if known and comparison.separable:
        said = (
            Strong("Separable: "),
            Code(hostile.line(known[0].key, 80)),
            " is the only stated setting that changed and can move the score. What no file states may still "
            "differ.",
        )
    elif known:
        verb = "differs" if len(known) == 1 else "differ"
        stated = numbers.count(len(known), "stated setting", n_known)
        said = (*stated, f" of the table {verb} between the runs.")
    if unknown:
        said += (" Stated by one run only, so unknown: ", *places.names(unknown, n_unknown), ".")
    return said
