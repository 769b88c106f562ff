"""Turn LibriSpeech test-clean into rows that carry the audio and its transcript."""

from __future__ import annotations

import base64
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from blade_eval.prepare import fetched, written

SOURCES = {"test-clean.tar.gz": "https://www.openslr.org/resources/12/test-clean.tar.gz"}
OUTPUT = Path("benchmarks/librispeech/data/librispeech_benchmark.jsonl")
ASK = "Transcribe this recording word for word. Answer with the transcript alone."


def prepare() -> Path:
    """Write the rows; with the audio inside they take about 470 MB."""
    name, url = next(iter(SOURCES.items()))
    return written(rows(fetched(url, name)), OUTPUT)


def rows(archive: Path) -> Iterator[dict[str, Any]]:
    """One row per utterance, in the archive's order; it is read twice, since gzip cannot go back."""
    texts = dict(transcripts(archive))
    with tarfile.open(archive) as packed:
        for member in packed:
            path = PurePosixPath(member.name)
            stream = packed.extractfile(member) if path.suffix == ".flac" and member.isfile() else None
            if stream is not None:
                yield row(path.stem, texts[path.stem], stream.read())


def transcripts(archive: Path) -> Iterator[tuple[str, str]]:
    """The lines of every chapter's .trans.txt: SPEAKER-CHAPTER-NUMBER, a space, the words in capitals."""
    with tarfile.open(archive) as packed:
        for member in packed:
            stream = packed.extractfile(member) if member.name.endswith(".trans.txt") else None
            for line in stream.read().decode("utf-8").splitlines() if stream else ():
                utterance, _, text = line.partition(" ")
                yield utterance, text


def row(utterance: str, text: str, audio: bytes) -> dict[str, Any]:
    """One recording; the corpus gives its transcript in capitals and without punctuation."""
    data = base64.b64encode(audio).decode("ascii")
    spoken = {"type": "input_audio", "input_audio": {"data": data, "format": "flac"}}
    message = {"role": "user", "content": [{"type": "input_text", "text": ASK}, spoken]}
    return {
        "responses_create_params": {"input": [message]},
        "id": utterance,
        "text": text.lower(),
        "speaker": utterance.split("-")[0],
    }
