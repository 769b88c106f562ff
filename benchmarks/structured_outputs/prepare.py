"""Turn schemas of JSONSchemaBench into rows that ask for a document that is valid under one."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from blade_eval.prepare import fetched, written

REVISION = "1ad68e5c02439ef3f86505f26ff9f474d71b1432"
SOURCES = {
    "jsonschemabench.tar.gz": f"https://codeload.github.com/guidance-ai/jsonschemabench/tar.gz/{REVISION}"
}
OUTPUT = Path("benchmarks/structured_outputs/data/structured_outputs_benchmark.jsonl")


def prepare(subset: str = "Github_medium") -> Path:
    """Write the rows of one of the benchmark's ten folders, ordered by file name."""
    name, url = next(iter(SOURCES.items()))
    return written(rows(fetched(url, name), subset), OUTPUT)


def rows(archive: Path, subset: str) -> Iterator[dict[str, Any]]:
    """Every schema file of `data/SUBSET/`."""
    found: dict[str, str] = {}
    with tarfile.open(archive) as packed:
        for member in packed:
            path = PurePosixPath(member.name)
            stream = packed.extractfile(member) if path.suffix == ".json" and member.isfile() else None
            if stream is not None and path.parts[-3:-1] == ("data", subset):
                found[path.stem] = stream.read().decode("utf-8")
    for name in sorted(found):
        schema = json.dumps(json.loads(found[name]), ensure_ascii=False)
        yield {"id": f"{subset}/{name}", "schema_str": schema, "schema_type": "json"}
