"""Draft a package from runs: skill, rollouts, golden reports with sidecars; and recognise an unedited draft."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from blade import pipeline
from blade.agent.skills import slug
from blade.agent.skills.skill_draft import skill
from blade.check import world_of
from blade.errors import Unreadable, UsageError
from blade.formats import compressed
from blade.hostile import json_text
from blade.model import Report
from blade.package import layout as place
from blade.package.anchors import as_file, drafted
from blade.package.layout import Golden, Layout, json_or_nothing, text_or_nothing, write_text
from blade.package.matching import Tasks, passages
from blade.package.package_queries import Worlds
from blade.package.shallow import shallow
from blade.pipeline import comparing
from blade.pipeline.load import Loaded
from blade.report import chapters, comparison_pages, markdown
from blade.report.draft_report import draft
from blade.report.report_json import metrics
from blade.report.run_facts import facts
from blade.tables.index import Watcher
from blade.targets import refuse_link

MARK = "<!-- draft:"
_DRAFT = MARK + " written from {path} by `blade package init`; review it, then delete this line -->"
UNEDITED = 0.7  # share of sentences that are the engine's own, from which on a report is a draft
CITED = 10  # citations in the form for people, from which on a report is no page of ours
# Row sidecars are packed: tools that take every `rollouts/*.jsonl` for a run must not take them for one.
_PACKED = ("materialized_inputs", "failures", "reward_profiling")
_PLAIN = ("aggregate_metrics", "agent_metrics", "repeat_level_metrics")


def refuse_filled(folder: Path, force: bool) -> None:
    """Do not write over a package, nor among files that are not ours, unless told to; never through a link."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "name a folder", "output-not-empty")
    for name in place.FOLDERS:
        refuse_link(folder / name)
        if not force and (folder / name).is_dir() and any((folder / name).iterdir()):
            hint = "name another folder, or add --force to write over them"
            raise UsageError(f"{folder}/{name} holds files already", hint, "output-not-empty")


def scaffold(
    folder: Path, loaded: Sequence[Loaded], name: str | None, threshold: float | None, watcher: Watcher
) -> list[Path]:
    """Write the package and return the files written; every number in it comes from the copied rollouts."""
    if any(source.path == "-" for run in loaded for source in run.sources):
        raise UsageError("standard input cannot be packaged", "name a rollouts file", "usage")
    benchmark = name or next((run.benchmark.name for run in loaded if run.benchmark.name), None)
    benchmark = benchmark or folder.absolute().name
    written = _facts(folder, loaded, watcher)
    first_files = Counter(run.sources[0].path for run in loaded)
    paths: dict[str, Path] = {}
    for run, prefix in zip(loaded, prefixes(loaded), strict=True):
        paths[prefix] = folder / "rollouts" / f"{prefix}_rollouts.jsonl"
        written += copied(run, first_files[run.sources[0].path] > 1, paths[prefix])
    again = [pipeline.load([f"{prefix}={path}"], watcher)[0] for prefix, path in paths.items()]
    reports = []
    for run in again:
        report, report_files = golden(folder, run, benchmark, threshold, watcher)
        reports.append(report)
        written += report_files
    written += [compared(folder, [again[0], run], threshold, watcher) for run in again[1:]]
    places = {prefix: str(path.relative_to(folder)) for prefix, path in paths.items()}
    path = folder / "skill" / "SKILL.md"
    write_text(path, skill(benchmark, again, reports, places))
    return [path, *written]


def prefixes(loaded: Sequence[Loaded]) -> list[str]:
    """A short name for each run that no other has: its model, then its agent, then its own name."""
    names = [slug(run.run.model or run.name) or slug(run.name) or "run" for run in loaded]
    for others in ([run.run.agent or "" for run in loaded], [run.name for run in loaded]):
        again = {name for name in names if names.count(name) > 1}
        pairs = zip(names, others, strict=True)
        names = [slug(f"{name} {other}") if name in again else name for name, other in pairs]
    return [
        f"{name}_{names[: number + 1].count(name)}" if names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]


def _facts(folder: Path, loaded: Sequence[Loaded], watcher: Watcher) -> list[Path]:
    """The benchmark's own facts, which decide what passes and what a stage is: those of the first run."""
    paths = list(dict.fromkeys(run.benchmark.path for run in loaded if run.benchmark.path))
    if not paths:
        return []
    if len({Path(path).read_bytes() for path in paths}) > 1:
        watcher.notice(f"the runs have different blade.toml; the package takes {paths[0]}")
    to = folder / "rollouts" / "blade.toml"
    to.parent.mkdir(parents=True, exist_ok=True)
    if not (to.exists() and to.samefile(paths[0])):
        refuse_link(to)
        shutil.copyfile(paths[0], to)
    return [to]


# -- rollouts ---------------------------------------------------------------------------------------


def copied(run: Loaded, is_shared: bool, path: Path) -> list[Path]:
    """Write the rows of a run to `path`, its sidecars beside it; `is_shared`: its file holds other runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sources = [Path(source.path) for source in run.sources]
    if path.exists() and any(path.samefile(source) for source in sources):
        return [path]  # drafted anew from its own rollouts, which stay as they are
    agent = run.run.agent if is_shared else None
    refuse_link(path)
    with path.open("wb") as out:
        out.writelines(_rows(sources, agent))
    written = [path]
    base = path.name.removesuffix(".jsonl")
    for kind in (*_PACKED, *_PLAIN):
        paths = [Path(file.path) for file in run.artifacts if file.kind == kind and file.present]
        is_packed = kind in _PACKED
        to = path.with_name(f"{base}_{kind}.json{'l.gz' * is_packed}")
        if paths and (is_packed or (len(paths) == 1 and not is_shared and paths[0].suffix == ".json")):
            refuse_link(to)
            rows = gzip.compress(b"".join(_rows(paths, agent)), mtime=0) if is_packed else paths[0].read_bytes()
            to.write_bytes(rows)
            written.append(to)
    return written


def _rows(paths: Iterable[Path], agent: str | None) -> Iterator[bytes]:
    """Every line as it stands, with its newline; of one agent alone where others lie beside it."""
    for path in paths:
        rest = b""
        with path.open("rb") as file:
            for chunk in compressed.inflated(file, compressed.kind_of(file.peek(4))):
                if isinstance(chunk, str):
                    raise Unreadable(f"{path}: {chunk}", "repack the file", "unreadable-file")
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line + b"\n" for line in lines if _is_of(line, agent))
        if rest and _is_of(rest, agent):
            yield rest + b"\n"


def _is_of(line: bytes, agent: str | None) -> bool:
    if agent is None:
        return True
    try:
        return bool(json.loads(line)["agent_ref"]["name"] == agent)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


# -- golden reports ---------------------------------------------------------------------------------


def golden(
    folder: Path, run: Loaded, benchmark: str, threshold: float | None, watcher: Watcher
) -> tuple[Report, list[Path]]:
    """The draft of a golden report, with its metrics, anchors and shallow baseline."""
    path = Path(run.sources[0].path)
    report, page = _page(folder, [run], threshold, watcher)
    text = _marked(page, f"rollouts/{path.name}")
    model, of_run = report.runs[0].model or run.name, facts(report)[0]
    names = {"model": of_run.run.model or model, "model_name": model, "benchmark": benchmark}
    base = folder / "golden_reports" / f"{run.name}_golden_report.md"
    anchors = _anchors(text, report, run, benchmark, threshold, watcher)
    contents = {
        base: text,
        base.with_name(f"{base.stem}_metrics.json"): _json({**metrics(of_run), **names}),
        base.with_name(f"{run.name}_anchor_facts.json"): _json(anchors),
        base.with_name(f"{run.name}_shallow.md"): place.sealed(shallow(text, base.stem)),
    }
    for target, content in contents.items():
        write_text(target, content)
    return report, list(contents)


def compared(folder: Path, pair: Sequence[Loaded], threshold: float | None, watcher: Watcher) -> Path:
    """The draft of a report on two runs; it has no sidecars of its own."""
    _, text = _page(folder, pair, threshold, watcher)
    path = folder / "golden_reports" / f"{'_vs_'.join(run.name for run in pair)}_golden_report.md"
    write_text(path, _marked(text, "rollouts/"))
    return path


def _page(
    folder: Path, runs: Sequence[Loaded], threshold: float | None, watcher: Watcher
) -> tuple[Report, str]:
    """What the engine writes about the rollouts today, of one run or of two: the report, and its page."""
    names = " ".join(run.sources[0].path for run in runs)
    option = f" --pass-threshold {threshold!r}" if threshold is not None else ""
    if len(runs) == 1:
        report = pipeline.diagnose(runs, f"blade diagnose {names}{option}", threshold, watcher)
    else:
        report = comparing.compare(runs, f"blade compare {names}{option}", threshold=threshold, watcher=watcher)
    from blade.sanitize.redaction import mapped

    report, parts = pipeline.with_digests(report, runs), ("made_by", "runs", "compared", "skipped", "gaps", "benchmark")
    here = {name: mapped(getattr(report, name), lambda text, _: text.replace(f"{folder}/", "")) for name in parts}
    report, pages = replace(report, **here), chapters if len(runs) == 1 else comparison_pages
    return report, markdown.page(pages.title(report), pages.chapters(report))


def runs_of(package: Layout, parts: Golden, text: str, watcher: Watcher) -> tuple[list[Loaded], float | None]:
    """The runs that a report is on, none if one is missing, and the threshold that it was made with."""
    own = place.rollouts_of(parts, package.rollouts) if not parts.is_comparison else None
    paths = place.sides_of(parts, package.rollouts) if parts.is_comparison else ((own,) if own else ())
    loaded = [pipeline.load([f"{place.prefix_of(path)}={path}"], watcher)[0] for path in paths]
    return loaded, threshold_in(text)


def threshold_in(text: str) -> float | None:
    """The pass threshold that a report says it was made with."""
    hit = re.search(r"--pass-threshold[ =](?P<value>-?\d+(?:\.\d+)?)", text)
    return float(hit["value"]) if hit else None


def redraft(package: Layout, parts: Golden, watcher: Watcher) -> bool:
    """Write a report again if it is still a draft of ours; whether it was."""
    text, data = text_or_nothing(parts.report), json_or_nothing(parts.metrics)
    loaded, threshold = runs_of(package, parts, text, watcher) if MARK in text else ([], None)
    if not loaded:
        return False
    if parts.is_comparison:
        compared(package.folder, loaded, threshold, watcher)
    else:
        benchmark = data.get("benchmark") if isinstance(data, dict) else None
        golden(package.folder, loaded[0], str(benchmark or package.folder.name), threshold, watcher)
    return True


def _marked(text: str, source: str) -> str:
    title, _, body = text.partition("\n")
    return f"{title}\n\n{_DRAFT.format(path=source)}\n{body}"


def _anchors(
    text: str, report: Report, run: Loaded, benchmark: str, threshold: float | None, watcher: Watcher
) -> dict[str, Any]:
    worlds = Worlds(world_of([run], threshold, watcher, report))
    return as_file(drafted(text, worlds, 12), benchmark, report.runs[0].model or run.name)


def _json(value: Any) -> str:
    return json_text(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


# -- recognising a draft ----------------------------------------------------------------------------


def why_draft(text: str, package: Layout, parts: Golden, watcher: Watcher) -> str:
    """Why a report is an unedited draft of ours; empty: a person has written it."""
    if MARK in text:
        return f"read it against the rollouts, then delete its line that begins with {MARK}"
    if len(re.findall(r"<!--c\d+-->", text)) >= 5:
        return "its numbers still carry the engine's marks (<!--c1-->); write and cite the findings yourself"
    if text.count("<!--blade:") >= CITED:
        return ""  # whoever cites queries of their own has written the report: no page of ours does that
    (runs, threshold), sentences = runs_of(package, parts, text, watcher), _sentences(text)
    if not runs or not sentences:
        return ""
    report, page = _page(package.folder, runs, threshold, watcher)
    ours = set(_sentences(page)) | set(_sentences(draft(report, [run.name for run in runs])))
    share = sum(sentence in ours for sentence in sentences) / len(sentences)
    own = f"{share:.0%} of its sentences are those that blade writes itself; write the findings yourself"
    return own if share >= UNEDITED else ""


def _sentences(text: str) -> list[str]:
    listed = [part for passage in passages(text, Tasks()) for part in passage.statements]
    texts = [part.text for part in listed if part.kind != "heading"]
    return [re.sub(r"[\d.,%]+", "#", text.lower()) for text in texts if len(text.split()) > 4]
