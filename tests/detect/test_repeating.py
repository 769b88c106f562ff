"""Loops: the same call, the same failure, rounds, stretches without news, readings done again."""

from __future__ import annotations

from types import ModuleType

from blade.detect import cycle, low_novelty, repeat_failing, repeat_identical, reread
from blade.detect.rule import Hit
from blade.detect.run import detected
from blade.model import Confidence, TaskTraces
from tests.builders import make_message
from tests.traces import did, make_facts, make_task, rollout


def hits(module: ModuleType, *calls: object) -> list[Hit]:
    return [one for one in module.find(make_task(rollout(did(*calls))), make_facts()) if one is not None]


def test_three_identical_readings_in_a_row_are_a_repetition() -> None:
    (one,) = hits(repeat_identical, *[("look", '{"id": 7}', "empty")] * 3)
    assert one.severity == 2
    assert one.detail == "look"
    assert (one.evidence[0].step, one.evidence[0].quote) == (2, '{"id": 7}')
    assert one.evidence[1].step == 4
    assert "3 times" in one.summary


def test_four_identical_calls_are_decisive_whatever_times_they_report() -> None:
    calls = [("look", "{}", f"nothing at 10:00:0{n}") for n in range(4)]
    assert [one.severity for one in hits(repeat_identical, *calls)] == [3]


def test_identical_calls_told_something_new_are_no_repetition() -> None:
    assert not hits(repeat_identical, *[("look", "{}", f"{n} of 9 done") for n in range(5)])


def test_two_identical_calls_are_no_repetition() -> None:
    assert not hits(repeat_identical, *[("look", "{}", "empty")] * 2)


def test_a_test_run_again_after_every_edit_is_no_repetition() -> None:
    rounds = [
        call for n in range(4) for call in (("edit", f'{{"to": {n}}}', "ok"), ("run_tests", "{}", "2 failed"))
    ]
    assert not hits(repeat_identical, *rounds)
    assert not hits(repeat_failing, *rounds)


def test_the_same_write_three_times_is_a_repetition_even_with_readings_between() -> None:
    calls = [("send_mail", '{"to": "a"}', "sent"), ("look", "{}", "inbox")] * 3
    (one,) = hits(repeat_identical, *calls)
    assert (one.detail, one.evidence[0].step) == ("send_mail", 4)


def test_a_user_between_readings_makes_them_a_reread() -> None:
    ask = make_message("and now?", "user")
    calls = [("look", "{}", "empty"), ask, ("look", "{}", "empty"), ask, ("look", "{}", "empty")]
    assert not hits(repeat_identical, *calls)
    (one,) = hits(reread, *calls)
    assert one.evidence[0].step == 3


def test_the_same_failure_three_times_fires() -> None:
    calls = [("book", '{"seat": 1}', "Error: seat taken"), ("look", "{}", "ok")] * 3
    (one,) = hits(repeat_failing, *calls)
    assert one.severity == 2
    assert (one.evidence[0].step, one.evidence[0].quote) == (4, '{"seat": 1}')
    assert one.evidence[1].quote == "Error: seat taken"


def test_failures_with_other_arguments_are_tries() -> None:
    assert not hits(repeat_failing, *[("book", f'{{"seat": {n}}}', "Error: seat taken") for n in range(4)])


def test_three_rounds_of_two_calls_are_a_cycle() -> None:
    calls = [("look", '{"a": 1}', "x"), ("find", '{"b": 2}', "y")] * 3
    (one,) = hits(cycle, ("look", '{"start": 1}', "z"), *calls)
    assert one.severity == 2
    assert (one.evidence[0].step, one.evidence[0].quote) == (6, '{"a": 1}')
    assert one.detail == "look → find"
    assert "repeat 3 times" in one.summary


def test_five_rounds_are_decisive_and_one_call_alone_is_no_cycle() -> None:
    calls = [("look", '{"a": 1}', "x"), ("find", '{"b": 2}', "y")]
    assert [one.severity for one in hits(cycle, *calls * 5)] == [3]
    assert not hits(cycle, *[("look", "{}", "x")] * 12)


def test_rounds_with_new_results_are_no_cycle() -> None:
    calls = [call for n in range(4) for call in (("next_page", "{}", "ok"), ("look", "{}", f"page {n}"))]
    assert not hits(cycle, *calls)
    assert not hits(cycle, *[("look", '{"a": 1}', "x"), ("find", '{"b": 2}', "y")] * 2)


def test_ten_readings_with_two_results_bring_nothing_new() -> None:
    calls = [("find", f'{{"q": "{n}"}}', "no match" if n % 2 else "[]") for n in range(10)]
    (one,) = hits(low_novelty, *calls)
    assert one.severity == 2
    assert (one.evidence[0].step, one.evidence[0].quote) == (4, '{"q": "2"}')
    assert "10 calls bring 2 results" in one.summary


def test_ten_new_writes_that_all_say_ok_are_progress() -> None:
    assert not hits(low_novelty, *[("edit", f'{{"to": {n}}}', "ok") for n in range(12)])
    assert not hits(low_novelty, *[("find", "{}", f"hit {n % 3}") for n in range(12)])
    assert not hits(low_novelty, *[("find", "{}", "no match") for _ in range(9)])


def test_a_reading_on_three_occasions_is_a_reread() -> None:
    others = [("find", f'{{"q": {n}}}', f"hit {n}") for n in range(3)]
    calls = [call for other in others for call in (("look", '{"id": 7}', "same"), other)]
    (one,) = hits(reread, *calls)
    assert one.severity == 2
    assert (one.evidence[0].step, one.evidence[0].quote) == (4, '{"id": 7}')
    assert "3 occasions" in one.summary


def test_five_occasions_are_decisive_and_two_are_none() -> None:
    calls = [
        call for n in range(5) for call in (("look", "{}", "same"), ("find", f'{{"q": {n}}}', f"hit {n}"))
    ]
    assert [one.severity for one in hits(reread, *calls)] == [3]
    assert [one.severity for one in hits(reread, *calls[:8])] == [2]
    assert not hits(reread, *calls[:4])


def test_a_reading_that_changed_or_was_done_in_one_go_is_no_reread() -> None:
    changed = [
        call
        for n in range(3)
        for call in (("look", "{}", f"state {n}"), ("find", f'{{"q": {n}}}', f"hit {n}"))
    ]
    assert not hits(reread, *changed)
    assert not hits(reread, *[("look", "{}", "same")] * 5)


def test_without_calls_every_loop_rule_lacks_its_input() -> None:
    task = make_task(rollout([make_message("hello")]))
    modules = (repeat_identical, repeat_failing, cycle, low_novelty, reread)
    told = detected(task, make_facts(), {module.RULE.name: module for module in modules})
    assert not told.found
    assert dict(told.lacking) == {module.RULE.name: "calls" for module in modules}


def test_a_loop_is_read_off_the_row_and_a_failure_is_a_reading() -> None:
    task: TaskTraces = make_task(rollout(did(*[("book", "{}", "Error: taken")] * 3)))
    told = detected(
        task, make_facts(), {"repeat_identical": repeat_identical, "repeat_failing": repeat_failing}
    )
    assert {one.finding.detector: one.finding.confidence for one in told.found} == {
        "repeat_identical": Confidence.PROVED,
        "repeat_failing": Confidence.LIKELY,
    }
