"""Judge a translation by its likeness to the reference: chrF++ for the reward, BLEU beside it.

BLEU cuts a text into words as the target language needs it: `13a`, `zh`, MeCab for Japanese and Korean where
it is installed, else signs. spBLEU needs a model that sacrebleu would fetch from the network, so it is
computed only when `bleu_tokenizer: flores200` is set and the model is there already. All measure surface, not
meaning.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from blade.errors import UsageError
from blade_eval import replies, task_row
from blade_eval.environment import Attempt, Environment, Row, required

LONGEST = 10_000  # characters more than twenty times the reference's; no translation is longer
SPM = "flores200_sacrebleu_tokenizer_spm.model"
CHINESE = frozenset("zh zho cmn yue lzh".split())
UNSPACED = frozenset("th tha lo lao my mya km khm bo bod dz dzo".split())
MECAB = {"ja": ("ja-mecab", "MeCab"), "ko": ("ko-mecab", "mecab_ko")}
LONG_NAMES = {"jpn": "ja", "kor": "ko"}


def environment(settings: Mapping[str, Any]) -> Environment:
    """Translations; `bleu_tokenizer` is `auto` or one of sacrebleu's, `chrf_word_order` 2 is chrF++."""
    required("sacrebleu", "sacrebleu", "wmt_translation")
    tokenizer = str(settings.get("bleu_tokenizer") or "auto")
    known = {"auto", *import_module("sacrebleu.metrics").BLEU.TOKENIZERS}
    if tokenizer not in known:
        hint = f"it is one of {', '.join(sorted(known))}"
        raise UsageError(f"sacrebleu has no tokenizer {tokenizer!r}", hint, "environment-settings")
    if tokenizer in ("spm", "flores101", "flores200", "spBLEU-1K"):
        # its model would have to be fetched, and only `eval prepare` reaches out for data
        required("sentencepiece", "sentencepiece", "wmt_translation")
        models = Path(import_module("sacrebleu.utils").SACREBLEU_DIR) / "models"
        if tokenizer != "flores200" or not (models / SPM).is_file():
            what = f"the tokenizer {tokenizer} needs a model that is not on this machine"
            hint = f"put {SPM} into {models} and set bleu_tokenizer: flores200, or leave it at auto"
            raise UsageError(what, hint, "environment-settings")
    order = int(settings.get("chrf_word_order", 2))
    return Environment("wmt_translation", partial(verify, tokenizer, order), scores=scores)


async def verify(tokenizer: str, order: int, attempt: Attempt) -> Row:
    """chrF++ over 100 as the reward, which is a likeness and not a probability."""
    reference = task_row.needed(attempt.row, "translation")
    if not isinstance(reference, str) or not reference.strip():
        raise task_row.faulty("the row has no translation to compare with")
    target = str(task_row.field(attempt.row, "target_language", ""))
    generation = replies.answer(attempt.response)
    cut = tokenizer if tokenizer != "auto" else tokenizer_of(target)
    compared = generation[: LONGEST + 20 * len(reference)]
    chrf, bleu = (
        # without what floating point adds to a perfect score
        min(max(float(metric.sentence_score(compared, [reference]).score), 0.0), 100.0) if generation else 0.0
        for metric in (_chrf(order), _bleu(cut))
    )
    return {
        "reward": chrf / 100, "generation": generation, "comet_score": None, "sentence_chrf": chrf,
        "sentence_bleu": bleu, "sentence_spbleu": bleu if cut == "flores200" else None, "bleu_tokenizer": cut,
    }


def scores(row: Row) -> dict[str, float]:
    """The two likenesses, from 0 to 1 as every score is."""
    return {name: float(row[f"sentence_{name}"]) / 100 for name in ("chrf", "bleu") if f"sentence_{name}" in row}


def metrics(tasks: Iterable[Iterable[Row]]) -> dict[str, float]:
    """BLEU and chrF++ of each language pair as a corpus, the repeats averaged; a hook of `profile`."""
    corpora: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for repeats in tasks:
        for repeat, row in enumerate(repeats):
            if isinstance(row.get("generation"), str) and isinstance(row.get("translation"), str):
                pair = f"{row.get('source_language', 'xx')}->{row.get('target_language', 'xx')}"
                corpora[pair, repeat].append(row)
    values_of: dict[str, list[float]] = defaultdict(list)
    for (pair, _), rows in sorted(corpora.items()):
        texts = [row["generation"] for row in rows], [[row["translation"] for row in rows]]
        cut = str(rows[0].get("bleu_tokenizer") or tokenizer_of(pair.partition("->")[2]))
        for what, metric in (("bleu", _bleu(cut)), ("chrf", _chrf(2))):
            values_of[f"{pair}/{what}"].append(float(metric.corpus_score(*texts).score))
    named = {name: statistics.fmean(values) for name, values in values_of.items()}
    for what in ("bleu", "chrf"):
        of_pairs = [value for name, value in named.items() if name.endswith(f"/{what}")]
        if of_pairs:
            named[f"xx->xx/{what}"] = statistics.fmean(of_pairs)
    return named


def tokenizer_of(target: str) -> str:
    """How BLEU cuts a language; its code is that of WMT (`ja_JP`) or of FLORES (`jpn_Jpan`)."""
    code = re.split(r"[-_]", target.strip().lower())[0]
    code = LONG_NAMES.get(code, code)
    if code in CHINESE:
        return "zh"
    if code in MECAB:
        name, module = MECAB[code]
        return name if find_spec(module) is not None else "char"
    return "char" if code in UNSPACED else "13a"


@cache
def _chrf(order: int) -> Any:
    return import_module("sacrebleu.metrics").CHRF(word_order=order)


@cache
def _bleu(tokenizer: str) -> Any:
    return import_module("sacrebleu.metrics").BLEU(tokenize=tokenizer, effective_order=True)
