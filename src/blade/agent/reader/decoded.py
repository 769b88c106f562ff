"""Turn the text of a reply into an answer, or the reasons why it is none."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from blade import hostile
from blade.agent.reader.prompts import shown
from blade.agent.reader.questions import LABEL, MOST_REPLY, UNDETERMINED, Answer, Question

_DECODER = msgspec.json.Decoder(Answer)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)  # as open models put it before their answer
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.DOTALL)


def decoded(text: str, question: Question) -> Answer | list[str]:
    """The answer in a reply: one JSON object of the right form, about the right thing, within the choices."""
    held = _THOUGHT.sub("", text, count=1).strip()
    if len(held) > MOST_REPLY:
        return [f"the reply has {len(held):,} characters"]
    fenced = _FENCE.match(held)
    try:
        found = _DECODER.decode((fenced[1] if fenced else held).encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError) as error:
        return [f"the reply is not the JSON object that was asked for: {hostile.line(str(error), 200)}"]
    found = _clean(found)
    return list(_against(found, question)) or _within(found, question)


def again(answer: Answer, question: Question) -> Answer | list[str]:
    """An answer that was kept, held against the question once more."""
    told = replace(answer, about=shown(answer.about))
    try:
        return decoded(msgspec.json.encode(told).decode(), question)
    except UnicodeEncodeError:
        return ["it holds what is no text"]


def without(answer: Answer, clean: Callable[[str], str]) -> Answer:
    """An answer whose texts are cleaned: what was escaped in a reply, or hidden, is plain in them."""
    evidence = tuple(replace(one, quote=clean(one.quote)) for one in answer.evidence)
    return replace(
        answer,
        answer=clean(answer.answer),
        because=clean(answer.because),
        mode=clean(answer.mode),
        evidence=evidence,
    )


def _clean(answer: Answer) -> Answer:
    """What is said in our own printable words; quotations stay as they are until they are found."""
    return replace(
        answer,
        answer=hostile.line(answer.answer),
        because=hostile.line(answer.because),
        mode=hostile.line(answer.mode),
    )


def _against(answer: Answer, question: Question) -> list[str]:
    told = []
    if answer.about.strip() != shown(question.about):
        told.append(f"about is {shown(answer.about)!r}, the question is about {shown(question.about)!r}")
    if not answer.answer or not answer.because:
        told.append("answer and because must say something")
    if answer.mode and question.kind != LABEL:
        told.append("only a label has a mode")
    said = answer.answer.casefold()
    if question.choices and said not in {one.casefold() for one in question.choices}:
        allowed = ", ".join(question.choices)
        told.append(f"{hostile.line(answer.answer, 60)!r} is none of the answers that are allowed: {allowed}")
    if not answer.evidence and said != UNDETERMINED:
        told.append(f"nothing is quoted, and the answer is not {UNDETERMINED}")
    for number, place in enumerate(answer.evidence, 1):
        if (place.step is None) == (place.field is None):
            told.append(f"quotation {number} must name a step or a field, one of them")
    return told


def _within(answer: Answer, question: Question) -> Answer:
    """The answer as it is spelled among the choices, about the thing as it is spelled in the rows."""
    spelled = {one.casefold(): one for one in (*question.choices, UNDETERMINED)}
    return replace(answer, about=question.about, answer=spelled.get(answer.answer.casefold(), answer.answer))
