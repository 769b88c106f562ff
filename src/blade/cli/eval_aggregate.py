"""`blade eval aggregate`: shards of a run into one run and its aggregate metrics, without servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli import env
from blade.cli.eval_profile import counting, is_true, overridden, print_notices, rendered
from blade.cli.options import force_option
from blade.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blade_eval.aggregate.shards import Merged, Whole
    from blade_eval.config import Resolved
    from blade_eval.environment import Environment
    from blade_eval.profile import Duplicates

_KEYS = {"input_glob": "globs", "output_jsonl_fpath": "output", "merge_shards": "merge"}
_MOST = 20  # missing keys told for an agent on a terminal


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
    from blade.hostile import line
    from blade_eval.aggregate import shards
    from blade_eval.profile import scores

    ours = tuple(word for word in overrides if word.lstrip("+").partition("=")[0] in _KEYS)
    scoring = _scoring(flags, tuple(word for word in overrides if word not in ours))
    settings = overridden(ours, _KEYS, {"output": output})
    patterns = [pattern for pattern in (*globs, settings.get("globs")) if pattern]
    if not patterns or not settings.get("output"):
        lacks = "--output" if patterns else "--input-glob"
        raise UsageError(f"{lacks} is missing", "`blade eval aggregate --help` shows both", "usage")
    merge = not no_merge and is_true(settings.get("merge") or "true")
    custom = scores.loaded(Path(metrics)) if metrics else None
    done = shards.merged(
        patterns, Path(settings["output"] or ""), duplicates=duplicates, merge=merge, force=force, hook=custom,
        environment_of=scoring.of if scoring else None,
    )  # fmt: skip
    done.notices += scoring.notices if scoring else []
    print_notices(done.notices)
    if as_json:
        click.echo(json.dumps(_document(done, pass_threshold), indent=2, allow_nan=False))
        return
    lines = [
        f"{len(done.shards)} shard{'s' * (len(done.shards) != 1)}, {len(done.rollouts.rows)} rollouts",
        *_completeness(done.completeness),
        *(f"Not complete: {shard} (of the run of {line(str(shard.beside), 200)})" for shard in done.missing),
        "",
    ]
    lines += [*rendered(done.scores(pass_threshold)), "", *(f"Wrote {path}" for path in done.written)]
    click.echo("\n".join(lines))


def _scoring(flags: dict[str, Any], overrides: tuple[str, ...]) -> Scoring | None:
    """The environments of a configuration, if one is named; that it has no model is no error."""
    from dataclasses import replace

    from blade_eval.config import insist, resolved

    wish = env.asked(flags, overrides)
    if not env.has_config(wish):
        overridden(overrides, _KEYS, {})  # which refuses each that is not ours
        return None
    config = resolved(wish)
    insist(replace(config, problems=config.of("error")))
    return Scoring(config)


class Scoring:
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
    from blade.hostile import line

    if not wholes:
        return ["Expected: unknown, since no shard has its _materialized_inputs.jsonl"]
    lines = []
    for whole in wholes:
        lines.append(
            f"{line(whole.agent, 80)}: {whole.expected} expected = {whole.scored} scored + {whole.failed} failed "
            f"+ {whole.masked} masked + {whole.lost} lost"
        )
        missing = whole.missing[:_MOST]
        lines += [f"  missing {task}:{repeat}, expected by {line(path, 200)}" for task, repeat, path in missing]
        if len(whole.missing) > _MOST:
            lines.append(f"  and {len(whole.missing) - _MOST} more; --json lists all")
        if whole.unexpected:
            lines.append(f"  {whole.unexpected} rollouts that no input asked for")
    return lines


def _document(done: Merged, threshold: float) -> dict[str, Any]:
    return {
        "shards": [str(path) for path in done.shards], "files": [str(path) for path in done.written],
        "rollouts": len(done.rollouts.rows), "completeness": [whole.as_json() for whole in done.completeness] or None,
        "missing_shards": [shard.as_json() for shard in done.missing],
        "agents": [score.as_json() for score in done.scores(threshold)], "notices": done.notices,
    }  # fmt: skip
