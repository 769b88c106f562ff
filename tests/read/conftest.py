"""A small run whose failures are known, a session over it, and a model that answers truly."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from blade.agent.reader import Endpoint, Patience
from blade.pipeline import model_reading
from blade.pipeline.session import Session
from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run
from tools.model_server import Call, Reply, Server, says, serving

KEY = "sk-test-0123456789abcdef-never-seen"
QUICK = Patience(tries=3, base=0.001, longest=0.005, longest_asked=1.0)
TASKS = tuple(str(task) for task in range(6))  # that fail; task 6 passes always


def locked(task: int) -> str:
    return f"Error: record R-{task}00 is locked by another writer"


def rollout(task: int, passes: bool) -> Row:
    """Look, change, be refused; a rollout that fails claims success, one that passes tries again."""
    name = f"R-{task}00"
    change = json.dumps({"record": name, "value": "red"})
    output = [
        make_call("c1", "look", json.dumps({"record": name})), make_result("c1", f"record {name} has the value blue"),
        make_call("c2", "change", change), make_result("c2", locked(task)),
    ]  # fmt: skip
    if passes:
        output += [make_call("c3", "change", change), make_result("c3", f"record {name} now has the value red")]
    output.append(make_message(f"Record {name} is red now, as you asked."))
    words = "matches" if passes else f"expected red, record {name} is blue"
    return make_row(task, int(passes), float(passes), response=make_response(output), verifier_message=words)


def rows() -> list[Row]:
    """Tasks 0 to 4 fail once and pass once, task 5 fails twice, task 6 passes twice."""
    several = [rollout(task, passes) for task in range(5) for passes in (False, True)]
    several += [rollout(5, False), {**rollout(5, False), "_ng_rollout_index": 1}]
    return [*several, {**rollout(6, True), "_ng_rollout_index": 0}, rollout(6, True)]


def place(task: Any, /, **changed: Any) -> dict[str, Any]:
    """A true quotation: the error that is ignored."""
    return {"task": str(task), "repeat": 0, "step": 3, "field": None, "quote": locked(int(task)), **changed}


def label(task: Any, /, **changed: Any) -> dict[str, Any]:
    """A true label."""
    because = "The change was refused, and the final message claims it was made."
    true = {"answer": "BI", "mode": "ignored a tool error", "because": because, "evidence": [place(task)]}
    return {"about": str(task), **true, **changed}


def honest(call: Call, number: int) -> Reply:
    """A model that labels truly."""
    return says(label(call.about))


@pytest.fixture(scope="session")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("read"), rows())


@pytest.fixture
def copy(run_path: Path, tmp_path: Path) -> Path:
    """The run where judgements may be written beside it."""
    return Path(shutil.copy(run_path, tmp_path / "rollouts.jsonl"))


@pytest.fixture(scope="session")
def session(run_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("index")))
        return pipeline.session([str(run_path)])


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An endpoint, and a cache of the test's own."""
    for name in ("OPENAI_BASE_URL", "BLADE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving() as endpoint:
        endpoint.script = honest
        yield endpoint


def statuses(reading: model_reading.Reading) -> list[str]:
    return [result.status for result in reading.results]


Ask = Callable[..., model_reading.Reading]


@pytest.fixture
def ask(session: Session, server: Server) -> Ask:
    """Ask the endpoint about the run, with tiny waits; options of the plan and of the asking by name."""

    def asked(kind: str = "label", of: Session = session, **options: Any) -> model_reading.Reading:
        names = ("tasks", "most", "asked", "choices", "budget")
        wish = model_reading.Wish(kind, **{name: options.pop(name) for name in names if name in options})
        plan = [options.pop("model", "m"), server.host, options.pop("clean", None), options.pop("fresh", False)]
        limits = options.pop("timeout", 5.0), options.pop("limit", 1000)
        endpoint = Endpoint(plan[0], server.url, KEY, *limits)
        return model_reading.answers(of, model_reading.plan(of, wish, *plan), endpoint, **{"patience": QUICK, **options})

    return asked
