"""Rung 11: the same wrong answer every time, or another each time?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.case_tables import cases
from tests.diagnose.builders import desk, quiz_row
from tests.diagnose.diagnosed import Diagnose
from tests.diagnose.rows import Act, Key, Row, failing, grid, make_row, struck


def answered(kind: str, task: int, repeat: int) -> tuple[float, str]:
    """Reward and answer of a row: always right, always the same wrong one, mostly, sometimes right, or always another."""
    beside = {"right": 0, "same": 5, "mostly": 5 if repeat < 3 else 9, "sometimes": 5 * (repeat != task % 4)}.get(kind, 5 + repeat)
    return float(not beside), str(task * 13 + 41 + beside)


def mixed(kinds: list[str]) -> tuple[list[Row], dict[str, set[Key]]]:
    rows: list[Row] = []
    failing: dict[str, set[Key]] = {kind: set() for kind in kinds}
    for task, repeat in grid(20, 4):
        kind = kinds[task % len(kinds)]
        reward, answer = answered(kind, task, repeat)
        rows.append(quiz_row(task, repeat, reward, answer, str(task * 13 + 41)))
        if not reward:
            failing[kind].add((task, repeat))
    return rows, failing


@pytest.mark.parametrize(("kinds", "label"), cases(__file__, "kinds"))
def test_same_wrong_answer_or_another_each_time(diagnose: Diagnose, kinds: list[str], label: str) -> None:
    run = diagnose(mixed(kinds)[0])
    run.shows(run.failing, f"knowledge {label}")
    assert run.causes(run.failing) == {label}
    assert run.alarms == []


def test_both_kinds_side_by_side(diagnose: Diagnose) -> None:
    """One group, since one fact shows both; the label is that of each task, and so are the losses."""
    rows, failing = mixed(["right", "same", "right", "other", "same"])
    run = diagnose(rows)
    group = run.shows(failing["same"] | failing["other"], "knowledge KG")  # that of most of its rows
    assert f"{len(failing['same'])} in tasks that never pass and whose repeats mostly agree (a knowledge gap)" in group.text
    assert f"{len(failing['other'])} in tasks that pass sometimes or whose repeats differ (unreliable knowledge)" in group.text
    assert (run.causes(failing["same"]), run.causes(failing["other"])) == ({"KG"}, {"UK"})
    lost = {loss.cause.value: loss.lost for loss in run.report.losses}
    assert lost == pytest.approx({"KG": len(failing["same"]) / 80, "UK": len(failing["other"]) / 80})


def voted(n_right: int) -> Iterator[Row]:
    """Half of the tasks are always right; of four repeats of the others some agree on the gold, the rest on another answer."""
    for task, repeat in grid(20, 4):
        passes = task % 2 == 0 or (repeat + task) % 4 < n_right
        gold = task * 13 + 41
        yield quiz_row(task, repeat, float(passes), str(gold if passes else gold + 5), str(gold))


def test_vote_is_advised_where_it_wins(diagnose: Diagnose) -> None:
    """Where the most frequent answer of every other task is wrong, what it would score is told, and something else is advised."""
    run = diagnose(voted(3))
    assert run.group(run.failing).fix == "Take a majority vote over the repeats: it would pass 100.0% of the tasks instead of 87.5%."
    run = diagnose(voted(1))
    assert "would pass 10 of 20 tasks (50.0%)" in run.group(run.failing).text
    assert not any("vote" in advice.action for advice in run.report.recommendations)


def once() -> Iterator[Row]:
    for task in range(40):
        yield quiz_row(task, 0, *answered("right" if task % 3 else "same", task, 0), str(task * 13 + 41))


def test_agent_rollouts_without_an_answer_stay_unexplained_and_errors_in_all_directions_are_no_bias(diagnose: Diagnose) -> None:
    run = diagnose(closed(""))
    assert "BI" not in run.labels(run.failing)
    run = diagnose(desk(12, 4, 0.6).values())
    assert run.labels(run.failing).isdisjoint({"KG", "UK"})
    assert run.report.unexplained[0].rows == len(run.failing)


TIMES = ("dawn", "noon", "dusk")


def closed(how: str) -> Iterator[Row]:
    """One word of three: one of them whatever is asked, errors on one class of the gold, or errors in all directions."""
    for place, (task, repeat) in enumerate(grid(30, 3)):
        gold, chance = TIMES[task % 3], (place * 7) % 10
        answer = {
            "noon": gold if gold == "noon" or chance < 2 else "noon",
            "dusk": gold if gold != "dusk" or chance < 1 else TIMES[place % 2],
            "": gold if chance < 5 else TIMES[(task + 1 + place % 2) % 3],
        }[how]
        text = f"{'By the ledger, ' * (place % 3)}I say <answer>{answer}</answer>"
        prompt = f"When does branch {task} lend most: dawn, noon or dusk? Use <answer> tags."
        yield make_row(task, repeat, float(answer == gold), [text], prompt=prompt, expected_answer=gold)


def no_answer(asked: bool) -> Iterator[Row]:
    """Most failures reason and never give an answer; the prompt asks for a form, or does not."""
    for place, (task, repeat) in enumerate(grid(20, 4)):
        gold = task * 13 + 41
        fails = (place * 7) % 10 < 5
        ask = " Give the number in \\boxed{}." if asked else ""
        prompt = f"How many volumes did branch {task} lend?{ask}"
        thought = "".join(f" Week {task + n} brought {n * 3 + place} loans." for n in range(place % 6))
        end = "It depends on how one counts." if fails else f"So it is \\boxed{{{gold}}}"
        yield make_row(task, repeat, float(not fails), [f"Let me see.{thought} {end}"], prompt=prompt, expected_answer=str(gold))


@pytest.mark.parametrize("n_errors", [7, 3])
def test_tries_that_are_mostly_errors_are_behaviour(diagnose: Diagnose, n_errors: int) -> None:
    """Ten tries without success: where seven are errors the model never learnt the tool; three say nothing."""
    rows = []
    for task in range(40):
        good: list[Act] = [("ask_ledger", {"page": page, "week": task}, f"Entry {page * 3 + task}.") for page in range(task % 5)]
        shelf = chr(97 + task % 20) + chr(97 + task // 2)  # another word in each task: no error is common
        good += [("ask_ledger", {"page": 80, "week": task}, f"Error: no shelf {shelf}."), ("ask_ledger", {"page": 90, "week": task}, "Entry.")]
        tries: list[Act] = [
            ("ask_ledger", {"page": page, "week": task}, f"Error: no shelf {shelf}{chr(97 + page)}." if page * 3 % 10 < n_errors else "Entry.")
            for page in range(10)
        ]
        rows.append(make_row(task, 0, float(task % 2), good if task % 2 else tries))
    run = diagnose(rows)
    failing = {(task, 0) for task in range(0, 40, 2)}
    assert run.labels(failing) == {"BI" if n_errors == 7 else "undetermined"}


def test_free_answers_that_give_about_one_number_agree(diagnose: Diagnose) -> None:
    """Near numbers in other words are one answer, so the task shows a gap; the sentence sends the reader to the gold as well."""
    rows = []
    for task in range(12):
        for repeat in range(4):
            near = f"{('About', 'Roughly', 'Close to', 'Some')[repeat]} {40 + task + 0.03 * repeat:.2f} degrees."
            far = f"{('About', 'Roughly', 'Close to', 'Some')[repeat]} {(7, 19, 55, 131)[repeat] + task} degrees."
            rows.append(make_row(task, repeat, 0.0 if task < 8 else 1.0, [near if task < 4 else far], expected_answer=f"{900 + task} degrees"))
    run = diagnose(rows)
    causes = {int(one.task): (one.cause.value, "check the expected answer" in one.mechanism) for one in run.report.attributions}
    assert {causes[task] for task in range(4)} == {("KG", True)}
    assert {causes[task][0] for task in range(4, 8)} == {"UK"}


WAYS = (
    "{} lends the most volumes in spring.", "In spring the most volumes are lent by {}.", "It is {} that lends the most volumes.",
    "Most volumes in spring: {}.",
)  # fmt: skip


def free(said: list[str], passes: set[Key] | None = None) -> list[Row]:
    """Eight tasks whose repeats echo the question and add something; they never pass, but for some rows, and four others do."""
    rows = []
    for task, repeat in grid(12, 4):
        prompt = f"Which of the 250 branches lends the most volumes in spring, by register {task * 17 + 3}?"
        reward = float(task >= 8 or (task, repeat) in (passes or set()))
        text = WAYS[repeat].format("Harbour" if task >= 8 else said[repeat])
        rows.append(make_row(task, repeat, reward, [text], prompt=prompt, expected_answer="the branch at the harbour wall"))
    return rows


@pytest.mark.parametrize(("said", "label"), cases(__file__, "free"))
def test_free_answers_are_compared_by_what_they_add_to_the_question(diagnose: Diagnose, said: list[str], label: str) -> None:
    run = diagnose(free(said))
    assert run.group(run.failing).label == label
    assert run.causes(run.failing) == {label}


@pytest.mark.parametrize(("n_numbers", "is_same", "passes", "label"), [
    (6, False, set(), "undetermined"), (6, True, set(), "KG"), (3, False, set(), "UK"),  # three are no list
    (6, False, {(task, 1) for task in range(8)}, "UK"),  # each task passes once
])  # fmt: skip
def test_lists_of_numbers_do_not_tell_a_gap_from_chance(
    diagnose: Diagnose, n_numbers: int, is_same: bool, passes: set[Key], label: str
) -> None:
    said = [", ".join(str(7 * place + (0 if is_same else 40 * repeat) + 5) for place in range(n_numbers)) for repeat in range(4)]
    run = diagnose(free([f"Ashford with {numbers}" for numbers in said], passes))
    assert run.group(run.failing).label == label


@pytest.mark.parametrize(("n_same", "label"), [(2, "undetermined"), (4, "KG")])
def test_group_has_a_label_only_where_it_holds_for_half_of_its_rows(diagnose: Diagnose, n_same: int, label: str) -> None:
    """Four rollouts of each task that says the same, eight that change, eight of one try each: 8 of 24 rows, or 16 of 32."""
    kinds = ["same"] * n_same + ["other"] * 2 + ["once"] * 8 + ["right"] * 8
    rows = []
    for task, kind in enumerate(kinds):
        for repeat in range(1 if kind == "once" else 4):
            reward, answer = answered(kind, task, repeat)
            rows.append(quiz_row(task, repeat, reward, answer, str(task * 13 + 41)))
    run = diagnose(rows)
    group = run.group(run.failing)
    assert group.label == label
    assert run.causes({(0, 0)}) == {"KG"}  # each task keeps its own
    assert run.causes({(n_same, 0)}) == {"UK"}


BACK = (
    "There are several ledgers for {}. Which year do you mean?",
    "Branch {} moved twice. Could you tell me the year?",
    "I can look that up for {}. Is it the loans or the gifts that you need?",
    "Happy to help with {}! Do you have the number of the volume?",
    "That depends. Before or after the fire at {}?",
)


@struck
def asking(asked: Sequence[str], asks: set[Key]) -> Iterator[tuple[Row, bool]]:
    """A desk that is asked one thing: some rollouts ask back, others err now and then."""
    for place, (task, repeat) in enumerate(grid(12, 4)):
        is_asking = (task + repeat) % 4 == 0
        passes = place % 5 > 0 and not is_asking
        told = f"Hall {task * 3 + (0 if passes else repeat + 1)} is where branch {task} keeps its ledgers."
        text = asked[place % len(asked)].format(task) if is_asking else f"{told} Is that of use?" if (task, repeat) in asks else told
        yield make_row(task, repeat, float(passes), [text], prompt=f"In which hall are the ledgers of branch {task} kept"), is_asking


@pytest.mark.parametrize(
    ("asked", "asks"),
    [
        (BACK, {(0, 1)}),  # a pass asks as well
        ([f"{ask} " + "I take the last one, and then it is the hall by the river. " * 8 for ask in BACK], set()),  # and answers
        ([ask.replace("?", ".") for ask in BACK], set()),
    ],
)
def test_replies_that_ask_are_no_group_where_that_is_no_end(diagnose: Diagnose, asked: Sequence[str], asks: set[Key]) -> None:
    rows, _ = asking(asked, asks)
    assert "asks back" not in diagnose(rows).said


# ---- What became of the tries ----------------------------------------------------------------------


def handed(last: str) -> Iterator[Row]:
    """Passes end with `hand_in`; of the failures, which all go on to the limit, every second hands in as well, in vain."""
    for task in range(40):

        def look(page: int, said: str, task: int = task) -> Act:
            return "ask_ledger", {"page": page, "week": task}, said

        good: list[Act] = [look(page, f"Entry {page * 3 + task}.") for page in range(1 + task % 4)]
        said = {1: "[]", 2: "Error: no such shelf.", 3: "[]", 4: "[]", 5: "Error: no such shelf."}
        bad = [look(page, said.get(page, f"Entry {page}.")) for page in range(9)]
        bad[7] = ("hand_in", {"total": task + 1}, "Not accepted.") if task % 4 else bad[7]
        yield (
            make_row(task, 0, float(task % 2), [*good, ("hand_in", {"total": task}, "Accepted.")] if task % 2 else [*bad, look(90, last)])
        )


def test_sentence_of_a_task_says_what_became_of_its_tries(diagnose: Diagnose) -> None:
    run = diagnose(handed("Entry 9: closed."))
    assert run.group(run.failing).name == "no try is accepted"
    sentences = {entry.task: entry.mechanism for entry in run.report.attributions}
    rest = 'at least 2 of 10 tries end in an error; 3 find nothing; the last answer it gets is "Entry 9: closed."'
    assert f"No try is accepted: {rest}" in sentences["2"]
    assert f"No try is accepted: `hand_in`, the call that ends the passes, is never made; {rest}" in sentences["4"]
    run = diagnose(handed("Error: the ledger is locked."))
    sentence = next(entry.mechanism for entry in run.report.attributions if entry.task == "2")
    assert "at least 3 of 10 tries end in an error; 3 find nothing; the last one that is answered, in: Error: the ledger is locked" in sentence


PROVED = {
    "asking back": (lambda: asking(BACK, set()), "knowledge BI", "asks back instead of answering", "nobody answers"),
    "one try per task": (lambda: failing(once()), "knowledge undetermined"),
    "one answer whatever is asked": (lambda: failing(closed("noon")), "knowledge BI", "noon"),
    "errors on one class of the gold": (lambda: failing(closed("dusk")), "knowledge BI", "dusk"),
    "no answer in the form that is asked for": (lambda: failing(no_answer(True)), "delivered BI"),
    "no answer in a form that nobody asks for": (lambda: failing(no_answer(False)), "delivered TI"),
}
