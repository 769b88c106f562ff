"""A dossier holds what is needed to judge a task, in the order of reading, and no more than its budget."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from msgspec.structs import replace

from blade import events, hostile
from blade.agent.dossier import BUDGET, LEAST, Dossier, dossier
from blade.agent.dossier.budget import tokens
from blade.errors import UsageError
from blade.model import Attribution, Evidence, Outcome, Step, Trace, Trust
from blade.pipeline.session import Session
from blade.report.run_facts import Facts, facts
from tests.builders import make_call, make_message, make_result, make_row, make_run
from tests.case_tables import cases
from tests.conftest import Blade
from tests.dossier.conftest import HEADINGS, Written, commands, desk_rows, focus, rollout, shown, strangers

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


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (("1", 3, 3, None, "red lamp"), "group example | 1/3, step 3: red lamp"),
        (("1", 3, None, "verifier_message", "not green"), "group example | 1/3, verifier_message: not green"),
        (("0", 1, 3, None, "red"), ""),  # it is read below
    ],
)
def test_a_group_is_quoted_from_its_example_unless_that_is_read_below(tell: Tell, of: Facts, place: tuple[Any, ...], says: str) -> None:
    quote = Evidence("rollouts", place[0], place[1], step=place[2], field=place[3], quote=place[4])
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


def test_the_commands_of_a_dossier_show_what_they_promise(blade: Blade, run: Path) -> None:
    text = blade("show", run, "0", "--dossier").out
    shows = [line for line in commands(text) if line.startswith("blade show")]
    assert len(shows) == 2
    for line in shows:
        said = blade(*shlex.split(line)[1:])
        assert (said.code, "write_order" in said.out) == (0, True)


# Faults of single calls, of loops, of ends, of checks, of limits, and of the whole run.
FAULTS = (
    "timeout", "dangling_call", "ungrounded_arg", "cycle", "ignored_error", "missing_required_tool",
    "extra_side_effect", "finish_on_red", "refusal", "right_then_wrong", "unconfirmed_write", "broken_verifier",
)  # fmt: skip
LEAST_SHOWN = 0.95
MOST_TOKENS = 4000
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
                assert page.tokens <= page.budget == BUDGET < MOST_TOKENS
                hits[fault].append(any(is_shown(page.text, *place) for place in places))
    table = "\n".join(f"{fault:24} {sum(hits[fault])} of {len(hits[fault])}" for fault in FAULTS)
    every = [hit for several in hits.values() for hit in several]
    assert len(every) >= len(FAULTS), table
    assert sum(every) >= LEAST_SHOWN * len(every), table
