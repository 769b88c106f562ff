"""`blade eval profile` and `aggregate`: statistics of every task, agent and repeat; shards into one run. No server is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli import env
from blade.cli.options import force_option, json_option, stack, threshold_option
from blade.cli.output import notice
from blade.errors import UsageError
from blade.hostile import line

if TYPE_CHECKING:
    from blade_eval.aggregate.shards import Whole
    from blade_eval.config import Resolved
    from blade_eval.environment import Environment
    from blade_eval.profile import Duplicates, Profiled
    from blade_eval.profile.scores import Estimate, Score

_KEYS = {
    "materialized_inputs_jsonl_fpath": "inputs", "rollouts_jsonl_fpath": "rollouts",
    "allow_partial_rollouts": "allow_partial",
}  # fmt: skip
_SHARD_KEYS = {"input_glob": "globs", "output_jsonl_fpath": "output", "merge_shards": "merge"}
_FEW = 8  # values of k, each on a line of its own
_MOST = 200  # missing keys in JSON are all told; on a terminal so many
_MOST_OF_AGENT = 20  # of those of one agent of several shards


# The options that say how rows are counted and printed, for both commands that do so.
counting = stack(
    click.option(
        "--duplicates", type=click.Choice(["error", "first", "last"]), default="error", show_default=True,
        help="Which of two rows with the same key and other content counts.",
    ),
    click.option("--metrics", metavar="FILE.py", help="A file whose `metrics(tasks)` adds metrics of your own."),
    threshold_option("A row passes at reward >= X: 1.", 1.0),
    json_option(),
    env.OVERRIDES,
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
    lines: list[str] = []
    for score in scores:
        without = f", {score.n_without} without a reward" if score.n_without else ""
        masked = f", {score.n_masked} masked" if score.n_masked else ""
        lines.append(f"{line(score.agent, 80)}: {score.mean.n_tasks} tasks, {score.n_rows} rollouts{without}{masked}")
        if not score.passing:
            continue
        if not score.is_binary:
            lines.append(f"  mean reward  {_estimate(score.mean)}; a row passes at reward >= {score.threshold:g}")
        most = len(score.passing)  # every k where they are few; of many 1, 2, 4, 8 ... and the largest: JSON has all
        powers = {1 << power for power in range(most.bit_length())}
        shown = range(1, most + 1) if most <= _FEW else sorted(powers | {most})
        lines += [f"  pass@{k:<8} {_estimate(score.passing[k - 1])}" for k in shown]
        if score.variance:
            icc = "-" if score.variance.icc is None else f"{score.variance.icc:.3f}"
            parts = f"within tasks {score.variance.within:.4f}, between tasks {score.variance.between:.4f}, ICC {icc}"
            lines.append(f"  variance     of rewards {parts}")
        always, sometimes, never = score.buckets
        lines.append(f"  tasks        {always} always pass, {sometimes} sometimes, {never} never")
    return lines


def _estimate(estimate: Estimate) -> str:
    tail = f"n = {estimate.n_tasks} tasks"
    if estimate.interval is None:
        return f"{estimate.value:.4f}  no interval, {tail}"
    low, high, method = estimate.interval
    return f"{estimate.value:.4f}  95% [{low:.4f}, {high:.4f}] ({method}), {tail}"


# ---- Shards ----------------------------------------------------------------------------------------


@click.command(short_help="Merge the shards of a run and sum it up; no server is needed.")
@env.config_options
@click.option("--input-glob", "-i", "globs", multiple=True, metavar="GLOB[,GLOB]", help="The shards; quote it.")
@click.option("--output", "-o", metavar="FILE", help="The merged rollouts; its sidecars go beside it.")
@click.option("--no-merge", is_flag=True, help="Write the metrics alone (also merge_shards=false).")
@force_option("Replace an output that holds other rows, or is itself one of the shards.")
@counting
def aggregate(
    globs: tuple[str, ...], output: str | None, no_merge: bool, duplicates: Duplicates, force: bool, metrics: str | None,
    pass_threshold: float, as_json: bool, overrides: tuple[str, ...], **flags: Any,
) -> None:  # fmt: skip
    """Write the rows of all shards in order, their inputs and failures, and _aggregate_metrics.json.

    No server is asked and no configuration needed. Where the run's is named (--resources-server,
    --benchmark, --config), its environment adds what it adds in `eval run`: pass@k, majority@k.

    Where the shards have their _materialized_inputs.jsonl, every rollout that was expected is accounted
    for: expected = scored + failed + masked + lost, and what is missing is named.
    """
    from blade_eval.aggregate import shards
    from blade_eval.profile import scores as scoring

    ours = tuple(word for word in overrides if word.lstrip("+").partition("=")[0] in _SHARD_KEYS)
    environments = _environments(flags, tuple(word for word in overrides if word not in ours))
    settings = overridden(ours, _SHARD_KEYS, {"output": output})
    patterns = [pattern for pattern in (*globs, settings.get("globs")) if pattern]
    if not patterns or not settings.get("output"):
        lacks = "--output" if patterns else "--input-glob"
        raise UsageError(f"{lacks} is missing", "`blade eval aggregate --help` shows both", "usage")
    merge = not no_merge and is_true(settings.get("merge") or "true")
    custom = scoring.loaded(Path(metrics)) if metrics else None
    done = shards.merged(
        patterns, Path(settings["output"] or ""), duplicates=duplicates, merge=merge, force=force, hook=custom,
        environment_of=environments.of if environments else None,
    )  # fmt: skip
    done.notices += environments.notices if environments else []
    print_notices(done.notices)
    if as_json:
        document = {
            "shards": [str(path) for path in done.shards], "files": [str(path) for path in done.written],
            "rollouts": len(done.rollouts.rows),
            "completeness": [whole.as_json() for whole in done.completeness] or None,
            "missing_shards": [shard.as_json() for shard in done.missing],
            "agents": [score.as_json() for score in done.scores(pass_threshold)], "notices": done.notices,
        }  # fmt: skip
        click.echo(json.dumps(document, indent=2, allow_nan=False))
        return
    lines = [
        f"{len(done.shards)} shard{'s' * (len(done.shards) != 1)}, {len(done.rollouts.rows)} rollouts",
        *_completeness(done.completeness),
        *(f"Not complete: {shard} (of the run of {line(str(shard.beside), 200)})" for shard in done.missing),
        "",
    ]
    lines += [*rendered(done.scores(pass_threshold)), "", *(f"Wrote {path}" for path in done.written)]
    click.echo("\n".join(lines))


def _environments(flags: dict[str, Any], overrides: tuple[str, ...]) -> Environments | None:
    """The environments of a configuration, if one is named; that it has no model is no error."""
    from blade_eval.config import insist, resolved

    wish = env.asked(flags, overrides)
    if not env.has_config(wish):
        overridden(overrides, _SHARD_KEYS, {})  # which refuses each that is not ours
        return None
    config = resolved(wish)
    insist(replace(config, problems=config.of("error")))
    return Environments(config)


class Environments:
    """The environments of a configuration, each built when an agent's rows first ask for it."""

    def __init__(self, config: Resolved) -> None:
        self._config = config
        self._built: dict[str, Environment] = {}
        self.notices: list[str] = []

    def of(self, agent: str) -> Environment | None:
        """That of an agent; None, and noted, where the configuration has none that we could build."""
        from blade_eval import verifiers

        named = self._config.server(agent)
        server = self._config.server(named.named("resources_server")) if named else None
        judges = [judge for judge in self._config.servers if judge.kind == "resources_servers"]
        if server is None and len(judges) == 1:
            server = judges[0]  # the run may have called its agent otherwise
        if server is None or server.implementation not in verifiers.ENVIRONMENTS:
            why = f"the configuration names no resources server of {agent}"
            if server is not None:
                why = f"{server.implementation} is no environment of ours"
            self.notices.append(f"{why}: metrics of its environment are left out")
            return None
        if server.instance not in self._built:
            self._built[server.instance] = verifiers.environment(server.implementation, server.settings)
        return self._built[server.instance]


def _completeness(wholes: Sequence[Whole]) -> list[str]:
    if not wholes:
        return ["Expected: unknown, since no shard has its _materialized_inputs.jsonl"]
    lines = []
    for whole in wholes:
        lines.append(
            f"{line(whole.agent, 80)}: {whole.expected} expected = {whole.scored} scored + {whole.failed} failed "
            f"+ {whole.masked} masked + {whole.lost} lost"
        )
        missing = whole.missing[:_MOST_OF_AGENT]
        lines += [f"  missing {task}:{repeat}, expected by {line(path, 200)}" for task, repeat, path in missing]
        if len(whole.missing) > _MOST_OF_AGENT:
            lines.append(f"  and {len(whole.missing) - _MOST_OF_AGENT} more; --json lists all")
        if whole.unexpected:
            lines.append(f"  {whole.unexpected} rollouts that no input asked for")
    return lines
