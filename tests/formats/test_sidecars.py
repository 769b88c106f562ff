"""The files beside a run: found by name, read in all their generations, and never the end of a diagnosis."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from blade.formats import find, sidecars
from blade.model import Artifact, ReportedNumber
from tests.builders import Row, joined, make_input, make_row, make_rows, make_run, packed
from tests.case_tables import cases
from tests.conftest import Blade

ROWS = make_rows({0: [1.0, 0.0], 1: [1.0, 1.0]})
Read = Callable[[], tuple[dict[str, float], list[str]]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path, ROWS)


def artifacts_of(path: Path) -> list[Artifact]:
    return sidecars.artifacts(find.Found("run", (path,)))


@pytest.fixture
def reported(run: Path) -> Read:
    """The numbers beside the run by name, and what was noted."""

    def read() -> tuple[dict[str, float], list[str]]:
        notes: list[str] = []
        numbers: list[ReportedNumber] = sidecars.reported("run", artifacts_of(run), notes.append)
        return {number.name: number.value for number in numbers}, notes

    return read


def put(folder: Path, name: str, value: Any, how: str | None = None) -> None:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    (folder / (name + (f".{how}" if how else ""))).write_bytes(packed(content, how))


# -- what is there --------------------------------------------------------------------------------


METRICS = ("aggregate_metrics.json", "agent_metrics.json", "repeat_level_metrics.json", "reward_profiling.jsonl")


@pytest.mark.parametrize("how", [None, "gz", "zst"])
def test_files_are_named_before_and_after_they_are_there(run: Path, tmp_path: Path, how: str | None) -> None:
    found = {artifact.kind: artifact for artifact in artifacts_of(run)}
    names = ("materialized_inputs.jsonl", "failures.jsonl", *METRICS)
    kinds = {name.partition(".")[0] for name in names}
    assert {kind for kind, artifact in found.items() if not artifact.present} == kinds | {"config", "notes", "benchmark"}
    assert found["failures"].path.endswith("rollouts_failures.jsonl")
    for name in names:
        put(tmp_path, f"rollouts_{name}", b"[]", how)
    assert {artifact.kind for artifact in artifacts_of(run) if artifact.present} == kinds | {"rollouts"}


def test_sidecars_of_a_compressed_run_and_of_shards(tmp_path: Path) -> None:
    path = make_run(tmp_path, ROWS, compress="gz")
    put(tmp_path, "rollouts_failures.jsonl", b"")
    assert sidecars.of_kind(artifacts_of(path), "failures") == [tmp_path / "rollouts_failures.jsonl"]
    shards = tuple(make_run(tmp_path, ROWS, name=f"r_shard{n}") for n in (0, 1))
    for name in ("r_shard0_failures.jsonl", "r_shard1_failures.jsonl", "r_failures.jsonl"):
        put(tmp_path, name, b"")
    assert len(sidecars.of_kind(sidecars.artifacts(find.Found("r", shards)), "failures")) == 3


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "kind", "entries", "numbers"), cases(__file__, "metrics"))
def test_metrics_of_all_generations(tmp_path: Path, reported: Read, case: str, kind: str, entries: Any, numbers: dict[str, float]) -> None:
    for how in (None, "gz", "zst"):
        put(tmp_path, f"rollouts_{kind}.json", entries, how)
        assert reported() == (numbers, []), case
        (tmp_path / f"rollouts_{kind}.json{f'.{how}' if how else ''}").unlink()


@pytest.mark.parametrize(("lines", "counts"), cases(__file__, "reward profiles"))
@pytest.mark.parametrize("how", [None, "gz", "zst"])
def test_reward_profiling(tmp_path: Path, reported: Read, lines: list[Row], counts: dict[str, float], how: str | None) -> None:
    put(tmp_path, "rollouts_reward_profiling.jsonl", joined(lines) + b"\n", how)
    assert reported() == ({"mean over tasks of mean/reward": 0.75, "tasks": 2.0, **counts}, [])


def test_numbers_of_the_agent_concerned(tmp_path: Path, diagnosed: Blade) -> None:
    rows = [{**row, "agent_ref": {"name": name}} for name in ("ann", "bob") for row in ROWS]
    path = make_run(tmp_path, rows)
    entries = [{"agent_ref": {"name": name}, "agent_metrics": {"mean/reward": value}} for name, value in (("ann", 0.75), ("bob", 0.1))]
    put(tmp_path, "rollouts_aggregate_metrics.json", entries)
    told = {entry["run"]: (entry["reported"], entry["explanation"]) for entry in diagnosed(f"x={path}").report["reported"]}
    assert told["x:ann"] == (0.75, "agrees")
    assert told["x:bob"][0] == 0.1
    assert told["x:bob"][1] != "agrees"


BROKEN: dict[str, Any] = {
    "empty": b"",
    "torn": b'[{"agent_ref": ',
    "binary": bytes(range(256)),
    "text": "hello",
    "number": 5,
    "list of numbers": [1, 2],
    "list of nulls": [None],
    "agent as text": [{"agent_ref": "x", "agent_metrics": ["y"], "key_metrics": 7}],
    "metrics as text": [{"agent_metrics": {"mean/reward": "high"}}],
    "NaN": b'[{"agent_metrics": {"mean/reward": NaN, "max/reward": Infinity}}]',
    "huge": b'[{"agent_metrics": {"mean/reward": 1' + b"0" * 400 + b"}}]",
    "deep": b"[" * 5000 + b"]" * 5000,
    "half of a gzip": packed(b"[" + b" " * 10_000 + b"]", "gz")[:30],
    "counts as text": {"mean/reward": {"a": 1}, "num_rollouts": [1]},
}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("case", BROKEN)
def test_broken_metrics_are_noted(tmp_path: Path, reported: Read, name: str, case: str) -> None:
    put(tmp_path, f"rollouts_{name}", BROKEN[case])
    numbers, notes = reported()
    assert numbers == {}
    assert notes
    assert all(f"rollouts_{name}" in note for note in notes)


@pytest.mark.parametrize("case", ["torn", "huge"])
def test_broken_metrics_do_not_stop_a_diagnosis(run: Path, tmp_path: Path, diagnosed: Blade, case: str) -> None:
    for name in METRICS:
        put(tmp_path, f"rollouts_{name}", BROKEN[case])
    said = diagnosed(run)
    assert said.run["n_rollouts"] == 4
    assert said.err.count("note: ") >= 4


# -- row sidecars ---------------------------------------------------------------------------------


def test_broken_lines_of_row_sidecars_are_noted_and_junk_counts_as_absent(tmp_path: Path, diagnosed: Blade) -> None:
    inputs = [make_input(row) for row in ROWS]
    path = make_run(tmp_path, ROWS[:3], inputs=[*inputs, "<torn"], failures=["junk", ROWS[3]])
    said = diagnosed(path)
    assert (said.run["expected_rollouts"], said.run["scored"], said.run["failed"]) == (4, 3, 1)
    files = [Path(entry["file"]).name for entry in said.report["skipped"]]
    assert files == ["rollouts_materialized_inputs.jsonl", "rollouts_failures.jsonl"]
    junk = make_run(tmp_path / "junk", ROWS, inputs=["junk"], failures=["junk"])
    assert diagnosed(junk).run["expected_rollouts"] == 4


# -- configuration --------------------------------------------------------------------------------

SECRETS = ("sk-secret", "hunter2", "Bearer abc", "token-123", "/home/someone/private")


def settings_of(path: Path) -> tuple[dict[str, str], list[str]]:
    notes: list[str] = []
    return sidecars.settings(artifacts_of(path), notes.append), notes


@pytest.mark.parametrize(("name", "content", "settings"), cases(__file__, "settings"))
def test_settings_that_bear_on_a_score_without_secrets(run: Path, tmp_path: Path, name: str, content: Any, settings: dict[str, str]) -> None:
    (tmp_path / ".hydra").mkdir()
    put(tmp_path, name, content.encode() if isinstance(content, str) else content)  # JSON is YAML
    assert settings_of(run) == (settings, [])


@pytest.mark.parametrize(("datasets", "name"), cases(__file__, "manifests"))
def test_a_manifest_names_the_benchmark(run: Path, tmp_path: Path, datasets: object, name: str | None) -> None:
    put(tmp_path, f"{run.stem}_manifest.json", json.dumps({"datasets": datasets}).encode())
    assert sidecars.benchmark(artifacts_of(run)).name == name
    put(tmp_path, "blade.toml", b'name = "declared"\n')
    assert sidecars.benchmark(artifacts_of(run)).name == "declared"


def test_secrets_reach_no_output(run: Path, tmp_path: Path, blade: Blade) -> None:
    put(tmp_path, "config.json", next(content for name, content, _ in cases(__file__, "settings") if name == "config.json"))
    said = blade("diagnose", run, "-o", tmp_path / "report")
    written = said.out + said.err + "".join(path.read_text() for path in (tmp_path / "report").glob("*.*"))
    assert not any(secret in written for secret in SECRETS)
    assert "num_repeats" in written


NO_YAML = (b"a: [1", b"\t- x", b"a: !!python/object/apply:os.system ['touch /tmp/owned']", b"a: !!int ''", b"a: !!bool x",
           b"? {a: 1}\n: 2", b"{" * 3000, bytes(range(256)), b"a: b: c")  # fmt: skip
HUGE = b'{"model": "' + b"m" * (5 << 20) + b'"}'


@pytest.mark.parametrize("content", [*NO_YAML, HUGE], ids=lambda content: repr(content[:30]))
def test_broken_config_is_noted(run: Path, tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "config.yaml", content)
    found, (note,) = settings_of(run)
    assert found == {}
    assert note.startswith("config.yaml could not be read: " + "it is larger than" * (content == HUGE))


LAYERS = [f"l{n}: &l{n} {{{', '.join(f'k{k}: *l{n - 1}' for k in range(10))}}}" for n in range(1, 9)]


@pytest.mark.parametrize(("content", "n"), [(b"\xff\xfe", 0), (b'{"model": "' + b"m" * 100_000 + b'"}', 1),
                                            ("\n".join(["l0: &l0 {model: x}", *LAYERS]).encode(), 60)], ids=["no text", "long", "swelling"])  # fmt: skip
def test_a_config_of_any_size_gives_few_short_settings(run: Path, tmp_path: Path, content: bytes, n: int) -> None:
    put(tmp_path, "config.yaml", content)
    values = settings_of(run)[0].values()
    assert len(values) == n
    assert all(len(value) <= 200 for value in values)


# -- notes ----------------------------------------------------------------------------------------


def test_notes_are_read_and_told_where_they_cannot_be(run: Path, tmp_path: Path, diagnosed: Blade, deny: Callable[[Path], None]) -> None:
    (tmp_path / "notes.md").write_text("# beside\n" + "x" * 100_000)
    (tmp_path / "other.md").write_bytes(b"given \xff")
    (beside,) = diagnosed(run).run["notes"]
    assert beside.startswith("# beside")
    assert len(beside) <= 20_000
    assert diagnosed(run, "--notes", tmp_path / "other.md").run["notes"] == ["given \ufffd"]
    (tmp_path / "notes.md").write_text("  \n")
    assert diagnosed(run).run["notes"] == []
    said = diagnosed(run, "--notes", tmp_path / "no.md")
    assert (said.code, said.error["slug"]) == (4, "unreadable-file")
    (tmp_path / "notes.md").write_text("x")
    deny(tmp_path / "notes.md")
    assert diagnosed(run).run["notes"] == ["notes.md could not be read: Permission denied"]


# -- blade.toml -----------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "facts"), cases(__file__, "blade.toml"))
def test_benchmark_facts(run: Path, tmp_path: Path, diagnosed: Blade, text: str, facts: dict[str, Any]) -> None:
    assert sidecars.benchmark(artifacts_of(run)).path is None
    (tmp_path / "blade.toml").write_text(text)
    told = msgspec.to_builtins(sidecars.benchmark(artifacts_of(run)))
    assert {name: json.loads(json.dumps(told[name])) for name in facts} == facts
    said = diagnosed(run)
    assert (said.run["benchmark"], said.run["pass_threshold"]) == (facts.get("name"), facts.get("pass_threshold", 1.0))


@pytest.mark.parametrize(("text", "why"), cases(__file__, "bad blade.toml"))
def test_bad_facts(run: Path, tmp_path: Path, diagnosed: Blade, text: str, why: str) -> None:
    (tmp_path / "blade.toml").write_text(text, encoding="latin-1")
    said = diagnosed(run)
    assert (said.code, said.error["slug"]) == (4, "bad-config")
    assert why in said.error["error"]


def test_the_draft_is_accepted_and_a_declared_code_names_the_rows_that_have_it(run: Path, tmp_path: Path, blade: Blade) -> None:
    (tmp_path / "blade.toml").write_text(blade("init", run).out)
    assert blade("diagnose", "--json", run).code == 0
    rows = [make_row(task, 0, float(task % 2), exit_code=137 if task % 6 == 0 else 0) for task in range(60)]
    path = make_run(tmp_path, rows)
    code = '[[codes]]\nfield = "exit_code"\nequals = 137\ncause = "IR"\nmode = "killed for memory"\n'
    (tmp_path / "blade.toml").write_text(code)
    groups = [one for one in blade("diagnose", "--json", path).report["groups"] if one["rung"] == "declared"]
    assert [(one["label"], one["name"], one["rows"], one["passed_rows"]) for one in groups] == [("IR", "killed for memory", 10, 0)]
