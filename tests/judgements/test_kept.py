"""Judgements lie beside the run as lines that are appended whole: no writer loses or tears what another wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from blade.agent.judgements import Withdrawn, append, read, standing
from blade.errors import Unreadable
from blade.model import Cause, Judgement

PROCESS = """
import resource, signal, sys
from pathlib import Path
from blade.agent.judgements import append
from tests.judgements.test_kept import judgement
path, who = Path(sys.argv[1]), sys.argv[2]
"""
WRITER = f"""{PROCESS}
for at in range(25):
    append(path, [judgement(who + f"-{{at}}-{{part}}", by=who) for part in range(4)])
"""
LIMITED = f"""{PROCESS}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 700, -1))
try:
    append(path, [judgement(f"late-{{at}}") for at in range(50)])
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run_judgements.jsonl"


def judgement(name: str, by: str = "ann", at: str = "2031-01-01T00:00:00Z", cause: Cause = Cause.BEHAVIOUR) -> Judgement:
    return Judgement(name, None, f"task {name}", cause, 0, 3, None, "some words\nof it", "It went wrong.", by, at)


def test_what_is_kept_is_read_again(path: Path) -> None:
    assert read(path) == ((), 0)
    append(path, [judgement("a"), judgement("b")])
    append(path, [judgement("c")])
    assert read(path) == ((judgement("a"), judgement("b"), judgement("c")), 0)
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["a", "b", "c"]


def test_concurrent_writers_lose_nothing(path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), f"w{at}"]) for at in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    found, bad = read(path)
    assert bad == 0
    assert len({one.id for one in found}) == 4 * 25 * 4
    ids = [one.id for one in found]
    for at in range(0, len(ids), 4):  # what was given together stands together
        assert len({name.rsplit("-", 1)[0] for name in ids[at : at + 4]}) == 1


def test_a_disk_that_fills_up_leaves_the_file_as_it_was(path: Path) -> None:
    append(path, [judgement("early")])
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path), "ann"], capture_output=True, text=True, check=True)
    assert "Unreadable cannot write" in done.stdout
    assert path.read_bytes() == before


def test_a_torn_last_line_costs_itself_alone(path: Path) -> None:
    append(path, [judgement("a")])
    path.write_bytes(path.read_bytes() + b'{"id": "b", "ta')
    append(path, [judgement("c")])
    found, bad = read(path)
    assert [one.id for one in found] == ["a", "c"]
    assert bad == 1


def test_what_is_taken_back_no_longer_counts(path: Path) -> None:
    append(path, [judgement("a"), judgement("b")])
    append(path, [Withdrawn("a", "ann", "2031-01-02T00:00:00Z")])
    assert [one.id for one in read(path)[0]] == ["b"]
    append(path, [judgement("a")])
    assert [one.id for one in read(path)[0]] == ["b", "a"]


def test_the_last_word_of_each_author_stands_whatever_the_clock_says_also_if_it_is_a_former_one(path: Path) -> None:
    early = judgement("x", "ann", "2031-01-05T00:00:00Z")
    late = judgement("x", "ann", "2031-01-03T00:00:00Z", Cause.KNOWLEDGE_GAP)
    other = judgement("x", "bob", "2031-01-02T00:00:00Z")
    assert standing([early, other, late]) == {"task x": (other, late)}
    first, second = judgement("a"), msgspec.structs.replace(judgement("b"), task="task a")
    for one in (first, second, second, first):
        append(path, [one])
    assert [one.id for one in read(path)[0]] == ["b", "a"]
    assert len(path.read_text().splitlines()) == 3  # the same twice in a row is one


def test_links_pipes_and_folders_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    link, pipe = tmp_path / "link.jsonl", tmp_path / "pipe.jsonl"
    link.symlink_to(tmp_path / "elsewhere.jsonl")
    os.mkfifo(pipe)
    for path in (link, pipe):
        with pytest.raises(Unreadable, match="cannot write"):
            append(path, [judgement("a")])
    assert not (tmp_path / "elsewhere.jsonl").exists()
    with pytest.raises(Unreadable, match="no regular file"):
        read(pipe)
    with pytest.raises(Unreadable, match="cannot write"):
        append(tmp_path / "gone" / "run_judgements.jsonl", [judgement("a")])
