"""Translations: what is right scores full, what is worse scores less, and corpora are added up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade_eval.verifiers import environment
from blade_eval.verifiers.wmt_translation import metrics, tokenizer_of
from tests.evaluate.verifiers.attempts import judged, reward

MT = environment("wmt_translation", {})
SOURCE = "The old bridge will stay closed until the first of May."
REFERENCE = "Die alte Brücke bleibt bis zum ersten Mai gesperrt."


def row(translation: Any = REFERENCE, target: str = "de_DE", **more: Any) -> dict[str, Any]:
    return {
        "text": SOURCE, "translation": translation, "source_language": "en", "target_language": target, **more,
    }


# Each is worse than a fair translation, though a hasty look may take it for one.
FAIR = "Die alte Brücke bleibt bis zum 1. Mai gesperrt."
WORSE = [
    "", f"<think>{REFERENCE}", SOURCE, "Die neue Straße ist seit dem Winter wieder offen.",
    f"Here is the translation you asked for, with notes:\n\n{REFERENCE}\n\nI hope this helps you!", f"{FAIR} {FAIR} {FAIR}",
    "Die alte Brücke", " ".join(reversed(REFERENCE.split())).lower(), "Le vieux pont restera fermé jusqu'au premier mai.",
]


@pytest.mark.parametrize("text", WORSE)
def test_what_is_worse_scores_less(text: str) -> None:
    assert reward(MT, row(), text) < reward(MT, row(), FAIR) < 1.0


def test_the_language_says_how_words_are_cut() -> None:
    cuts = {"de_DE": "13a", "zho_Hans": "zh", "zh-CN": "zh", "tha_Thai": "char", "": "13a"}
    assert {code: tokenizer_of(code) for code in cuts} == cuts
    assert tokenizer_of("ja_JP") == tokenizer_of("jpn_Jpan") in ("ja-mecab", "char")
    assert judged(MT, row(target="ko_KR"), REFERENCE)["bleu_tokenizer"] in ("ko-mecab", "char")
    assert judged(MT, row(), REFERENCE)["sentence_spbleu"] is None


def test_plain_chrf_is_a_setting() -> None:
    plain = environment("wmt_translation", {"chrf_word_order": 0})
    assert reward(plain, row(), FAIR) != reward(MT, row(), FAIR)


def test_a_corpus_is_not_the_mean_of_its_sentences() -> None:
    def told(reference: str, text: str) -> dict[str, Any]:
        return {**row(reference), **judged(MT, row(reference), text)}

    rows = [told(REFERENCE, REFERENCE), told("Ja.", "Nein.")]
    found = metrics([[each] for each in rows])
    assert set(found) == {"en->de_DE/bleu", "en->de_DE/chrf", "xx->xx/bleu", "xx->xx/chrf"}
    assert found["en->de_DE/bleu"] == found["xx->xx/bleu"] > 50
    assert metrics([[rows[0], rows[0]]])["en->de_DE/bleu"] == pytest.approx(100)
    assert metrics([[{}]]) == {}
    assert MT.scores is not None
    assert MT.scores(rows[0]) == {"chrf": 1.0, "bleu": 1.0}


@given(st.text(min_size=1, max_size=30), st.text(max_size=30))
@settings(max_examples=60, deadline=None)
def test_the_reward_is_a_likeness(reference: str, text: str) -> None:
    if reference.strip():
        assert 0 <= reward(MT, row(reference), text) <= 1
