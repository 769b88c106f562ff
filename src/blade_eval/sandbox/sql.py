"""Run two queries on one database, read-only, and tell how their rows differ: a program for the box.

What a query may do is read: an authorizer refuses everything else, the file is opened as one that cannot
change, and a count of steps looks at the clock. The rows stay in the box, where memory is limited.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections import Counter
from typing import Any

# SQLite's codes: SELECT, READ, FUNCTION, RECURSIVE. Not ATTACH, PRAGMA, or anything that writes.
READING = {21, 20, 31, 33}
FORBIDDEN = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}


def _authorized(action: int, _: str | None, name: str | None, *__: str | None) -> int:
    is_allowed = action in READING and not (action == 31 and (name or "").lower() in FORBIDDEN)
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def opened(job: dict[str, Any]) -> sqlite3.Connection:
    """The database of a file, or one that a script builds in memory."""
    if job["script"] is None:
        path = job["path"].replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    else:
        connection = sqlite3.connect(":memory:")
        connection.executescript(job["script"])
        connection.commit()
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    return connection


def rows(connection: sqlite3.Connection, query: str, seconds: float, most: int) -> list[Any]:
    """The rows of a query, or sqlite3.Error; `interrupted` when it takes too long."""
    until = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    results = connection.execute(query).fetchmany(most + 1)
    if len(results) > most:
        raise sqlite3.DataError(f"more than {most:,} rows")
    return results


def differs(expected: list[Any], got: list[Any], compare: str, is_ordered: bool) -> str | None:
    """How two results differ; None when they are the same."""
    if is_ordered:
        same = expected == got if compare == "multiset" else _once(expected) == _once(got)
    elif compare == "multiset":
        same = Counter(expected) == Counter(got)
    else:
        same = set(expected) == set(got)
    if same:
        return None
    lacking, more = len(set(expected) - set(got)), len(set(got) - set(expected))
    if not lacking and not more:
        return "the same rows in another order or number"
    return f"{lacking} rows of the expected {len(set(expected))} are missing, {more} are not expected"


def _once(rows: list[Any]) -> list[Any]:
    return list(dict.fromkeys(rows))


def main() -> None:
    job = json.loads(sys.stdin.read())
    try:
        connection = opened(job)
    except sqlite3.Error as fault:
        print(json.dumps({"database": f"{type(fault).__name__}: {fault}"}), flush=True)
        return
    connection.set_authorizer(_authorized)
    results: list[list[Any]] = []
    for query in job["queries"]:
        reply: dict[str, Any] = {}
        try:
            results.append(rows(connection, query, job["seconds"], job["rows"]))
            if len(results) == 2:
                reply["difference"] = differs(results[0], results[1], job["compare"], job["is_ordered"])
        except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as fault:
            reply["error"] = f"{type(fault).__name__}: {fault}"
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
