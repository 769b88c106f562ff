"""`blade read` as a user meets it: what is told before, printed, told after; and what is never told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from tests.case_tables import cases
from tests.conftest import Blade, Said
from tests.read.conftest import KEY, honest, label, place
from tools.model_server import Act, Call, Server, Status, says


@pytest.fixture
def read(blade: Blade, server: Server, run_path: Path) -> Any:
    """Run `blade read RUN OPTIONS` against the endpoint."""

    def said(*options: object, run: Path = run_path) -> Said:
        return blade("read", run, "--model", "m", "--base-url", server.url, *options)

    return said


def everything(said: Said, cache: Path) -> str:
    """All that a command left behind: what it printed, and every file of the cache."""
    files = [path.read_bytes().decode("latin-1") for path in cache.rglob("*") if path.is_file()]
    return "\n".join([said.out, said.err, *files])


def test_labels_are_printed_with_their_quotations_and_costs(read: Any, server: Server) -> None:
    said = read("--label", "--price", "2,10")
    assert said.code == 0, said.err
    assert "Labels of rollouts by model m: 6 of 6" in said.out
    assert "repeat 0, step 3: “Error: record R-000 is locked by another writer”" in said.out
    assert "Agreement with the engine: " in said.out
    for words in (
        "asking   6 questions about 6 tasks of m at 127.0.0.1", "text of rollouts leaves this machine", "cost     about",
        "spent    6,000 tokens in and 600 out (measured): $0.0180",
    ):  # fmt: skip
        assert words in said.err
    again = read("--label", "--price", "2,10")
    assert len(server.calls) == 6
    for words in ("asking   0 questions about 0 tasks of m", "6 answered before cost nothing", "spent    nothing"):
        assert words in again.err
    assert again.out.replace(", kept", "").replace("6 kept, 0 accepted", "0 kept, 6 accepted") == said.out


def test_a_dry_run_sends_nothing(read: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    said = read("--label", "--most", 2, "--dry-run", "--price", "1,1")
    assert said.code == 0, said.err
    assert "asking   2 questions" in said.out
    assert "4 of 6 failed tasks are not asked about" in said.out
    assert said.out.count(" tokens\n") == 2
    printed = json.loads(read("--label", "--most", 2, "--dry-run", "--json").out)
    assert printed["schema"] == "blade.agent.reader/1"
    assert ["BEGIN DATA" in one["user"] for one in printed["questions"]] == [True, True]
    assert printed["estimate"]["likely"]["tokens_in"] == sum(one["tokens"] for one in printed["questions"])
    assert server.calls == []


def test_json_says_the_same_also_in_a_file(read: Any, tmp_path: Path) -> None:
    target = tmp_path / "new" / "labels.json"
    said = read("--label", "--task", 0, "--task", 5, "--json", "--price", "2,10", "-o", target)
    assert (said.code, said.out) == (0, ""), said.err
    printed = json.loads(target.read_text())
    assert printed["counts"] == {"kept": 0, "accepted": 2, "discarded": 0, "failed": 0, "left": 0}
    assert [one["about"] for one in printed["results"]] == ["0", "5"]
    assert printed["results"][0]["evidence"] == [place(0)]
    assert printed["spent"] == {"tokens_in": 2000, "tokens_out": 200, "estimated": 0, "usd": 0.006}
    assert printed["agreement"]["n"] == 2
    assert read("--label", "--task", 0, "--json", "-o", target).error["slug"] == "output-not-empty"
    assert read("--label", "--task", 0, "-o", target, "--force").out == f"Wrote {target}\n"


@pytest.mark.parametrize("name", cases(__file__, "printed"))
def test_what_is_printed(name: str, read: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    case: dict[str, Any] = cases(__file__, "printed")[name]
    acts: dict[str, Act] = {
        task: Status(**act) if "code" in act else says(label(task, evidence=[place(task, **act)]))
        for task, act in case.get("acts", {}).items()
    }
    server.script = lambda call, n: acts.get(call.about) or honest(call, n)
    said = read(*case["options"].split())
    assert said.code == 0, said.err
    assert [words for words in case["out"] if words not in said.out] == []
    assert [words for words in case.get("err", ()) if words not in said.err] == []
    assert 0 < len({call.about for call in server.calls}) <= 6 - ("--max-tokens" in case["options"])


def disguised(key: str) -> dict[str, str]:
    """A key as an endpoint can spell it so that its bytes are not those of the key."""
    return {
        "plain": key,
        "json": "".join(f"\\u{ord(sign):04x}" for sign in key),
        "json in capitals": "".join(f"\\u{ord(sign):04X}" for sign in key),
        "in part": key[:9] + "".join(f"\\u{ord(sign):04x}" for sign in key[9:]),
        "escaped twice": "".join(f"\\\\u{ord(sign):04x}" for sign in key),
        "url": "".join(f"%{ord(sign):02x}" for sign in key),
        "html": "".join(f"&#{ord(sign)};" for sign in key),
        "hidden": "\u200b".join(key),
    }


@pytest.mark.parametrize("way", list(disguised(KEY)))
def test_the_key_is_nowhere_however_it_is_spelled(way: str, read: Any, server: Server, copy: Path, cache: Path) -> None:
    spelled = disguised(KEY)[way]
    once = json.loads(f'"{spelled}"')  # as it stands in a body that is JSON itself
    acts: dict[str, Act] = {
        "1": says(json.dumps(label(1, because="The key is HERE.", mode="HERE")).replace("HERE", spelled)),
        "2": Status(400, f"Incorrect API key provided: {once} {'x' * 400}"),
        "3": says(f"not JSON, but your key is {spelled}"),
        "4": says(json.dumps(label(4, about="HERE")).replace("HERE", spelled)),
        "5": says("", refusal=f"not with {once}"),
    }
    server.script = lambda call, n: acts.get(call.about) or honest(call, n)
    left = ""
    for options in (("--json",), ("--fresh", "--record")):
        said = read("--label", *options, run=copy)
        assert said.code == 0, said.err
        left += everything(said, cache)
    server.script = lambda call, n: Status(401, f"bad key {once}")
    said = read("--label", "--fresh")
    assert (said.code, "endpoint-refused" in said.err) == (4, True)
    recorded = copy.with_name("rollouts_judgements.jsonl").read_text(encoding="utf-8")
    assert (len(recorded.splitlines()), recorded.count("[key]")) == (2, 2)  # in the mechanism and in the mode
    left += everything(said, cache) + recorded + json.dumps([call.body for call in server.calls if not call.is_second])
    assert not [form for form in disguised(KEY).values() if form in left or json.dumps(form)[1:-1] in left]
    assert {call.headers["Authorization"] for call in server.calls} == {f"Bearer {KEY}"}


def test_a_text_that_is_like_the_key_stays(read: Any, server: Server) -> None:
    near = KEY[:-1] + "m"
    server.script = lambda call, n: says(label(call.about, because=f"It wrote {near}."))
    assert f"It wrote {near}." in read("--label", "--task", 0).out


def test_a_key_from_another_variable(read: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "another")
    assert read("--label", "--task", 0, "--key-env", "MY_KEY").code == 0
    assert server.calls[0].headers["Authorization"] == "Bearer another"
    monkeypatch.setenv("BAD_KEY", "two\nlines")
    for name in ("NOT_SET", "BAD_KEY"):
        assert read("--label", "--key-env", name, "--json").error["slug"] == "no-key"


@pytest.mark.parametrize("word", ["k", "locked", "EMPTY"])
def test_a_word_in_place_of_a_key_is_no_secret(word: str, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", word)
    assert "1 accepted" in read("--label", "--task", 0).out


@pytest.mark.parametrize(("slug", "options"), cases(__file__, "refused"))
def test_what_cannot_be_asked_is_refused_before_anything_is_sent(slug: str, options: str, read: Any, server: Server) -> None:
    said = read(*options.split(), "--json")
    assert (said.code, said.error["slug"]) == (2, slug)
    assert server.calls == []


def test_a_model_must_be_named(blade: Blade, server: Server, run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert blade("read", run_path, "--label", "--json").error["slug"] == "no-model"
    monkeypatch.setenv("BLADE_MODEL", "m2")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert blade("read", run_path, "--label", "--task", 0).code == 0
    assert server.calls[0].body["model"] == "m2"
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):  # nothing is sent to the public endpoint without a key
        monkeypatch.delenv(name)
    assert blade("read", run_path, "--label", "--json").error["slug"] == "no-key"


def test_an_endpoint_that_is_not_there(read: Any) -> None:
    said = read("--label", "--task", 0, "--base-url", "http://127.0.0.1:9/v1", "--retries", 0, "--json")
    assert (said.code, said.error["slug"]) == (4, "endpoint-refused")
    assert "no connection to 127.0.0.1:9" in said.error["error"]


def test_labels_can_be_recorded_and_stand_in_for_the_engine(read: Any, server: Server, copy: Path) -> None:
    open_one = {"answer": "undetermined", "evidence": []}
    server.script = lambda call, n: says(label(call.about, **(open_one if call.about == "5" else {})))
    said = read("--label", "--record", run=copy)
    assert said.code == 0, said.err
    assert "Recorded: 5 judgements beside the run\n  not recorded: task 5: " in said.out
    recorded = [json.loads(line) for line in copy.with_name("rollouts_judgements.jsonl").read_text().splitlines()]
    assert sorted(one["task"] for one in recorded) == ["0", "1", "2", "3", "4"]
    assert {(one["by"], one["cause"], one["mode"]) for one in recorded} == {("model m", "BI", "ignored a tool error")}
    after = pipeline.session([str(copy)])
    judged = {one.task for one in after.facts[after.run().name].attributions if one.judged_by == "model m"}
    assert judged == {"0", "1", "2", "3", "4"}
    later = read("--label", "--json", run=copy)
    assert [one["about"] for one in json.loads(later.out)["results"]] == ["5"]
    assert "5 of 6 failed tasks are not asked about, 5 judged already" in later.err


def test_a_question_over_all_failures_is_counted_without_what_deceives(read: Any, server: Server) -> None:
    def script(call: Call, number: int) -> Act:
        word = {"5": "undetermined", "4": "YES"}.get(call.about, "yes")
        evidence = [] if call.about == "5" else [place(call.about)]
        dirty = "\x1b]0;owned\x07\x1b[2J\u202eevil"
        return says(label(call.about, answer=word, mode="", because=f"so{dirty}\n# heading", evidence=evidence))

    server.script = script
    said = read("--ask", "Was a lock ignored?", "--choice", "yes", "--choice", "no")
    assert "Question  Was a lock ignored?" in said.out
    counted = said.out.partition("\nCounted over 6 tasks with an answer, of 6 asked about\n")[2].splitlines()
    assert [re.sub(r"\d(?:, \d)*$", "TASKS", line) for line in counted] == ["  5 of 6  yes: TASKS", "  1 of 6  undetermined: TASKS"]
    assert sorted(re.findall(r"\d", counted[0].partition(": ")[2])) == ["0", "1", "2", "3", "4"]
    assert not {sign for sign in said.out if sign != "\n" and (ord(sign) < 32 or 0x202A <= ord(sign) <= 0x202E)}
    assert "\n# heading" not in said.out
    assert "The question: Was a lock ignored?" in server.calls[0].turns[0]["content"]
    schema = server.calls[0].body["text"]["format"]["schema"]
    assert schema["properties"]["answer"]["enum"] == ["yes", "no", "undetermined"]


def test_help_says_what_leaves_the_house(blade: Blade) -> None:
    assert "TEXT OF YOUR ROLLOUTS IS SENT" in blade("read", "--help").out
