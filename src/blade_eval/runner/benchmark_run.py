"""Run a benchmark as it was ordered: rows, files, agents, collection, metrics, and the manifest that says what ran."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from blade import __version__
from blade.errors import BladeError, NothingToRead, Unreadable, UsageError
from blade_eval import config, verifiers
from blade_eval.config import Asked, Dataset, Resolved, directives, resolve
from blade_eval.config.config_nouns import FLAGS
from blade_eval.config.secret import HIDDEN, hidden, hidden_command, names_secret, without
from blade_eval.environment import Environment, Row
from blade_eval.prepare import work
from blade_eval.prepare.fetch import digest
from blade_eval.runner import collect, inputs, run_files, skills
from blade_eval.runner.collect import Course, Runner, Stop, Summary
from blade_eval.runner.inputs import Prompt, Source, Wanted
from blade_eval.runner.progress import Progress
from blade_eval.runner.run_files import OpenRun, Places

_GIT_S = 10.0
_OPENS = ("{", "[")
_NAME = re.compile(r"[\w-]+")
_TELLING = 8  # a shorter secret stands by chance inside other words
_PACKAGES = "msgspec aiohttp omegaconf math-verify rapidfuzz jiwer sacrebleu jsonschema".split()
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


class Outcome(NamedTuple):
    summary: Summary
    places: Places
    aggregate: Path | None


class _Set(NamedTuple):
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
        opened = run_files.open_run(
            places, rows, identity, resume=order.resume, force=order.force, notice=notice, seen=progress.seen
        )
        progress.expected = opened.expected
        progress.given_up = opened.standing.n_given_up(order.attempts)
        progress.asked_again = getattr(run, "retried", progress.asked_again)
        course = Course(
            places, run, opened.kept, opened.standing, opened.expected, order.concurrency, order.attempts,
            order.retry_wait_s, progress, stop or Stop(),
        )  # fmt: skip
        summary = await _sitting(course, progress, _manifest(order, ready, known, places, identity, opened))
    aggregate = None
    if order.sums_up and not summary.is_interrupted:
        try:
            aggregate = sum_up(places, _environments(known))
        except (BladeError, OSError) as error:  # the rollouts are there: their sum can be asked for again
            notice(f"the rollouts could not be summed up: {getattr(error, 'message', error)}")
    return Outcome(summary, places, aggregate)


async def _sitting(course: Course, progress: Progress, manifest: Row) -> Summary:
    """One sitting: the manifest says that it runs, then how it ended."""

    def ended(status: str) -> None:
        progress.close()
        manifest["sittings"][-1] |= {"status": status, "ended": now()}
        try:
            course.kept.close()
        finally:
            run_files.write_manifest(course.places.manifest, manifest)

    try:
        run_files.write_manifest(course.places.manifest, manifest)
        summary = await course.summary()
        counts = {name: getattr(summary, name) for name in ("expected", "scored", "failed", "unfinished")}
        more = {name: getattr(summary, name) for name in ("scored_before", "failure_lines", "retries")}
        more |= {"requests_again": progress.asked_again(), "seconds": round(summary.seconds, 3)}
        manifest["counts"] = counts
        manifest["sittings"][-1]["counts"] = counts | more
    except BaseException:
        with suppress(BladeError):  # what ended the run is told, not that it cannot be written down
            ended("stopped")
        raise
    ended("interrupted" if summary.is_interrupted else "finished")
    return summary


def sum_up(places: Places, environment_of: Callable[[str], Environment | None]) -> Path | None:
    """Write the metrics of every agent; None where there is no rollout to sum up."""
    from blade_eval import aggregate

    entries = aggregate.of_file(places.rollouts, environment_of)
    if not entries:
        return None
    with run_files.written(places.aggregate) as file:
        file.write(aggregate.content(entries))
    return places.aggregate


def _environments(known: Resolved) -> Callable[[str], Environment | None]:
    """The environment of an agent, where its block is known and BLADE has it."""

    def environment(agent: str) -> Environment | None:
        server = known.server(agent)
        judge = known.server(server.named("resources_server")) if server is not None else None
        if judge is None or judge.implementation not in verifiers.ENVIRONMENTS:
            return None
        return verifiers.environment(judge.implementation, judge.settings)

    return environment


@asynccontextmanager
async def _runner(order: Order, ready: _Set) -> AsyncIterator[tuple[Runner, Resolved]]:
    if ready.resolved is not None:
        from blade_eval.runner.components import Components

        async with AsyncExitStack() as stack:  # which keeps the models open
            run = Components(ready.resolved, stack, True, ready.wanted.skills)
            for name in ready.agents:
                await run.agent(name, {"max_steps": order.max_steps} if order.max_steps else None)
            yield run, ready.resolved
        return
    from blade_eval.servers import client

    async with client.remote(order.head_url or client.HEAD, order.wanted.agent) as remote:
        servers, _ = resolve.found_servers(remote.tree, lambda _: "")
        yield remote, Resolved(remote.tree, tuple(servers), (), (), (), ())


# -- what is run --------------------------------------------------------------------------------


def _set(order: Order, notice: Notice) -> _Set:
    resolved = _resolved(order, notice) if order.is_served else None
    roots = config.roots(order.asked.search_dirs)
    prompt = None if order.prompt is None else inputs.load_prompt(config.found(order.prompt, roots))
    wanted = order.wanted
    if order.skills is not None:
        if not order.is_served:
            raise UsageError(
                "an agent behind --no-serve is not known to use skills, so its rows are not stamped with any",
                "leave out --no-serve, so that the built-in agent reads them, or leave out skills.path", "skills-unused",
            )  # fmt: skip
        places = [root / order.skills for root in roots if (root / order.skills).exists()]
        wanted = replace(wanted, skills=skills.loaded(order.skills, (*places, Path(order.skills))[0]))
    if resolved is None:
        if order.input is None:
            hint = "name the rows with --input; without --no-serve a benchmark brings its own"
            raise UsageError("--no-serve runs the rows of a file, and none was named", hint, "nothing-to-run")
        if order.asked.overrides:
            notice("with --no-serve the servers have their configuration: this command changes nothing of it")
        return _Set((_source(config.found(order.input, roots), None, None, prompt, notice),), wanted, (), None)
    sources = _sources(order, resolved, roots, prompt, notice)
    names = [wanted.agent] if wanted.agent else [source.agent for source in sources]
    if order.input is not None and not wanted.agent:  # rows of one's own may name any agent there is
        names = [server.instance for server in resolved.agents]
    seeds = wanted.seeds or any(entry.settings.get("num_repeats_add_seed") for entry in resolved.datasets)
    agents = tuple(dict.fromkeys(name for name in names if name))
    return _Set(sources, replace(wanted, seeds=bool(seeds)), agents, resolved)


def _resolved(order: Order, notice: Notice) -> Resolved:
    wish = order.asked
    if wish.nothing and not (Path.cwd() / "env.yaml").is_file():
        hint = "name a benchmark (`blade list benchmarks`) with --benchmark, or --no-serve and --input"
        raise UsageError("there is nothing to run", hint, "nothing-to-run")
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
    order: Order, resolved: Resolved, roots: tuple[Path, ...], prompt: Prompt | None, notice: Notice
) -> tuple[Source, ...]:
    if order.input is not None:
        agents = [server.instance for server in resolved.agents]
        agent = agents[0] if len(agents) == 1 else None
        return (_source(config.found(order.input, roots), None, agent, prompt, notice),)
    sources = []
    for entry in _datasets(order, resolved):
        places = [path for root in roots if (path := root / str(entry.jsonl_fpath)).is_file()]
        if not places:
            what = f"the rows of {entry.name} are not there: {entry.jsonl_fpath}"
            hint = "`blade eval prepare` with the same --benchmark or --config makes them"
            raise NothingToRead(what, hint, "no-input")
        own = inputs.load_prompt(config.found(entry.prompt_config, roots)) if entry.prompt_config else None
        sources.append(_source(places[0], entry, entry.agent, prompt or own, notice))
    return tuple(sources)


def _source(path: Path, entry: Dataset | None, agent: str | None, prompt: Prompt | None, notice: Notice) -> Source:
    """Rows with their name, and whether they are all of the benchmark's; those of a preparation that did not end are refused."""
    record, file, is_complete = work.recorded(path), work.record_of(path).name, None
    name = record.get("dataset") if isinstance(record.get("dataset"), str) else None
    if entry is not None:  # one that says only what it is for is named with whose it is
        is_plain = entry.name in resolve.DATASET_TYPES and entry.resources_server
        name = f"{entry.resources_server} {entry.name}" if is_plain else entry.name
    if record.get("state") == "preparing":
        raise Unreadable(
            f"{path} is being prepared, or its preparation was killed: nobody knows which rows are missing",
            "run `blade eval prepare` again, with the same --benchmark or --config", "rows-unfinished",
        )  # fmt: skip
    if record.get("state") == "prepared" and record.get("sha256") != digest(path):
        notice(f"{path} is not as it was prepared: its sha256 is another than in {file}")
    elif record.get("state") == "prepared" and isinstance(record.get("complete"), bool):
        is_complete = record["complete"]
        if not is_complete:
            notice(
                f"the rows of {name or path} are not all of the benchmark's, or not from its pinned files"
                f" ({file}): the result is not comparable"
            )
    return Source(path, agent, entry.num_repeats if entry else 1, prompt, name, is_complete)


def _datasets(order: Order, resolved: Resolved) -> list[Dataset]:
    """The datasets of the split; without one, of the first kind that the definition names."""
    datasets = list(resolved.datasets)
    if order.wanted.agent is not None:
        datasets = [entry for entry in datasets if entry.agent == order.wanted.agent] or datasets
    kinds = {entry.type for entry in datasets}
    split = order.split or next((kind for kind in _SPLITS if kind in kinds), None)
    chosen = [entry for entry in datasets if entry.type == split]
    if not chosen:
        hint = f"--split names one of: {', '.join(sorted(kinds)) or 'none'}; --input names rows of your own"
        raise UsageError(f"there is no dataset of the split {split}", hint, "no-split")
    for entry in chosen:
        if not (entry.jsonl_fpath or "").strip():  # rows of another split are no substitute
            others = ", ".join(sorted(kinds - {split}))
            hint = f"set jsonl_fpath in {entry.place or 'its definition'}, or name rows with --input"
            hint += f" or another split with --split ({others})" if others else ""
            what = f"the {split} dataset {entry.name} names no file of rows: its jsonl_fpath is empty"
            raise NothingToRead(what, hint, "no-input")
    return chosen


# -- what is written down -----------------------------------------------------------------------


def _identity(order: Order, ready: _Set, known: Resolved) -> Row:
    from blade_eval.runner import components

    wanted = ready.wanted
    names = ready.agents or ((wanted.agent,) if wanted.agent else [agent.instance for agent in known.agents])
    return {
        "dataset": [
            {
                "sha256": digest(source.path), "agent": source.agent, "repeats": source.repeats,
                "prompt": source.prompt.sha256 if source.prompt else None,
            }
            for source in ready.sources
        ],
        "flags": {
            "--limit": wanted.limit,
            "--num-repeats": dict(wanted.repeats) if isinstance(wanted.repeats, Mapping) else wanted.repeats,
            "--agent": wanted.agent, "--shard": "/".join(map(str, wanted.shard)) if wanted.shard else None,
            "--interleave-repeats": wanted.interleaved, "--gym-compat": wanted.gym,
            "--max-steps": order.max_steps, "num_repeats_add_seed": wanted.seeds,
            "responses_create_params": hidden(dict(wanted.params)),
        },
        "skills": wanted.skills.hash if wanted.skills else None,
        "is_served": order.is_served,
        "agents": hidden(components.described(known, names)),
    }  # fmt: skip


def _manifest(order: Order, ready: _Set, known: Resolved, places: Places, identity: Row, opened: OpenRun) -> Row:
    manifest = run_files.read_manifest(places.manifest) if opened.is_resumed else None
    if manifest is None or not isinstance(manifest.get("sittings"), list):
        manifest = {
            "schema_version": "1", "command": masked(order.command), "identity": identity,
            "datasets": [
                {
                    "name": source.name, "path": str(source.path), "bytes": source.path.stat().st_size,
                    "sha256": digest(source.path), "complete": source.complete,
                }
                for source in ready.sources
            ],
            "seeds": {"num_repeats_add_seed": ready.wanted.seeds, "num_repeats": ready.wanted.repeats},
            "expected": opened.expected, "config": hidden(known.tree), "counts": {}, "sittings": [],
        }
    manifest["sittings"].append(
        {
            "status": "running", "command": masked(order.command), "started": now(), "ended": None,
            "versions": versions(), "git": commit(), "counts": {},
        }
    )  # fmt: skip
    return manifest


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """What ran: of packages those that a reward may depend on."""
    packages = {"blade": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            packages[name] = metadata.version(name)
    return packages


def commit() -> Row | None:
    """The commit of the current folder, and whether files differ from it; None outside of git."""
    head = _git("rev-parse", "HEAD")
    if head is None:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return {"commit": head.strip(), "dirty": None if changed is None else bool(changed.strip())}


def _git(*arguments: str) -> str | None:
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        return subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=_GIT_S, check=True
        ).stdout
    return None


def masked(command: Sequence[str]) -> list[str]:
    """A command line without its secrets, also where they stand inside of a value such as {api_key: …}."""
    secrets: set[str] = set()
    words = []
    for word in command:
        name, equals, value = word.partition("=") if not word.startswith(_OPENS) else ("", "", word)
        words.append(f"{name}{equals}{_shown_value(value, secrets)}")
    telling = [secret for secret in secrets if len(secret) >= _TELLING]
    return [without(word, telling) for word in hidden_command(words)]


def _shown_value(text: str, secrets: set[str]) -> str:
    """A value of a command; of a mapping or a list the secrets in it are hidden."""
    bare = text.strip().strip("'\"").lstrip()
    if not bare.startswith(_OPENS):
        return text
    try:
        value = directives.value_of(text, "")
    except (BladeError, RecursionError):  # nobody knows what is a name in it and what a secret
        return HIDDEN if any(map(names_secret, _NAME.findall(text))) else text
    shown = _shown_value(value, secrets) if isinstance(value, str) else _inner(value, hidden(value, {}), secrets)
    if shown == value:
        return text
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, default=str)


def _inner(value: Any, shown: Any, secrets: set[str]) -> Any:
    """What is shown of a value, texts in it taken apart once more; what was hidden goes to `secrets`."""
    if isinstance(value, dict):
        return {key: _inner(value[key], inner, secrets) for key, inner in shown.items()}
    if isinstance(value, list):
        return [_inner(inner, other, secrets) for inner, other in zip(value, shown, strict=True)]
    if shown == HIDDEN:
        secrets.add(str(value))
    return _shown_value(shown, secrets) if isinstance(shown, str) else shown


# -- what the command line says -----------------------------------------------------------------

_PARAMS = "responses_create_params"
ATTEMPTS_VARIABLE = "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"


def parsed_overrides(overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """What overrides say of the run by flag, of the requests by field, and those that are left."""
    flags: dict[str, Any] = {}
    params: dict[str, Any] = {}
    rest: list[str] = []
    for text in overrides:
        override = directives.parsed(text)
        name, value = ".".join(override.keys), override.value
        if override.removes:
            rest.append(text)
        elif name in FLAGS:
            flags[FLAGS[name]] = value
        elif override.keys[0] == _PARAMS and len(override.keys) > 1:
            directives.change(params, replace(override, keys=override.keys[1:]))
        elif name == "skills" and isinstance(value, Mapping) and "path" in value:
            flags["skills"] = value["path"]
        elif name == _PARAMS and isinstance(value, Mapping):
            params |= value
        else:
            rest.append(text)
    return flags, params, tuple(rest)


def parsed_repeats(text: Any) -> int | dict[str, int] | None:
    """How many repeats: a number, or numbers by agent with `_default` for the others."""
    if text is None:
        return None
    if isinstance(text, str) and text.strip().startswith("{"):
        text = directives.value_of(text, f"--num-repeats {text}")
    if isinstance(text, Mapping):
        return {str(name): _repeats(number) for name, number in text.items()}
    return _repeats(text)


def _repeats(text: Any) -> int:
    if isinstance(text, bool) or not (number := _at_least_one(str(text))):
        hint = "a whole number of at least 1, or {AGENT: 4, _default: 1}"
        raise UsageError(f"--num-repeats cannot be {text}", hint, "bad-repeats")
    return number


def _at_least_one(text: str) -> int:
    """The whole number of a text, or 0."""
    with suppress(ValueError):
        return max(0, int(text))
    return 0


def parsed_shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        hint = "write it as 1/8 to 8/8: which shard, counted from 1, of how many"
        raise UsageError(f"--shard cannot be {text}", hint, "bad-shard")
    return int(match[1]), int(match[2])


def max_attempts(retries: int | None, notice: Notice) -> int:
    """How many failure lines a rollout may have before it is given up."""
    text = os.environ.get(ATTEMPTS_VARIABLE)
    if retries is not None or text is None:
        return 3 if retries is None else retries + 1
    if not (number := _at_least_one(text)):
        notice(f"{ATTEMPTS_VARIABLE}={text} is no whole number of at least 1; 3 is taken")
    return number or 3
