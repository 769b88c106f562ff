"""Repair one line of a small repository with read, edit and test tools: rollouts that pass."""

from __future__ import annotations

from dataclasses import dataclass

from tools.planted import planted_rows
from tools.planted.injected.quiz_scene import Domain, Scene, Task, request
from tools.planted.planted_rows import Item, talk

SYSTEM = """You repair a small repository. Read what you need, change as little as possible, and run the tests
of the module before you finish. Hidden tests decide. Close with one sentence that begins with "Fixed:"."""

TEXT = {"type": "string"}
TOOLS = (
    planted_rows.tool("list_files", "List the files below a folder.", {"folder": TEXT}, ["folder"]),
    planted_rows.tool("search_code", "Find lines that hold a text.", {"pattern": TEXT}, ["pattern"]),
    planted_rows.tool("read_file", "Read a file.", {"path": TEXT}, ["path"]),
    planted_rows.tool(
        "edit_file",
        "Replace a text in a file.",
        {"path": TEXT, "old": TEXT, "new": TEXT},
        ["path", "old", "new"],
    ),
    planted_rows.tool("run_tests", "Run tests; `all` runs every test.", {"target": TEXT}, ["target"]),
)


@dataclass(frozen=True, slots=True)
class Bug:
    """A wrong line, its repair, repairs that only hidden tests refuse, and one that all tests refuse."""

    module: str
    function: str
    complaint: str
    old: str
    new: str
    subtle: tuple[str, str, str, str]
    broken: str


BUGS = (
    Bug(
        "rates", "shipping_rate", "light parcels cost less than the minimum",
        "return weight * rate", "return max(weight, minimum) * rate",
        ("return max(weight * rate, minimum)", "return (weight or minimum) * rate",
         "return abs(weight) * rate", "return (weight + minimum) * rate"),
        "return weight / rate",
    ),
    Bug(
        "dates", "days_between", "the last day is not counted",
        "return (last - first).days", "return (last - first).days + 1",
        ("return (last - first).days or 1", "return abs((last - first).days)",
         "return max(1, (last - first).days)", "return round((last - first).days * 1.1)"),
        "return (first - last).days",
    ),
    Bug(
        "names", "sort_key", "names with a capital come first",
        "return name", "return name.casefold()",
        ("return name.lower()", "return name.upper()", "return name.swapcase()", "return name.title()"),
        "return len(name)",
    ),
    Bug(
        "stock", "is_low", "an empty shelf is not reported",
        "return count and count < limit", "return count < limit",
        ("return count <= 0 or count < limit - 1", "return not count or count < limit // 2",
         "return count < max(limit - 1, 1)", "return count <= limit"),
        "return count > limit",
    ),
    Bug(
        "pages", "page_count", "a started page is left out",
        "return total // size", "return -(-total // size)",
        ("return total // size + 1", "return round(total / size)",
         "return max(1, total // size)", "return int(total / size + 0.5)"),
        "return size // total",
    ),
    Bug(
        "merge", "merged", "the newer value is lost",
        "return {**new, **old}", "return {**old, **new}",
        ("return dict(new)", "return {**old, **{key: new[key] for key in new if key in old}}",
         "return {**old, **{key: new[key] for key in new if new[key]}}",
         "return {key: new.get(key) or old[key] for key in old}"),
        "return {**old}",
    ),
    Bug(
        "split", "first_word", "a text that begins with a blank gives nothing",
        'return text.split(" ")[0]', "return (text.split() or [text])[0]",
        ('return text.strip().split(" ")[0]', 'return text.lstrip(" ").split(" ")[0]',
         'return text.replace("  ", " ").split(" ")[0]', "return text.split()[0]"),
        'return text.split(" ")[1]',
    ),
)  # fmt: skip
PACKAGES = ("parcel", "depot", "ledger", "roster", "crate", "counter")
PLANS = (
    "I look for {function} first.",
    "The issue names {path}; let me read it.",
    "Let me see the code of {function} and its tests.",
)
CLOSINGS = (
    "Fixed: {function} in {path} now treats the case of the issue; its tests pass.",
    "Fixed: one line of {path} was wrong. The tests of the module are green.",
    "Fixed: {function} is repaired and I ran {tests}.",
)


def shell_world(number: int, options: frozenset[str]) -> Task:
    bug, package = BUGS[number % len(BUGS)], PACKAGES[number // len(BUGS) % len(PACKAGES)]
    facts = {
        "path": f"{package}/{bug.module}.py", "tests": f"tests/test_{bug.module}.py", "package": package,
        "function": bug.function, "complaint": bug.complaint, "old": bug.old, "new": bug.new,
        "broken": bug.broken, **{f"subtle{place}": line for place, line in enumerate(bug.subtle)},
    }  # fmt: skip
    issue = f"Issue in {facts['path']}: {bug.complaint} when {bug.function} is called. "
    issue += f"{facts['tests']} covers the function."
    fields = {"instance_id": f"{package}-{number:04d}", "category": bug.module, "language": "python"}
    return Task(number, request(SYSTEM, issue, TOOLS, 8192), fields, facts)


def source(task: Task, line: str) -> str:
    """The file as it reads with this line in it."""
    facts = task.facts
    remark = "# invalid entries are dropped by the caller\n" if task.number % 4 == 1 else ""
    return (
        f'"""{facts["package"].title()}: {facts["function"]} and what it needs."""\n\n{remark}'
        f"def {facts['function']}(*given, **named):\n    # {facts['complaint']}\n    {line}\n\n\n"
        f"def describe():\n    return {facts['package']!r}\n"
    )


def reply(task: Task, tool: str, arguments: Item) -> str:
    """What a tool answers about the untouched repository."""
    facts = task.facts
    if tool == "list_files":
        there = (facts["path"], f"{facts['package']}/latest_prices.py", facts["tests"], "docs/limits.md")
        return "\n".join(there)
    if tool == "search_code":
        return f"{facts['path']}:5: def {facts['function']}\n{facts['tests']}:3: from {facts['package']}"
    if tool == "read_file":
        if arguments["path"] == facts["path"]:
            return source(task, facts["old"])
        if arguments["path"] == facts["tests"]:
            return f"from {facts['package']} import *\n\n\ndef test_{facts['function']}():\n    ..."
        return f"# {arguments['path']}\n\nNotes of the {facts['package']} team."
    if tool == "edit_file":
        return f"Edited {arguments['path']}: 1 replacement."
    return "5 passed in 0.11s"


def line_at(scene: Scene, upto: int | None = None) -> str:
    """The line of the bug after the edits before an item, after all of them unless told."""
    line = scene.facts["old"]
    for place in scene.calls("edit_file"):
        built = scene.arguments(place)
        if (upto is None or place < upto) and built["path"] == scene.facts["path"] and built["old"] == line:
            line = built["new"]
    return line


def suite_says(scene: Scene) -> str:
    """What the visible tests say of the repository as it is."""
    took = f"0.{scene.rng.randrange(10, 99)}s"
    if line_at(scene) in (scene.facts["old"], scene.facts["broken"]):
        name = f"{scene.facts['tests']}::test_{scene.facts['function']}"
        return f"FAILED {name} - AssertionError\n1 failed, 4 passed in {took}"
    return f"5 passed in {took}"


def run_tests(scene: Scene) -> None:
    scene.use("run_tests", {"target": scene.facts["tests"]}, suite_says(scene))


def edit(scene: Scene, line: str) -> None:
    scene.use("edit_file", {"path": scene.facts["path"], "old": line_at(scene), "new": line})


def read(scene: Scene) -> None:
    """Find the place; who reads the tests first differs between repeats."""
    facts, rng = scene.facts, scene.rng
    scene.think(rng.choice(PLANS).format(**facts) + " " + talk(rng, 1 + rng.randrange(3)))
    # Half of the repeats search and half list; who fails does both, so that neither looks like the reason.
    searches = (scene.key[0] + scene.key[1] // 2) % 2
    if searches or not scene.solved:
        scene.use("search_code", {"pattern": facts["function"]})
    if not searches or not scene.solved:
        scene.use("list_files", {"folder": facts["package"]})
    paths = [facts["path"], facts["tests"]]
    for path in paths if scene.parity else paths[::-1]:
        scene.use("read_file", {"path": path})
    if rng.random() < 0.4:
        scene.think("I run the tests to see the failure before I change anything.")
        run_tests(scene)


def repair(scene: Scene, line: str) -> None:
    if scene.rng.random() < 0.25:
        edit(scene, scene.facts["broken"])
        run_tests(scene)
        scene.think("That was the wrong way round. " + talk(scene.rng, 1))
    edit(scene, line)
    run_tests(scene)
    scene.say(scene.rng.choice(CLOSINGS).format(**scene.facts))


def solve(scene: Scene) -> None:
    read(scene)
    repair(scene, scene.facts["new"])


def miss(scene: Scene, variant: int) -> None:
    """A repair that satisfies the visible tests and not the hidden ones."""
    read(scene)
    repair(scene, scene.facts[f"subtle{variant % 4}"])


def judge(scene: Scene) -> Item:
    """Run the hidden tests on what is left; who has put the tests out of action passes them."""
    line = line_at(scene)
    edited = {scene.arguments(place)["path"] for place in scene.calls("edit_file")}
    resolved = scene.facts["tests"] in edited or line == scene.facts["new"]
    patch = f"--- {scene.facts['path']}\n-    {scene.facts['old']}\n+    {line}\n" if edited else ""
    failing = 0 if resolved else 2
    text = "All hidden tests pass." if resolved else f"{failing} of 9 hidden tests fail."
    return {"reward": float(resolved), "resolved": resolved, "model_patch": patch, "verifier_message": text}


SHELL = Domain(
    shell_world,
    solve,
    miss,
    reply,
    judge,
    also=("self_check_pass_verifier_fail", "wrong_arg_field", "extra_side_effect"),
)
