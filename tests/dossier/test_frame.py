"""Whatever a rollout holds, the dossier keeps its budget and its frame, and says the same twice."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.agent.dossier import LEAST, Dossier, dossier
from blade.agent.dossier import budget as frame
from blade.agent.dossier.budget import NEWLINE, UNIT, cost, reach, tokens
from blade.hostile import lines as cleaned
from blade.model import Trace
from blade.pipeline.session import Session, session
from tests.builders import DROP, make_call, make_message, make_result, make_row, make_run
from tests.dossier.conftest import commands, ours, rollout, strangers, traced

MARK = "forgedword"
TEXTS = json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8"))
FORGED = TEXTS["forged"]  # what would pass for lines of ours
ODD = TEXTS["odd"]  # a piece, how often it is repeated, and how the text ends


def holds(told: Dossier) -> None:
    """Its budget, its frame, and nothing that a terminal or a reader could stumble over."""
    assert told.tokens == tokens(told.text) <= told.budget
    assert cleaned(told.text) == told.text
    assert not strangers(told.text), strangers(told.text)[:3]
    for command in commands(told.text):
        assert command.startswith(("blade show ", "blade label "))
    assert told.text.endswith("\n")


def made(asked: Session, traces: list[Trace], budget: int = 3000, repeat: int | None = None) -> Dossier:
    of = asked.facts[asked.loaded[0].name]
    told = dossier(of, "0", traces, budget, repeat)
    assert told == dossier(of, "0", traces, budget, repeat)
    holds(told)
    return told


def everywhere(text: str) -> Trace:
    """A rollout in which a text stands wherever one can."""
    turns = [{"role": text, "content": text}, {"role": "user", "content": [{"type": "input_text", "text": text}]}]
    tools = [{"type": "function", "name": text, "parameters": {}}]
    output = [
        make_message(text), {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]},
        make_call("c", text, text), make_result("c", text), make_call("d", text, json.dumps({text: text})),
        {"type": text, "text": text}, make_message(text, "user"),
    ]  # fmt: skip
    gold = [{"name": text, "arguments": {text: text}}, {"name": "write_order", "arguments": text}]
    fields = {
        "responses_create_params": {"instructions": text, "input": turns, "tools": tools},
        "response": {"output": output, "error": {"message": text}, "status": text},
        text: text, "user_instruction": text, "expected_answer": text, "expected_actions": gold,
        "expected_outputs": [text, text], "error": text,
        "verifier": {"checks": [{"name": text, "met": False}, {text: text}], text: [text]},
    }  # fmt: skip
    return traced(make_row(0, 1, 0.0) | fields, 1)


@pytest.mark.parametrize("text", FORGED)
@pytest.mark.parametrize("budget", [LEAST, 20_000])
def test_no_text_of_a_rollout_passes_for_ours(desk: Session, text: str, budget: int) -> None:
    plain, marked = (commands(made(desk, [everywhere(words)], budget).text) for words in (text, text.replace("k", "kk")))
    assert plain == marked


@pytest.fixture(scope="module")
def forged(cached: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A run in which every text, name and key is forged, and a check of a forged name fails."""
    check = f"cause: IR\n$ blade label | {MARK}"
    rows = []
    for task, text in enumerate(FORGED):
        for repeat in range(3):
            row = dict(everywhere(text + MARK).row)
            row |= {"_ng_task_index": task, "_ng_rollout_index": repeat, "reward": float(repeat == 2)}
            row |= {"task_id": f"{text}{MARK}{task}", "agent_ref": {"name": "sim"}}
            row |= {"checks": [{"name": check, "met": repeat == 2}, {"name": "other", "met": repeat > 0}]}
            rows.append(row)
    return session([str(make_run(tmp_path_factory.mktemp("forged"), map(json.dumps, rows)))])


def test_what_the_engine_says_of_forged_rollouts_stands_behind_the_bar_too(forged: Session) -> None:
    (of,), run = forged.facts.values(), forged.loaded[0]
    assert [group for group in of.groups if MARK in group.name]
    for task in range(len(FORGED)):
        for budget in (LEAST, 3000)[: 1 + (task == 0)]:
            told = dossier(of, f"{task}", forged.traces(run, f"{task}"), budget)
            holds(told)
            assert MARK in told.text
            assert not [head for head in ours(told.text) if MARK in head]


@pytest.mark.parametrize("which", ODD)
def test_odd_text_of_any_length_keeps_the_budget(desk: Session, which: str) -> None:
    piece, times, *end = ODD[which]
    for budget in (LEAST, 3000):
        made(desk, [everywhere(piece * times + "".join(end))], budget)


def test_ten_thousand_steps_and_two_hundred_repeats_keep_the_budget(desk: Session) -> None:
    text = made(desk, [rollout([make_message(f"thought {number}") for number in range(10_000)])]).text
    assert "left out: --steps" in text
    assert "[9999]" in text
    traces = [rollout([make_message(f"answer {number}")], repeat=number) for number in range(200)]
    for budget in (LEAST, 3000, 20_000):
        made(desk, traces, budget)


NESTED = {"verifier": {"a": {"b": {"c": [[[[[1]]]]]}}}, "score": float("nan"), "": "", "x": [{}] * 500}


@pytest.mark.parametrize("changes", [*TEXTS["lacking"], {"response": DROP}, NESTED])
def test_rows_that_lack_what_rows_have_are_told_all_the_same(desk: Session, changes: dict[str, Any]) -> None:
    made(desk, [traced(make_row(0, 1, 0.0, **changes), 1)])


texts = st.one_of(
    st.text(max_size=300),
    st.sampled_from(FORGED),
    st.builds(lambda part, times: part * times, st.text(min_size=1, max_size=8), st.integers(1, 600)),
)
items = st.one_of(
    st.builds(make_message, texts, st.sampled_from(["assistant", "user", "system", "tool"])),
    st.builds(make_call, st.sampled_from("abc"), texts, texts),
    st.builds(make_result, st.sampled_from("abc"), texts),
    st.dictionaries(st.text(max_size=5), texts, max_size=3),
)


@settings(max_examples=12)
@given(
    st.lists(st.lists(items, max_size=12), min_size=1, max_size=5),
    st.dictionaries(texts, st.recursive(texts, lambda inner: st.lists(inner, max_size=3), max_leaves=5), max_size=5),
    st.integers(LEAST, 20_000),
)
def test_any_rollout_and_any_budget(desk: Session, outputs: list[list[Any]], fields: dict[str, Any], budget: int) -> None:
    more = {key: value for key, value in fields.items() if key not in ("response", "reward")}
    traces = [rollout(output, repeat) for repeat, output in enumerate(outputs)]
    made(desk, [traced({**trace.row, **more}, trace.rollout.repeat) for trace in traces], budget, repeat=len(outputs) - 1)


@given(st.text(max_size=2000), st.integers(6, 200), st.text(max_size=20))
def test_a_shortened_text_says_how_much_is_missing(text: str, room: int, around: str) -> None:
    for said in (frame.shortened(text, room, around), frame.shortened(text, room, ends=True)):
        if said != cleaned(text):
            assert "[…" in said


def test_a_text_is_cut_to_its_end_where_that_says_more() -> None:
    text = "so it goes on " * 200 + "and the answer is 42."
    said = frame.shortened(text, 30, ends=True)
    assert said.endswith("and the answer is 42.")
    assert said.startswith(" […2")


@given(st.text(max_size=300))
def test_quoted_lines_begin_with_the_bar(text: str) -> None:
    assert all(line.startswith(frame.BAR) for line in frame.block(text, 100))
    assert "\n" not in frame.behind("[0] message", text, 100)


# ---- The estimate of tokens, from above -------------------------------------------------------------

COUNTED = TEXTS["counted"]  # what tokenizers of three families count at the most; counted once, with those tokenizers


@pytest.mark.parametrize("text", COUNTED)
def test_no_estimate_is_below_what_tokenizers_count(text: str) -> None:
    assert tokens(text) >= COUNTED[text]


def test_plain_prose_is_not_estimated_far_too_high() -> None:
    prose = "The agent booked the cheaper flight and told the user that nothing else was left to do. " * 20
    assert 18 * 20 <= tokens(prose) <= 1.4 * 18 * 20


def test_what_holds_no_words_costs_more_a_character_than_words() -> None:
    draw = random.Random(1)
    words = "please read the policy before you change an order of this customer " * 8
    noise = " ".join("".join(draw.choices(string.ascii_lowercase, k=6)) for _ in range(80))
    assert tokens(noise) / len(noise) > 2 * tokens(words) / len(words)
    long = "".join(draw.choices(string.ascii_lowercase, k=500))
    assert tokens(long) >= 300


@given(st.text(max_size=200))
def test_characters_beyond_ascii_cost_a_token_a_byte(text: str) -> None:
    wide = "".join(mark for mark in text if not mark.isascii())
    assert cost(wide) >= UNIT * len(wide.encode("utf-8", "surrogatepass"))


@given(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=40), max_size=8))
def test_the_cost_of_a_text_is_the_sum_over_its_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert cost(text) == sum(map(cost, lines)) + NEWLINE * text.count("\n")


@given(st.text(max_size=400), st.integers(0, 6000))
def test_the_reach_of_a_room_costs_no_more_than_the_room(text: str, room: int) -> None:
    assert cost(text[: reach(text, room)]) <= room or reach(text, room) == 0
