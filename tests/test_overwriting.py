"""What a red team got written through links, over inputs and over foreign pages: each is refused (H4, H5, M4-M6)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blade import errors
from blade import report as pages
from blade.sanitize import files
from tests.builders import make_row, make_run
from tests.conftest import Blade

MAIL = "mara.quint@initech.io"


@pytest.fixture(autouse=True)
def _in_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`in/` holds a text and links out of the folder; `far.txt` and `far/` lie outside."""
    monkeypatch.setenv("BLADE_SANITIZE_KEY", "a key for tests, of some length")
    monkeypatch.chdir(tmp_path)
    for name, text in {"far.txt": "far away\n", "far/x.md": "far too\n", "in/a.md": f"ask {MAIL}\n"}.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    for name, target in {"notes.txt": "far.txt", "sub": "far", "dead.md": "nowhere"}.items():
        Path("in", name).symlink_to(tmp_path / target)


def test_h4_nothing_outside_a_folder_is_shared_through_its_links(blade: Blade) -> None:
    said = blade("sanitize", "in", "-o", "out")
    assert said.code == errors.EXIT_UNREADABLE
    assert [path.name for path in Path("out").rglob("*") if path.is_file()] == ["a.md"]
    assert all(f"in/{name} was left out: it is a link" in said.err for name in ("notes.txt", "sub", "dead.md"))


@pytest.mark.parametrize("given", ["in/notes.txt", "in/sub", "link"])
def test_h4_a_link_that_is_named_is_not_followed(blade: Blade, tmp_path: Path, given: str) -> None:
    Path("link").symlink_to(tmp_path / "in")
    said = blade("sanitize", given, "-o", "out")
    assert (said.code, Path("out").exists()) == (errors.EXIT_USAGE, False)
    assert "is a link, and is not followed" in said.err


@pytest.mark.parametrize("root", ["", "/"])
def test_h4_a_link_on_the_way_to_a_named_file_is_not_followed(blade: Blade, tmp_path: Path, root: str) -> None:
    """A shell expands `in/*/*.md` through links that nobody named (B3)."""
    said = blade("sanitize", f"{tmp_path}/in/sub/x.md" if root else "in/sub/x.md", "-o", "out")
    assert (said.code, Path("out").exists()) == (errors.EXIT_USAGE, False)
    assert "in/sub is a link, and is not followed" in said.err


def test_h4_a_link_to_the_folder_of_all_files_is_followed(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("alias").symlink_to(tmp_path / "in")
    monkeypatch.chdir(tmp_path / "far")
    assert blade("sanitize", tmp_path / "alias/a.md", "-o", "out").code == 0
    two = (tmp_path / "alias/a.md", tmp_path / "far.txt")
    assert "alias is a link" in blade("sanitize", *two, "-o", "out2").err


@pytest.mark.parametrize("place", ["in/own", "in"])
def test_h4_a_folder_that_becomes_a_link_meanwhile_is_not_read(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """After the last look at a file and before it is opened (B1)."""
    Path("in/own").mkdir()
    Path("in/own/x.md").write_text("mine\n", encoding="utf-8")
    Path("far/own").mkdir()
    Path("far/own/x.md").write_text("far too\n", encoding="utf-8")
    looks = files.is_text

    def swapped(path: Path, is_told: bool) -> bool:
        answer = looks(path, is_told)
        if path.name == "x.md" and not Path("moved").exists():
            Path(place).rename("moved")
            Path(place).symlink_to(tmp_path / "far")
        return answer

    monkeypatch.setattr(files, "is_text", swapped)
    said = blade("sanitize", "in/own", "in/a.md", "-o", "out")
    assert said.code == errors.EXIT_UNREADABLE, said.err
    assert not [path for path in Path("out").rglob("*") if path.is_file()]


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("place", ["out/in", "out/in/own", "out/in/own/x.md", "out"])
def test_h4_a_place_that_becomes_a_link_meanwhile_is_not_written_through(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, force: list[str]
) -> None:
    """After everything was cleaned and before it is put in place (B2)."""
    Path("in/own").mkdir()
    Path("in/own/x.md").write_text("mine\n", encoding="utf-8")
    Path("far/in/own").mkdir(parents=True)
    for name in ("far/x.md", "far/own/x.md", "far/in/own/x.md"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("far too\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in Path("far").rglob("*") if path.is_file()}

    def swapped(export: files.Export, written: object) -> None:
        if Path(place).exists():
            Path(place).rename("moved")
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).symlink_to(tmp_path / ("far/x.md" if place.endswith("x.md") else "far"))

    monkeypatch.setattr(files.Export, "test", swapped)
    for name in ("dead.md", "notes.txt", "sub"):
        Path("in", name).unlink()
    said = blade("sanitize", "in", "-o", "out", *force)
    assert said.code != 0
    assert {path: path.read_bytes() for path in Path("far").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("name", ["out/a.md", "removed.json"])
def test_h4_what_came_meanwhile_is_overwritten_only_when_told(
    blade: Blade, monkeypatch: pytest.MonkeyPatch, name: str, force: list[str]
) -> None:
    def swapped(export: files.Export, written: object) -> None:
        Path("out").mkdir(exist_ok=True)
        Path(name).write_text("somebody else's\n", encoding="utf-8")

    monkeypatch.setattr(files.Export, "test", swapped)
    said = blade("sanitize", "in/a.md", "-o", "out", "--report", "removed.json", *force)
    assert (said.code == 0, Path(name).read_text() == "somebody else's\n") == (bool(force), not force), said.err


@pytest.mark.parametrize("link", ["out/a.md", "out", "out/in"])
def test_h4_no_clean_file_is_written_through_a_link(blade: Blade, tmp_path: Path, link: str) -> None:
    source = "in" if link == "out/in" else "in/a.md"
    if link != "out":
        Path("out").mkdir()
        Path(link).symlink_to(tmp_path / ("far" if link == "out/in" else "far.txt"))
        assert "written through" in blade("sanitize", source, "-o", "out", "--force").err
    assert Path("far.txt").read_text() == "far away\n"
    assert [path.name for path in Path("far").iterdir()] == ["x.md"]


@pytest.mark.parametrize("report", ["in/a.md", "out/a.md", "key", "hard.md", "link.md", "far", "in/../in/a.md"])
@pytest.mark.parametrize("more", [["-o", "out"], ["--check"]])
def test_h5_a_report_overwrites_nothing_that_is_read_or_written(blade: Blade, report: str, more: list[str]) -> None:
    Path("key").write_text("k" * 40)
    Path("hard.md").hardlink_to("in/a.md")
    Path("link.md").symlink_to(Path("in/a.md").absolute())
    if report == "out/a.md" and "--check" in more:
        return  # nothing else is written there
    said = blade("sanitize", "in/a.md", *more, "--key", "key", "--report", report, "--force")
    assert (said.code, "output-not-empty" in said.err) == (errors.EXIT_USAGE, True)
    assert [Path(name).read_text() for name in ("in/a.md", "key", "far.txt")] == [f"ask {MAIL}\n", "k" * 40, "far away\n"]


@pytest.mark.parametrize("report", ["config/blade/sanitize.key", "in/blade.toml", "blade.toml"])
@pytest.mark.parametrize("more", [["-o", "out"], ["--check"]])
def test_h5_a_report_overwrites_neither_the_own_key_nor_a_policy_that_was_found(
    blade: Blade, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, report: str, more: list[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    Path("config/blade").mkdir(parents=True)
    Path("config/blade/sanitize.key").write_text("k" * 40)
    for name in ("in/blade.toml", "blade.toml"):
        Path(name).write_text('[sharing]\nnames = ["Quillmark"]\n', encoding="utf-8")
    before = Path(report).read_bytes()
    said = blade("sanitize", "in/a.md", *more, "--report", report, "--force")
    assert (said.code, "output-not-empty" in said.err) == (errors.EXIT_USAGE, True)
    assert Path(report).read_bytes() == before


def test_h5_a_report_overwrites_a_foreign_file_only_when_told(blade: Blade) -> None:
    for more in (["in/a.md", "-o", "out"], ["in/a.md", "--check"]):
        assert "output-not-empty" in blade("sanitize", *more, "--report", "far.txt").err
    assert Path("far.txt").read_text() == "far away\n"


@pytest.mark.parametrize("output", ["r.md", "run/rollouts.jsonl", "link.md"])
@pytest.mark.parametrize("command", [["check", "r.md", "--run", "run"], ["cite", "r.md", "--run", "run"], ["draft", "run"]])
def test_h5_no_command_writes_over_what_it_reads(blade: Blade, command: list[str], output: str) -> None:
    make_run(Path("run"), [make_row(task, 0, float(task % 2)) for task in range(4)])
    Path("r.md").write_text("50% of 4 tasks pass.\n", encoding="utf-8")
    Path("link.md").symlink_to(Path("far.txt").absolute())
    rows = Path("run/rollouts.jsonl").read_bytes()
    said = blade(*command, "-o", output, "--force")
    if command[0] == "draft" and output == "r.md":
        return  # it does not read it
    assert (said.code, "output-not-empty" in said.err) == (errors.EXIT_USAGE, True), said.err
    assert Path("run/rollouts.jsonl").read_bytes() == rows
    assert Path("r.md").read_text() == "50% of 4 tasks pass.\n"
    assert Path("far.txt").read_text() == "far away\n"


TEXTS = {"report.md": "page\n", "report.json": "{}\n", "figures/a.svg": "<svg/>\n"}


@pytest.mark.parametrize("name", sorted(TEXTS))
@pytest.mark.parametrize(
    "spoil", [lambda path: path.write_text("mine\n"), lambda path: path.write_text(path.read_text() + " and mine")]
)
def test_m4_a_page_that_is_not_as_we_left_it_is_kept(name: str, spoil: Callable[[Path], int]) -> None:
    out = Path("out")
    pages.put(out, TEXTS, False, force=False)
    pages.put(out, TEXTS, False, force=False)  # ours, as we left it
    spoil(out / name)
    mine = (out / name).read_text()
    with pytest.raises(errors.UsageError, match="was not written by blade, or was changed since"):
        pages.put(out, TEXTS, False, force=False)
    assert (out / name).read_text() == mine
    pages.put(out, TEXTS, False, force=True)
    assert (out / name).read_text().startswith(TEXTS[name])


@pytest.mark.parametrize("link", ["figures", "report.md", "figures/a.svg"])
def test_m5_nothing_is_written_through_a_link_in_the_folder(tmp_path: Path, link: str) -> None:
    Path("out", link).parent.mkdir(parents=True)
    Path("out", link).symlink_to(tmp_path / ("far" if link == "figures" else "far.txt"))
    for force in (False, True):
        with pytest.raises(errors.UsageError, match="is a link"):
            pages.put(Path("out"), TEXTS, False, force=force)
    assert Path("far.txt").read_text() == "far away\n"
    assert [path.name for path in Path("far").iterdir()] == ["x.md"]


@pytest.mark.parametrize("fails", ["write", "replace"])
def test_m6_a_disk_that_fills_leaves_the_pages_of_one_run(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    out = Path("out")
    pages.put(out, TEXTS, False, force=False)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    opens, replaces, calls = Path.open, os.replace, iter(range(9))

    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None: ...

        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

    def opened(path: Path, mode: str = "r", *rest: Any, **named: Any) -> object:
        return Full() if mode == "xb" and "json" in path.name else opens(path, mode, *rest, **named)

    def replaced(*paths: Any) -> None:
        if next(calls) == 1:
            raise OSError(28, "No space left on device")
        replaces(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(*((Path, "open", opened) if fails == "write" else (os, "replace", replaced)))
        with pytest.raises(OSError, match="No space"):
            pages.put(out, {name: f"new {text}" for name, text in TEXTS.items()}, False, force=False)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
