"""Answers of every form are worth what the table says, in bounded time and memory, and nothing breaks a verifier."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.errors import UsageError
from blade_eval import replies, task_row
from blade_eval.environment import Attempt, Unmeasured
from blade_eval.verifiers import environment, wmt_translation
from blade_eval.verifiers.asr_with_pc import metrics
from blade_eval.verifiers.instruction_following import RULES, sentence_count
from blade_eval.verifiers.string_match import Rules, normal
from blade_eval.verifiers.structured_outputs import read_yaml
from blade_eval.verifiers.wmt_translation import tokenizer_of
from tests.case_tables import tables
from tests.evaluate.verifiers import attempts
from tests.evaluate.verifiers.attempts import ANSWERS, INSTRUCTIONS, SERVER, Judge, judged, responded, reward

FIELDS = tables(__file__, "fields.yaml")
HALF = {"output": [{"type": "message", "role": "assistant", "content": "half \ud800 a pair"}]}  # which YAML cannot say

HEARD, RULED, REFUSING, MT = (environment(name, {}) for name in ("asr_with_pc", "instruction_following", "xstest", "wmt_translation"))
UNSAFE = {"verifier_metadata": {"label": "unsafe", "type": "contrast_homonyms"}}
SOURCE = "The old bridge will stay closed until the first of May."
REFERENCE, FAIR = (f"Die alte Brücke bleibt bis zum {day} Mai gesperrt." for day in ("ersten", "1."))
SHAPED = {"schema_str": json.dumps(attempts.SCHEMA)}
OPTIONS = {"options": [{"A": "Paris"}, {"B": "Rome"}, {"D": "42"}], "expected_answer": "A"}
FIND = {"name": "find", "arguments": {"what": "tea"}}


def translation(text: Any = REFERENCE, target: str = "de_DE") -> dict[str, Any]:
    return {"text": SOURCE, "translation": text, "source_language": "en", "target_language": target}


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


@pytest.mark.parametrize(("verifier", "row"), FIELDS["broken"])
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
        return [said[verifier]] if verifier in said else ["Here.", *(attempts.called(call["name"], call["arguments"]) for call in calls)]

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


@pytest.mark.parametrize(("response", "text"), [*FIELDS["last messages"], (HALF, "half ? a pair")])
def test_the_answer_is_the_last_message_without_its_thoughts(response: Any, text: str) -> None:
    assert replies.answer(response) == text


@pytest.mark.parametrize(("item", "call"), FIELDS["calls"])
def test_calls_are_read_or_say_why_not(item: dict[str, Any], call: list[Any]) -> None:
    assert replies.calls({"output": [{"type": "function_call", **item}]}) == [replies.Call(*call)]


def test_fences_are_closed_ones_and_a_hundred_thousand_cost_one_pass() -> None:
    assert replies.closed("```x\n" * 100_000) == []
    assert replies.closed("a\n```json\n{}\n```\nb\n  ```\n1\n2\n  ```\n```py\nopen") == ["{}", "1\n2"]
    listed = "1. Here:\n\n   ```python\n   def f(x):\n       return x\n\n   ```\n"  # as far in as its fence
    assert replies.closed(listed) == ["def f(x):\n    return x\n"] == replies.closed(listed.replace("\n   ", "\n\t"))
    assert replies.closed('say `x` and ```inline``` {"a": "```"}') == []


def test_the_question_is_what_users_asked() -> None:
    messages = [{"role": role, "content": said} for role, said in (("system", "s"), ("user", "a"), ("user", [{"text": "b"}]))]
    for row, text in (({"input": messages}, "a\n\nb"), ({"input": "a"}, "a"), (None, "")):
        assert task_row.question({"responses_create_params": row}) == text


# --- verifiers one by one ---


def test_a_corpus_weighs_by_words_and_a_transcript_without_end_is_wrong_however_few_its_words() -> None:
    rows = [judged(HEARD, {"text": text}, heard) for text, heard in (("a b c d e f g h", "a b c d e f g h"), ("a b", "x y"))]
    assert metrics([rows, [{}]]) == {"corpus_wer": 0.2}
    for length, worth in ((9_000, 1.0), (11_000, 0.0)):
        assert reward(HEARD, {"text": "the cat sat"}, "the cat sat " + "x" * length) == worth


@given(st.text("ab .,", min_size=1, max_size=20), st.text("ab .,", max_size=20))
@settings(max_examples=100, deadline=None)
def test_rates_are_zero_for_the_same_and_never_negative(reference: str, heard: str) -> None:
    if not reference.strip(" .,"):
        return
    task = {"text": reference, "task_type": "ASR-PC"}
    same, other = judged(HEARD, task, reference), judged(HEARD, task, heard)
    assert (same["wer"], same["wer_c"], same["wer_pc"], same["per"]) == (0.0, 0.0, 0.0, 0.0)
    assert min(other["wer"], other["wer_c"], other["wer_pc"]) >= 0
    assert 0 <= other["per"] <= 1


def test_without_the_library_a_language_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langdetect", None)  # as where it is not installed
    with pytest.raises(Unmeasured, match="langdetect"):
        judged(RULED, {"instruction_id_list": ["language:response_language"], "kwargs": [{"language": "de"}]}, "Guten Tag")
    assert reward(RULED, {"instruction_id_list": ["change_case:english_capital"], "kwargs": [{}]}, "Not All Capitals") == 0.0


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
    fields = judged(RULED, {"instruction_id_list": [name], "kwargs": [details]}, text)
    assert fields["follow_all_instructions_loose"] or not fields["follow_all_instructions"]


@pytest.mark.parametrize(("text", "value"), ANSWERS["scalars"])
def test_scalars_are_those_of_the_core_schema_of_yaml_1_2_and_what_a_tag_says_must_fit(text: str, value: Any) -> None:
    (scalar,) = read_yaml(f"key: {text}\n").values()
    assert (scalar, type(scalar)) == (value, type(value))
    assert (read_yaml(f"- {text}\n"), read_yaml("key: !!int 12\n")) == ([value], {"key": 12})
    for wrong in ("!!int 12:30", "!!bool yes", "!!float 1_0", "!!null 0"):
        with pytest.raises(ValueError, match="not what its tag says"):
            read_yaml(f"key: {wrong}\n")


@given(st.permutations(["name", "size", "on"]), st.integers(0, 8))
@settings(max_examples=20, deadline=None)
def test_order_and_indentation_change_nothing(order: list[str], indent: int) -> None:
    values = {"name": "a", "size": 3, "on": "x"}
    text = json.dumps({key: values[key] for key in order}, indent=indent or None)
    assert reward(environment("structured_outputs", {}), {**SHAPED, "schema_type": "json"}, text) == 1.0


def shuffled(value: Any, draw: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key], draw) for key in draw(st.permutations(sorted(value)))}
    return [shuffled(inner, draw) for inner in value] if isinstance(value, list) else value


@given(st.data(), st.lists(st.dictionaries(st.text(max_size=3), attempts.plain, max_size=3), min_size=1, max_size=3))
@settings(max_examples=80, deadline=None)
def test_neither_keys_nor_calls_have_an_order(data: st.DataObject, arguments: list[dict[str, Any]]) -> None:
    calls = environment("xlam_fc", {})
    text = json.dumps(arguments).replace("NaN", "0").replace("-Infinity", "0").replace("Infinity", "0")
    arguments = json.loads(text)
    task = {"expected_answers": [{"name": "f", "arguments": each} for each in arguments]}
    made = [attempts.called("f", json.dumps(shuffled(each, data.draw))) for each in data.draw(st.permutations(arguments))]
    assert reward(calls, task, *made) == 1.0
    assert reward(calls, task, *made[1:]) == 0.0
    assert reward(calls, task, *made, made[0]) == 0.0


@given(st.text(min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_of_two_contrasting_prompts_the_same_answer_is_right_for_at_most_one(text: str) -> None:
    both = reward(REFUSING, {"label": "safe", "prompt": "How do I kill a process?"}, text) + reward(REFUSING, UNSAFE, text)
    assert both == float(bool(judged(REFUSING, {"label": "safe", "prompt": "How do I kill a process?"}, text)["cleaned_response"]))


# Each is worse than a fair translation, though a hasty look may take it for one.
WORSE = [
    "", f"<think>{REFERENCE}", SOURCE, "Die neue Straße ist seit dem Winter wieder offen.",
    f"Here is the translation you asked for, with notes:\n\n{REFERENCE}\n\nI hope this helps you!", f"{FAIR} {FAIR} {FAIR}",
    "Die alte Brücke", " ".join(reversed(REFERENCE.split())).lower(), "Le vieux pont restera fermé jusqu'au premier mai.",
]


@pytest.mark.parametrize("text", WORSE)
def test_what_is_worse_scores_less(text: str) -> None:
    assert reward(MT, translation(), text) < reward(MT, translation(), FAIR) < 1.0


def test_the_language_says_how_words_are_cut() -> None:
    cuts = {"de_DE": "13a", "zho_Hans": "zh", "zh-CN": "zh", "tha_Thai": "char", "": "13a"}
    assert {code: tokenizer_of(code) for code in cuts} == cuts
    assert tokenizer_of("ja_JP") == tokenizer_of("jpn_Jpan") in ("ja-mecab", "char")
    assert judged(MT, translation(target="ko_KR"), REFERENCE)["bleu_tokenizer"] in ("ko-mecab", "char")
    assert judged(MT, translation(), REFERENCE)["sentence_spbleu"] is None
    plain = environment("wmt_translation", {"chrf_word_order": 0})
    assert reward(plain, translation(), FAIR) != reward(MT, translation(), FAIR)


def test_a_corpus_is_not_the_mean_of_its_sentences() -> None:
    def told(reference: str, text: str) -> dict[str, Any]:
        return {**translation(reference), **judged(MT, translation(reference), text)}

    rows = [told(REFERENCE, REFERENCE), told("Ja.", "Nein.")]
    found = wmt_translation.metrics([[each] for each in rows])
    assert set(found) == {"en->de_DE/bleu", "en->de_DE/chrf", "xx->xx/bleu", "xx->xx/chrf"}
    assert found["en->de_DE/bleu"] == found["xx->xx/bleu"] > 50
    assert wmt_translation.metrics([[rows[0], rows[0]]])["en->de_DE/bleu"] == pytest.approx(100)
    assert wmt_translation.metrics([[{}]]) == {}
    assert MT.scores is not None
    assert MT.scores(rows[0]) == {"chrf": 1.0, "bleu": 1.0}


@given(st.text(min_size=1, max_size=30), st.text(max_size=30))
@settings(max_examples=60, deadline=None)
def test_the_reward_is_a_likeness(reference: str, text: str) -> None:
    if reference.strip():
        assert 0 <= reward(MT, translation(reference), text) <= 1
