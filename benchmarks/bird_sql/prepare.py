"""Turn the development set of BIRD into rows with a question, its schema and its SQL."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any

from blade_eval.prepare import fetched, written

SOURCES = {"bird_dev.zip": "https://bird-bench.oss-cn-beijing.aliyuncs.com/dev.zip"}
OUTPUT = Path("benchmarks/bird_sql/data/bird_sql_benchmark.jsonl")
DATABASES = OUTPUT.parent / "dev_databases"


def prepare() -> Path:
    """Unpack the databases (1.4 GB) and write the rows."""
    name, url = next(iter(SOURCES.items()))
    with zipfile.ZipFile(fetched(url, name)) as outer:
        questions = json.loads(outer.read(member(outer, "dev.json")))
        unpack(outer, {question["db_id"] for question in questions})
    return written(rows(questions), OUTPUT)


def member(packed: zipfile.ZipFile, name: str) -> str:
    """The path of a file inside; the folder around it carries the release's date."""
    for path in packed.namelist():
        if PurePosixPath(path).name == name and "__MACOSX" not in path:
            return path
    raise ValueError(f"the archive has no {name}")


def unpack(outer: zipfile.ZipFile, wanted: set[str]) -> None:
    """Write each database once; they stand in an archive inside the archive, or beside the questions."""
    if not any(PurePosixPath(path).name == "dev_databases.zip" for path in outer.namelist()):
        copy(outer, wanted)
        return
    DATABASES.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=DATABASES) as whole:
        with outer.open(member(outer, "dev_databases.zip")) as stream:
            shutil.copyfileobj(stream, whole, 1 << 20)
        with zipfile.ZipFile(whole) as inner:
            copy(inner, wanted)


def copy(packed: zipfile.ZipFile, wanted: set[str]) -> None:
    """DB/DB.sqlite of every database; the archive's paths choose no place of ours."""
    for database in sorted(wanted):
        print(f"unpacking {database}", flush=True)
        place = DATABASES / database / f"{database}.sqlite"
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_suffix(".partial")
        with packed.open(member(packed, f"{database}.sqlite")) as source, partial.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        partial.replace(place)


def rows(questions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row per question, with the statements that made its database's tables."""
    schemas: dict[str, str] = {}
    for question in questions:
        database = question["db_id"]
        if database not in schemas:
            schemas[database] = schema(DATABASES / database / f"{database}.sqlite")
        yield {
            "id": question["question_id"],
            "question": question["question"],
            "evidence": question.get("evidence") or "none",
            "schema": schemas[database],
            "gt_sql": question["SQL"],
            "db_id": database,
            "db_path": (DATABASES / database / f"{database}.sqlite").as_posix(),
            "difficulty": question["difficulty"],
        }


def schema(database: Path) -> str:
    """The CREATE TABLE statements."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL")
        return "\n\n".join(statement.strip() + ";" for (statement,) in found)
