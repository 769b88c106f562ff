"""`blade read` as a user meets it: what is told before, printed, told after; and what is never told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Blade, Said
from tests.read.conftest import KEY, honest, label, place
from tests.read.server import Act, Call, Says, Server, Status


@pytest.fixture
def read(blade: Blade, server: Server, run_path: Path) -> Any:
    """Run `blade read RUN OPTIONS` against the endpoint."""

    def said(*options: object) -> Said:
        return blade("read", run_path, "--model", "m", "--base-url", server.url, *options)

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
    assert "asking   6 questions about 6 tasks of m at 127.0.0.1" in said.err
    assert "text of rollouts leaves this machine" in said.err
    assert "cost     about" in said.err
    assert "spent    6,000 tokens in and 600 out (measured): $0.0180" in said.err
    again = read("--label", "--price", "2,10")
    assert len(server.calls) == 6
    assert "asking   0 questions about 0 tasks of m" in again.err
    assert "6 answered before cost nothing" in again.err
    assert "spent    nothing" in again.err
    assert again.out.replace(", kept", "").replace("6 kept, 0 accepted", "0 kept, 6 accepted") == said.out


def test_a_dry_run_sends_nothing(read: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    said = read("--label", "--most", 2, "--dry-run", "--price", "1,1")
    assert said.code == 0, said.err
    assert server.calls == []
    assert "asking   2 questions" in said.out
    assert "4 of 6 failed tasks are not asked about" in said.out
    assert said.out.count(" tokens\n") == 2
    told = json.loads(read("--label", "--most", 2, "--dry-run", "--json").out)
    assert told["schema"] == "blade.agent.reader/1"
    assert len(told["questions"]) == 2
    assert told["estimate"]["likely"]["tokens_in"] == sum(one["tokens"] for one in told["questions"])
    assert all("BEGIN DATA" in one["user"] for one in told["questions"])
    assert server.calls == []


def test_json_says_the_same(read: Any) -> None:
    said = read("--label", "--task", 0, "--task", 5, "--json", "--price", "2,10")
    told = json.loads(said.out)
    assert told["counts"] == {"kept": 0, "accepted": 2, "discarded": 0, "failed": 0, "left": 0}
    assert [one["about"] for one in told["results"]] == ["0", "5"]
    assert told["results"][0]["evidence"] == [place(0)]
    assert told["spent"] == {"tokens_in": 2000, "tokens_out": 200, "estimated": 0, "usd": 0.006}
    assert told["agreement"]["n"] == 2


def test_what_was_thrown_away_is_listed_with_its_reason(read: Any, server: Server) -> None:
    def lying(call: Call, number: int) -> Act:
        if call.about == "1":
            return Says(label(1, evidence=[place(1, quote="Error: I made this up")]))
        return Status(400, "no") if call.about == "2" else honest(call, number)

    server.script = lying
    said = read("--label")
    assert said.code == 0
    assert "0 kept, 4 accepted, 1 discarded, 1 failed, 0 left" in said.out
    assert (
        "Discarded: 1, what they say does not hold, and is not used\n  task 1: quotation 1: step 3 of 1/0 does not hold"
        in said.out
    )
    assert "Failed: 1, no answer came\n  task 2: 127.0.0.1" in said.out


def test_the_key_is_nowhere(read: Any, server: Server, cache: Path) -> None:
    def loud(call: Call, number: int) -> Act:
        assert call.headers["authorization"] == f"Bearer {KEY}"
        if call.about == "1":
            return Says(label(1, because=f"The key is {KEY}."))
        if call.about == "2":
            return Status(400, f"Incorrect API key provided: {KEY}")
        if call.about == "3":
            return Says(f"not JSON, but your key is {KEY}")
        return honest(call, number)

    server.script = loud
    for options in ((), ("--json",), ("--fresh", "--task", "1")):
        said = read("--label", *options)
        assert said.code == 0
        assert KEY not in everything(said, cache)
    assert "[key]" in said.out
    server.script = lambda call, n: Status(401, f"bad key {KEY}")
    for options in ((), ("--json",)):
        said = read("--label", "--fresh", *options)
        assert said.code == 4
        assert "endpoint-refused" in said.err
        assert KEY not in everything(said, cache)
    told = "".join(json.dumps(call.body) for call in server.calls)
    assert KEY not in told


def disguised(key: str) -> dict[str, str]:
    """A key as an endpoint can spell it so that its bytes are not those of the key."""
    return {
        "json": "".join(f"\\u{ord(sign):04x}" for sign in key),
        "json in capitals": "".join(f"\\u{ord(sign):04X}" for sign in key),
        "in part": key[:9] + "".join(f"\\u{ord(sign):04x}" for sign in key[9:]),
        "escaped twice": "".join(f"\\\\u{ord(sign):04x}" for sign in key),
        "url": "".join(f"%{ord(sign):02x}" for sign in key),
        "html": "".join(f"&#{ord(sign)};" for sign in key),
        "hidden": "\u200b".join(key),
    }


@pytest.mark.parametrize("way", list(disguised(KEY)))
def test_the_key_is_nowhere_however_it_is_spelled(
    way: str, blade: Blade, server: Server, run_path: Path, cache: Path, tmp_path: Path
) -> None:
    spelled = disguised(KEY)[way]
    once = json.loads(f'"{spelled}"')  # as it stands in a body that is JSON itself
    said_of = {
        "1": lambda: Says(
            json.dumps(label(1, because="The key is HERE.", mode="HERE")).replace("HERE", spelled)
        ),
        "2": lambda: Status(400, f"Incorrect API key provided: {once} {'x' * 400}"),
        "3": lambda: Says(f"not JSON, but your key is {spelled}"),
        "4": lambda: Says(json.dumps(label(4, about="HERE")).replace("HERE", spelled)),
        "5": lambda: Says("", refusal=f"not with {once}"),
    }
    server.script = lambda call, n: said_of[call.about]() if call.about in said_of else honest(call, n)
    copy = tmp_path / "rollouts.jsonl"
    copy.write_bytes(run_path.read_bytes())
    told = ""
    for options in (("--json",), ("--fresh", "--record")):
        said = blade("read", copy, "--label", *options, "--model", "m", "--base-url", server.url)
        assert said.code == 0, said.err
        told += everything(said, cache)
    kept = (tmp_path / "rollouts_judgements.jsonl").read_text(encoding="utf-8")
    assert len(kept.splitlines()) == 2
    assert kept.count("[key]") == 2  # in the mechanism and in the mode
    for form in (KEY, *disguised(KEY).values()):
        assert form not in told + kept
        assert json.dumps(form)[1:-1] not in told + kept


def test_a_text_that_is_like_the_key_stays(read: Any, server: Server) -> None:
    near = KEY[:-1] + "m"
    server.script = lambda call, n: Says(label(call.about, because=f"It wrote {near}."))
    assert f"It wrote {near}." in read("--label", "--task", 0).out


def test_a_key_from_another_variable(read: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "another")
    assert read("--label", "--task", 0, "--key-env", "MY_KEY").code == 0
    assert server.calls[0].headers["authorization"] == "Bearer another"
    monkeypatch.setenv("BAD_KEY", "two\nlines")
    for name in ("NOT_SET", "BAD_KEY"):
        said = read("--label", "--key-env", name, "--json")
        assert said.code == 2
        assert said.error["slug"] == "no-key"


@pytest.mark.parametrize("word", ["k", "locked", "EMPTY"])
def test_a_word_in_place_of_a_key_is_no_secret(
    word: str, read: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", word)
    assert "1 accepted" in read("--label", "--task", 0).out


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ((), "usage"),
        (("--label", "--ask", "why"), "usage"),
        (("--ask", " "), "usage"),
        (("--label", "--choice", "yes"), "usage"),
        (("--ask", "why", "--record"), "usage"),
        (("--name-clusters", "--task", "0"), "usage"),
        (("--label", "--max-cost", "1"), "no-price"),
        (("--label", "--price", "cheap"), "no-price"),
        (("--label", "--price", "1,nan"), "no-price"),
        (("--label", "--base-url", "ftp://x"), "bad-endpoint"),
        (("--label", "--base-url", "http://host:port/v1"), "bad-endpoint"),
        (("--label", "--base-url", "http://[::1/v1"), "bad-endpoint"),
        (("--label", "--budget", "5"), "usage"),
        (("--label", "--task", "99"), "unknown-task"),
        (("--label", "--task", "6"), "nothing-to-ask"),
        (("--explain", "6"), "nothing-to-ask"),
        (("--label", "--concurrency", "0"), "usage"),
        (("--label", "--timeout", "0"), "usage"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_sent(
    options: tuple[str, ...], slug: str, read: Any, server: Server
) -> None:
    said = read(*options, "--json")
    assert said.code == 2, said.err
    assert said.error["slug"] == slug
    assert server.calls == []


def test_a_model_must_be_named(
    blade: Blade, server: Server, run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert blade("read", run_path, "--label", "--json").error["slug"] == "no-model"
    monkeypatch.setenv("BLADE_MODEL", "m2")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert blade("read", run_path, "--label", "--task", 0).code == 0
    assert server.calls[0].body["model"] == "m2"


def test_nothing_is_sent_to_the_public_endpoint_without_a_key(
    blade: Blade, server: Server, run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert blade("read", run_path, "--label", "--model", "m", "--json").error["slug"] == "no-key"


def test_an_endpoint_that_is_not_there(read: Any, server: Server) -> None:
    said = read("--label", "--task", 0, "--base-url", "http://127.0.0.1:9/v1", "--retries", 0, "--json")
    assert said.code == 4
    assert said.error["slug"] == "endpoint-refused"
    assert "no connection to 127.0.0.1:9" in said.error["error"]


def test_a_cap_is_told(read: Any, server: Server) -> None:
    said = read("--label", "--max-tokens", 6000, "--max-output", 1000)
    assert said.code == 0
    assert "stopped  the next call could pass the cap" in said.err
    assert "Left: " in said.out
    assert 0 < len(server.calls) < 6


def test_the_result_goes_into_a_file(read: Any, tmp_path: Path) -> None:
    target = tmp_path / "new" / "labels.json"
    said = read("--label", "--task", 0, "--json", "-o", target)
    assert said.code == 0, said.err
    assert said.out == ""
    assert json.loads(target.read_text())["counts"]["accepted"] == 1
    assert read("--label", "--task", 0, "--json", "-o", target).error["slug"] == "output-not-empty"
    assert read("--label", "--task", 0, "-o", target, "--force").out == f"Wrote {target}\n"


def test_labels_can_be_recorded(blade: Blade, server: Server, run_path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "rollouts.jsonl"
    copy.write_bytes(run_path.read_bytes())
    said = blade("read", copy, "--label", "--record", "--model", "m", "--base-url", server.url)
    assert said.code == 0, said.err
    assert "Recorded: 6 judgements beside the run" in said.out
    kept = [json.loads(line) for line in (tmp_path / "rollouts_judgements.jsonl").read_text().splitlines()]
    assert {one["by"] for one in kept} == {"model m"}
    later = blade("read", copy, "--label", "--model", "m", "--base-url", server.url, "--json")
    assert json.loads(later.out)["results"] == []
    assert "6 of 6 failed tasks are not asked about, 6 judged already" in later.err


def test_a_question_is_answered_and_counted(read: Any, server: Server) -> None:
    server.script = lambda call, n: Says(
        {"about": call.about, "answer": "yes", "because": "It is locked.", "evidence": [place(call.about)]}
    )
    said = read("--ask", "Was a lock ignored?", "--choice", "yes", "--choice", "no")
    assert "Question  Was a lock ignored?" in said.out
    assert "Counted over 6 tasks with an answer, of 6 asked about\n  6 of 6  yes: " in said.out


def test_hostile_words_of_an_answer_do_not_reach_the_terminal(read: Any, server: Server) -> None:
    dirty = "\x1b]0;owned\x07\x1b[2J\u202eevil"
    server.script = lambda call, n: Says(
        {
            "about": call.about,
            "answer": f"yes{dirty}",
            "because": f"so{dirty}\n# heading",
            "evidence": [place(call.about)],
        }
    )
    said = read("--ask", "Why?", "--task", "0")
    assert said.code == 0
    assert not {
        sign for sign in said.out if sign != "\n" and (ord(sign) < 32 or 0x202A <= ord(sign) <= 0x202E)
    }
    assert "\n# heading" not in said.out


def test_redacted_prompts_are_said_to_be_so(
    read: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    said = read("--label", "--task", 0, "--redact")
    assert said.code == 0, said.err
    assert "with placeholders for what looks private" in said.err
    assert "1 accepted" in said.out


def test_help_says_what_leaves_the_house(blade: Blade) -> None:
    said = blade("read", "--help")
    assert "TEXT OF YOUR ROLLOUTS IS SENT" in said.out
