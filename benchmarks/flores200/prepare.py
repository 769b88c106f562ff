"""Turn the devtest sentences of FLORES-200 into rows for a few language pairs."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from blade_eval.prepare import fetched, written

SOURCES = {"flores200_dataset.tar.gz": "https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz"}
OUTPUT = Path("benchmarks/flores200/data/flores200_benchmark.jsonl")
PAIRS = tuple(f"eng_Latn-{code}" for code in ("deu_Latn", "spa_Latn", "fra_Latn", "ita_Latn", "jpn_Jpan"))
NAMES = {
    "arb_Arab": "Arabic",
    "ces_Latn": "Czech",
    "deu_Latn": "German",
    "eng_Latn": "English",
    "fra_Latn": "French",
    "hin_Deva": "Hindi",
    "ita_Latn": "Italian",
    "jpn_Jpan": "Japanese",
    "kor_Hang": "Korean",
    "nld_Latn": "Dutch",
    "pol_Latn": "Polish",
    "por_Latn": "Portuguese",
    "rus_Cyrl": "Russian",
    "spa_Latn": "Spanish",
    "swh_Latn": "Swahili",
    "tur_Latn": "Turkish",
    "ukr_Cyrl": "Ukrainian",
    "vie_Latn": "Vietnamese",
    "zho_Hans": "Chinese (simplified)",
}


def prepare(pairs: Sequence[str] = PAIRS) -> Path:
    """Write the rows of `pairs`, each SOURCE-TARGET in the dataset's codes."""
    name, url = next(iter(SOURCES.items()))
    wanted = [tuple(pair.split("-")) for pair in pairs]
    codes = {code for pair in wanted for code in pair}
    sentences = read(fetched(url, name), codes)
    return written(rows(wanted, sentences), OUTPUT)


def read(archive: Path, codes: set[str]) -> dict[str, list[str]]:
    """The devtest lines of each language; line n is the same sentence in all of them."""
    found: dict[str, list[str]] = {}
    with tarfile.open(archive) as packed:
        for member in packed:
            path = PurePosixPath(member.name)
            stream = packed.extractfile(member) if path.suffix == ".devtest" and path.stem in codes else None
            if stream is not None:
                found[path.stem] = stream.read().decode("utf-8").split("\n")
    missing = sorted(codes - found.keys())
    if missing:
        raise ValueError(f"the archive has no devtest file for {', '.join(missing)}")
    return {code: [line for line in lines if line] for code, lines in found.items()}


def rows(wanted: list[tuple[str, ...]], sentences: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    """One row per sentence and pair."""
    for source, target in wanted:
        pairs = zip(sentences[source], sentences[target], strict=True)
        for number, (text, translation) in enumerate(pairs):
            yield {
                "id": f"{source}-{target}/{number}",
                "text": text,
                "translation": translation,
                "source_language": source,
                "target_language": target,
                "source_lang_name": NAMES.get(source, source),
                "target_lang_name": NAMES.get(target, target),
            }
