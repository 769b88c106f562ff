"""`blade show --dossier`: a dossier on the screen or as JSON, and what makes no sense is refused."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from blade.agent.dossier import BUDGET, LEAST
from blade.agent.dossier.budget import tokens
from tests.builders import make_row, make_run
from tests.conftest import Blade
from tests.dossier.conftest import desk_rows
from tests.dossier.reading import commands, focus


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", desk_rows())


def test_the_dossier_of_a_task_by_its_key_and_by_its_name_on_the_screen_and_as_json(blade: Blade, run: Path) -> None:
    by_key = blade("show", run, "0", "--dossier")
    assert by_key.code == 0
    assert by_key.out.startswith("# dossier of one task: sometimes passes")
    assert by_key.out == blade("show", run, "desk-0", "--dossier").out
    assert tokens(by_key.out) <= BUDGET
    assert focus(blade("show", run, "desk-0/3", "--dossier").out) == 3
    printed = json.loads(blade("show", run, "0", "--dossier", "--budget", 900, "--json").out)
    assert list(printed) == ["run", "task", "tokens", "budget", "text"]
    assert printed["text"] == blade("show", run, "0", "--dossier", "--budget", 900).out
    assert printed["tokens"] == tokens(printed["text"]) <= printed["budget"] == 900
    assert (printed["run"], printed["task"]) == ("rollouts", "0")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("0 --budget 900", "--dossier"),
        ("0 --dossier --steps 1:2", "--steps"),
        ("0 --dossier --chars 10", "--chars"),
        (f"0 --dossier --budget {LEAST - 1}", str(LEAST)),
        ("0/9 --dossier", "repeats 0, 1, 2, 3"),
        ("77 --dossier", "its 6 tasks are"),
        ("0 --dossier --run other", "rollouts"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_do(blade: Blade, run: Path, words: str, says: str) -> None:
    refused = blade("show", run, *words.split())
    assert (refused.code, refused.out) == (2, "")
    assert says in refused.err.partition("hint:")[2]


def test_of_several_runs_one_is_named(blade: Blade, tmp_path: Path) -> None:
    rows = [make_row(task, 0, 0.0, agent_ref={"name": name}) for name in ("ann", "bob") for task in range(3)]
    path = make_run(tmp_path, rows)
    refused = blade("show", path, "1", "--dossier")
    assert (refused.code, "rollouts:ann" in refused.err) == (2, True)
    said = blade("show", path, "1", "--dossier", "--run", "rollouts:bob")
    assert said.code == 0
    assert all(" --run rollouts:bob" in line for line in commands(said.out))


def test_the_commands_of_a_dossier_show_what_they_promise(blade: Blade, run: Path) -> None:
    text = blade("show", run, "0", "--dossier").out
    shows = [line for line in commands(text) if line.startswith("blade show")]
    assert len(shows) == 2
    for line in shows:
        said = blade(*shlex.split(line)[1:])
        assert (said.code, "write_order" in said.out) == (0, True)
