"""Instructions: each of the twenty-five kept, and broken by as little as can be."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade_eval.environment import Unmeasured
from blade_eval.verifiers import environment
from blade_eval.verifiers.instruction_following import RULES, sentence_count
from tests.evaluate.verifiers.attempts import INSTRUCTIONS, judged, reward

RULED = environment("instruction_following", {})


def row(name: str, details: Any = None, **more: Any) -> dict[str, Any]:
    return {"instruction_id_list": [name], "kwargs": [details or {}], **more}


def test_without_the_library_a_language_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langdetect", None)  # as where it is not installed
    with pytest.raises(Unmeasured, match="langdetect"):
        judged(RULED, row("language:response_language", {"language": "de"}), "Guten Tag")
    assert reward(RULED, row("change_case:english_capital"), "Not All Capitals") == 0.0


def test_sentences_are_counted_as_a_reader_would() -> None:
    for text, count in {
        "": 0, "No stop": 1, "Dr. Who met Mr. Fox, J. Smith and 1. FC. They spoke.": 2,
        "It costs 3.50 euros. Really?! Yes...": 3, 'He said "Go." Then he went.': 2, "One.\n\nTwo": 2, "你好。再见。": 2,
    }.items():
        assert sentence_count(text) == count, text


@given(st.sampled_from(sorted(name for name in RULES if not name.startswith(("language", "change_case:english")))), st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_what_is_strictly_kept_is_loosely_kept(name: str, text: str) -> None:
    details = next(given for known, given, *_ in INSTRUCTIONS if known == name)
    fields = judged(RULED, row(name, details), text)
    assert fields["follow_all_instructions_loose"] or not fields["follow_all_instructions"]
