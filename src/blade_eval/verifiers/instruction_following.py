"""Judge whether an answer keeps its instructions, by the twenty-five rules of IFEval: name to rule.

Strict is the answer as it stands; loose forgives an opening line, a closing line and asterisks, as published.
The reward is strict: 1 when all are kept, or their share where `grading_mode` is `fraction`.

The definitions are those published with the benchmark, quirks included where its scores depend on them: a
keyword may be part of a word, a forbidden word may not; bullets are counted exactly, sections and highlights
at least. Each rule takes time in proportion to the text: no text may send it into a search without end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

from blade_eval import replies, task_row
from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.expressions import Expressions

PATTERNS = Expressions("instruction_following")

Details = dict[str, Any]
Rule = Callable[[str, Details], bool]

ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
POSTSCRIPTS = {"P.S.": re.compile(r"p\.\s?s\."), "P.P.S": re.compile(r"p\.\s?p\.\s?s")}


def related(count: int, relation: Any, number: Any) -> bool:
    """The two comparisons that instructions make."""
    if relation not in ("less than", "at least"):
        raise ValueError(f"the relation {relation!r} is neither 'less than' nor 'at least'")
    return (count < int(number)) is (relation == "less than")


def occurrences(text: str, keyword: str) -> int:
    return len(re.findall(re.escape(keyword), text, re.IGNORECASE))


def listed(detail: Any) -> list[str]:
    if not isinstance(detail, list) or not all(isinstance(entry, str) for entry in detail) or not detail:
        raise ValueError("a list of words is needed")
    return detail


def one_letter(text: str) -> str:
    if len(text) != 1:
        raise ValueError("one letter is needed")
    return text.lower()


def sentence_count(text: str) -> int:
    """How many sentences; a heading or a line without a stop ends where the text ends."""
    count, start = 0, 0
    for stop in PATTERNS.stop.finditer(text):
        before = text[max(start, stop.start() - 12) : stop.start()]
        if stop[0] == "." and PATTERNS.abbreviation.search(before) and PATTERNS.more.search(text, stop.end()):
            continue
        count, start = count + 1, stop.end()
    return count + bool(PATTERNS.word.search(text, start))


def between(parts: list[str]) -> list[str] | None:
    """The parts of a divided text; the first and the last may be empty, none between them may."""
    if any(not part.strip() for part in parts[1:-1]):
        return None
    return [part.strip() for part in parts if part.strip()]


def nth_paragraph(text: str, detail: Details) -> bool:
    parts = text.split("\n\n")
    count = sum(bool(part.strip()) for part in parts)
    nth = int(detail["nth_paragraph"])
    if count != int(detail["num_paragraphs"]) or not 1 <= nth <= count:
        return False
    # Blank ones do not count as paragraphs, but they have their place: as published.
    begins = parts[nth - 1].split()[:1] or [""]
    first = PATTERNS.first_word_ends.split(begins[0].lstrip("'").lstrip('"'))[0]
    return bool(first.lower() == detail["first_word"].lower() != "")


def postscript(text: str, detail: Details) -> bool:
    marker = detail["postscript_marker"].strip()
    known = POSTSCRIPTS.get(marker)
    lowered = text.lower()
    return bool(known.search(lowered)) if known else marker.lower() in lowered


def highlights(text: str, detail: Details) -> bool:
    result = [part.strip("*").strip() for part in PATTERNS.highlight.findall(text) + PATTERNS.strong.findall(text)]
    return sum(map(bool, result)) >= int(detail["num_highlights"])


def json_format(text: str, detail: Details) -> bool:
    try:
        text = text.strip()
        opening = PATTERNS.fence.match(text)
        json.loads(text[opening.end() if opening else 0 :].removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def title(text: str, detail: Details) -> bool:
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start < end and line[start:end].strip("<> \t"):
            return True
    return False


def two_responses(text: str, detail: Details) -> bool:
    parts = between(text.split("******"))
    return parts is not None and len(parts) == 2 and parts[0] != parts[1]


@lru_cache(maxsize=8)  # several instructions may ask for the language of one text
def language_of(text: str) -> str | None:
    """The language of a text by langdetect; None where it cannot tell."""
    try:
        library = import_module("langdetect")
    except ImportError:
        raise Unmeasured("verifier_error", "langdetect, which tells languages apart, is not installed") from None
    library.DetectorFactory.seed = 0  # without it the same text may get another language
    try:
        return str(library.detect(text))
    except library.LangDetectException:
        return None


def in_language(text: str, wanted: str) -> bool:
    """Whether a text is in a language; where that cannot be told, it is, as published."""
    language = language_of(text)
    return language is None or wanted.lower() in (language, language.partition("-")[0])


def matches(name: str, text: str) -> int:
    return len(getattr(PATTERNS, name).findall(text))


# Of a text and the details of its instruction: is it kept?
RULES: dict[str, Rule] = {
    "keywords:existence": lambda text, detail: all(occurrences(text, word) for word in listed(detail["keywords"])),
    "keywords:frequency": lambda text, detail: related(
        occurrences(text, detail["keyword"]), detail.get("relation"), detail["frequency"]),
    "keywords:forbidden_words": lambda text, detail: not any(
        re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in listed(detail["forbidden_words"])),
    "keywords:letter_frequency": lambda text, detail: related(
        text.lower().count(one_letter(detail["letter"])), detail.get("let_relation"), detail["let_frequency"]),
    "language:response_language": lambda text, detail: in_language(text, detail["language"]),
    "length_constraints:number_sentences": lambda text, detail: related(
        sentence_count(text), detail.get("relation"), detail["num_sentences"]),
    "length_constraints:number_paragraphs": lambda text, detail: len(
        between(PATTERNS.divider.split(text)) or ()) == int(detail["num_paragraphs"]),
    "length_constraints:number_words": lambda text, detail: related(
        matches("word", text), detail.get("relation"), detail["num_words"]),
    "length_constraints:nth_paragraph_first_word": nth_paragraph,
    "detectable_content:number_placeholders": lambda text, detail: matches(
        "placeholder", text) >= int(detail["num_placeholders"]),
    "detectable_content:postscript": postscript,
    "detectable_format:number_bullet_lists": lambda text, detail: matches("star_bullet", text) + matches(
        "dash_bullet", text) == int(detail["num_bullets"]),
    "detectable_format:constrained_response": lambda text, detail: any(answer in text for answer in ANSWERS),
    "detectable_format:number_highlighted_sections": highlights,
    "detectable_format:multiple_sections": lambda text, detail: len(re.findall(  # so spelt in the published data
        rf"{re.escape(detail['section_spliter'].strip())}\s?\d+", text)) >= int(detail["num_sections"]),
    "detectable_format:json_format": json_format,
    "detectable_format:title": title,
    "combination:two_responses": two_responses,
    "combination:repeat_prompt": lambda text, detail: text.strip().lower().startswith(
        detail["prompt_to_repeat"].strip().lower()),
    "startend:end_checker": lambda text, detail: text.strip().strip('"').lower().endswith(
        detail["end_phrase"].strip().lower()),
    "startend:quotation": lambda text, detail: len(text.strip()) > 1 and text.strip()[0] == '"' == text.strip()[-1],
    "change_case:capital_word_frequency": lambda text, detail: related(
        sum(map(str.isupper, PATTERNS.hyphenated.findall(text))), detail.get("capital_relation"), detail["capital_frequency"]),
    "change_case:english_capital": lambda text, detail: text.isupper() and in_language(text, "en"),
    "change_case:english_lowercase": lambda text, detail: text.islower() and in_language(text, "en"),
    "punctuation:no_comma": lambda text, detail: "," not in text,
}  # fmt: skip


def environment(settings: Mapping[str, Any]) -> Environment:
    """Instruction following; rows may name their own `grading_mode`."""
    usual = str(settings.get("grading_mode") or "binary")
    return Environment("instruction_following", partial(verify, usual), scores=scores)


async def verify(usual: str, attempt: Attempt) -> Row:
    """Which instructions are kept, strictly and loosely."""
    names = task_row.needed(attempt.row, "instruction_id_list")
    details = task_row.field(attempt.row, "kwargs", [])
    mode = str(task_row.field(attempt.row, "grading_mode") or usual)
    if not isinstance(names, list) or not names or not isinstance(details, list):
        raise task_row.faulty("instruction_id_list and kwargs are not lists")
    if len(details) not in (0, len(names)):
        raise task_row.faulty(f"{len(names)} instructions have {len(details)} sets of details")
    if mode not in ("binary", "fraction"):
        raise task_row.faulty(f"the grading mode {mode!r} is neither binary nor fraction")
    text = replies.answer(attempt.response)
    instructions = list(zip(names, details or [{}] * len(names), strict=True))
    strict = [kept(name, detail, [text]) for name, detail in instructions]
    # the readings of loose accuracy, up to eight: without first line, last line, both; and without asterisks
    lines = text.split("\n")
    readings = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    loosened = list(dict.fromkeys([*readings, *(reading.replace("*", "") for reading in readings)]))
    loose = [is_kept or kept(*each, loosened) for is_kept, each in zip(strict, instructions, strict=True)]
    return {
        "reward": float(all(strict)) if mode == "binary" else sum(strict) / len(strict),
        "follow_all_instructions": all(strict), "follow_instruction_list": strict,
        "follow_all_instructions_loose": all(loose), "follow_instruction_list_loose": loose,
    }


def scores(row: Row) -> dict[str, float]:
    """The four accuracies that are published: of prompts and of instructions, strict and loose."""
    named = {}
    for how, suffix in (("strict", ""), ("loose", "_loose")):
        each = row.get(f"follow_instruction_list{suffix}") or [False]
        named[f"prompt_{how}_accuracy"] = float(bool(row.get(f"follow_all_instructions{suffix}")))
        named[f"instruction_{how}_accuracy"] = sum(map(bool, each)) / len(each)
    return named


def kept(name: Any, details: Any, texts: list[str]) -> bool:
    """Whether any of the texts keeps the instruction; one that says nothing keeps none."""
    rule = RULES.get(name) if isinstance(name, str) else None
    if rule is None:
        raise task_row.faulty(f"no rule is known for the instruction {str(name)[:80]!r}")
    detail = {key: value for key, value in (details or {}).items() if value is not None}
    try:
        return any(rule(text, detail) for text in texts if text.strip())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise task_row.faulty(f"the details of {name} cannot be used: {type(error).__name__}: {error}") from None
