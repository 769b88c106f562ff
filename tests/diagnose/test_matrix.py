"""Several runs on the same tasks: golds to review, golds that differ, files that do not belong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blade import pipeline
from blade.model import TaskMatrix
from blade.tables.index import Silent
from tests.builders import make_run
from tests.diagnose.builders import quiz_row
from tests.diagnose.rows import Row

MODELS = ("amber", "birch", "cedar", "dune")
SKILL = (0.9, 0.8, 0.7, 0.6)


def gold_of(task: int) -> int:
    return task * 13 + 41


def run_of(model: str, skill: float, wrong_golds: set[int], seed: int, shift: int = 0, letters: bool = False) -> Iterator[Row]:
    """50 tasks, 3 tries: a model is right with its skill, and wrong in its own way otherwise, now and then as others are."""
    chance = random.Random(f"{seed} {model}")
    for task in range(50):
        right = "ABCD"[task % 4] if letters else str(gold_of(task + shift))
        gold = ("ABCD"[(task + 1) % 4] if letters else str(gold_of(task + shift) + 7)) if task in wrong_golds else right
        is_known = chance.random() < skill
        for repeat in range(3):
            slip = "ABCD"[chance.randrange(4)] if letters else str(gold_of(task) + chance.choice((1, 10, 100, -1)))
            answer = right if is_known and chance.random() < 0.95 else slip
            row = quiz_row(task, repeat, float(answer == gold), answer, gold, prompt=f"Question {task + shift}: how many? Box it.")
            row["response"]["model"] = model
            yield row


def matrix_of(folder: Path, runs: dict[str, list[Row]]) -> TaskMatrix:
    paths = []
    for name, rows in runs.items():
        paths.append(f"{name}={make_run(folder / name, rows)}")
    report = pipeline.diagnose(pipeline.load(paths, Silent()), "test")
    assert report.task_matrix is not None
    return report.task_matrix


pytestmark = pytest.mark.usefixtures("cache")


def by_skill(wrong: set[int], seed: int) -> dict[str, Iterator[Row]]:
    return {model: run_of(model, skill, wrong, seed) for model, skill in zip(MODELS, SKILL, strict=True)}


@pytest.mark.parametrize("seed", range(3))
def test_wrong_golds_that_several_models_contradict(tmp_path: Path, seed: int) -> None:
    """5 of 50 golds are wrong and 4 models know better: at least 4 are found, at most 1 other is named."""
    wrong = set(random.Random(seed).sample(range(50), 5))
    named = {int(task) for task in matrix_of(tmp_path, by_skill(wrong, seed)).gold_to_review}
    assert len(named & wrong) >= 4
    assert len(named - wrong) <= 1


@pytest.mark.parametrize(("runs", "most"), [
    (lambda: by_skill(set(), 7), 1),  # right golds
    (lambda: {model: run_of(model, 0.4, set(), 3, letters=True) for model in MODELS}, 1),  # weak models agree on letters by chance
    (lambda: {f"try{number}": run_of("amber", 0.9, {4, 9, 30}, number) for number in range(4)}, 0),  # repeats of one model are one voice
])  # fmt: skip
def test_golds_that_are_not_to_review(tmp_path: Path, runs: Callable[[], dict[str, Iterator[Row]]], most: int) -> None:
    assert len(matrix_of(tmp_path, runs()).gold_to_review) <= most


def test_golds_that_differ_between_files(tmp_path: Path) -> None:
    runs = {"amber": run_of("amber", 0.9, set(), 1), "birch": run_of("birch", 0.9, {12, 31}, 1)}
    assert set(matrix_of(tmp_path, runs).gold_differs) == {"12", "31"}


def test_file_of_other_tasks_does_not_belong(tmp_path: Path) -> None:
    runs = {model: run_of(model, 0.8, set(), 5, shift=3 if model == "cedar" else 0) for model in MODELS}
    assert matrix_of(tmp_path, runs).misfit_runs == ("cedar",)
