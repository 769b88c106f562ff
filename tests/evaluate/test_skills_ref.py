"""The folder of skills: its hash, its stamp, what the agent may read, and what is refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from blade.errors import UsageError
from blade_eval.environment import Attempt, Environment, Row
from blade_eval.runner import agent, skills

ALPHA = "---\nname: alpha\ndescription: d1\nmetadata:\n  version: 1.0\n---\nbody\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    for name, text in {
        "README": "top", "a/SKILL.md": ALPHA, "a/z.txt": "x", "a-b/SKILL.md": "---\nname: beta\n---\n"
    }.items():  # fmt: skip
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_published_vector(folder: Path) -> None:
    assert skills.loaded("as given", folder).ref() == {
        "path": "as given",
        "hash": "95545cc3ced2",
        "skills": [
            {"name": "alpha", "description": "d1", "version": "1.0"},
            {"name": "beta", "description": None, "version": None},
        ],
    }


def test_hidden_files_and_contents_count(folder: Path) -> None:
    before = skills.hashed(folder)
    (folder / "a" / ".hidden").write_text("")
    hidden = skills.hashed(folder)
    (folder / "a" / "z.txt").write_text("y")
    assert len({before, hidden, skills.hashed(folder)}) == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: x\n", "does not begin with frontmatter"),
        ("---\nname: x\n", "does not end"),
        ("---\nname: [\n---\n", "is not YAML"),
        ("---\n- a\n---\n", "is not a mapping"),
        ("---\nversion: 1\n---\n", "has no name"),
        ("", "does not begin with frontmatter"),
    ],
)
def test_bad_frontmatter_is_named(folder: Path, text: str, says: str) -> None:
    (folder / "a" / "SKILL.md").write_text(text)
    with pytest.raises(UsageError, match=says):
        skills.loaded("d", folder)


def test_a_byte_order_mark_is_taken_and_a_version_at_the_top_is_not(folder: Path) -> None:
    (folder / "a" / "SKILL.md").write_bytes(b"\xef\xbb\xbf---\nname: n\nversion: 9\n---\n")
    assert skills.loaded("d", folder).skills[0].version is None


def test_what_is_no_folder_of_skills(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (folder / ".git").mkdir()
    for path, says in (
        (tmp_path / "nowhere", "no folder"), (folder / "README", "is a file"),
        (tmp_path / "empty", "no skill"), (folder, "has no SKILL.md"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=says):
            skills.loaded(str(path))


@pytest.mark.parametrize("where", ["linked", "a/linked"])
def test_a_linked_folder_is_refused_because_the_hash_would_not_cover_it(
    folder: Path, tmp_path: Path, where: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "SKILL.md").write_text(ALPHA)
    (folder / where).symlink_to(elsewhere)
    with pytest.raises(UsageError, match="linked is a link to a folder"):
        skills.loaded("d", folder)


def test_a_linked_file_and_a_link_to_the_whole_folder_are_covered(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "whole").symlink_to(folder)
    (tmp_path / "text").write_text("one")
    (folder / "a" / "file").symlink_to(tmp_path / "text")
    before = skills.loaded("d", tmp_path / "whole").hash
    assert before == skills.loaded("d", folder).hash
    (tmp_path / "text").write_text("two")
    assert skills.loaded("d", folder).hash != before


def test_a_skill_is_read_and_nothing_beside_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush")
    (folder / "a" / "link").symlink_to(tmp_path / "secret")
    (folder / "a" / "inside").symlink_to("z.txt")
    found = skills.loaded("d", folder)
    assert found.read({"skill": "alpha", "path": "SKILL.md"}) == ALPHA
    assert found.read({"skill": "alpha", "path": "inside"}) == "x"
    assert "SKILL.md" in found.read({"skill": "alpha", "path": "."})
    for path in (
        "../README",
        "../a-b/SKILL.md",
        "link",
        str(tmp_path / "secret"),
        "a\0b",
        "none",
        "../../secret",
    ):
        told = found.read({"skill": "alpha", "path": path})
        assert told.startswith("Error: "), path
        assert "hush" not in told
        assert "top" not in told
    assert found.read({"skill": "gamma", "path": "SKILL.md"}).startswith("Error: there is no skill 'gamma'")


def test_the_agent_lists_them_and_the_model_can_read_them(folder: Path) -> None:
    asked: list[Row] = []

    async def respond(params: Row, row: Row) -> Row:
        asked.append(params)
        if len(asked) == 1:
            call = {"type": "function_call", "name": skills.READ_TOOL, "call_id": "1",
                    "arguments": json.dumps({"skill": "alpha", "path": "SKILL.md"})}  # fmt: skip
            return {"output": [call]}
        return {"output": [{"type": "message", "role": "assistant", "content": "done"}]}

    async def verify(attempt: Attempt) -> Row:
        return {"reward": 1.0}

    row = {"responses_create_params": {"input": "x", "instructions": "Be brief."}}
    result = asyncio.run(agent.run(row, respond, Environment("e", verify), {}, skills.loaded("d", folder)))
    instructions = asked[0]["instructions"]
    assert instructions.startswith("Be brief.")
    assert "- alpha: d1" in instructions
    assert "- beta" in instructions
    assert result["response"]["output"][1]["output"] == ALPHA
    assert [tool["name"] for tool in result["responses_create_params"]["tools"]] == [skills.READ_TOOL]
    assert result["responses_create_params"]["input"] == "x"
    assert row["responses_create_params"] == {"input": "x", "instructions": "Be brief."}
