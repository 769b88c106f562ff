"""A local HTTP server of files that can drop connections, refuse, and change what it serves."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Files:
    """What is served, which faults are left, and what was asked for."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    drops: list[int] = field(default_factory=list)  # each answer in turn ends after so many bytes
    refusals: list[int] = field(default_factory=list)  # each answer in turn is this status
    redirects: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    asked: list[tuple[str, str | None, str | None]] = field(default_factory=list)  # path, Range, Authorization
    url: str = ""

    def etag(self, path: str) -> str:
        return '"' + hashlib.md5(self.bodies[path]).hexdigest() + '"'


@contextmanager
def serving(files: Files) -> Iterator[Files]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            files.asked.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
            if files.refusals or self.path in files.redirects:
                self.send_response(files.refusals.pop(0) if files.refusals else 302)
                self.send_header("Location", files.redirects.get(self.path, ""))
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif self.path not in files.bodies:
                self.send_error(404)
            else:
                self.body(files.bodies[self.path])

        def body(self, whole: bytes) -> None:
            start = 0
            wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
            same = self.headers.get("If-Range") in (None, files.etag(self.path))
            if wanted and same and files.ranges:
                start = int(wanted[1])
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
            else:
                self.send_response(200)
            self.send_header("ETag", files.etag(self.path))
            self.send_header("Content-Length", str(len(whole) - start))
            self.end_headers()
            sent = whole[start:]
            if files.drops:
                sent = sent[: files.drops.pop(0)]
                self.close_connection = True
            self.wfile.write(sent)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    files.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield files
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
