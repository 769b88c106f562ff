"""Attacks and paraphrases: each changes what it says and keeps what it says it keeps."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.package.calibrate import attacks
from blade.package.calibrate.attacks import ATTACKS, Material
from blade.package.calibrate.paraphrase import paraphrased
from blade.package.judge.coherence import is_sentence
from blade.prose.document import document
from blade.prose.slots import slots
from tests.package.court import files

REPORT = """# Desk BLADE Analysis Report

## Executive Summary

`sim-model-a` scored 62.5% pass@1 (n = 24 tasks). In 11 of 96 rollouts, the text was cut; 3 tasks never pass.
The largest failure mode is truncated (IR): 11.5 points.

- Task `4/0` shows the wrong order. For instance step 4 says “the order is O-20048 and nothing else”.
- Task 5 is not solved, because no answer could be extracted.

| Task | Rate |
| --- | ---: |
| `4` desk-0004 | 50.0% (2/4) |

## Never-Pass Deep Dives

Failing, task `4/0`, step 4:

```text
{"order_id":"O-20048"} because the model shows 3 of 4
```
"""
MATERIAL = Material(
    REPORT, ("Task 4 fails for KG.",), ("4", "5", "desk-0004"), ("sim-model-a",), ("sim-model-b",), "# thin\n"
)


def claimed(text: str) -> Counter[tuple[str, str]]:
    """Every number, ratio, name in code and quotation of the sentences of a text."""
    return Counter((slot.kind, slot.text) for one in document(text).statements for slot in slots(one.text))


@pytest.mark.parametrize("seed", range(8))
def test_a_paraphrase_keeps_numbers_ids_quotations_and_tables(seed: int) -> None:
    other = paraphrased(REPORT, seed)
    before, after = document(REPORT), document(other)
    assert claimed(other) == claimed(REPORT)
    assert [one.text for one in after.quotations] == [one.text for one in before.quotations]
    assert [one.rows[0].cells for one in after.tables] == [one.rows[0].cells for one in before.tables]
    assert [one.text for one in after.statements if one.kind == "heading"] == [
        one.text for one in before.statements if one.kind == "heading"
    ]


def test_a_paraphrase_is_other_words_and_its_seed_decides_them() -> None:
    found = {paraphrased(REPORT, seed) for seed in range(8)}
    assert REPORT not in found
    assert len(found) > 1
    assert paraphrased(REPORT, 3) == paraphrased(REPORT, 3)


@pytest.mark.parametrize("seed", range(3))
def test_a_paraphrase_of_a_whole_report_keeps_every_claim(made: Path, seed: int) -> None:
    text = files(made)[0].read_text(encoding="utf-8")
    assert claimed(paraphrased(text, seed)) == claimed(text)


@given(st.text(alphabet="ab1. ,;|`#-“”\n*()[]", max_size=200), st.integers(0, 3))
def test_a_paraphrase_of_anything_keeps_its_numbers(text: str, seed: int) -> None:
    assert Counter(re.findall(r"\d+", paraphrased(text, seed))) == Counter(re.findall(r"\d+", text))


def test_directions_and_negations_are_never_reworded() -> None:
    text = "Task 5 never passes and is not solved; more tasks fail than pass, and most lose points."
    for seed in range(6):
        other = paraphrased(text, seed)
        assert all(word in other for word in ("never passes", "not solved", "fail than pass", "most lose"))


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_every_attack_makes_another_report(name: str) -> None:
    make, limit = ATTACKS[name]
    assert make(MATERIAL) != REPORT
    assert limit <= 0.40


def test_causes_trade_places_and_rotate_by_code_and_by_name() -> None:
    text = "Task 4 is a knowledge gap (KG), tasks 5 and 6 are BI; so is 7, BI.\n\nTask 5: BI, behavioural issue.\n"
    material = Material(text, (), (), (), ())
    swapped, rotated = attacks.swapped_labels(material), attacks.rotated_labels(material)
    assert swapped.startswith("Task 4 is a behavioural issue (BI), tasks 5 and 6 are KG")
    assert "KG, knowledge gap." in swapped
    assert attacks.swapped_labels(Material(swapped, (), (), (), ())) == text
    assert "(KG)" not in rotated
    assert "BI" not in rotated.split(";")[0].split(",")[1]


def test_invented_claims_are_as_many_as_true_ones_and_leave_those_alone() -> None:
    other = attacks.invented(MATERIAL)
    assert other.startswith(REPORT)
    told = [line for line in other.removeprefix(REPORT).split("\n") if line[:1].isdigit()]
    lines = [line for line in REPORT.split("\n") if line.strip()]
    assert len(told) >= len(lines) / 2
    assert all(re.search(r"\btask [45]\b", line) for line in told)


def test_idle_advice_replaces_one_section() -> None:
    text = REPORT + "\n## Recommendations\n\n- Fix task 4.\n\n## Notes\n\nNone.\n"
    other = attacks.idle_advice(Material(text, (), (), (), ()))
    assert "Fix task 4" not in other
    assert other.startswith(REPORT)
    assert other.endswith("## Notes\n\nNone.\n")


def test_shuffling_keeps_every_word_and_makes_no_sentence() -> None:
    text = "The cause of the failure of task 4 is that the agent calls the tool with an order of another customer."
    mixed = attacks.shuffled_lines(Material(text, (), (), (), (), seed=1))
    assert sorted(mixed.split()) == sorted(text.split())
    assert is_sentence(text)
    assert not is_sentence(mixed)


def test_randomised_numbers_leave_no_number_of_prose_and_tables_but_quotations() -> None:
    other = attacks.randomised_numbers(MATERIAL)
    assert "62.5%" not in other
    assert '{"order_id":"O-20048"}' in other
    assert re.sub(r"\d", "", other) == re.sub(r"\d", "", REPORT)


def test_false_ids_name_no_task_and_change_no_other_number() -> None:
    other = attacks.false_ids(MATERIAL)
    assert "`4/0`" not in other
    assert "desk-0004 " not in other
    assert "62.5% pass@1 (n = 24 tasks)" in other
    assert "step 4 says" in other


def test_false_quotes_replace_blocks_and_sentences() -> None:
    other = attacks.false_quotes(MATERIAL)
    assert "O-20048" not in other
    assert len(document(other).quotations) == 1


def test_swapped_models_trade_names() -> None:
    other = attacks.swapped_models(Material("a-1 beats b-2 and a-10", (), (), ("a-1",), ("b-2",)))
    assert other == "b-2 beats a-1 and a-10"


@pytest.mark.parametrize("make", [attacks.negated, attacks.inverted])
def test_denials_change_sentences_and_nothing_else(make: attacks.Attack) -> None:
    before, after = document(REPORT), document(make(MATERIAL))
    assert [one.rows for one in after.tables] == [one.rows for one in before.tables]
    assert [one.text for one in after.quotations] == [one.text for one in before.quotations]
    kept = {one.text for one in before.statements if one.kind == "sentence" and not one.text.endswith(":")}
    assert not kept & {one.text for one in after.statements}


def test_reordering_keeps_every_line() -> None:
    found = {attacks.reordered(REPORT, seed) for seed in range(6)}
    assert len(found) > 1
    for other in found:
        assert Counter(filter(None, other.split("\n"))) == Counter(filter(None, REPORT.split("\n")))


@pytest.mark.parametrize(
    "text",
    [
        "Where the confidences come from is told below.",
        "Task 17 never passes (0 of 4), since the agent announces the change and stops.",
        "Rollouts of the run that end in an error are not counted.",
        "Die Aufgabe 4 scheitert, weil die Antwort in der falschen Form steht.",
        "of the",
        "",
    ],
)
def test_prose_is_taken_for_prose(text: str) -> None:
    assert is_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        "Infrastructure of the is a knowledge the gap of and task 4 (the.",
        "the the of (IR): tasks for at is of and never 17 (BI) rollouts a the.",
    ],
)
def test_a_bag_of_words_is_not(text: str) -> None:
    assert not is_sentence(text)
