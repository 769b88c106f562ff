"""Turn WMT24++ into rows for a few target languages, without the sources marked as bad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

BASE = "https://huggingface.co/datasets/google/wmt24pp/resolve/main"
TARGETS = {
    "de_DE": "German",
    "es_MX": "Spanish (Mexico)",
    "fr_FR": "French",
    "it_IT": "Italian",
    "ja_JP": "Japanese",
}
SOURCES = {f"en-{target}.jsonl": f"{BASE}/en-{target}.jsonl" for target in TARGETS}
OUTPUT = Path("benchmarks/wmt24pp/data/wmt24pp_benchmark.jsonl")


def prepare(targets: Sequence[str] = tuple(TARGETS)) -> Path:
    """Write the rows of `targets`, locales such as de_DE."""
    return written(rows(targets), OUTPUT)


def rows(targets: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One row per segment; the target is the post-edited reference, as the authors recommend."""
    for target in targets:
        name = f"en-{target}.jsonl"
        for record in records(fetched(f"{BASE}/{name}", name)):
            if not record["is_bad_source"]:
                yield {
                    "id": f"{record['lp']}/{record['document_id']}/{record['segment_id']}",
                    "text": record["source"],
                    "translation": record["target"],
                    "source_language": "en",
                    "target_language": target,
                    "source_lang_name": "English",
                    "target_lang_name": TARGETS.get(target, target),
                    "domain": record["domain"],
                }
