"""Transcripts: forms that are the same words, errors that must count, and the rates by hand."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from blade_eval.verifiers import environment
from blade_eval.verifiers.asr_with_pc import metrics
from tests.evaluate.verifiers.attempts import judged

HEARD = environment("asr_with_pc", {})
EXACT = environment("asr_with_pc", {"correct_below": 1e-9})
TEXT = "Well, don't stop: it's 3.5 miles to St Ives."


def row(text: Any = TEXT, **more: Any) -> dict[str, Any]:
    return {"text": text, **more}


def test_a_corpus_weighs_by_words() -> None:
    rows = [judged(HEARD, row("a b c d e f g h"), "a b c d e f g h"), judged(HEARD, row("a b"), "x y")]
    assert metrics([rows, [{}]]) == {"corpus_wer": 0.2}


def test_a_transcript_without_end_is_wrong_however_few_its_words() -> None:
    assert judged(HEARD, row("the cat sat"), "the cat sat " + "x" * 9_000)["reward"] == 1.0
    assert judged(HEARD, row("the cat sat"), "the cat sat " + "x" * 11_000)["reward"] == 0.0


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
