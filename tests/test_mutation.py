"""Does the checker catch planted faults: a small form of `make mutation`, and that every fault is one."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.planted import write_run
from blade.report.facts import facts
from mutation import identities, measured, numbers, reports, sentences, spoken, tables, values
from mutation.lines import COMMAND, QUOTE, cells, lines, stripped
from mutation.page import JSON, MARKDOWN, NUMBER, Fault, Page, flat

SEED = 17


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Page]:
    """A run of its own and a pair of runs, as reports and as a comparison."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        folder = tmp_path_factory.mktemp("mutation")
        pair = [
            str(write_run(folder, name=name, n_tasks=9, repeats=2, seed=seed, rates=rates).path)
            for name, seed, rates in (("before", 5, (0.3, 0.0, 0.6)), ("after", 6, (0.9, 0.7, 0.2)))
        ]
        return [*reports.planted(folder, "demo"), *reports.both("pair", pair)]


@pytest.fixture(scope="module")
def demo(pages: list[Page]) -> Page:
    return pages[0]


def planted(page: Page, kind: str) -> list[Fault]:
    found = [fault for fault in measured.candidates(page, Random(SEED)) if fault.kind == kind]
    assert found
    return found


# ---- The checker ---------------------------------------------------------------------------------


def test_planted_faults_are_caught_and_honest_reports_left_alone(pages: list[Page]) -> None:
    few = [page for page in pages if page.form == MARKDOWN or page.dataset == "demo"]
    trials, controls = measured.measure(few, 48, SEED, to_a_copy=24)
    assert len(trials) >= 46
    assert {trial.fault.kind for trial in trials} == set(measured.KINDS)
    missed = measured.missed(few, trials, controls)
    assert measured.share(trials).value >= 0.9, missed
    for _, alarms, most, holds in measured.limits(trials, controls)[2:]:
        assert alarms.n > 500
        assert holds, (alarms, most, missed)


def test_a_catch_is_a_contradiction_that_names_the_line(demo: Page) -> None:
    fault = planted(demo, "number")[0]
    (line,) = fault.lines

    def says(verdict: str, first: int, last: int) -> measured.Check:
        return lambda text, page: [Assertion(verdict, "number", first, last, "text", "1", "2")]

    assert measured.catches(demo, [fault], says(CONTRADICTED, line, line), set()) == [True]
    assert measured.catches(demo, [fault], says(CONTRADICTED, line - 1, line + 1), set()) == [True]
    assert measured.catches(demo, [fault], says(SUPPORTED, line, line), set()) == [False]
    assert measured.catches(demo, [fault], says(CONTRADICTED, line + 1, line + 2), set()) == [False]
    alarm = Assertion(CONTRADICTED, "number", line, line, "text", "1", "2")
    assert measured.catches(demo, [fault], says(CONTRADICTED, line, line), {measured.mark(alarm)}) == [False]


def test_faults_of_one_copy_stand_far_apart(pages: list[Page]) -> None:
    held = [trial.fault for trial in measured.drawn(pages, 200, SEED) if trial.page == 0]
    groups = measured.apart(held, 5)
    assert sorted(str(one) for group in groups for one in group) == sorted(map(str, held))
    assert 1 < max(map(len, groups)) <= 5
    for group in groups:
        for one, other in combinations(group, 2):
            assert min(abs(a - b) for a in one.lines for b in other.lines) >= 10
            assert "\n" not in "".join(text for _, text in (*one.edits, *other.edits))


def test_a_checker_that_sees_nothing_breaks_the_limits(demo: Page) -> None:
    trials, controls = measured.measure([demo], 16, SEED, check=lambda text, page: ())
    assert measured.share(trials).hits == 0
    assert [holds for *_, holds in measured.limits(trials, controls)][:2] == [False, False]
    assert "0.0% [0.0%, " in measured.told([demo], trials, controls, SEED)


def test_a_checker_that_cries_wolf_breaks_the_limits(demo: Page) -> None:
    def wolf(text: str, page: Page) -> Iterable[Assertion]:
        return [Assertion(CONTRADICTED, "number", at, at, "text", "1", "2") for at in range(1, 2000)]

    trials, controls = measured.measure([demo], 16, SEED, check=wolf)
    assert measured.share(trials).hits == 0  # what the honest report is told as well is no catch
    assert [holds for *_, holds in measured.limits(trials, controls)] == [False] * 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """A run without gaps, of which a person can say anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        path = write_run(tmp_path_factory.mktemp("whole"), n_tasks=9, repeats=4, seed=5).path
        return next(reports.both("whole", [str(path)]))


def test_what_a_person_says_is_read_too(whole: Page) -> None:
    assert spoken.is_whole(whole.world)
    found = spoken.heard("whole", whole.world)
    assert len(found) >= 40
    assert not [one for one in found if one.alarm], spoken.missed(found)
    assert sum(one.caught for one in found) >= 0.65 * len(found), spoken.missed(found)
    for kind in ("id", "quote", "table"):
        assert all(one.caught for one in found if one.said.kind == kind), spoken.missed(found)


def test_a_checker_that_hears_nothing_catches_nothing(whole: Page) -> None:
    found = spoken.heard("whole", whole.world, check=lambda text, world: ())
    assert not [one for one in found if one.caught or one.alarm]
    assert "| **all** | " in spoken.told(found)


def test_a_checker_that_cries_wolf_at_a_person_catches_nothing(whole: Page) -> None:
    def wolf(text: str, world: World) -> Iterable[Assertion]:
        return [Assertion(CONTRADICTED, "number", at, at, "text", "1", "2") for at in range(1, 200)]

    found = spoken.heard("whole", whole.world, check=wolf)
    assert all(one.alarm and not one.caught for one in found)


def test_the_two_sides_of_a_sentence_differ(whole: Page) -> None:
    (run,) = facts(whole.world.report)
    told = [*spoken.said(run)]
    assert {one.kind for one in told} == set(spoken.SAID)
    assert all(
        one.true != one.false and "{" not in one.true + one.false and "None" not in one.false for one in told
    )


def test_the_same_seed_plants_the_same_faults(pages: list[Page]) -> None:
    first, again, other = (measured.drawn(pages[:1], 64, seed) for seed in (SEED, SEED, SEED + 1))
    assert first == again
    assert first != other


# ---- Every fault is one --------------------------------------------------------------------------


def test_a_fault_changes_the_lines_it_names_and_no_other(pages: list[Page]) -> None:
    for page in pages:
        old = page.text.split("\n")
        for fault in Random(SEED).sample(list(measured.candidates(page, Random(SEED))), 40):
            new = page.changed([fault]).split("\n")
            if len(new) == len(old):
                differing = {at for at, (a, b) in enumerate(zip(old, new, strict=True), 1) if a != b}
                assert differing
                assert differing <= set(fault.lines)
            else:  # a row was put in
                (at,) = fault.lines
                assert new[: at - 1] + new[at:] == old


def test_no_fault_stands_in_commands_and_fixed_text(pages: list[Page]) -> None:
    told = [page for page in pages if page.form == MARKDOWN]
    drawn = measured.drawn(pages, 400, SEED)
    for trial in drawn:
        page = pages[trial.page]
        if page in told:
            roles = {page.lines[at - 1].role for at, _ in trial.fault.edits}
            assert COMMAND not in roles
        assert "The brackets hold the 9" not in trial.fault.after.replace("the 95%", "")
    fixed = [line.text for line in told[0].lines if line.text.startswith("Buckets are raw counts.")]
    assert fixed
    assert not any(trial.fault.before in fixed for trial in drawn)


def test_three_data_sets_tell_fixed_numbers_from_claims(pages: list[Page]) -> None:
    def page(dataset: str, n: int) -> Page:
        text = f"Of {n} tasks, 3 passed, with the 95% interval.\n"
        return Page(dataset, "report", MARKDOWN, text, pages[0].world, ())

    three = [page("a", 24), page("b", 30), page("c", 24)]
    fixed = measured.fixed_numbers(three)
    sentence = "Of 24 tasks, 3 passed, with the 95% interval."
    assert [fixed(sentence, at) for at in range(3)] == [False, True, True]
    two = measured.fixed_numbers(three[:2])
    assert [two(sentence, at) for at in range(3)] == [False, False, False]


@given(
    st.integers(0, 10**7), st.integers(0, 4), st.sampled_from(["", "+", "−"]), st.booleans(), st.integers()
)
def test_another_number_is_beyond_rounding(
    units: int, places: int, sign: str, grouped: bool, seed: int
) -> None:
    printed = sign + numbers._printed(units, places, grouped)
    found = numbers.another(printed, "the score is ", Random(seed))
    if found is None:
        return
    hit, old = NUMBER.fullmatch(found[1]), NUMBER.fullmatch(printed)
    assert hit is not None
    assert old is not None
    assert len(hit["decimals"] or "") == len(old["decimals"] or "")

    def value(one: re.Match[str]) -> float:
        size = int((one["digits"] + (one["decimals"] or "")).replace(",", "").replace(".", ""))
        return size if one["sign"] != "−" else -size

    assert abs(value(hit) - value(old)) >= (2 if places or units >= 100 else 1)


@given(st.integers(2, 500), st.integers())
def test_a_bound_moves_only_to_where_it_does_not_hold(units: int, seed: int) -> None:
    printed = numbers._printed(units, 1, False)
    for before, sign in (("the odds are ≥ ", 1), ("at least ", 1), ("gain at most ", -1), ("≤ ", -1)):
        found = numbers.another(printed, before, Random(seed))
        assert found is None or sign * (float(found[1]) - float(printed)) > 0
    less = numbers.another("0.001", "adjusted p <", Random(seed))
    assert less is not None
    assert less[0] == "<"
    assert float(less[1]) > 0.001


def test_an_id_names_another_task_or_none(demo: Page) -> None:
    named = {str(name) for name in demo.tasks.values()}
    for fault in planted(demo, "id"):
        new, old = (set(re.findall(r"[\w-]+(?:/\d+)?", text)) for text in (fault.after, fault.before))
        for one in new - old:
            key, _, repeat = one.partition("/")
            if key in demo.tasks and not repeat:
                assert demo.tasks[key] not in fault.after or re.match(r"- \d+ task", fault.after)
            elif repeat and (key, int(repeat)) in demo.outcomes:
                showing = fault.after.startswith("- Failing rollouts")
                below = identities.quotation_below(demo, demo.lines[fault.lines[0] - 1])
                assert demo.outcomes[key, int(repeat)] == {"passed"} if showing else below
                assert showing or flat(below) not in demo.said(key, int(repeat))
            else:
                assert one not in named


def test_a_false_quotation_is_said_nowhere_in_its_rollout(demo: Page) -> None:
    seen = 0
    for fault in planted(demo, "quote"):
        line = demo.lines[fault.lines[0] - 1]
        told = re.search(r"task `?([\w.-]+)/(\d+)", line.label)
        if line.role == QUOTE and told and demo.said(told[1], int(told[2])):
            seen += 1
            assert flat(fault.before) in demo.said(told[1], int(told[2]))
            assert flat(fault.after) not in demo.said(told[1], int(told[2]))
    assert seen > 10


@pytest.mark.parametrize(
    ("sentence", "opposite"),
    [
        ("0 of 4 repeats passed (`0 0 0 0`).", "0 of 4 repeats did not pass (`0 0 0 0`)."),
        ("- For: 3 of 4 failing repeats show it.", "- For: 3 of 4 failing repeats do not show it."),
        ("`a` fires on 3 of 9 failing rollouts.", "`a` does not fire on 3 of 9 failing rollouts."),
        ("No line was skipped.", "A line was skipped."),
    ],
)
def test_a_sentence_says_the_opposite(sentence: str, opposite: str) -> None:
    assert opposite in list(sentences.negated(sentence))


@pytest.mark.parametrize(
    "sentence",
    [
        "2 of 4 repeats passed (`1 1 0 0`).",  # and 2 did not
        "- For: 1 of 2 failing repeats show it.",
        "50% of them pass.",
        "How often each fires on failing and on passing rollouts.",  # no run is spoken of
        "Everything follows from the rows.",
    ],
)
def test_a_sentence_whose_opposite_is_as_true_is_left_alone(sentence: str) -> None:
    assert list(sentences.negated(sentence)) == []


def test_runs_exchange_their_names_only_where_they_differ() -> None:
    rng = Random(SEED)
    told = "`b` scores 60.0% pass@1 and `a` 40.0%: **+20.0 points**."
    assert list(sentences.renamed(told, ("a", "b"), rng)) == [
        "`a` scores 60.0% pass@1 and `b` 40.0%: **+20.0 points**."
    ]
    assert list(sentences.renamed("`a` and `b` share tasks.", ("a", "b"), rng)) == []


def test_a_swapped_row_is_not_that_of_the_other_run(pages: list[Page]) -> None:
    page = next(page for page in pages if page.dataset == "pair" and page.form == MARKDOWN)
    rows = {line.text for line in page.lines}
    for fault in planted(page, "swapped"):
        assert fault.after not in rows


def test_shifted_cells_stand_in_a_row_that_has_another_value(pages: list[Page]) -> None:
    for page in pages:
        if page.form == MARKDOWN:
            for fault in planted(page, "shifted"):
                old, new = ([cells(row) for row in text.split("\n")] for text in (fault.before, fault.after))
                assert Counter(one for row in old for one in row) == Counter(
                    one for row in new for one in row
                )
                assert all(a != b for a, b in zip(old, new, strict=True))
                assert [row[0] for row in old] == [row[0] for row in new]


def test_a_task_is_put_into_a_bucket_that_is_not_its_own(pages: list[Page]) -> None:
    page = next(page for page in pages if page.dataset == "demo" and page.form == JSON)
    own = {one.task: one.bucket for one in page.world.report.tasks}
    for fault in planted(page, "bucket"):
        if fault.section == "tasks.bucket":
            record = json.loads(page.changed([fault]))["tasks"]
            wrong = [one for one in record if one["bucket"] != own[one["task"]]]
            assert len(wrong) == 1
    assert tables.kind(0, 4) == "never"
    assert tables.kind(4, 4) == "always"
    assert tables.kind(3, 4) == "sometimes"


# ---- Reading and stripping -----------------------------------------------------------------------


def test_stripping_takes_anchors_and_keeps_lines() -> None:
    text = "One.\n<!-- claims: c1 c2\nc3 -->\nTwo <!-- claims: c4 -->.\n"
    assert stripped(text) == "One.\n\n\nTwo .\n"


def test_reports_under_test_have_no_anchors_and_no_claims(pages: list[Page]) -> None:
    for page in pages:
        assert "<!--" not in page.text
        if page.form == JSON:
            assert "claims" not in json.loads(page.text)


def test_lines_know_what_they_are() -> None:
    text = "# T\n\n## S\n\nWord.\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n\nTask `1/0`:\n\n```text\nx\n```\n\n```sh\ny\n```\n"
    found = {line.text: line for line in lines(text)}
    assert [found[one].role for one in ("# T", "Word.", "| 1 | 2 |", "x", "y")] == [
        "heading", "prose", "row", "quote", "command",
    ]  # fmt: skip
    assert found["x"].label == "Task `1/0`:"
    assert found["| 1 | 2 |"].header == ("A", "B")
    assert found["Word."].section == "T > S"


def test_values_stand_on_the_lines_that_are_named() -> None:
    document = {"a": [{"n": 1, "b": []}, {"n": 2}], "c": {"d": "x"}, "e": 3}
    text = values.dumped(document).split("\n")
    for path, line in values.places(document).items():
        assert json.dumps(values.at(document, path)) in text[line - 1]
    assert values.places(document)["a", 1, "n"] == 8
