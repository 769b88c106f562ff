"""Run a benchmark as it was ordered: rows, files, agents, collection, metrics, manifest."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from blade.errors import BladeError, NothingToRead, UsageError
from blade_eval import config, verifiers
from blade_eval.config import Asked, Dataset, Resolved, resolve
from blade_eval.config import directives as override_text
from blade_eval.environment import Environment, Row
from blade_eval.runner import collect, inputs, json_lines, run_files, run_manifest, skills
from blade_eval.runner.collect import Plan, Runner, Stop, Summary
from blade_eval.runner.inputs import Source, Wanted
from blade_eval.runner.progress import Progress
from blade_eval.runner.run_files import OpenRun, Places, cannot_write, open_run

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
    places = run_files.usable(run_files.beside(order.output))
    ready = _set(order, notice)
    async with _runner(order, ready) as (run, known):
        for problem in resolve.self_judged(known.servers):
            notice(problem.told())
        identity = _identity(order, ready, known)
        rows = inputs.materialized(ready.sources, ready.wanted, notice)
        opened = open_run(
            places, rows, identity, resume=order.resume, force=order.force, notice=notice, seen=progress.seen
        )
        progress.expected = opened.expected
        progress.given_up = opened.standing.n_given_up(order.attempts)
        progress.asked_again = getattr(run, "retried", progress.asked_again)
        plan = Plan(
            places, run, opened.kept, opened.standing, opened.expected, order.concurrency, order.attempts,
            order.retry_wait_s, progress, stop or Stop(),
        )  # fmt: skip
        summary = await _sat(plan, _manifest(order, ready, known, places, identity, opened))
    aggregate = None
    if order.sums_up and not summary.is_interrupted:
        aggregate = _summed(places, _environments(known), notice)
    return Outcome(summary, places, aggregate)


async def _sat(plan: Plan, manifest: Row) -> Summary:
    """One sitting: the manifest says that it runs, then how it ended."""
    try:
        _put(plan.places.manifest, manifest)
        summary = await collect.collected(plan)
        _counted(manifest, summary, plan.watch.asked_again() if isinstance(plan.watch, Progress) else 0)
    except BaseException:
        with suppress(BladeError):  # what ended the run is told, not that it cannot be written down
            _ended(plan, manifest, "stopped")
        raise
    _ended(plan, manifest, "interrupted" if summary.is_interrupted else "finished")
    return summary


def _ended(plan: Plan, manifest: Row, status: str) -> None:
    if isinstance(plan.watch, Progress):
        plan.watch.close()
    manifest["sittings"][-1] |= {"status": status, "ended": run_manifest.now()}
    try:
        plan.kept.close()
    finally:
        _put(plan.places.manifest, manifest)


def _put(path: Path, manifest: Row) -> None:
    try:
        run_manifest.write_manifest(path, manifest)
    except OSError as error:
        raise cannot_write(path, error) from error


def _summed(places: Places, environment_of: Callable[[str], Environment | None], notice: Notice) -> Path | None:
    try:
        return sum_up(places, environment_of)
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
        from blade_eval.runner import components

        async with components.local(ready.resolved, ready.agents, ready.wanted.skills, order.max_steps) as run:
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
    prompt = None if order.prompt is None else inputs.load_prompt(config.found(order.prompt, roots))
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
    path = str(order.skills)
    if not order.is_served:
        raise UsageError(
            "an agent behind --no-serve is not known to use skills, so its rows are not stamped with any",
            "leave out --no-serve, so that the built-in agent reads them, or leave out skills.path",
            "skills-unused",
        )
    there = [root / path for root in roots if (root / path).exists()]
    return skills.loaded(path, there[0] if there else Path(path))


def _resolved(order: Order, notice: Notice) -> Resolved:
    wish = order.asked
    if wish.nothing and not (Path.cwd() / "env.yaml").is_file():
        raise UsageError(
            "there is nothing to run",
            "name a benchmark (`blade list benchmarks`) with --benchmark, or --no-serve and --input",
            "nothing-to-run",
        )
    resolved = config.resolved(wish)
    if not wish.model_types and _lacks_model(wish):
        notice("no --model-type was given: openai_model, any OpenAI-compatible server")
        resolved = config.resolved(replace(wish, model_types=("openai_model",)))
    config.insist(resolved)
    for problem in resolved.of("warning"):
        notice(problem.told())
    return resolved


def _lacks_model(wish: Asked) -> bool:
    """Whether nobody says what policy_model is; to change a setting of the default one is not to say it."""
    default = f"{resolve.MODEL}.responses_api_models.openai_model"
    others = tuple(override for override in wish.overrides if not override.lstrip("+").startswith(default))
    resolved = config.resolved(replace(wish, overrides=others))
    return bool(resolved.of("model")) and resolved.server(resolve.MODEL) is None


def _sources(
    order: Order,
    resolved: Resolved,
    roots: tuple[Path, ...],
    prompt: inputs.Prompt | None,
    notice: Notice,
) -> tuple[Source, ...]:
    if order.input is not None:
        agents = [server.instance for server in resolved.agents]
        agent = agents[0] if len(agents) == 1 else None
        return (_source(config.found(order.input, roots), None, agent, 1, prompt, notice),)
    chosen = _datasets(order, resolved)
    sources = []
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
        own = inputs.load_prompt(config.found(entry.prompt_config, roots)) if entry.prompt_config else None
        sources.append(_source(path, entry, entry.agent, entry.num_repeats, prompt or own, notice))
    return tuple(sources)


def _source(
    path: Path,
    entry: Dataset | None,
    agent: str | None,
    repeats: int,
    prompt: inputs.Prompt | None,
    notice: Notice,
) -> Source:
    known = run_manifest.known(path, entry, notice)
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
    identity: Row = {
        "dataset": [
            {
                "sha256": run_manifest.sha256(source.path),
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
    from blade_eval.runner import components

    named = ready.agents or ((wanted.agent,) if wanted.agent else [agent.instance for agent in known.agents])
    described: Any = config.hidden(components.described(known, named))
    return {**identity, "agents": described}


def _manifest(order: Order, ready: _Set, known: Resolved, places: Places, identity: Row, opened: OpenRun) -> Row:
    manifest = run_manifest.read_manifest(places.manifest) if opened.is_resumed else None
    if manifest is None or not isinstance(manifest.get("sittings"), list):
        shown: Any = config.hidden(known.tree)
        repeats = ready.wanted.repeats
        manifest = run_manifest.new_manifest(
            command=order.command,
            identity=identity,
            config=shown,
            datasets=[run_manifest.described_dataset(source.path, source.name, source.complete) for source in ready.sources],
            seeds={"num_repeats_add_seed": ready.wanted.seeds, "num_repeats": repeats},
            expected=opened.expected,
        )
    manifest["sittings"].append(run_manifest.sitting(order.command))
    return manifest


def _counted(manifest: Row, summary: Summary, again: int) -> None:
    counts = {
        "expected": summary.expected,
        "scored": summary.scored,
        "failed": summary.failed,
        "unfinished": summary.unfinished,
    }
    manifest["counts"] = counts
    manifest["sittings"][-1]["counts"] = {
        **counts,
        "scored_before": summary.scored_before,
        "failure_lines": summary.failure_lines,
        "retries": summary.retries,
        "requests_again": again,
        "seconds": round(summary.seconds, 3),
    }


# NeMo Gym's keys, and the flags that say the same here.
KEYS = {
    "input_jsonl_fpath": "input",
    "output_jsonl_fpath": "output",
    "agent_name": "agent",
    "limit": "limit",
    "num_repeats": "num_repeats",
    "num_repeats_add_seed": "seeds",
    "split": "split",
    "num_samples_in_parallel": "concurrency",
    "resume_from_cache": "resume",
    "prompt_config": "prompt_config",
    "interleave_repeats": "interleave_repeats",
    "disable_aggregation": "disable_aggregation",
    "skills.path": "skills",
}
_PARAMS = "responses_create_params"
_SHARD = re.compile(r"(\d{1,9})/(\d{1,9})")
ATTEMPTS_VARIABLE = "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"


def parsed_overrides(overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """What overrides say of the run by flag, of the requests by field, and those that are left."""
    flags: dict[str, Any] = {}
    params: dict[str, Any] = {}
    rest: list[str] = []
    for text in overrides:
        override = override_text.parsed(text)
        name = ".".join(override.keys)
        if override.removes:
            rest.append(text)
        elif name in KEYS:
            flags[KEYS[name]] = override.value
        elif override.keys[0] == _PARAMS and len(override.keys) > 1:
            override_text.change(params, replace(override, keys=override.keys[1:]))
        elif name == "skills" and isinstance(override.value, Mapping) and "path" in override.value:
            flags["skills"] = override.value["path"]
        elif name == _PARAMS and isinstance(override.value, Mapping):
            params |= override.value
        else:
            rest.append(text)
    return flags, params, tuple(rest)


def parsed_repeats(text: Any) -> int | dict[str, int] | None:
    """How many repeats: a number, or numbers by agent with `_default` for the others."""
    if text is None:
        return None
    if isinstance(text, str) and text.strip().startswith("{"):
        text = override_text.value_of(text, f"--num-repeats {text}")
    if isinstance(text, Mapping):
        return {str(name): _at_least_one(number) for name, number in text.items()}
    return _at_least_one(text)


def _at_least_one(text: Any) -> int:
    try:
        number = int(str(text))
    except ValueError:
        number = 0
    if number < 1 or isinstance(text, bool):
        hint = "a whole number of at least 1, or {AGENT: 4, _default: 1}"
        raise UsageError(f"--num-repeats cannot be {text}", hint, "bad-repeats")
    return number


def parsed_shard(text: str | None) -> tuple[int, int] | None:
    """Which shard of how many, from `2/8`."""
    if text is None:
        return None
    match = _SHARD.fullmatch(text.strip())
    which, many = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= which <= many:
        hint = "write it as 1/8 to 8/8: which shard, counted from 1, of how many"
        raise UsageError(f"--shard cannot be {text}", hint, "bad-shard")
    return which, many


def max_attempts(retries: int | None, notice: Callable[[str], None]) -> int:
    """How many failure lines a rollout may have before it is given up."""
    if retries is not None:
        return retries + 1
    text = os.environ.get(ATTEMPTS_VARIABLE)
    if text is None:
        return 3
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        notice(f"{ATTEMPTS_VARIABLE}={text} is no whole number of at least 1; 3 is taken")
        return 3
    return number


class _Ref(msgspec.Struct):
    name: Any = None


class _Head(msgspec.Struct):
    task: int = msgspec.field(name="_ng_task_index")
    repeat: int = msgspec.field(name="_ng_rollout_index")
    agent: _Ref | None = msgspec.field(name="agent_ref", default=None)


def sum_up(places: Places, environment_of: Callable[[str], Environment | None]) -> Path | None:
    """Write the metrics of every agent; None where there is no rollout to sum up."""
    from blade_eval import aggregate

    order = _offsets(places.rollouts)
    if not order:
        return None
    entries: list[Row] = []
    for name, offsets in order.items():
        rows = _rows_at(places.rollouts, offsets)
        entries += aggregate.aggregate_metrics(rows, environment_of(name))
    draft = places.aggregate.with_name(places.aggregate.name + ".tmp")
    try:
        draft.write_bytes(aggregate.content(entries))
        os.replace(draft, places.aggregate)
    finally:
        draft.unlink(missing_ok=True)
    return places.aggregate


def _offsets(path: Path) -> dict[str, list[int]]:
    """Where the rows of each agent begin, by task and repeat; agents as they first appear."""
    offsets: dict[str, list[tuple[int, int, int]]] = {}
    decoder = msgspec.json.Decoder(_Head)
    offset = 0
    with path.open("rb") as file:
        for line in file:
            try:
                head: _Head | None = decoder.decode(line)
            except json_lines.NOT_JSON:
                head = _careful(line)
            if head is not None:
                name = head.agent.name if head.agent is not None else None
                offsets.setdefault(str(name or ""), []).append((head.task, head.repeat, offset))
            offset += len(line)
    return {name: [offset for _, _, offset in sorted(heads)] for name, heads in offsets.items()}


def _careful(line: bytes) -> _Head | None:
    """The same of a line that another tool spelled; None if it is no row with indices."""
    row = json_lines.any_row(line) or {}
    task, repeat, ref = row.get("_ng_task_index"), row.get("_ng_rollout_index"), row.get("agent_ref")
    if type(task) is not int or type(repeat) is not int:
        return None
    return _Head(task, repeat, _Ref(ref.get("name")) if isinstance(ref, dict) else None)


def _rows_at(path: Path, offsets: list[int]) -> Iterator[Row]:
    with path.open("rb") as file:
        for offset in offsets:
            file.seek(offset)
            row = json_lines.any_row(file.readline())
            if row is not None:
                yield row
