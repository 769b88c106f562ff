"""Judge a transcript by its word error rates: without case and marks, with case, and with both.

`wer` compares words in lower case without punctuation and hesitations; `wer_c` keeps the case; `wer_pc` keeps
case and counts each mark as a word; `per` is the error rate of the marks alone, as LibriSpeech-PC defines it:
errors over errors and hits. `wer_errors` and `wer_words` are what a corpus adds up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module
from itertools import zip_longest
from typing import Any

from blade.errors import UsageError
from blade_eval import replies, task_row
from blade_eval.environment import Attempt, Environment, Row, required

LONGEST = 10_000  # characters more than twenty times the reference's: a longer transcript is cut, and is wrong
TASKS = ("auto", "ASR", "ASR-PC")
# What Whisper's normaliser drops as hesitation.
HESITATIONS = frozenset("hmm mm mhm mmm uh um".split())
APOSTROPHES = dict.fromkeys(map(ord, "’‘ʼ`´"), "'")
# Marks inside a word or a number belong to it: don't, well-known, 3.5, 1,000.
INSIDE = re.compile(r"(?<=\w)['\-](?=\w)|(?<=\d)[.,:](?=\d)")


def environment(settings: Mapping[str, Any]) -> Environment:
    """Transcripts; `task_type` says whether marks and case count, `correct_below` which rate is right."""
    required("jiwer", "jiwer", "asr_with_pc")
    task = str(settings.get("task_type") or "auto")
    if task not in TASKS:
        hint = f"it is {', '.join(TASKS)}"
        raise UsageError(f"asr_with_pc has no task type {task!r}", hint, "environment-settings")
    limit = float(settings.get("correct_below", 0.5))
    return Environment("asr_with_pc", partial(verify, task, limit), scores=scores)


async def verify(usual: str, limit: float, attempt: Attempt) -> Row:
    """The rates, and whether the one that the task is about stays below the limit."""
    reference = str(task_row.field(attempt.row, "text") or task_row.needed(attempt.row, "expected_answer")).strip()
    task = str(task_row.field(attempt.row, "task_type") or usual)
    if not words(reference) or task not in TASKS:
        raise task_row.faulty(
            "the reference has no words" if task in TASKS else f"the task type is {task[:40]!r}"
        )
    if task == "auto":
        task = "ASR-PC" if marked(reference) else "ASR"
    heard = replies.answer(attempt.response)
    most = LONGEST + 20 * len(reference)
    is_endless, spoken = len(heard) > most, heard[:most]
    wanted, plain = words(reference), words(spoken)
    n_errors = errors(wanted, plain)
    fields: Row = {
        "reward": 0.0, "text": reference, "pred_text": heard, "wer": n_errors / len(wanted), "wer_errors": n_errors,
        "wer_words": len(wanted), "cer": float(import_module("jiwer").cer(" ".join(wanted), " ".join(plain))),
    }
    if task == "ASR-PC":
        fields |= with_marks(reference, spoken)
    fields["is_correct"] = not is_endless and fields["wer_pc" if task == "ASR-PC" else "wer"] < limit
    fields["reward"] = float(fields["is_correct"])
    return fields


def with_marks(reference: str, heard: str) -> Row:
    """The rates that case and punctuation take part in, and the texts they were computed from."""
    tokens = (tokenised(reference), tokenised(heard))
    cased = tuple([token for token in text if not is_mark(token)] for text in tokens)
    rates = [errors(*texts) / len(texts[0]) for texts in (cased, tokens)]
    return {
        "wer_c": rates[0], "wer_pc": rates[1], "per": mark_rate(*tokens),
        "ref_pc_tok": " ".join(tokens[0]), "hyp_pc_tok": " ".join(tokens[1]), "ref_c": " ".join(cased[0]),
        "hyp_c": " ".join(cased[1]),
    }


def scores(row: Row) -> dict[str, float]:
    """The rates of a row, each where the task has it."""
    return {name: float(row[name]) for name in ("wer", "wer_c", "wer_pc", "per", "cer") if name in row}


def metrics(tasks: Iterable[Iterable[Row]]) -> dict[str, float]:
    """The word error rate of all rows together, in which long utterances weigh more; a hook of `profile`."""
    rows = [row for repeats in tasks for row in repeats if "wer_errors" in row]
    spoken = sum(int(row["wer_words"]) for row in rows)
    return {"corpus_wer": sum(int(row["wer_errors"]) for row in rows) / spoken} if spoken else {}


def marked(reference: str) -> bool:
    """Whether a reference has case and punctuation, or is in one case and without marks."""
    letters = "".join(sign for sign in reference if sign.isalpha())
    mixed = letters not in (letters.lower(), letters.upper())
    return mixed or any(is_mark(token) for token in tokenised(reference))


def tokenised(text: str) -> list[str]:
    """Words and marks, each by itself, in their own case."""
    text = unicodedata.normalize("NFKC", text).translate(APOSTROPHES)
    inner = {result.start() for result in INSIDE.finditer(text)}
    spaced = [f" {sign} " if is_mark(sign) and place not in inner else sign for place, sign in enumerate(text)]
    return "".join(spaced).split()


def is_mark(token: str) -> bool:
    return len(token) == 1 and unicodedata.category(token).startswith("P")


def words(text: str) -> list[str]:
    """Words in lower case, without marks and hesitations."""
    result = (token.casefold() for token in tokenised(text) if not is_mark(token))
    return [word for word in result if word not in HESITATIONS]


def aligned(reference: list[str], heard: list[str]) -> Any:
    return import_module("jiwer").process_words(" ".join(reference), " ".join(heard))


def errors(reference: list[str], heard: list[str]) -> int:
    """The words that were left out, put in or exchanged."""
    result = aligned(reference, heard)
    return int(result.substitutions + result.deletions + result.insertions)


def mark_rate(reference: list[str], heard: list[str]) -> float:
    """Marks left out, put in or exchanged, over these and the right ones; 0 where there are none at all."""
    (chunks,) = aligned(reference, heard).alignments
    n_errors = hits = 0
    for chunk in chunks:
        theirs = map(is_mark, reference[chunk.ref_start_idx : chunk.ref_end_idx])
        ours = map(is_mark, heard[chunk.hyp_start_idx : chunk.hyp_end_idx])
        count = sum(map(any, zip_longest(theirs, ours)))
        hits, n_errors = (hits + count, n_errors) if chunk.type == "equal" else (hits, n_errors + count)
    return n_errors / (n_errors + hits) if n_errors + hits else 0.0
