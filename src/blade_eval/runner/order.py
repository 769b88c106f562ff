"""Carry out a run as it was ordered: rows, files, agents, collection, metrics, manifest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from blade.errors import BladeError, NothingToRead, UsageError
from blade_eval import config, verifiers
from blade_eval.config import Asked, Dataset, Resolved, resolve
from blade_eval.environment import Environment, Row
from blade_eval.runner import collect, inputs, manifest, places, prepared, prompts, skills, summed
from blade_eval.runner.begun import Begun, begun
from blade_eval.runner.collect import Plan, Runner, Summary
from blade_eval.runner.inputs import Source, Wanted
from blade_eval.runner.interrupt import Stop
from blade_eval.runner.kept import cannot_write
from blade_eval.runner.places import Places
from blade_eval.runner.progress import Progress

_SPLITS = ("benchmark", "validation", "train", "example")  # of several, the first that there is
Notice = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """What the command asks for."""

    output: Path
    asked: Asked
    input: Path | None = None
    is_served: bool = True  # by this process; else by servers that run already
    split: str | None = None
    wanted: Wanted = field(default_factory=Wanted)
    prompt: str | None = None
    skills: str | None = None
    concurrency: int = 64
    attempts: int = collect.ATTEMPTS
    max_steps: int | None = None
    resume: bool = False
    force: bool = False
    sums_up: bool = True
    head_url: str | None = None
    command: tuple[str, ...] = ()
    retry_wait_s: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    summary: Summary
    places: Places
    aggregate: Path | None


@dataclass(frozen=True)
class _Set:
    """An order with its files found: where the rows come from, and who runs them."""

    sources: tuple[Source, ...]
    wanted: Wanted
    agents: tuple[str, ...]
    resolved: Resolved | None


async def carried_out(order: Order, progress: Progress, notice: Notice, stop: Stop | None = None) -> Outcome:
    """Run it to its end, or as far as it comes; whatever ends it, the manifest says so."""
    at = places.usable(places.beside(order.output))
    ready = _set(order, notice)
    async with _runner(order, ready) as (run, known):
        for told in resolve.self_judged(known.servers):
            notice(told.told())
        identity = _identity(order, ready, known)
        rows = inputs.materialized(ready.sources, ready.wanted, notice)
        opened = begun(
            at, rows, identity, resume=order.resume, force=order.force, notice=notice, seen=progress.seen
        )
        progress.expected = opened.expected
        progress.given_up = opened.standing.n_given_up(order.attempts)
        progress.asked_again = getattr(run, "retried", progress.asked_again)
        plan = Plan(
            at, run, opened.kept, opened.standing, opened.expected, order.concurrency, order.attempts,
            order.retry_wait_s, progress, stop or Stop(),
        )  # fmt: skip
        summary = await _sat(plan, _manifest(order, ready, known, at, identity, opened))
    made = None
    if order.sums_up and not summary.is_interrupted:
        made = _summed(at, _environments(known), notice)
    return Outcome(summary, at, made)


async def _sat(plan: Plan, told: Row) -> Summary:
    """One sitting: the manifest says that it runs, then how it ended."""
    try:
        _put(plan.places.manifest, told)
        summary = await collect.collected(plan)
        _counted(told, summary, plan.watch.asked_again() if isinstance(plan.watch, Progress) else 0)
    except BaseException:
        with suppress(BladeError):  # what ended the run is told, not that it cannot be written down
            _ended(plan, told, "stopped")
        raise
    _ended(plan, told, "interrupted" if summary.is_interrupted else "finished")
    return summary


def _ended(plan: Plan, told: Row, status: str) -> None:
    if isinstance(plan.watch, Progress):
        plan.watch.close()
    told["sittings"][-1] |= {"status": status, "ended": manifest.now()}
    try:
        plan.kept.close()
    finally:
        _put(plan.places.manifest, told)


def _put(path: Path, told: Row) -> None:
    try:
        manifest.written(path, told)
    except OSError as error:
        raise cannot_write(path, error) from error


def _summed(at: Places, environment_of: Callable[[str], Environment | None], notice: Notice) -> Path | None:
    try:
        return summed.written(at, environment_of)
    except (BladeError, OSError) as error:  # the rollouts are there: their sum can be asked for again
        notice(f"the rollouts could not be summed up: {getattr(error, 'message', error)}")
        return None


def _environments(known: Resolved) -> Callable[[str], Environment | None]:
    """The environment of an agent, where its block is known and BLADE has it."""

    def found(agent: str) -> Environment | None:
        server = known.server(agent)
        judge = known.server(server.named("resources_server")) if server is not None else None
        if judge is None or judge.implementation not in verifiers.ENVIRONMENTS:
            return None
        return verifiers.environment(judge.implementation, judge.settings)

    return found


@asynccontextmanager
async def _runner(order: Order, ready: _Set) -> AsyncIterator[tuple[Runner, Resolved]]:
    """Who runs the rows, and the configuration by which it does."""
    if ready.resolved is not None:
        from blade_eval.runner import served

        async with served.local(ready.resolved, ready.agents, ready.wanted.skills, order.max_steps) as run:
            yield run, ready.resolved
        return
    from blade_eval.servers import client

    async with client.remote(order.head_url or client.HEAD, order.wanted.agent) as remote:
        there, _ = resolve.found_servers(remote.tree, lambda _: "")
        yield remote, Resolved(remote.tree, tuple(there), (), (), (), ())


# -- what is run --------------------------------------------------------------------------------


def _set(order: Order, notice: Notice) -> _Set:
    resolved = _resolved(order, notice) if order.is_served else None
    roots = config.roots(order.asked.search_dirs)
    prompt = None if order.prompt is None else prompts.loaded(config.found(order.prompt, roots))
    wanted = order.wanted
    if order.skills is not None:
        wanted = replace(wanted, skills=_skills(order, roots))
    if resolved is None:
        if order.input is None:
            hint = "name the rows with --input; without --no-serve a benchmark brings its own"
            raise UsageError("--no-serve runs the rows of a file, and none was named", hint, "nothing-to-run")
        if order.asked.overrides:
            notice("with --no-serve the servers have their configuration: this command changes nothing of it")
        source = _source(config.found(order.input, roots), None, None, 1, prompt, notice)
        return _Set((source,), wanted, (), None)
    sources = _sources(order, resolved, roots, prompt, notice)
    named = [wanted.agent] if wanted.agent else [source.agent for source in sources]
    agents = tuple(dict.fromkeys(name for name in named if name))
    if order.input is not None and not wanted.agent:  # rows of one's own may name any agent there is
        agents = tuple(server.instance for server in resolved.agents)
    seeds = wanted.seeds or any(entry.settings.get("num_repeats_add_seed") for entry in resolved.datasets)
    return _Set(sources, replace(wanted, seeds=bool(seeds)), agents, resolved)


def _skills(order: Order, roots: tuple[Path, ...]) -> skills.Skills:
    given = str(order.skills)
    if not order.is_served:
        raise UsageError(
            "an agent behind --no-serve is not known to use skills, so its rows are not stamped with any",
            "leave out --no-serve, so that the built-in agent reads them, or leave out skills.path",
            "skills-unused",
        )
    there = [root / given for root in roots if (root / given).exists()]
    return skills.loaded(given, there[0] if there else Path(given))


def _resolved(order: Order, notice: Notice) -> Resolved:
    asked = order.asked
    if asked.nothing and not (Path.cwd() / "env.yaml").is_file():
        raise UsageError(
            "there is nothing to run",
            "name a benchmark (`blade list benchmarks`) with --benchmark, or --no-serve and --input",
            "nothing-to-run",
        )
    resolved = config.resolved(asked)
    if not asked.model_types and _lacks_model(asked):
        notice("no --model-type was given: openai_model, any OpenAI-compatible server")
        resolved = config.resolved(replace(asked, model_types=("openai_model",)))
    config.insist(resolved)
    for problem in resolved.of("warning"):
        notice(problem.told())
    return resolved


def _lacks_model(asked: Asked) -> bool:
    """Whether nobody says what policy_model is; to change a setting of the default one is not to say it."""
    default = f"{resolve.MODEL}.responses_api_models.openai_model"
    others = tuple(given for given in asked.overrides if not given.lstrip("+").startswith(default))
    found = config.resolved(replace(asked, overrides=others))
    return bool(found.of("model")) and found.server(resolve.MODEL) is None


def _sources(
    order: Order,
    resolved: Resolved,
    roots: tuple[Path, ...],
    prompt: prompts.Prompt | None,
    notice: Notice,
) -> tuple[Source, ...]:
    if order.input is not None:
        agents = [server.instance for server in resolved.agents]
        agent = agents[0] if len(agents) == 1 else None
        return (_source(config.found(order.input, roots), None, agent, 1, prompt, notice),)
    chosen = _datasets(order, resolved)
    found = []
    for entry in chosen:
        path = next(
            (root / str(entry.jsonl_fpath) for root in roots if (root / str(entry.jsonl_fpath)).is_file()),
            None,
        )
        if path is None:
            raise NothingToRead(
                f"the rows of {entry.name} are not there: {entry.jsonl_fpath}",
                "`blade eval prepare` with the same --benchmark or --config makes them",
                "no-input",
            )
        own = prompts.loaded(config.found(entry.prompt_config, roots)) if entry.prompt_config else None
        found.append(_source(path, entry, entry.agent, entry.num_repeats, prompt or own, notice))
    return tuple(found)


def _source(
    path: Path,
    entry: Dataset | None,
    agent: str | None,
    repeats: int,
    prompt: prompts.Prompt | None,
    notice: Notice,
) -> Source:
    known = prepared.known(path, entry, notice)
    return Source(path, agent, repeats, prompt, known.name, known.complete)


def _datasets(order: Order, resolved: Resolved) -> list[Dataset]:
    """The datasets of the split; without one, of the first kind that the definition names."""
    there = list(resolved.datasets)
    if order.wanted.agent is not None:
        there = [entry for entry in there if entry.agent == order.wanted.agent] or there
    kinds = {entry.type for entry in there}
    split = order.split or next((kind for kind in _SPLITS if kind in kinds), None)
    chosen = [entry for entry in there if entry.type == split]
    if not chosen:
        known = ", ".join(sorted(kinds)) or "none"
        hint = f"--split names one of: {known}; --input names rows of your own"
        raise UsageError(f"there is no dataset of the split {split}", hint, "no-split")
    for entry in chosen:
        if not (entry.jsonl_fpath or "").strip():  # rows of another split are no substitute
            others = ", ".join(sorted(kinds - {split}))
            raise NothingToRead(
                f"the {split} dataset {entry.name} names no file of rows: its jsonl_fpath is empty",
                f"set jsonl_fpath in {entry.place or 'its definition'}, or name rows with --input"
                + (f" or another split with --split ({others})" if others else ""),
                "no-input",
            )
    return chosen


# -- what is written down -----------------------------------------------------------------------


def _identity(order: Order, ready: _Set, known: Resolved) -> Row:
    """What must be the same in every sitting of a run."""
    wanted = ready.wanted
    told: Row = {
        "dataset": [
            {
                "sha256": manifest.sha256(source.path),
                "agent": source.agent,
                "repeats": source.repeats,
                "prompt": source.prompt.sha256 if source.prompt else None,
            }
            for source in ready.sources
        ],
        "flags": {
            "--limit": wanted.limit,
            "--num-repeats": dict(wanted.repeats) if isinstance(wanted.repeats, Mapping) else wanted.repeats,
            "--agent": wanted.agent,
            "--shard": "/".join(map(str, wanted.shard)) if wanted.shard else None,
            "--interleave-repeats": wanted.interleaved,
            "--gym-compat": wanted.gym,
            "--max-steps": order.max_steps,
            "num_repeats_add_seed": wanted.seeds,
            "responses_create_params": config.hidden(dict(wanted.params)),
        },
        "skills": wanted.skills.hash if wanted.skills else None,
        "is_served": order.is_served,
    }
    from blade_eval.runner import served

    named = ready.agents or ((wanted.agent,) if wanted.agent else [agent.instance for agent in known.agents])
    described: Any = config.hidden(served.described(known, named))
    return {**told, "agents": described}


def _manifest(order: Order, ready: _Set, known: Resolved, at: Places, identity: Row, opened: Begun) -> Row:
    told = manifest.read(at.manifest) if opened.is_resumed else None
    if told is None or not isinstance(told.get("sittings"), list):
        shown: Any = config.hidden(known.tree)
        repeats = ready.wanted.repeats
        told = manifest.new(
            command=order.command,
            identity=identity,
            config=shown,
            datasets=[manifest.dataset(one.path, one.name, one.complete) for one in ready.sources],
            seeds={"num_repeats_add_seed": ready.wanted.seeds, "num_repeats": repeats},
            expected=opened.expected,
        )
    told["sittings"].append(manifest.sitting(order.command))
    return told


def _counted(told: Row, summary: Summary, again: int) -> None:
    counts = {
        "expected": summary.expected,
        "scored": summary.scored,
        "failed": summary.failed,
        "unfinished": summary.unfinished,
    }
    told["counts"] = counts
    told["sittings"][-1]["counts"] = {
        **counts,
        "scored_before": summary.scored_before,
        "failure_lines": summary.failure_lines,
        "retries": summary.retries,
        "requests_again": again,
        "seconds": round(summary.seconds, 3),
    }
