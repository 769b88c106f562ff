"""The agent's loop: tools, what is wrong with calls, limits, tokens, the row that comes out, skills."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from blade.errors import UsageError
from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.runner import agent, skills
from tests.builders import make_message
from tests.case_tables import tables

CASES = tables(__file__)
TOOLS = [{"type": "function", "name": "add", "parameters": {}}]


def call(arguments: str, name: str = "add", call_id: str = "c1") -> Row:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}


async def verify(attempt: Attempt) -> Row:
    return {"verdict": "ok", "reward": 1, "total": attempt.state}


def add(state: list[int], name: str, arguments: Row) -> str:
    state.append(arguments["n"])
    return f"sum {sum(state)}"


WORLD = Environment("sums", verify, seed=lambda row: [], call=add)


def rolled(
    *turns: Row, world: Environment = WORLD, row: Row | None = None, skilled: skills.Skills | None = None, **settings: Any
) -> tuple[Row, list[Row]]:
    """The result row and the requests that the model saw."""
    requests: list[Row] = []

    async def respond(params: Row, _: Row) -> Row:
        requests.append(params)
        return json.loads(json.dumps(turns[min(len(requests), len(turns)) - 1]))

    task = {"responses_create_params": {"input": [{"role": "user", "content": "q"}], "tools": TOOLS}, **(row or {})}
    return asyncio.run(agent.run(task, respond, world, settings, skilled)), requests


def outputs(result: Row) -> list[str]:
    return [item["output"] for item in result["response"]["output"] if item["type"] == "function_call_output"]


def test_calls_of_one_turn_are_answered_in_order_and_shown_to_the_model() -> None:
    first = {"id": "r1", "output": [call('{"n": 1}', call_id="a"), call('{"n": 2}', call_id="b")]}
    result, requests = rolled(first, {"id": "r2", "output": [make_message("3")]})
    assert outputs(result) == ["sum 1", "sum 3"]
    assert [item.get("call_id") for item in requests[1]["input"]] == [None, "a", "b", "a", "b"]
    assert requests[1]["tools"] == TOOLS
    assert (result["response"]["id"], result["total"]) == ("r2", [1, 2])
    row = {"responses_create_params": {"input": "q", "tools": TOOLS}}
    _, requests = rolled({"output": [call('{"n": 1}')]}, {"output": [make_message("x")]}, row=row)
    assert requests[0]["input"] == "q"
    assert requests[1]["input"][0] == {"role": "user", "content": "q"}


def test_the_row_begins_with_request_response_reward_ends_with_the_verifiers_fields_and_sums_tokens_in_depth() -> None:
    row = {"expected": 3, "agent_ref": {"name": "a"}, "skills_ref": {}, "_ng_task_index": 7, "verdict": "old"}
    usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 4}, "total_tokens": 3}
    turns = [{"output": [call('{"n": 1}')], "usage": count} for count in (usage, None)]
    result, _ = rolled(*turns, {"output": [make_message("3")], "usage": usage}, row=row)
    assert list(result) == ["responses_create_params", "response", "reward", "expected", "verdict", "total"]
    assert (type(result["reward"]), result["reward"], result["verdict"]) == (float, 1.0, "ok")
    assert result["response"]["usage"] == {"input_tokens": 2, "input_tokens_details": {"cached_tokens": 8}, "total_tokens": 6}


def test_what_is_wrong_with_a_call_is_told_to_the_model() -> None:
    for wrong, error in (
        (call('{"n": 1'), "not JSON"), (call("[1]"), "must be a JSON object"),
        (call("{}", name="subtract"), "there is no tool 'subtract'"), (call("[" * 100_000), "not JSON"),
    ):  # fmt: skip
        result, requests = rolled({"output": [wrong, call('{"n": 5}', call_id="ok")]}, {"output": [make_message("5")]})
        answer, fine = outputs(result)
        assert (error in json.loads(answer)["error"], fine, len(requests)) == (True, "sum 5", 2)


@pytest.mark.parametrize(("turn", "n_requests", "answers"), CASES["last_turns"])
def test_a_loop_ends_at_max_steps_or_with_a_turn_that_calls_nothing_whole(turn: Row, n_requests: int, answers: list[str]) -> None:
    result, requests = rolled(turn, max_steps=3)
    assert (len(requests), outputs(result)) == (n_requests, answers)
    assert result["response"].get("incomplete_details") == turn.get("incomplete_details")


def test_a_verifier_that_cannot_judge_hands_on_what_was_said_and_no_reward_is_no_measurement() -> None:
    async def judge(attempt: Attempt) -> Row:
        raise Unmeasured("judge_failed", "no verdict")

    with pytest.raises(Unmeasured) as error:
        rolled({"output": [make_message("x")]}, world=Environment("j", judge), row={"expected": 1})
    fields = error.value.fields
    assert (fields["response"]["output"], fields["expected"], fields["_ng_failure_stage"]) == ([make_message("x")], 1, "verify")
    for reward in (None, "1", []):

        async def nothing(attempt: Attempt, reward: Any = reward) -> Row:
            return {"reward": reward}

        with pytest.raises(Unmeasured, match="verifier_error"):
            rolled({"output": [make_message("x")]}, world=Environment("n", nothing))


ALPHA = "---\nname: alpha\ndescription: d1\nmetadata:\n  version: 1.0\n---\nbody\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    files = {"README": "top", "a/SKILL.md": ALPHA, "a/z.txt": "x", "a-b/SKILL.md": "---\nname: beta\n---\n"}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_the_published_vector_and_what_the_hash_covers(folder: Path, tmp_path: Path) -> None:
    assert skills.loaded("as given", folder).ref() == {
        "path": "as given", "hash": "95545cc3ced2", "skills": [
            {"name": "alpha", "description": "d1", "version": "1.0"}, {"name": "beta", "description": None, "version": None},
        ],
    }  # fmt: skip
    hashes = [skills.loaded("x", folder).hash]
    (tmp_path / "text").write_text("one")
    for change in (
        lambda: (folder / "a" / ".hidden").write_text(""), lambda: (folder / "a" / "z.txt").write_text("y"),
        lambda: (folder / "a" / "file").symlink_to(tmp_path / "text"), lambda: (tmp_path / "text").write_text("two"),
    ):
        change()
        hashes.append(skills.loaded("x", folder).hash)
    assert len(set(hashes)) == 5
    (tmp_path / "whole").symlink_to(folder)
    assert skills.loaded("d", tmp_path / "whole").hash == hashes[-1]


@pytest.mark.parametrize(("text", "error"), CASES["frontmatter"])
def test_bad_frontmatter_is_named_and_a_byte_order_mark_is_none_of_it(folder: Path, text: str, error: str) -> None:
    (folder / "a" / "SKILL.md").write_text(text)
    with pytest.raises(UsageError, match=error):
        skills.loaded("d", folder)
    (folder / "a" / "SKILL.md").write_bytes(b"\xef\xbb\xbf---\nname: n\nversion: 9\n---\n")
    assert skills.loaded("d", folder).skills[0].version is None  # one at the top is none


def test_what_is_no_folder_of_skills_or_holds_a_linked_one(folder: Path, tmp_path: Path) -> None:
    # the hash would not cover a folder behind a link
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "SKILL.md").write_text(ALPHA)
    for link in (folder / "linked", folder / "a" / "linked"):
        link.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(UsageError, match="linked is a link to a folder"):
            skills.loaded("d", folder)
        link.unlink()
    (tmp_path / "empty").mkdir()
    (folder / ".git").mkdir()
    places = {tmp_path / "nowhere": "no folder", folder / "README": "is a file", tmp_path / "empty": "no skill", folder: "has no SKILL.md"}
    for path, error in places.items():
        with pytest.raises(UsageError, match=error):
            skills.loaded(str(path))


def test_a_skill_is_read_and_nothing_beside_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush")
    (folder / "a" / "link").symlink_to(tmp_path / "secret")
    (folder / "a" / "inside").symlink_to("z.txt")
    skilled = skills.loaded("d", folder)
    assert skilled.read({"skill": "alpha", "path": "SKILL.md"}) == ALPHA
    assert skilled.read({"skill": "alpha", "path": "inside"}) == "x"
    assert "SKILL.md" in skilled.read({"skill": "alpha", "path": "."})
    for path in ("../README", "../a-b/SKILL.md", "link", str(tmp_path / "secret"), "a\0b", "none", "../../secret"):
        text = skilled.read({"skill": "alpha", "path": path})
        assert text.startswith("Error: "), path
        assert not {"hush", "top"} & set(text.split())
    assert skilled.read({"skill": "gamma", "path": "SKILL.md"}).startswith("Error: there is no skill 'gamma'")


def test_the_agent_lists_them_and_the_model_can_read_them(folder: Path) -> None:
    first = {"output": [call(json.dumps({"skill": "alpha", "path": "SKILL.md"}), skills.READ_TOOL)]}
    row = {"responses_create_params": {"input": "x", "instructions": "Be brief."}}
    result, requests = rolled(first, {"output": [make_message("done")]}, row=row, skilled=skills.loaded("d", folder))
    instructions = requests[0]["instructions"]
    assert instructions.startswith("Be brief.")
    assert instructions.endswith("- alpha: d1\n- beta: (no description)")
    assert outputs(result) == [ALPHA]
    assert [tool["name"] for tool in result["responses_create_params"]["tools"]] == [skills.READ_TOOL]
    assert result["responses_create_params"]["input"] == "x"
    assert row["responses_create_params"] == {"input": "x", "instructions": "Be brief."}
