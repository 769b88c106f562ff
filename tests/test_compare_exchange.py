"""What a comparison must say whichever run comes first, and however its rows are written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.builders import make_input, make_response, make_row, make_rows, make_run
from tests.compared import (
    Compared,
    Pairs,
    assert_adds_up,
    assert_mirrored,
    by_json,
    drawn,
    only,
    screen,
    some_slow,
    turned,
    two_runs,
    without_claims,
    word,
    written,
)
from tests.conftest import Blade
from tests.report.test_wire import VALIDATOR
from tests.same import of_rows
from tools.planted.paired_runs import CAUSES


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    return written(tmp_path_factory)


@pytest.fixture
def compared(blade: Blade) -> Compared:
    return without_claims(blade)


# -- exchanged ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", some_slow(CAUSES, "one failure mode fixed", "tasks dropped", "verifier changed"))
def test_exchanging_the_runs_turns_every_sign_and_no_meaning(compared: Compared, pairs: Pairs, cause: str) -> None:
    pair = pairs(cause)
    runs = f"one={pair.baseline}", f"two={pair.candidate}"
    one, other = only(compared(*runs)), only(compared(*runs[::-1]))
    assert one["delta"] != 0
    assert_mirrored(one, other)


def rough(folder: Path, unbounded: bool) -> tuple[str, str]:
    """Runs that share some tasks: others are added, removed, modified or lost; repeats, limits, ends differ."""
    rng = random.Random(8)
    specs = []
    for name, others, repeats, lost in (("one", (60, 61, 62, 63), 2, (3, 4)), ("two", (70, 71, 72), 3, (8,))):
        rows = []
        for task in (*range(40), *others):
            text = f"question {task}" + (" in other words" if name == "two" and task in (5, 6, 7) else "")
            for repeat in range(repeats):
                reward = rng.choice((0.0, 0.25, 1.0, 1.0)) + (0.2 if name == "two" and task % 3 == 0 else 0.0)
                row = make_row(
                    task, repeat, 3 * reward - 1 if unbounded else min(reward, 1.0),
                    question=text, expected_answer=f"gold {text}", category=f"kind {task % 3}", level=f"level {task % 2}",
                    response=make_response(model=f"sim-{name}"),
                )  # fmt: skip
                row["responses_create_params"] = {
                    "input": [{"role": "user", "content": text}],
                    "temperature": 0.5 if name == "one" else 1.0,
                }
                rows.append(row)
        kept = [row for row in rows if row["_ng_task_index"] not in lost and rng.random() < 0.95]
        for row in rng.sample(kept, 6):
            row |= {"reward": -1.0 if unbounded else 0.0, "error": "429 Too Many Requests: rate limit exceeded"}
        specs.append(f"{name}={make_run(folder / name, kept, inputs=map(make_input, rows))}")
    return specs[0], specs[1]


@pytest.mark.parametrize("unbounded", [False, True])
@pytest.mark.parametrize("quick", [False, True])
def test_exchanging_rough_runs_turns_every_sign(compared: Compared, tmp_path: Path, unbounded: bool, quick: bool) -> None:
    runs = rough(tmp_path, unbounded)
    options = ["--quick"] if quick else []
    one, other = only(compared(*runs, *options)), only(compared(*runs[::-1], *options))
    sizes = {
        kind: one["alignment"][kind]["n"]
        for kind in ("common", "added", "removed", "modified", "missing_baseline", "missing_candidate")
    }
    assert sizes == {"common": 34, "added": 3, "removed": 4, "modified": 3, "missing_baseline": 2, "missing_candidate": 1}
    assert {term["term"] for term in one["bridge"]} >= {
        "added tasks", "removed tasks", "modified tasks", "tasks the candidate lost", "tasks the baseline lost",
    }  # fmt: skip
    assert_adds_up(one)
    assert_adds_up(other)
    assert_mirrored(one, other)


def test_the_mirror_sees_a_sign_that_does_not_turn(compared: Compared, pairs: Pairs) -> None:
    pair = pairs("one slice worse")
    one = only(compared(f"one={pair.baseline}", f"two={pair.candidate}"))
    for spoil in (
        lambda found: found["bridge"][0].update(value=-found["bridge"][0]["value"]),
        lambda found: found.update(verdict=word(found["verdict"])),
        lambda found: found["tests"][0].update(low=found["tests"][0]["low"] + 1e-6),
        lambda found: found["views"][0]["terms"][0].update(p=0.5),
    ):
        other = turned(one)
        assert_mirrored(one, other)
        spoil(other)
        with pytest.raises(AssertionError):
            assert_mirrored(one, other)


# -- the same run, other tasks --------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--quick",)])
def test_a_run_held_against_itself_is_recognised(
    compared: Compared, blade: Blade, pairs: Pairs, tmp_path: Path, options: tuple[str, ...]
) -> None:
    pair = pairs("nothing")
    rows = pair.baseline.read_bytes().splitlines(keepends=True)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(b"".join(random.Random(3).sample(rows, len(rows))))
    one = only(compared(pair.baseline, copy, *options))
    assert one["identical"] is True
    assert (one["verdict"], one["verdict_new_tasks"]) == ("equivalent", "equivalent")
    assert one["delta"] == one["delta_common"] == 0
    for terms in (one["bridge"], *(view["terms"] for view in one["views"])):
        assert terms
        assert [term["value"] for term in terms if term["value"] != 0] == []
    assert (one["movers"], one["flips"]) == ([], [])
    assert (one["churn"]["gains"], one["churn"]["losses"]) == (0, 0)
    assert {shift["change"] for shift in one["shifts"]} <= {0}
    said = blade("compare", pair.baseline, copy, *options).out
    assert "equivalent: both runs hold the same rows" in said


def test_runs_without_a_common_task_are_refused_with_a_reason(blade: Blade, compared: Compared, tmp_path: Path) -> None:
    other = [make_row(task, repeat, 1.0) for task in range(100, 112) for repeat in (0, 1)]
    runs = two_runs(tmp_path, drawn(1, 12, 2), other)
    out = tmp_path / "out"
    said = blade("compare", *runs, "-o", out)
    assert said.code == 0
    lines = screen(said.out.partition("Wrote ")[0])
    assert any(line.startswith("Refused      the runs have no task in common") for line in lines)
    document = compared(*runs)
    VALIDATOR.validate(document)
    one = only(document)
    assert "no task in common" in one["refused"]
    assert (one["delta"], one["verdict"], one["verdict_new_tasks"], one["bridge"]) == (None, None, None, [])
    assert (one["alignment"]["added"]["n"], one["alignment"]["removed"]["n"]) == (12, 12)
    assert "Not compared" in (out / "compare.md").read_text(encoding="utf-8")


# -- the same rows in another form ----------------------------------------------------------------


@pytest.mark.parametrize("cause", some_slow(["infra outage", "one failure mode fixed", "tasks dropped"], "infra outage"))
def test_order_shards_and_compression_change_nothing(blade: Blade, pairs: Pairs, tmp_path: Path, cause: str) -> None:
    pair, compared = pairs(cause), by_json(blade)
    plain = of_rows(compared(f"a={pair.baseline}", f"b={pair.candidate}"))
    rng = random.Random(4)
    lines = {name: path.read_bytes().splitlines() for name, path in (("a", pair.baseline), ("b", pair.candidate))}
    forms: dict[str, list[str]] = {"shards": [], "packed": []}
    for name, held in lines.items():
        mixed = rng.sample(held, len(held))
        for at in range(3):
            make_run(tmp_path / "shards" / name, mixed[at::3], name=f"part-{at}", compress="gz" if at == 1 else None)
        forms["shards"].append(f"{name}={tmp_path / 'shards' / name}/part-*.jsonl*")
        mixed = rng.sample(held, len(held))
        forms["packed"].append(f"{name}={make_run(tmp_path / 'packed' / name, mixed, compress='zst')}")
    for form, runs in forms.items():
        assert of_rows(compared(*runs)) == plain, form


# -- what is claimed ------------------------------------------------------------------------------


def test_a_fall_of_everything_is_no_pass_and_an_unchanged_model_is_no_failure(compared: Compared, tmp_path: Path) -> None:
    fall = only(
        compared(
            *two_runs(
                tmp_path / "fall", make_rows({t: [1.0] * 5 for t in range(10)}),
                make_rows({t: [1.0] + [0.0] * 4 for t in range(10)}),
            )
        )
    )
    assert (fall["verdict"], fall["verdict_new_tasks"]) == ("regressed", "regressed")
    same = only(compared(*two_runs(tmp_path / "same", drawn(1, 400, 8), drawn(2, 400, 8))))
    assert (same["verdict"], same["verdict_new_tasks"]) == ("equivalent", "equivalent")
    assert same["movers"] == []


def test_runs_judged_by_different_thresholds_are_refused_until_one_is_given(compared: Compared, tmp_path: Path) -> None:
    half = [{**row, "reward": row["reward"] / 2} for row in drawn(2, 20, 2)]
    runs = two_runs(tmp_path, drawn(1, 20, 2), half)
    (tmp_path / "two" / "blade.toml").write_text('name = "x"\npass_threshold = 0.5\n')
    first = only(compared(*runs))
    assert "--pass-threshold" in first["refused"]
    second = only(compared(*runs, "--pass-threshold", "0.5"))
    assert second["refused"] is None
    assert second["delta"] is not None


def test_a_text_is_known_again_whichever_form_is_the_commoner(compared: Compared, tmp_path: Path) -> None:
    """Two forms of one message stand in both runs; which of them is common differs."""
    forms = (
        "The records differ: expected blue lamp {n}, found no change.",
        "The records differ: expected blue lamp {n}, found green lamp {m}.",
    )
    runs = []
    for n_first in (2, 20):
        rows = drawn(1, 40, 2, 1.0)
        for at, row in enumerate(rows[:30]):
            text = forms[0 if at < n_first else 1].format(n=20 + at, m=60 + at)
            row |= {"reward": 0.0, "verifier_message": text}
        runs.append(rows)
    one = only(compared(*two_runs(tmp_path, *runs)))
    told = {shift["name"]: shift["status"] for shift in one["shifts"] if "records differ" in shift["name"]}
    assert not {"appeared", "disappeared"} & set(told.values()), told


def test_an_error_is_counted_on_every_row_that_shows_it(compared: Compared, tmp_path: Path) -> None:
    runs = []
    for n_broken in (45, 0):
        rows = make_rows({task: [float(task >= n_broken)] * 20 for task in range(60)})
        runs.append([{**row, "stderr": "fatal: no space left on device"} if row["reward"] == 0 else row for row in rows])
    one = only(compared(*two_runs(tmp_path, *runs)))
    (shift,) = [shift for shift in one["shifts"] if shift["kind"] == "signature" and "no space" in shift["name"]]
    assert (shift["baseline"], shift["candidate"], shift["status"]) == (pytest.approx(0.75), 0, "disappeared")
