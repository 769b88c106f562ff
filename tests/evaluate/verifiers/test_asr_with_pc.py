"""Transcripts: forms that are the same words, errors that must count, and the rates by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.errors import UsageError
from blade_eval.verifiers import environment
from blade_eval.verifiers.asr_with_pc import metrics
from tests.evaluate.verifiers.attempts import judged

HEARD = environment("asr_with_pc", {})
EXACT = environment("asr_with_pc", {"correct_below": 1e-9})
TEXT = "Well, don't stop: it's 3.5 miles to St Ives."


def row(text: Any = TEXT, **more: Any) -> dict[str, Any]:
    return {"text": text, **more}


def test_the_rates_are_those_counted_by_hand() -> None:
    fields = judged(HEARD, row("Hello, Ann. Come in!"), "hello Ann, come in")
    assert fields["wer"] == 0.0
    assert fields["wer_c"] == 2 / 4
    # Hello , Ann . Come in !  against  hello Ann , come in: two words, and the marks 1 out, 1 exchanged, 1 out
    assert fields["wer_pc"] == 5 / 7
    assert fields["per"] == 1.0
    assert (fields["ref_pc_tok"], fields["hyp_c"]) == ("Hello , Ann . Come in !", "hello Ann come in")
    assert (fields["reward"], fields["is_correct"]) == (0.0, False)
    half = judged(HEARD, row("One, two. Three!"), "One, two. Three?")
    assert (half["per"], half["wer_pc"], half["reward"]) == (1 / 3, 1 / 6, 1.0)


def test_marks_count_only_where_the_task_has_them() -> None:
    assert "wer_pc" not in judged(HEARD, row("the cat sat"), "the cat sat")
    assert "wer_pc" in judged(HEARD, row("the cat sat", task_type="ASR-PC"), "the cat sat")
    assert "wer_pc" not in judged(HEARD, row(TEXT, task_type="ASR"), TEXT)
    assert HEARD.scores is not None
    assert HEARD.scores(judged(HEARD, row("the cat"), "the dog")) == {"wer": 0.5, "cer": 3 / 7}


def test_a_corpus_weighs_by_words() -> None:
    rows = [judged(HEARD, row("a b c d e f g h"), "a b c d e f g h"), judged(HEARD, row("a b"), "x y")]
    assert metrics([rows, [{}]]) == {"corpus_wer": 0.2}


def test_a_transcript_without_end_is_wrong_however_few_its_words() -> None:
    assert judged(HEARD, row("the cat sat"), "the cat sat " + "x" * 9_000)["reward"] == 1.0
    assert judged(HEARD, row("the cat sat"), "the cat sat " + "x" * 11_000)["reward"] == 0.0


def test_a_wrong_setting_is_said() -> None:
    with pytest.raises(UsageError, match="task type"):
        environment("asr_with_pc", {"task_type": "MT"})


@given(st.text("ab .,", min_size=1, max_size=20), st.text("ab .,", max_size=20))
@settings(max_examples=100, deadline=None)
def test_rates_are_zero_for_the_same_and_never_negative(reference: str, heard: str) -> None:
    if not reference.strip(" .,"):
        return
    task = row(reference, task_type="ASR-PC")
    same, other = judged(HEARD, task, reference), judged(HEARD, task, heard)
    assert (same["wer"], same["wer_c"], same["wer_pc"], same["per"]) == (0.0, 0.0, 0.0, 0.0)
    assert min(other["wer"], other["wer_c"], other["wer_pc"]) >= 0
    assert 0 <= other["per"] <= 1
