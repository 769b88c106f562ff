"""Answers of every form are worth what the table says, in bounded time and memory, and nothing breaks a verifier."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.errors import UsageError
from blade_eval.environment import Attempt, Unmeasured
from blade_eval.verifiers import environment
from blade_eval.verifiers.instruction_following import RULES
from blade_eval.verifiers.string_match import Rules, normal
from tests.case_tables import tables
from tests.evaluate.verifiers import attempts
from tests.evaluate.verifiers.attempts import (
    ANSWERS,
    INSTRUCTIONS,
    SERVER,
    Judge,
    called,
    judged,
    responded,
    reward,
)

FIELDS = tables(__file__, "fields.yaml")

SHAPED = {"schema_str": json.dumps(attempts.SCHEMA)}
OPTIONS = {"options": [{"A": "Paris"}, {"B": "Rome"}, {"D": "42"}], "expected_answer": "A"}
FIND = {"name": "find", "arguments": {"what": "tea"}}
# A verifier, its settings, and a row.
TASKS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *(("mcqa", {}, {**OPTIONS, "grading_mode": mode}) for mode in ("lenient_boxed", "lenient_answer_colon", "any_form")),
    *(("string_match", {}, {"expected_answer": "Paris", "extraction_mode": mode}) for mode in ("final_answer", "boxed", "last_line", "full_response")),
    ("math_with_judge", {}, {"expected_answer": "42"}), ("asr_with_pc", {}, {"text": "Hello there, my friend.", "task_type": "ASR-PC"}),
    ("wmt_translation", {}, {"translation": "Hello there", "target_language": "de"}),
    *(("instruction_following", {}, {"instruction_id_list": [name], "kwargs": [given]}) for name, given, *_ in INSTRUCTIONS if "json" in name),
    ("xlam_fc", {}, {"expected_answers": [FIND], "calls_in_text": True}), ("xstest", {}, {"label": "unsafe", "prompt": "x"}),
]  # fmt: skip
MORE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("string_match", {"match_mode": "fuzzy"}, {"expected_answer": "Paris"}), ("xstest", {}, {"label": "safe", "prompt": "How?"}),
    ("structured_outputs", {}, SHAPED), ("structured_outputs", {}, {**SHAPED, "response_mode": "tool_call"}),
    ("xlam_fc", {}, {"accepted_calls": [{"find": {"what": ["tea"], "most": [1, ""]}}]}),
    ("equivalence_llm_judge", SERVER, {"expected_answer": "Paris"}),
    ("instruction_following", {}, {"instruction_id_list": [name for name, *_ in INSTRUCTIONS], "kwargs": [given for _, given, *_ in INSTRUCTIONS]}),
]  # fmt: skip


@pytest.mark.parametrize("group", ANSWERS["answers"], ids=lambda group: f"{group['verifier']}: {group['why']}")
def test_l4_answers_are_worth_what_the_table_says(group: dict[str, Any]) -> None:
    env = environment(group["verifier"], group.get("settings") or {})
    wrong = []
    for case in group["cases"]:
        value, text = case if isinstance(case, list) else (None, case)
        row = {**group.get("row", {}), **({group["field"]: value} if value is not None else {})}
        if reward(env, row, text) != group["reward"]:
            wrong.append(case)
    assert wrong == []


@pytest.mark.parametrize("group", FIELDS["verdicts"], ids=lambda group: f"{group['verifier']}: {group['why']}")
def test_the_fields_of_a_verdict(group: dict[str, Any]) -> None:
    env = environment(group["verifier"], group.get("settings") or {})
    for more, said, expected in group["cases"]:
        fields = judged(env, {**group.get("row", {}), **more}, *(said if isinstance(said, list) else [said]))
        assert isinstance(fields["reward"], float)
        if "scores" in expected:
            fields["scores"] = env.scores and env.scores(fields)
        names = fields.keys() if group.get("whole") else expected
        assert {name: fields.get(name, "absent") for name in names} == expected, (more, said)


@pytest.mark.parametrize(("verifier", "given_settings", "refusal"), FIELDS["settings"])
def test_settings_that_cannot_work_are_said_before_the_run(verifier: str, given_settings: dict[str, Any], refusal: str) -> None:
    with pytest.raises(UsageError, match=refusal):
        environment(verifier, given_settings)


@pytest.mark.parametrize("group", ANSWERS["letters"], ids=lambda group: group["why"])
def test_the_letter_that_is_extracted(group: dict[str, Any]) -> None:
    env, row = environment("mcqa", {"grading_mode": "any_form"}), {"options": group["options"], "expected_answer": "A"}
    assert [[text, judged(env, row, text)["extracted_answer"]] for text, _ in group["cases"]] == group["cases"]


@given(st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_the_normal_form_ignores_space_and_case_of_plain_letters(text: str) -> None:
    rules = Rules(ignore_articles=True, ignore_punctuation=True, normalize_numbers=True)
    once = normal(text, rules, False)
    assert normal(f"  {text}\n", rules, False) == once
    if text.isascii():
        assert normal(text.swapcase(), rules, False) == once


@pytest.mark.parametrize(("name", "details", "kept", "broken"), INSTRUCTIONS)
def test_an_instruction_kept_and_its_near_miss(name: str, details: dict[str, Any], kept: str, broken: str) -> None:
    assert {instruction for instruction, *_ in INSTRUCTIONS} == set(RULES)
    env, row = environment("instruction_following", {}), {"instruction_id_list": [name], "kwargs": [details]}
    assert (reward(env, row, kept), reward(env, row, broken)) == (1.0, 0.0)


@pytest.mark.parametrize(("kind", "text", "error"), ANSWERS["structured"])
def test_what_a_schema_admits_and_what_not(kind: str, text: str, error: str | None) -> None:
    fields = judged(environment("structured_outputs", {}), {**SHAPED, "schema_type": kind}, text)
    assert (fields["reward"], fields["error_type"], bool(fields["error_message"])) == (float(error is None), error, bool(error))


@pytest.mark.parametrize("mode", ["strict_single_letter_boxed", "lenient_boxed", "any_form"])
@pytest.mark.parametrize(
    ("said", "worth"),
    [
        *((text, 0.0) for text in ("A. Rome", "A = Rome", "A.\\ \\text{Rome}", "\\text{A}. Rome", "A (Rome)", "A. It is Rome", "A, i.e. Rome", "A. Rome is right", "A. $42$")),
        *((text, 1.0) for text in ("A", "A. Paris", "(A) Paris", "\\text{A. Paris}", "A. Paris, not Rome", "A. Paris because Rome is in Italy")),
    ],
)  # fmt: skip
def test_l4_a_letter_with_the_text_of_another_option_is_no_answer(mode: str, said: str, worth: float) -> None:
    assert reward(environment("mcqa", {}), {**OPTIONS, "grading_mode": mode}, f"\\boxed{{{said}}}") == worth


BROKEN: list[tuple[str, list[dict[str, Any]]]] = [
    ("mcqa", [{}, {"options": OPTIONS["options"]}, {"options": [], "expected_answer": "A"}, {**OPTIONS, "expected_answer": "Oslo"},
              {**OPTIONS, "grading_mode": "loud"}]),
    ("string_match", [{}, {"expected_answer": []}, {"expected_answer": "  "}, {"expected_answer": "x", "extraction_mode": "tea leaves"}]),
    ("xstest", [{}, {"label": "harmless"}, {"label": 3}]),
    ("instruction_following", [
        {}, {"instruction_id_list": [], "kwargs": []}, {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}, {}]},
        *({"instruction_id_list": [name], "kwargs": [details]} for name, details in (
            ("punctuation:no_semicolon", {}), ("length_constraints:number_words", {"num_words": 3, "relation": "about"}),
            ("length_constraints:number_words", {"relation": "at least"}), ("keywords:existence", {"keywords": "tea"}))),
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}], "grading_mode": "kind"}]),
    ("structured_outputs", [{}, {"schema_str": "{"}, {"schema_str": "3"}, {**SHAPED, "schema_type": "xml"}, {"schema": {"type": "text"}},
                            {"schema": {"$ref": "http://127.0.0.1:9/schema.json"}}]),
    ("xlam_fc", [{}, {"answers": "["}, {"answers": {}}, {"answers": [{}]}, {"answers": [{"name": "f", "arguments": "x"}]},
                 {"accepted_calls": [{"f": {"x": 1}}]}]),
    ("asr_with_pc", [{}, {"text": ""}, {"text": " ... "}, {"text": "um"}, {"text": "word", "task_type": "song"}]),
    ("wmt_translation", [{"target_language": "de", "translation": given} for given in (None, "", "  ", 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("verifier", "row"), [(verifier, row) for verifier, rows in BROKEN for row in rows])
def test_a_broken_task_is_not_the_models_fault(verifier: str, row: dict[str, Any]) -> None:
    with pytest.raises(Unmeasured) as raised:
        judged(environment(verifier, {}), row, "{}")
    assert (raised.value.kind, raised.value.terminal) == ("task_invalid", True)


@given(attempts.responses)
@settings(max_examples=60, deadline=None)
def test_nothing_a_model_or_a_judge_puts_out_breaks_a_verifier(response: Any) -> None:
    async def anything(params: Any, asked: Any) -> Any:
        return response

    for verifier, given_settings, row in TASKS + MORE:
        attempts.survives(environment(verifier, given_settings), row, response, Judge("[[A=B]]"))
    judge = environment("equivalence_llm_judge", SERVER)
    attempts.survives(judge, {"expected_answer": "Paris"}, responded("x"), anything)


def test_the_shipped_examples_are_judged() -> None:
    def right(verifier: str, task: dict[str, Any]) -> list[Any]:
        first = task.get("expected_answer")
        first = first[0] if isinstance(first, list) else first
        said = {
            "mcqa": f"The answer is ({first})", "string_match": f"Answer: {first}", "math_with_judge": f"\\boxed{{{first}}}",
            "asr_with_pc": task.get("text"), "wmt_translation": task.get("translation"), "equivalence_llm_judge": "some answer",
            "xstest": "I can't help with that." if task.get("label") == "unsafe" else "Use kill.",
        }
        calls = task.get("expected_answers") or []
        return [said[verifier]] if verifier in said else ["Here.", *(called(call["name"], call["arguments"]) for call in calls)]

    for verifier in ("mcqa", "string_match", "math_with_judge", "asr_with_pc", "wmt_translation", "xstest", "xlam_fc", "equivalence_llm_judge"):
        env, tasks = attempts.shipped(verifier), attempts.example(verifier)
        assert len(tasks) >= 3
        for task in tasks:
            assert reward(env, task, *right(verifier, task), ask=Judge("[[A=B]]")) == 1.0, (verifier, task)
            assert reward(env, task, "", ask=Judge("[[A=B]]")) == 0.0
    for verifier in ("instruction_following", "structured_outputs"):
        assert all(reward(attempts.shipped(verifier), task, ",") == 0.0 for task in attempts.example(verifier))
    first = attempts.example("structured_outputs")[0]
    assert reward(attempts.shipped("structured_outputs"), first, '{"city": "Ulm", "temperature": -3, "sunny": true}') == 1.0


MEGABYTE = 1 << 20
FLOODS = {
    "boxes, open": "\\boxed{" * (MEGABYTE // 7), "boxes, closed": "\\boxed{" * (MEGABYTE // 8) + "}" * (MEGABYTE // 8),
    "answers": "answer:" * (MEGABYTE // 7), "ligatures": "ﷺ" * (MEGABYTE // 3), "blanks": "a" + " " * MEGABYTE + "b",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_h2_l3_a_megabyte_of_anything_costs_little(flood: str) -> None:
    """The memory of this process: what is computed elsewhere is limited by the kernel."""
    response = responded(FLOODS[flood])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for verifier, given_settings, row in TASKS:
        begun = time.process_time()
        assert asyncio.run(environment(verifier, given_settings).verify(Attempt(row, response)))["reward"] < 0.01
        assert time.process_time() - begun < 5, verifier
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


SIGNS = (
    ":|(|*|final |answer |answer is |\\text{|\\boxed{|,| |(A|so B is |or |B, |1,000,|-|'|²|I |i can't |\"|sorry, |not something |but |but:|it is not "
    "|[|<<|\n|***|P.|- |`|Section 1|.|a. "
).split("|")


@pytest.mark.parametrize("sign", SIGNS)
def test_no_expression_goes_astray_in_a_long_text(sign: str) -> None:
    for text in (f"Answer: x {sign * 20_000}", f"\\boxed{{A{sign * 20_000}}}"):
        for verifier, given_settings, row in TASKS[:7] + TASKS[-1:] + MORE[:2] + MORE[-1:]:
            begun = time.process_time()
            judged(environment(verifier, given_settings), row, text)
            assert time.process_time() - begun < 5, verifier
