"""Run two queries on one database, read-only, and print their rows: a program for the box.

What a query may do is read: an authorizer refuses everything else, the file is opened as one that cannot
change, and a count of steps looks at the clock.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from typing import Any

from blade.evaluate.sandbox import plain

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
    found = connection.execute(query).fetchmany(most + 1)
    if len(found) > most:
        raise sqlite3.DataError(f"more than {most:,} rows")
    return found


def main() -> None:
    job = json.loads(sys.stdin.read())
    try:
        connection = opened(job)
    except sqlite3.Error as fault:
        print(json.dumps({"database": f"{type(fault).__name__}: {fault}"}), flush=True)
        return
    connection.set_authorizer(_authorized)
    for query in job["queries"]:
        try:
            found = rows(connection, query, job["seconds"], job["rows"])
            print(json.dumps({"rows": plain.encoded(found)}), flush=True)
        except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as fault:
            print(json.dumps({"error": f"{type(fault).__name__}: {fault}"}), flush=True)


if __name__ == "__main__":
    main()
