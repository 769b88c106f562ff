"""Read the records of a raw dataset file, and write the rows of a benchmark."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

Record = dict[str, Any]

_FIELD_LIMIT = 1 << 30  # of one CSV field; the library's own 128 KiB is less than some problems are long
_SHOWN, _WIDE = 12, 60  # columns that an error names, and characters of each


class NotReadable(Exception):
    """A raw file is not what its name says, or cannot be read here; the message says what to do."""


class Lacks(NotReadable, KeyError):
    """A record has no such column; a KeyError to scripts that reckon with that."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows what it was given in quotes


class Found(dict[str, Any]):
    """A record that knows where it stands, so that an error can name the place."""

    __slots__ = ("number", "path", "what")

    def __init__(self, fields: Mapping[str, Any], path: Path, what: str, number: int) -> None:
        super().__init__(fields)
        self.path, self.what, self.number = path, what, number

    def place(self) -> str:
        return f"{self.path.name}, {self.what} {self.number}"

    def __missing__(self, column: str) -> Any:
        known = [f"`{name[:_WIDE]}`" for name in self if isinstance(name, str)]  # CSV: extra cells under None
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        has = ", ".join(known[:_SHOWN]) + more if known else "none"
        raise Lacks(f"{self.place()}, lacks the column `{column}`; its columns: {has}")


def records(path: Path) -> Iterator[Record]:
    """Records of .jsonl, .json (one list, or a record per line), .csv, .tsv or .parquet, or one of the first four in .gz."""
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if kind == ".parquet":
        try:
            parquet = import_module("pyarrow.parquet")
        except ImportError as error:
            how = "pip install pyarrow; or convert it to .jsonl elsewhere and give that with --from"
            raise NotReadable(f"{path.name} is Parquet, which needs pyarrow: {how}") from error
        batches = parquet.ParquetFile(path).iter_batches(batch_size=1000)
        yield from _checked(enumerate((row for batch in batches for row in batch.to_pylist()), 1), path, "record")
        return
    if kind not in (".jsonl", ".ndjson", ".json", ".csv", ".tsv"):
        raise NotReadable(f"{path.name} is none of .jsonl, .json, .csv, .tsv, .parquet, nor one of them in .gz")
    with _text(path) as stream:
        is_list = kind == ".json" and stream.read(4096).lstrip().startswith("[")
        stream.seek(0)
        if kind in (".csv", ".tsv"):
            csv.field_size_limit(_FIELD_LIMIT)
            rows = csv.DictReader(stream, delimiter="\t" if kind == ".tsv" else ",")
            yield from _checked(enumerate(rows, 1), path, "record")
        elif is_list:
            try:
                content = json.load(stream)
            except ValueError as error:
                raise NotReadable(f"{path.name} is not JSON: {error}") from error
            yield from _checked(enumerate(content, 1), path, "record")
        else:
            yield from _checked(_lines(stream, path), path, "line")


def written(rows: Iterable[Record], path: Path) -> Path:
    """Write `rows` as JSON lines to `path`, which appears whole or not at all; the path, absolute."""
    import msgspec

    path = Path(path).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            for row in rows:
                stream.write(msgspec.json.encode(row) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    return path


def _text(path: Path) -> TextIO:
    # utf-8-sig: spreadsheets put a mark before the first header, which would become part of its name
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _lines(stream: TextIO, path: Path) -> Iterator[tuple[int, Any]]:
    for number, text in enumerate(stream, 1):
        if text.strip():
            try:
                yield number, json.loads(text)
            except ValueError as error:
                raise NotReadable(f"{path.name}, line {number}, is not JSON: {error}") from error


def _checked(numbered: Iterable[tuple[int, Any]], path: Path, what: str) -> Iterator[Record]:
    for number, record in numbered:
        if not isinstance(record, dict):
            raise NotReadable(f"{path.name}, {what} {number}, is a {type(record).__name__}, not an object")
        yield Found(record, path, what, number)
