"""Hostile text in the rows of both runs, through `blade compare` and its pages."""

from __future__ import annotations

import json
import random
import re
import shlex
from pathlib import Path

import pytest

from blade import hostile
from tests.builders import DROP, Row, make_call, make_message, make_response, make_result, make_row, make_run
from tests.compared import drawn, only, screen
from tests.conftest import Blade
from tests.inert import assert_inert_markdown
from tests.report.test_hostile import DECEIVING, HOSTILE, Page
from tests.report.test_wire import VALIDATOR


def traced(task: int, repeat: int, reward: float, bad: str) -> Row:
    """A row that holds a hostile text wherever a run can hold one."""
    output = [
        make_call("c1", f"look{bad}"[:60], json.dumps({"x": bad})), make_result("c1", f"Error: {bad}"),
        make_message(f"{bad} said"),
    ]
    return make_row(
        f"{bad}#{task}", repeat, reward, question=f"{bad} {task}", task_name=f"{bad} {task}", category=f"{bad}-{task % 2}",
        **{f"f{bad}"[:40] or "f": bad}, error=f"{bad}" if repeat == 1 and task % 3 == 0 else DROP,
        response=make_response(output, model=f"model {bad}"), agent_ref={"name": f"agent {bad}"},
    )


def write_hostile(folder: Path, bad: str) -> list[str]:
    """Two runs that differ in their model, their temperature and their score."""
    rng = random.Random(2)
    specs = []
    for name, rate in (("one", 0.2), ("two", 0.9)):
        rows = [traced(task, repeat, float(rng.random() < rate), bad) for task in range(12) for repeat in (0, 1)]
        for row in rows:
            row["responses_create_params"] |= {"temperature": rate, "instructions": f"{bad} {name}"}
            row["response"]["model"] = f"{bad} {name}"
        specs.append(f"{name}={make_run(folder / name, [json.dumps(row) for row in rows])}")
    return specs


@pytest.mark.parametrize("which", HOSTILE)
def test_hostile_text_does_nothing_anywhere(blade: Blade, tmp_path: Path, which: str) -> None:
    bad, out = HOSTILE[which][:300], tmp_path / "out"
    texts = compared(blade, *write_hostile(tmp_path, bad), "-o", out)
    document = json.loads(texts["compare.json"])
    VALIDATOR.validate(document)
    assert only(document)["refused"] is None
    assert only(document)["alignment"]["common"]["n"] == 12
    for seen in re.findall(r"[A-Za-z]{4,12}", hostile.line(bad))[:1]:  # it is told, not left out
        assert seen in texts["compare.md"]
        assert seen in texts["compare.html"]
    page = Page(texts["compare.html"])
    assert not page.open
    assert not {tag for tag, _ in page.tags} & {"iframe", "details", "b", "link", "object", "form"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert re.fullmatch(r"#[a-z0-9-]+", attributes.get("href") or "#a")
        assert (attributes.get("src") or "data:image/svg+xml").startswith("data:image/svg+xml")


def compared(blade: Blade, *arguments: object) -> dict[str, str]:
    """The files of a comparison into the folder named last; nothing foreign does anything in them or on the screen."""
    said = blade("compare", *arguments)
    assert said.code == 0, said.err
    assert not DECEIVING.search(said.out + said.err)
    screen(said.out.partition("Wrote ")[0])
    out = Path(str(arguments[-1]))
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(out.rglob("*")) if path.is_file()}
    assert [name for name, text in texts.items() if DECEIVING.search(text)] == []
    assert_inert_markdown(texts["compare.md"], image=r"figures/compare-[a-z0-9-]+\.svg")
    for line in re.findall(r"^blade show .*$", texts["compare.md"], re.MULTILINE):
        parts = shlex.split(line, comments=True)
        assert len(parts) == 4
        assert not parts[2].startswith("-")
    return texts


def test_hostile_names_of_runs_and_hostile_field_values(blade: Blade, tmp_path: Path) -> None:
    for bad in (HOSTILE[name] for name in ("script", "ansi", "newlines")):
        rows = [{**row, "kind": f"{bad} {row['_ng_rollout_index'] % 2}"} for row in drawn(1, 10, 2)]
        path = make_run(tmp_path / "run", [json.dumps(row) for row in rows])
        compared(blade, f"x={path}", "--by", "kind", "-o", tmp_path / "out")
        wrong = blade("compare", f"x={path}", "--by", bad)
        assert wrong.code == 2
        assert not DECEIVING.search(wrong.err)
