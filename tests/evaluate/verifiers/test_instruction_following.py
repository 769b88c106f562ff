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
from tests.evaluate.verifiers.attempts import example, judged, responses, reward, shipped, survives

RULED = environment("instruction_following", {})


def row(name: str, details: Any = None, **more: Any) -> dict[str, Any]:
    return {"instruction_id_list": [name], "kwargs": [details or {}], **more}


# instruction, details, a text that keeps it, its near miss
TWINS: list[tuple[str, dict[str, Any], str, str]] = [
    ("keywords:existence", {"keywords": ["tea", "milk"]}, "Milk goes into TEA.", "Milk goes into coffee."),
    ("keywords:existence", {"keywords": ["c++"]}, "I like C++.", "I like C."),
    ("keywords:frequency", {"keyword": "tea", "frequency": 2, "relation": "at least"}, "tea, Tea", "tea, ten"),
    ("keywords:frequency", {"keyword": "tea", "frequency": 2, "relation": "less than"}, "one tea", "tea and tea"),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "The category is dog.", "The Cat sat."),
    ("keywords:letter_frequency", {"letter": "e", "let_frequency": 3, "let_relation": "at least"}, "Eee", "Ee"),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": "less than"}, "#", "# #"),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": "less than"}, "One. Two (e.g. Dr. No)!", "One. Two! Three?"),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "at least"}, "It is 3.5 m. Really", "It is 3.5 m"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\ntwo", "one\n\ntwo"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\none\n***\ntwo\n***", "one\n***\n\n***\ntwo"),
    ("length_constraints:number_words", {"num_words": 4, "relation": "at least"}, "It's three words", "only three words"),
    ("length_constraints:number_words", {"num_words": 3, "relation": "less than"}, "two words!", "now three words"),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"}, 'First.\n\n"Then," he said', "First.\n\nthence it came"),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "now"}, "Now.\n\nb", "Now.\n\nb\n\nc"),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "now"}, "'Now!' he said\n\nb", "**Now** it is\n\nb"),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then:"}, "a\n\nThen: it was", "a\n\nThen it was"),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"}, "a\n\n\nThen it was", "a\n\n\n\nThen it was"),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] at [the place]", "[name] at [the\nplace]"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP. S. more", "Bye.\nPS more"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye\np.p.s more", "Bye\nP.S. more"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* one\n  - two", "* one\n* two\n* three"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 1}, "* one\n**bold**", "* one\n*two"),
    ("detectable_format:constrained_response", {}, "My answer is maybe.", "My answer is perhaps."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*one* and **two**", "*one* and ** **"),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2}, "Section 1\na\nSection 2\nb", "Section 1\na\nsection 2\nb"),
    ("detectable_format:multiple_sections", {"section_spliter": "PART", "num_sections": 1}, "PART1 x", "PART one x"),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', 'Here: {"a": [1]}'),
    ("detectable_format:json_format", {}, '{"a": 1}', "{'a': 1}"), ("detectable_format:title", {}, "<<joy>>\nx", "<< >>\nx"),
    ("detectable_format:title", {}, "# <<a>>", "<joy>"),
    ("combination:two_responses", {}, "one\n******\ntwo", "one\n******\none"),
    ("combination:two_responses", {}, "one ****** two", "one ****** two ****** three"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it."}, "say it. Well: it", "It: say it."),
    ("startend:end_checker", {"end_phrase": "The end."}, "So, the END.\n", "The end. Or not"),
    ("startend:quotation", {}, ' "all of it" ', '"a" he said'),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}, "NASA and ESA's", "NASA and Esa"),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "less than"}, "NASA only", "NASA I"),
    ("punctuation:no_comma", {}, "One; two.", "One, two."),
]
SPOKEN: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "language:response_language", {"language": "de"}, "Das Wetter ist heute schön und wir gehen spazieren.",
        "The weather is fine today and we go for a walk.",
    ),
    ("language:response_language", {"language": "hi"}, "आज मौसम बहुत अच्छा है।", "It is fine today, is it not?"),
    # where no language can be told, the published rule counts as kept
    ("language:response_language", {"language": "hi"}, "123 456", "one two three four"),
    (
        "change_case:english_capital", {}, "THE WEATHER IS FINE AND WE ALL GO FOR A WALK.",
        "THE WEATHER IS FINE AND WE ALL GO FOR a WALK.",
    ),
    (
        "change_case:english_capital", {}, "THIS IS WRITTEN IN CAPITAL LETTERS ALONE!",
        "DAS WETTER IST HEUTE SCHÖN UND WIR GEHEN!",
    ),
    (
        "change_case:english_lowercase", {}, "the weather is fine and we all go for a walk.",
        "The weather is fine and we all go for a walk.",
    ),
]


def test_every_rule_has_its_twins() -> None:
    assert len(RULES) == 25
    assert {name for name, *_ in TWINS + SPOKEN} == set(RULES)


@pytest.mark.parametrize(("name", "details", "kept", "broken"), TWINS)
def test_an_instruction_kept_and_its_near_miss(
    name: str, details: dict[str, Any], kept: str, broken: str
) -> None:
    assert reward(RULED, row(name, details), kept) == 1.0
    assert reward(RULED, row(name, details), broken) == 0.0


@pytest.mark.parametrize(("name", "details", "kept", "broken"), SPOKEN)
def test_languages_kept_and_their_near_miss(
    name: str, details: dict[str, Any], kept: str, broken: str
) -> None:
    assert reward(RULED, row(name, details), kept) == 1.0
    assert reward(RULED, row(name, details), broken) == 0.0


def test_without_the_library_a_language_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langdetect", None)  # as where it is not installed
    with pytest.raises(Unmeasured, match="langdetect"):
        judged(RULED, row("language:response_language", {"language": "de"}), "Guten Tag")
    assert reward(RULED, row("change_case:english_capital"), "Not All Capitals") == 0.0


def test_loose_forgives_the_frame_and_strict_does_not() -> None:
    text = 'Here you are:\n{"a": 1}\nI hope it helps!'
    fields = judged(RULED, row("detectable_format:json_format"), text)
    assert fields == {
        "reward": 0.0, "follow_all_instructions": False, "follow_instruction_list": [False],
        "follow_all_instructions_loose": True, "follow_instruction_list_loose": [True],
    }
    inside = judged(RULED, row("detectable_format:json_format"), 'a\nHere:\n{"a": 1}')
    assert inside["follow_all_instructions_loose"] is False


def test_all_or_a_share() -> None:
    task = {
        "instruction_id_list": ["punctuation:no_comma", "startend:quotation"], "kwargs": [None, {"num_words": None}],
    }
    assert judged(RULED, task, "no quotes")["follow_instruction_list"] == [True, False]
    assert reward(RULED, task, "no quotes") == 0.0
    assert reward(RULED, {**task, "grading_mode": "fraction"}, "no quotes") == 0.5
    assert reward(RULED, {"verifier_metadata": task}, '"quotes"') == 1.0
    assert RULED.scores is not None
    assert RULED.scores(judged(RULED, task, "no quotes"))["instruction_strict_accuracy"] == 0.5


def test_silence_keeps_no_instruction() -> None:
    assert reward(RULED, row("punctuation:no_comma"), "") == 0.0
    assert reward(RULED, row("punctuation:no_comma"), "<think>none") == 0.0


@pytest.mark.parametrize(
    "bad",
    [
        {}, {"instruction_id_list": [], "kwargs": []}, {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}, {}]},
        row("punctuation:no_semicolon"), row("length_constraints:number_words", {"num_words": 3, "relation": "about"}),
        row("length_constraints:number_words", {"relation": "at least"}), row("keywords:existence", {"keywords": "tea"}),
        row("punctuation:no_comma", grading_mode="kind"),
    ],
)
def test_a_broken_task_is_not_the_models_fault(bad: dict[str, Any]) -> None:
    with pytest.raises(Unmeasured, match="task_invalid"):
        judged(RULED, bad, "some text")


def test_sentences_are_counted_as_a_reader_would() -> None:
    for text, count in {
        "": 0, "No stop": 1, "Dr. Who met Mr. Fox, J. Smith and 1. FC. They spoke.": 2,
        "It costs 3.50 euros. Really?! Yes...": 3, 'He said "Go." Then he went.': 2, "One.\n\nTwo": 2, "你好。再见。": 2,
    }.items():
        assert sentence_count(text) == count, text


@given(st.sampled_from(sorted(set(RULES) - {name for name, *_ in SPOKEN})), st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_what_is_strictly_kept_is_loosely_kept(name: str, text: str) -> None:
    details = next(given for known, given, *_ in TWINS if known == name)
    fields = judged(RULED, row(name, details), text)
    assert fields["follow_all_instructions_loose"] or not fields["follow_all_instructions"]


@pytest.mark.parametrize(
    "sign", ["[", "<<", "*", "\n", " ", "***", "P.", "\\boxed{", "- ", "`", "Section 1", ".", '"', "a. "]
)
def test_no_rule_goes_astray_in_a_long_text(sign: str) -> None:
    long = "x" + sign * 30_000
    for name, details, *_ in TWINS:
        reward(RULED, row(name, details), long)


@given(responses)
@settings(max_examples=40, deadline=None)
def test_nothing_a_model_puts_out_breaks_it(response: Any) -> None:
    names = [name for name, *_ in TWINS]
    survives(RULED, {"instruction_id_list": names, "kwargs": [given for _, given, *_ in TWINS]}, response)


def test_the_shipped_example_is_judged() -> None:
    env = shipped("instruction_following")
    rows = example("instruction_following")
    assert len(rows) == 5
    assert all(reward(env, task, ",") == 0.0 for task in rows)
