"""A dossier holds what is needed to judge a task, in the order of reading, keeps its budget and its frame, and says the same twice."""

from __future__ import annotations

import json
import random
import re
import shlex
import string
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from blade import events, hostile
from blade.agent.dossier import BUDGET, LEAST, Dossier, dossier
from blade.agent.dossier import budget as frame
from blade.agent.dossier.budget import BAR, RULE, UNIT, cost, tokens
from blade.agent.dossier.case import PROMPT
from blade.errors import UsageError
from blade.formats.single_rows import steps_of_row as steps
from blade.hostile import lines as cleaned
from blade.model import Attribution, Evidence, Outcome, Rollout, Step, Trace, Trust
from blade.pipeline.session import Session, session
from blade.report.run_facts import Facts, facts
from tests.builders import DROP, Row, make_call, make_message, make_result, make_row, make_rows, make_run
from tests.case_tables import cases
from tests.conftest import Blade
from tools.planted.injected import Injected, write_injected

Written = Callable[[str, float], tuple[Injected, Session]]


@pytest.fixture(scope="module")
def planted(module_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A run with one fault in it, and what was concluded of it."""

    def written(fault: str, prevalence: float) -> tuple[Injected, Session]:
        folder = tmp_path_factory.mktemp(fault)
        made = write_injected(folder, fault=fault, prevalence=prevalence, seed=3, n_tasks=6)
        return made, session([str(made.path)])

    return cache(written)


def worked(number: int, wrong: bool) -> list[Row]:
    """A rollout of an order desk: it reads, it writes, it says that it is done."""
    colour = "red" if wrong else "green"
    return [
        make_message("I look at the order first."),
        make_call("c1", "read_order", f'{{"order":"O-{number}"}}'),
        make_result("c1", f'{{"order":"O-{number}","lamp":"grey","note":"{"n" * 400}"}}'),
        make_call("c2", "write_order", f'{{"order":"O-{number}","lamp":"{colour}"}}'),
        make_result("c2", '{"ok":true}'),
        make_message(f"Done: the lamp of O-{number} is {colour} now."),
    ]


def desk_rows() -> list[Row]:
    """Six tasks of four repeats; in the first two tasks some repeats write the wrong colour."""
    rows = make_rows({task: [1.0, 0.0, 1.0, 0.0] if task < 2 else [1.0] * 4 for task in range(6)})
    for row in rows:
        task, wrong = row["_ng_task_index"], row["reward"] < 1
        gold = [{"name": "write_order", "arguments": {"order": f"O-{task}", "lamp": "green"}}]
        words = "the lamp is red, not green" if wrong else "all as expected"
        row |= {"task_id": f"desk-{task}", "expected_actions": gold, "verifier_message": words}
        row["responses_create_params"]["input"][0]["content"] = f"Make the lamp of order O-{task} green."
        row["response"]["output"] = worked(task, wrong)
    return rows


@pytest.fixture(scope="module")
def desk(module_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return session([str(make_run(tmp_path_factory.mktemp("desk"), desk_rows()))])


def traced(row: Row, repeat: int = 0, task: str = "0") -> Trace:
    """A row as a rollout of a task."""
    items, source = steps(row)
    reward = row.get("reward")
    known = reward if isinstance(reward, float) else None
    return Trace(Rollout("rollouts", task, task, repeat, known, "rollouts.jsonl", 1), tuple(items), source, row)


def rollout(output: Any, repeat: int = 1, **changed: Any) -> Trace:
    """A failing rollout with these output items."""
    row = make_row(0, repeat, 0.0, **changed)
    row["response"] = {"output": output, "model": "sim-model"}
    return traced(row, repeat)


# ---- Reading a dossier -----------------------------------------------------------------------------

HEADINGS = tuple(cases(__file__, "headings"))
OURS = re.compile("|".join(f"(?:{way})" for way in cases(__file__, "ours")))


def ours(text: str) -> list[str]:
    """What stands before the bar of each line, without lines that are quoted from end to end."""
    heads = [line.partition(BAR)[0].rstrip() for line in text.splitlines() if not line.startswith(PROMPT)]
    return [head for head in heads if head]


def strangers(text: str) -> list[str]:
    """Lines of ours that no part of a dossier writes: what a rollout would have to forge."""
    known = (RULE, *HEADINGS)
    return [head for head in ours(text) if not head.startswith(known) and not OURS.fullmatch(head)]


def commands(text: str) -> list[str]:
    return [line.removeprefix(PROMPT) for line in text.splitlines() if line.startswith(PROMPT)]


def focus(text: str) -> int | None:
    found = re.search(r"^## rollout in focus: repeat (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def shown(text: str, repeat: int, step: int) -> str | None:
    """The words a dossier shows of a step, on one line; None if it shows none."""
    of_focus = rf"|\[{step}\]" if focus(text) == repeat else ""
    head = re.compile(rf"^(?:repeat {repeat} [^|\n]*\[{step}\]{of_focus})[^|\n]*\n?((?:\|.*\n?)*)", re.MULTILINE)
    quoted = (re.sub(r"^\|", "", hit, flags=re.MULTILINE) for hit in head.findall(text))
    return max((" ".join(words.split()) for words in quoted), key=len, default=None)


# ---- What it says -----------------------------------------------------------------------------------


Tell = Callable[..., str]


@pytest.fixture
def traces(desk: Session) -> tuple[Trace, ...]:
    return desk.traces(desk.loaded[0], "0")


@pytest.fixture
def of(desk: Session) -> Facts:
    return desk.facts[desk.loaded[0].name]


@pytest.fixture
def tell(desk: Session, of: Facts, traces: tuple[Trace, ...]) -> Tell:
    """The dossier of the first task; `cause` changes its attribution, `report` the report. No line is forged."""

    def told(rows: Any = traces, *, cause: Any = None, report: Any = None, **options: Any) -> str:
        known = of
        if cause is not None:
            members = {**msgspec.to_builtins(of.attribution["0"]), **msgspec.to_builtins(cause)}
            changed = msgspec.convert(members, Attribution)
            causes = tuple(changed if one.task == "0" else one for one in desk.report.attributions)
            report = {**(report or {}), "attributions": causes}
        if report is not None:
            known = facts(replace(desk.report, **report))[0]
        text = dossier(known, "0", rows, **options).text
        assert not strangers(text)
        return text

    return told


def test_the_parts_stand_in_the_order_of_reading(of: Facts, traces: tuple[Trace, ...]) -> None:
    told = dossier(of, "0", traces)
    places = [told.text.find(heading) for heading in HEADINGS]
    assert -1 not in places
    assert places == sorted(places)
    assert told.tokens == tokens(told.text) <= told.budget == BUDGET
    assert told == Dossier("rollouts", "0", told.text, told.tokens, BUDGET)
    assert f"{told.tokens:,} tokens of {BUDGET:,}" in told.text


# Rows that cases name, from those of the task.
ROWS: dict[str, Callable[[tuple[Trace, ...]], list[Trace]]] = {
    "broken": lambda traces: [rollout([], error="connection reset", responses_create_params=None), traces[0]],
    "nothing expected": lambda traces: [rollout([make_message("done")], expected_actions=[])],
    "no help": lambda traces: [traces[0], rollout([make_message("I cannot help.")])],
    "two that pass": lambda traces: [traces[0], traces[2]],
    "two that fail": lambda traces: [traces[1], traces[3]],
    "none": lambda traces: [],
    "checks": lambda traces: [rollout([make_message("done")], verifier={"checks": CHECKS})],
    "words": lambda traces: [rollout([make_message("done")], verifier=SAYS)],
    "doubled": lambda traces: [*traces, rollout([make_message("another row of the same key")], repeat=1)],
    "unanswered": lambda traces: [rollout([make_call("c", "go"), make_result("c", "Error: no such order"), make_call("d", "go")])],
}
CHECKS = [{"check": {"name": f"check_{number}"}, "met": number != 7} for number in range(40)]
SAYS = {"tests": {"test_lamp": "failed", "test_bell": "passed"}, "required": [{"name": "one", "met": True, "strict": False}], "log": "x" * 200}


@pytest.mark.parametrize("name", cases(__file__, "dossiers"))
def test_what_it_says(tell: Tell, of: Facts, traces: tuple[Trace, ...], name: str) -> None:
    case: dict[str, Any] = cases(__file__, "dossiers")[name]
    (group,) = of.groups
    names = {"GROUP": group.id, "NAME": group.name, "TEXT": group.text}

    def filled(words: str) -> str:
        return re.sub("|".join(names), lambda hit: names[hit[0]], words)

    trust = [{"run": "rollouts", "query": "", **doubt, "text": filled(doubt["text"])} for doubt in case.get("trust", ())]
    report = {"trust": msgspec.convert(trust, tuple[Trust, ...])} if trust else None
    focused = {"repeat": case["repeat"]} if "repeat" in case else {}
    text = tell(ROWS[case["rows"]](traces) if "rows" in case else traces, cause=case.get("cause"), report=report, **focused)
    assert [words for words in map(filled, case.get("says", ())) if words not in text] == []
    assert [words for words in case.get("lacks", ()) if words in text] == []
    assert {words: text.count(words) for words in case.get("counts", ())} == case.get("counts", {})


def test_the_rollout_in_focus_is_the_blamed_one_or_the_one_asked_for(tell: Tell, of: Facts) -> None:
    assert focus(tell()) == of.attribution["0"].repeat
    assert [focus(tell(repeat=repeat)) for repeat in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize(("place", "says"), cases(__file__, "group examples"))
def test_a_group_is_quoted_from_its_example_unless_that_is_read_below(tell: Tell, of: Facts, place: dict[str, Any], says: str) -> None:
    quote = Evidence("rollouts", **place)
    text = tell(report={"groups": (replace(of.groups[0], quote=quote, consequences=("a wrong lamp",)),)})
    assert says in text
    assert ("group example" in text) == bool(says)
    assert "consequence | a wrong lamp" in text


def test_a_task_that_passes_has_a_short_dossier_without_a_label_to_fill_in(desk: Session, of: Facts) -> None:
    text = dossier(of, "5", desk.traces(desk.loaded[0], "5")).text
    assert "no cause: this task loses no points" in text
    assert not [line for line in commands(text) if "label" in line]
    assert tokens(text) < BUDGET / 2


def test_steps_that_are_left_out_are_said_with_how_to_see_them(tell: Tell) -> None:
    text = tell([rollout([make_message(f"thought {number} " + "and so on " * 30) for number in range(300)])])
    gaps = [(int(first), int(last)) for first, last in re.findall(r"left out: --steps (\d+):(\d+)", text)]
    seen = {number for number in range(300) if shown(text, 1, number) is not None}
    assert gaps
    assert seen | {number for gap in gaps for number in range(*gap)} == set(range(300))
    assert sum(last - first for first, last in gaps) + len(seen) == 300
    assert {0, 299} <= seen


@pytest.mark.parametrize("step", [1, None], ids=["blamed and quoted", "quoted alone"])
def test_what_is_quoted_of_a_long_step_is_in_it(tell: Tell, step: int | None) -> None:
    needle = "the total price is 305 and not 255"
    trace = rollout([make_message("hello"), make_message("x" * 30_000 + needle + "y" * 30_000)])
    evidence = (Evidence("rollouts", "0", 1, step=1, quote=needle),)
    assert needle in (shown(tell([trace], cause={"step": step, "steps": (), "evidence": evidence}), 1, 1) or "")


def test_a_larger_budget_tells_more_and_the_smallest_holds_the_proposal(tell: Tell, of: Facts) -> None:
    rows = [rollout([make_message(f"thought {number} " + "and so on " * 200) for number in range(60)])]
    sizes = [tokens(tell(rows, budget=budget)) for budget in (LEAST, 1500, 3000, 12_000)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 3 * sizes[0]
    text = tell(budget=LEAST)
    headings = ("## outcomes", "## proposal of the engine", "## rollout in focus")
    assert [heading for heading in headings if heading not in text] == []
    assert any(line.startswith("blade label") for line in commands(text))
    assert shown(text, of.attribution["0"].repeat or 0, of.attribution["0"].step or 0) is not None


@pytest.mark.parametrize("budget", [LEAST - 1, -5, 10**9])
def test_a_budget_that_nothing_fits_in_is_refused(of: Facts, traces: tuple[Trace, ...], budget: int) -> None:
    with pytest.raises(UsageError, match="out of range") as refused:
        dossier(of, "0", traces, budget)
    assert str(LEAST) in refused.value.hint


def test_every_command_parses(tell: Tell) -> None:
    from blade.cli.main import cli

    lines = [shlex.split(line) for line in commands(tell())]
    assert len(lines) == 3
    for blade, name, *words in lines:
        assert blade == "blade"
        with click.Context(cli) as context:
            command = cli.get_command(context, name)
        assert command is not None
        command.make_context(name, words)


def test_a_rollout_without_steps_is_labelled_by_a_field(planted: Written) -> None:
    _, empty = planted("empty_run", 1.0)
    run = empty.loaded[0]
    text = dossier(empty.facts[run.name], "0", empty.traces(run, "0")).text
    (label,) = (line for line in commands(text) if line.startswith("blade label"))
    assert (" --field " in label, " --step " in label) == (True, False)
    assert "where: no step is named" in text
    assert "alarm on the whole run, IR, 23 rows | the failure group above" in text


# ---- On the screen, and where the truth is known -----------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", desk_rows())


def test_the_dossier_of_a_task_by_its_key_and_by_its_name_on_the_screen_and_as_json_with_its_commands(blade: Blade, run: Path) -> None:
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
    shows = [line for line in commands(by_key.out) if line.startswith("blade show")]
    assert len(shows) == 2
    for line in shows:
        said = blade(*shlex.split(line)[1:])
        assert (said.code, "write_order" in said.out) == (0, True)


@pytest.mark.parametrize(("words", "says"), cases(__file__, "refused"))
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


# Faults of single calls, of loops, of ends, of checks, of limits, and of the whole run.
FAULTS = (
    "timeout", "dangling_call", "ungrounded_arg", "cycle", "ignored_error", "missing_required_tool",
    "extra_side_effect", "finish_on_red", "refusal", "right_then_wrong", "unconfirmed_write", "broken_verifier",
)  # fmt: skip
WORDS = 40  # characters from its beginning by which the words of a step are known


def is_shown(text: str, repeat: int, step: Step) -> bool:
    """Whether the words of a step stand beside its number, not its number alone."""
    said = shown(text, repeat, step.index)
    if said is None:
        return False
    words = " ".join(hostile.lines(events.step_text(step)).split())
    told = said.removeprefix(step.tool or "").strip() if step.kind == "call" else said
    told = told.partition("[…")[0].strip()
    least = min(WORDS, len(words))  # a word or two would do for any step
    return told[:least] == words[:least] if words else told in ("", "(empty)")


def test_the_decisive_step_is_in_the_dossier_of_nearly_every_failed_task(planted: Written) -> None:
    hits: dict[str, list[bool]] = defaultdict(list)
    for fault in FAULTS:
        injected, session = planted(fault, 0.05)
        facts, run = session.facts[session.loaded[0].name], session.loaded[0]
        for task in dict.fromkeys(truth.task for truth in injected.truths):
            result, traces = facts.task(task), session.traces(run, task)
            assert result is not None
            passed = {row.repeat for row in result.repeats if row.outcome is Outcome.PASSED}
            steps = {trace.rollout.repeat: trace.steps for trace in traces}
            truths = [truth for truth in injected.truths if truth.task == task and truth.repeat not in passed]
            places = [(truth.repeat, steps[truth.repeat][truth.step]) for truth in truths if truth.step is not None]
            if places:
                page = dossier(facts, task, traces)
                assert page.tokens <= page.budget == BUDGET < 4000
                hits[fault].append(any(is_shown(page.text, *place) for place in places))
    table = "\n".join(f"{fault:24} {sum(hits[fault])} of {len(hits[fault])}" for fault in FAULTS)
    every = [hit for several in hits.values() for hit in several]
    assert len(every) >= len(FAULTS), table
    assert sum(every) >= 0.95 * len(every), table


# ---- Whatever a rollout holds -----------------------------------------------------------------------


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
def forged(module_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
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


def test_plain_prose_is_not_estimated_far_too_high_and_costs_less_than_what_holds_no_words() -> None:
    prose = "The agent booked the cheaper flight and told the user that nothing else was left to do. " * 20
    assert 18 * 20 <= tokens(prose) <= 1.4 * 18 * 20
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
