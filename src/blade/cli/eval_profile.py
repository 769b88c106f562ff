"""`blade eval profile`: statistics of every task, agent and repeat, beside the rollouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli.env import OVERRIDES
from blade.cli.options import json_option, stack, threshold_option
from blade.cli.output import notice
from blade.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blade_eval.profile import Duplicates, Profiled
    from blade_eval.profile.scores import Estimate, Score

_KEYS = {
    "materialized_inputs_jsonl_fpath": "inputs", "rollouts_jsonl_fpath": "rollouts",
    "allow_partial_rollouts": "allow_partial",
}  # fmt: skip
_FEW = 8  # values of k, each on a line of its own
_MOST = 200  # missing keys in JSON are all told; on a terminal so many


# The options that say how rows are counted and printed, for both commands that do so.
counting = stack(
    click.option(
        "--duplicates", type=click.Choice(["error", "first", "last"]), default="error", show_default=True,
        help="Which of two rows with the same key and other content counts.",
    ),
    click.option("--metrics", metavar="FILE.py", help="A file whose `metrics(tasks)` adds metrics of your own."),
    threshold_option("A row passes at reward >= X: 1.", 1.0),
    json_option(),
    OVERRIDES,
)  # fmt: skip


@click.command(short_help="Statistics of every task, agent and repeat of a run.")
@click.option("--inputs", "--input", "inputs", metavar="FILE", help="The run's _materialized_inputs.jsonl.")
@click.option("--rollouts", "--rollout", "rollouts", metavar="FILE", help="The run's rollouts.")
@click.option("--allow-partial", is_flag=True, help="Profile what is there although rollouts are missing.")
@counting
def profile(
    inputs: str | None, rollouts: str | None, allow_partial: bool, duplicates: Duplicates, metrics: str | None,
    pass_threshold: float, as_json: bool, overrides: tuple[str, ...],
) -> None:  # fmt: skip
    """Write _reward_profiling.jsonl, _agent_metrics.json and _repeat_level_metrics.json beside the rollouts.

    On a complete run the files are those of `gym eval profile`, byte for byte; printed beside them are
    pass@1, pass@k and the variance of each agent, by task and with intervals. Files may be packed
    (.jsonl.gz, .jsonl.zst).
    """
    from blade_eval import profile as profiling
    from blade_eval.profile import scores as scoring

    settings = overridden(overrides, _KEYS, {"inputs": inputs, "rollouts": rollouts})
    for name in ("inputs", "rollouts"):
        if not settings.get(name):
            raise UsageError(f"--{name} is missing", "`blade eval profile --help` shows both", "usage")
    partial = allow_partial or is_true(settings.get("allow_partial") or "")
    custom = scoring.loaded(Path(metrics)) if metrics else None
    done = profiling.profiled(
        Path(settings["inputs"] or ""), Path(settings["rollouts"] or ""), partial, duplicates, custom
    )
    paths = done.write()
    print_notices(done.notices)
    scores = done.scores(pass_threshold)
    if as_json:
        click.echo(json.dumps(_document(done, paths, scores), indent=2, allow_nan=False))
        return
    click.echo("\n".join([*_lines(done, paths), "", *rendered(scores)]))


def overridden(
    overrides: Sequence[str], known: dict[str, str], flags: dict[str, str | None]
) -> dict[str, str | None]:
    """Flags, and the overrides `key=value`, `+key=value`, `++key=value` that say the same."""
    settings = dict(flags)
    for word in overrides:
        key, equals, value = word.lstrip("+").partition("=")
        if not equals or key not in known:
            raise UsageError(f"{word!r} is no setting of this command", f"it takes {', '.join(known)}", "usage")
        settings[known[key]] = value.strip("'\"")
    return settings


def is_true(word: str) -> bool:
    """A truth value as YAML writes it."""
    return word.lower() in ("true", "1", "yes", "on")


def print_notices(notices: Sequence[str]) -> None:
    """What the files held besides rows."""
    for text in notices:
        notice(text, "notice", 400)


def _lines(done: Profiled, paths: Sequence[Path]) -> list[str]:
    n, complete, partial, none = done.tasks()
    share = 100.0 * done.n_came / done.n_expected if done.n_expected else 100.0
    lines = [
        "Profiling outputs:",
        f"Completion: {done.n_came}/{done.n_expected} rollout rows ({share:.2f}%)",
        f"Input rows: {n} total; {complete} complete; {partial} partial; "
        f"{none} without rollouts dropped from output.",
    ]
    if done.n_masked:
        lines.append(f"Masked rollouts: {done.n_masked} left out of all statistics.")
    lines += [str(path) for path in paths]
    missing = done.missing()
    if missing:
        shown = ", ".join(f"{task}:{repeat}" for task, repeat in missing[:_MOST])
        lines.append(f"Missing (task:repeat): {shown}{' ...' if len(missing) > _MOST else ''}")
    return lines


def _document(done: Profiled, paths: Sequence[Path], scores: Sequence[Score]) -> dict[str, Any]:
    n, complete, partial, none = done.tasks()
    return {
        "files": [str(path) for path in paths], "rollouts": done.n_came, "expected": done.n_expected,
        "masked": done.n_masked,
        "tasks": {"total": n, "complete": complete, "partial": partial, "without_rollouts": none},
        "missing": [list(key) for key in done.missing()], "custom": done.custom,
        "agents": [score.as_json() for score in scores], "notices": done.notices,
    }  # fmt: skip


def rendered(scores: Sequence[Score]) -> list[str]:
    """pass@1, pass@k and the variance of each agent."""
    from blade.hostile import line

    lines: list[str] = []
    for score in scores:
        without = f", {score.n_without} without a reward" if score.n_without else ""
        masked = f", {score.n_masked} masked" if score.n_masked else ""
        lines.append(f"{line(score.agent, 80)}: {score.mean.n_tasks} tasks, {score.n_rows} rollouts{without}{masked}")
        if not score.passing:
            continue
        if not score.is_binary:
            lines.append(f"  mean reward  {_estimate(score.mean)}; a row passes at reward >= {score.threshold:g}")
        lines += [f"  pass@{k:<8} {_estimate(score.passing[k - 1])}" for k in _shown(len(score.passing))]
        if score.variance:
            icc = "-" if score.variance.icc is None else f"{score.variance.icc:.3f}"
            parts = f"within tasks {score.variance.within:.4f}, between tasks {score.variance.between:.4f}, ICC {icc}"
            lines.append(f"  variance     of rewards {parts}")
        always, sometimes, never = score.buckets
        lines.append(f"  tasks        {always} always pass, {sometimes} sometimes, {never} never")
    return lines


def _shown(most: int) -> list[int]:
    """Every k where they are few; of many 1, 2, 4, 8 ... and the largest, since JSON has all."""
    if most <= _FEW:
        return list(range(1, most + 1))
    return sorted({1 << power for power in range(most.bit_length())} | {most})


def _estimate(estimate: Estimate) -> str:
    tail = f"n = {estimate.n_tasks} tasks"
    if estimate.interval is None:
        return f"{estimate.value:.4f}  no interval, {tail}"
    low, high, method = estimate.interval
    return f"{estimate.value:.4f}  95% [{low:.4f}, {high:.4f}] ({method}), {tail}"
