"""Hostile programs in the box, really run: contained, scored 0 with the reason; their honest twins pass."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

import blade
import blade_eval
from blade_eval.environment import Attempt, Unmeasured
from blade_eval.sandbox import Limits, Outcome, holds, run
from blade_eval.sandbox.box import packages
from blade_eval.verifiers.code_gen import environment

MEGABYTE = 1 << 20
PROGRAMS = yaml.safe_load((Path(__file__).parent / "containment.yaml").read_text("utf-8"))
MISSING = [f"{check.name}: {check.seen}" for check in holds() if not check.holds]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"no box on this machine: {'; '.join(MISSING)}")

SMALL = Limits(cpu=10, wall=20, memory=256 * MEGABYTE, processes=24, disk=8 * MEGABYTE, output=MEGABYTE)
WRONG, TIME, RUNTIME = -2, -3, -4


def boxed(code: str, stdin: bytes = b"", limits: Limits = SMALL) -> Outcome:
    return asyncio.run(run(code, stdin, limits))


def answer(code: str) -> dict[str, Any]:
    text = f"Here it is.\n\n```python\n{code}\n```\n"
    return {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]}


def judged(code: str, row: dict[str, Any], seconds: float = 1) -> dict[str, Any]:
    settings = {"unit_test_timeout_secs": seconds, "unit_test_wall_secs": 2 * seconds - 0.2}
    made = environment({**settings, "memory_mb": 256, "max_subprocesses": 24})
    return asyncio.run(made.verify(Attempt(row, answer(code))))


KINDS, SCRIPTS = PROGRAMS["kinds"], PROGRAMS["scripts"]
PRINTED = KINDS["printed"]


# --- exhaustion ---


@pytest.mark.parametrize("name", PROGRAMS["bombs"])
def test_exhaustion_ends_and_costs_the_reward(name: str) -> None:
    mark = marked()
    fields = judged(PROGRAMS["bombs"][name] + "\n" + mark, PRINTED)
    assert fields["reward"] == 0.0
    assert fields["metadata"]["error_code"] in (TIME, RUNTIME)
    assert fields["metadata"]["error_message"]
    assert not left(mark)


def test_what_sockets_hold_counts_as_memory() -> None:
    """What they hold belongs to no process: many are too much, a few are not."""
    fields = judged(SCRIPTS["hoards sockets"].format(100, "if _ < 3: os.fork()"), PRINTED)
    assert fields["metadata"]["error_message"].startswith("Memory limit")
    assert judged(SCRIPTS["hoards sockets"].format(20, ""), PRINTED)["reward"] == 1.0


def left(mark: str) -> list[str]:
    """Processes that live in a box whose program has the mark; tests in other processes have their own boxes."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "root/tmp/box/solution.py").read_text("utf-8"):
                    found.append((entry / "cmdline").read_bytes().decode("utf-8", "replace"))
            except (OSError, UnicodeDecodeError):
                continue
    return found


def marked() -> str:
    return f"# {secrets.token_hex(8)}"


@pytest.mark.parametrize("name", PROGRAMS["hearty"])
def test_honest_programs_pass(name: str) -> None:
    if name == "numpy" and not (Path(packages()) / "numpy").exists():
        pytest.skip("this interpreter has no numpy of its own")
    fields = judged(PROGRAMS["hearty"][name], PRINTED, seconds=10)
    assert fields["reward"] == 1.0, fields["metadata"]
    assert fields["checked"] == "outputs"


# --- reach ---


def tried(action: str) -> str:
    """What an action in the box comes to: `done`, or the name of the error."""
    outcome = boxed(f"import os, socket, sys\ntry:\n    {action}\nexcept BaseException as fault: print(type(fault).__name__)\nelse: print('done')")
    assert outcome.code == 0, outcome
    return outcome.stdout.decode().strip()


@pytest.mark.parametrize(("end", "action"), [(end, action) for end in ("error", "done") for action in PROGRAMS[end]])
def test_what_is_the_programs_is_within_reach_and_nothing_else(end: str, action: str) -> None:
    assert tried(action).lower().endswith(end)


def test_files_and_secrets_of_the_machine_are_not_there_and_nothing_is_written_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_TEST_SECRET", "hunter2")
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("hunter2")
        file.flush()
        code = SCRIPTS["looks around"].replace("FILE", repr(file.name))
        assert boxed(code).stdout.decode().split("\n")[:3] == ["False False", "False", "[]"]
    before = set(os.listdir(tempfile.gettempdir()))
    boxed("open('/tmp/blade_box_mark', 'w').write('x')\nopen('/tmp/box/blade_box_mark', 'w').write('x')")
    assert not {name for name in os.listdir(tempfile.gettempdir()) if "blade_box" in name} - before


@pytest.mark.parametrize("kind", ["internet", "abstract"])
def test_sockets_of_the_machine_are_not_reached(kind: str) -> None:
    """A listener that is really there, and that this process does reach."""
    if kind == "internet":
        server = socket.create_server(("127.0.0.1", 0))
        family, address = "AF_INET", server.getsockname()
    else:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(f"\0blade-test-{os.getpid()}")
        server.listen()
        family, address = "AF_UNIX", server.getsockname()
    with server:
        server.settimeout(5)
        own = socket.socket(server.family, socket.SOCK_STREAM)
        own.connect(server.getsockname())
        server.accept()[0].close()
        own.close()
        said = tried(f"socket.socket(socket.{family}, socket.SOCK_STREAM).connect({address!r})")
        assert said.endswith("Error")
        server.settimeout(0.05)
        with pytest.raises(TimeoutError):
            server.accept()


def test_processes_of_the_machine_are_not_killed_or_traced() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        code = SCRIPTS["kills and traces"].replace("OTHER", str(other.pid)).replace("PARENT", str(os.getpid()))
        assert boxed(code).stdout.decode().strip() == "[-1, -1]"
        assert other.poll() is None
        other.kill()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the calls are those of x86_64")
def test_namespaces_cannot_be_made_anew() -> None:
    assert boxed(SCRIPTS["new namespaces"]).stdout.decode().strip() == "[-1, -1, -1] -1 -1"


def test_setuid_programs_give_nothing() -> None:
    found = [path for path in ("/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd") if os.path.exists(path)]
    if not found:
        pytest.skip("no setuid program on this machine")
    outcome = boxed(SCRIPTS["setuid"].replace("PATHS", repr(found)))
    assert outcome.stdout.decode().strip() == "True 1 (65534, 65534, 65534)"


def test_a_daemon_does_not_outlive_its_box() -> None:
    mark = marked()
    assert judged(SCRIPTS["daemon"] + mark, PRINTED, seconds=10)["reward"] == 1.0
    assert not left(mark)


# --- verdicts that are not earned ---


@pytest.mark.parametrize("kind", ["printed", "called", "checked"])
@pytest.mark.parametrize("name", PROGRAMS["forgeries"])
def test_a_forged_verdict_is_worth_nothing(name: str, kind: str) -> None:
    fields = judged(PROGRAMS["forgeries"][name], KINDS[kind])
    assert fields["reward"] == 0.0
    assert fields["metadata"]["error_code"] in (WRONG, TIME, RUNTIME)
    assert fields["metadata"]["error_message"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_honest_twin_of_the_forgeries_passes(kind: str) -> None:
    fields = judged(SCRIPTS["honest"], KINDS[kind], seconds=10)
    assert fields["reward"] == 1.0, fields["metadata"]
    assert all(item is True for item in fields["result"])


@pytest.mark.parametrize(
    "name",
    ["hard exit", "exit in the call", "polite exit in the call", "no assertion error", "patched exec and compile",
     "assertion error that cannot be raised", "patched unittest", "at exit", "writes the verdict", "a thread that exits"],
)  # fmt: skip
def test_the_weaker_check_withstands_some(name: str) -> None:  # its holes stand in verifiers/programs.yaml
    row = {"verifier_metadata": {**KINDS["listed"]["verifier_metadata"], "checked": "in_process"}}
    fields = judged(PROGRAMS["forgeries"][name], row)
    assert (fields["reward"], fields["checked"]) == (0.0, "in_process")
    assert fields["metadata"]["error_message"]


# --- refusal, ends ---


def refused(setup: str) -> str:
    """What a fresh process says that has first given up what a box needs."""
    code = SCRIPTS["is measured"].replace("ROW", repr(PRINTED)).replace("RESPONSE", repr(answer("print(42)")))
    words = [sys.executable, "-c", f"{setup}\n{code}"]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def test_without_what_it_needs_nothing_runs_and_no_reward_is_given() -> None:
    """As in a container: the kernel refuses new namespaces; or it says yes to the limit of memory and sets none: only trying shows it."""
    unshare, prlimit = {"x86_64": (272, 302), "aarch64": (97, 261)}[os.uname().machine]
    said = refused(SCRIPTS["no namespaces"].format(unshare=unshare))
    assert (said.startswith("sandbox_unavailable True"), "namespace" in said) == (True, True)
    lying = f" + steps(0x15, {prlimit}, 0, 3) + steps(0x20, 24) + steps(0x15, 9, 0, 1) + steps(0x06, 0x00050000)"
    said = refused(SCRIPTS["no namespaces"].replace(" + steps(0x15, {unshare}, 0, 1) + steps(0x06, 0x00050001)", lying))
    assert (said.startswith("sandbox_unavailable True memory limit"), ";" in said) == (True, False)
    assert refused("") == "measured 1.0"  # with all it needs


def test_a_user_without_rights_has_the_same_box() -> None:
    """The path through a user namespace; as root, by becoming nobody first."""
    if os.getuid() == 0:
        interpreter = "/usr/bin/python3"
        if not os.path.exists(interpreter):
            pytest.skip("no interpreter that nobody may start")
        is_new = [interpreter, "-c", "import sys; print(sys.version_info >= (3, 11))"]
        if subprocess.run(is_new, capture_output=True, text=True).stdout.strip() != "True":
            pytest.skip("the interpreter that nobody may start is too old")
        become = {"user": 65534, "group": 65534, "extra_groups": []}
    else:
        interpreter, become = sys.executable, {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(Path(blade_eval.__file__).parent, f"{folder}/blade_eval", dirs_exist_ok=True)
        os.mkdir(f"{folder}/blade")
        for name in ("__init__.py", "errors.py"):
            shutil.copy(Path(blade.__file__).parent / name, f"{folder}/blade/{name}")
        ran = subprocess.run(
            [interpreter, "-m", "blade_eval.sandbox"],
            env={"PYTHONPATH": folder, "PATH": "/usr/bin:/bin"}, cwd="/", capture_output=True, text=True, timeout=60, **become,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("holds ") == 16
    assert "MISSING" not in ran.stdout


def test_of_boxes_at_once_none_counts_the_others_and_none_leaves_a_descriptor() -> None:
    """The number of processes is one box's own: many boxes of one user do not starve one another."""

    async def all_of(codes: list[str]) -> list[bytes]:
        return [outcome.stdout for outcome in await asyncio.gather(*(run(code, b"", SMALL) for code in codes))]

    assert asyncio.run(all_of([SCRIPTS["fifteen children"]] * 4)) == [b"42\n"] * 4
    before = len(os.listdir("/proc/self/fd"))
    assert asyncio.run(all_of([f"print({n})" for n in range(8)])) == [f"{n}\n".encode() for n in range(8)]
    assert len(os.listdir("/proc/self/fd")) == before


def test_cancelling_ends_the_box_at_once() -> None:
    mark = marked()

    async def cancelled() -> None:
        task = asyncio.create_task(run(f"import time\ntime.sleep(47.5)\n{mark}", b"", Limits(cpu=50)))
        while not left(mark):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert not left(mark)


def test_a_killed_run_leaves_no_box_behind() -> None:
    mark = marked()
    code = (
        "import asyncio\nfrom blade_eval.sandbox import Limits, run\n"
        f"asyncio.run(run('import time; time.sleep(48.5) {mark}', b'', Limits(cpu=50)))"
    )
    waited = threading.Event()
    with subprocess.Popen([sys.executable, "-c", code]) as killed:
        while not left(mark):
            assert killed.poll() is None
            waited.wait(0.05)
        killed.kill()
    for _ in range(200):
        if not left(mark):
            break
        waited.wait(0.05)
    assert not left(mark)


def test_a_plan_that_cannot_be_carried_out_is_no_verdict() -> None:
    """A disk too small for what every box holds: the program never started, and is not to blame."""
    with pytest.raises(Unmeasured) as missing:
        boxed("print(1)", limits=Limits(cpu=1, disk=4096, memory=256 * MEGABYTE))
    assert missing.value.kind == "sandbox_unavailable"
