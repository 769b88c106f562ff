"""Runs full of foreign text through every exit, each as one text, and the frame of each text."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run
from tests.injections import KINDS, Kind, tamed, word_of

Put = Callable[[str, str], str]  # a place and what stands there otherwise -> what stands there


VERDICTS = ("error", "verifier")  # what is put there the engine groups by its words, as it shall


def putter(number: int, kind: Kind, is_tame: bool, but: tuple[str, ...] = VERDICTS) -> Put:
    """Puts the payload of a kind where it can stand, or what is harmless in its stead."""
    word = word_of(number)
    payload = kind.payload(word)
    said = tamed(payload, word) if is_tame else payload
    return lambda place, usual: f"{usual} {said}" if place in kind.places and place not in but else usual


def rows_of(number: int, put: Put, passes: tuple[bool, bool], part: int) -> list[Row]:
    """Two repeats of a task; one that fails takes the wrong record, passes over an error or has no provider."""
    found = []
    key = put("task", f"{number:03d}")[:90]
    for repeat, passed in enumerate(passes):
        is_down, is_locked = (not passed and part % 3 == fault for fault in (2, 1))
        record = f"R-{number}" if passed else "R-999"
        output: list[Row] = [
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": put("reasoning", "Which record is it?")}],
            },
            make_call(
                "c1",
                put("tool", "find")[:64],
                json.dumps({"name": put("arguments", "Ada"), put("nested_key", "k")[:60]: 1}),
            ),
            make_result("c1", put("result", f"found R-{number}")),
            {"type": "message", "role": "user", "content": put("other_turn", "Go on.")},
            make_call("c2", "save", json.dumps({"note": put("arguments", "new"), "record": record})),
            make_result(
                "c2",
                put("result", "Error: the record is locked, nothing was saved.") if is_locked else "saved",
            ),
            make_message(put("message", f"Done, {record} is saved.")),
        ]
        told = make_row(
            key, repeat, float(passed),
            response=make_response([] if is_down else output),
            task_id=put("task_name", f"T-{number}"),
            question=put("instruction", f"Save the record of customer {number}."),
            category=put("category", "ab"[number % 2])[:80],
            expected_actions=[{"name": "save", "arguments": {"record": f"R-{number}"}}],
            verifier_message=put("verifier", "the record holds" if passed else "the record does not hold"),
            **{put("field_name", "extra")[:60]: put("field_value", "value")},
        )  # fmt: skip
        told["responses_create_params"] = {
            "input": [
                {"role": "system", "content": put("system", "You save records.")},
                {"role": "user", "content": put("instruction", f"Save the record of customer {number}.")},
            ]
        }
        if is_down:
            told["error"] = put("error", "model endpoint answered 503: service overloaded")
        found.append(told)
    return found


def write(
    folder: Path,
    is_tame: bool,
    shift: int = 0,
    kinds: tuple[Kind, ...] = KINDS,
    but: tuple[str, ...] = VERDICTS,
    **everywhere: Any,
) -> Path:
    """One task for each kind; `shift` makes other tasks fail, `everywhere` stands in all rows."""
    rows: list[Row] = []
    for number, kind in enumerate(kinds):
        part = number + shift
        passes = ((True, True), (True, False), (False, False))[part % 3]
        rows += rows_of(number, putter(number, kind, is_tame, but), passes, part // 3)
    rows = [{**row, **everywhere} for row in rows]
    return make_run(folder, [json.dumps(row) for row in rows], name="run")


def printed(command: Any, *arguments: object) -> str:
    """What a command prints, stdout and stderr; an error as `blade` tells it."""
    from blade.cli.main import _tell
    from blade.errors import BladeError

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command.main([str(one) for one in arguments], prog_name="blade", standalone_mode=False)
        except BladeError as error:
            _tell(error, "--json" in arguments)
    return f"{out.getvalue()}\x1d{err.getvalue()}"


# -- the frame of a text ---------------------------------------------------------------------------


def markdown_frame(said: str) -> list[str]:
    """Headings, tables, fences, lists and paragraphs, without what stands in them."""
    from markdown_it import MarkdownIt

    from tests.inert import LISTED

    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").parse(said)
    return [
        f"{token.type} {token.tag} {token.info} {token.level}"
        for token in tokens
        if token.type != "html_block" or not LISTED.fullmatch(token.content)
    ]


def html_frame(said: str) -> list[str]:
    """The elements that make up a page, with the names of their attributes; spans inside a line apart."""
    from tests.report.test_html import Page

    page = Page(said)
    assert not page.open
    inline = {"code", "strong", "span", "img", "data"}
    return [
        f"{tag} {sorted(attributes)} {attributes.get('class')}"
        for tag, attributes in page.tags
        if tag not in inline
    ]


def json_frame(value: Any, at: str = "$") -> Iterator[str]:
    """Keys, kinds and numbers; texts are only said to be texts, and names of fields to be names."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from json_frame(item, f"{at}.{'*' if at.endswith('.fields') else key}")
        yield f"{at} {len(value)} keys"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from json_frame(item, f"{at}[{number}]")
        yield f"{at} {len(value)} items"
    else:
        yield f"{at} text" if isinstance(value, str) else f"{at} {value}"


def screen_frame(said: str) -> list[str]:
    """The word that begins each line which is not indented: what a screen says in our name."""
    return [line.split()[0] for line in said.splitlines() if line[:1].strip()]


def dossier_frame(said: str) -> list[str]:
    """Of each line what stands before its bar, lines of one quotation as one; commands apart."""
    found = []
    for line in said.splitlines():
        ours = re.sub(r"\d[\d,]* tokens", "N tokens", line.split("|")[0])
        if not line.startswith("$ ") and (ours or found[-1:] != [""]):
            found.append(ours)
    return found


def commands(said: str) -> list[str]:
    """The commands that a text offers, without the names in them."""
    found = []
    for line in re.findall(r"^(?:\$ |read:  )?(blade .*)$", said, re.MULTILINE):
        words = shlex.split(line, comments=True)
        found.append(f"{words[:2]} {[word for word in words if word.startswith('--')]} {len(words)}")
    return found


# -- the exits -------------------------------------------------------------------------------------


class Told:
    """Two runs of foreign text in a folder, and what every exit makes of the first."""

    def __init__(self, folder: Path, is_tame: bool) -> None:
        from blade import pipeline

        self.folder = folder
        self.run, self.other = write(folder / "a", is_tame), write(folder / "b", is_tame, shift=1)
        self.session = pipeline.session([str(self.run)])
        self.name = self.session.loaded[0].name
        self.keys = self.session.loaded[0].run.rollouts.task_keys
        self.failed = [one.task for one in self.session.report.attributions]

    def masked(self, said: str) -> str:
        return said.replace(str(self.folder), "FOLDER")

    def screens(self) -> Iterator[tuple[str, str]]:
        """What commands print."""
        from blade.cli import check, compare, diagnose, draft, health, label, queue, show, skill

        out, run = self.folder / "out", self.run
        yield "diagnose", printed(diagnose.diagnose, run, "-o", out / "report")
        yield "diagnose again", printed(diagnose.diagnose, run)
        yield "health", printed(health.health, run)
        yield "health json", printed(health.health, run, "--json")
        yield "compare", printed(compare.compare, f"a={run}", f"b={self.other}", "-o", out / "compare")
        yield "draft", printed(draft.draft, run, "-o", out / "draft.md")
        yield "skill new", printed(skill.new, "records", "--run", run, "-o", out / "skills")
        wrong = out / "wrong.md"
        wrong.write_text(
            (out / "draft.md").read_text(encoding="utf-8").replace("50.4%", "61.9%"), encoding="utf-8"
        )
        yield "check", printed(check.check, wrong, "--run", run)
        yield "queue", printed(queue.queue, run, "--most", 0)
        yield "queue json", printed(queue.queue, run, "--most", 0, "--json")
        for key in (self.failed[1], self.failed[40]):
            yield f"show {key[:3]}", printed(show.show, run, key)
            yield f"show {key[:3]}/1", printed(show.show, run, f"{key}/1")
            yield f"show {key[:3]}/1 json", printed(show.show, run, f"{key}/1", "--json")
            yield f"show {key[:3]} dossier", printed(show.show, run, key, "--dossier")
            refused = (
                "--cause",
                "KG",
                "--repeat",
                1,
                "--step",
                3,
                "--quote",
                "words nobody said",
                "--mechanism",
                "x",
            )
            yield f"label {key[:3]} refused", printed(label.label, run, key, *refused, "--by", "me")
            yield (
                f"label {key[:3]} refused json",
                printed(label.label, run, key, *refused, "--by", "me", "--json"),
            )
        yield "show nothing", printed(show.show, run, f"{self.keys[0]} nothing")

    def files(self) -> dict[str, str]:
        """What commands write."""
        found = {}
        for path in sorted((self.folder / "out").rglob("*")):
            if path.is_file() and path.suffix in (".md", ".html", ".json", ".toml", ".svg"):
                found[str(path.relative_to(self.folder / "out"))] = path.read_text(encoding="utf-8")
        return found

    def rollouts(self) -> Iterator[tuple[str, str]]:
        """Every task and every rollout as `blade show` prints it, as text and as JSON."""
        from blade.cli import rollout_page

        one = self.session.loaded[0]
        for key in self.keys:
            rows = [
                rollout_page.Shown(
                    self.name, key, at.rollout.repeat, at.rollout.file, at.rollout.line, dict(at.row), True
                )
                for at in self.session.traces(one, key)
            ]
            yield f"task {key[:3]}", rollout_page.render(rollout_page.task(rows), 1500)
            for row in rows:
                told = rollout_page.rollout(row, [(0, None)])
                yield f"rollout {key[:3]}/{row.repeat}", rollout_page.render(told, 1500)
            yield f"json {key[:3]}", rollout_page.as_json(rollout_page.rollout(rows[0], [(0, None)]))

    def dossiers(self, budget: int) -> Iterator[tuple[str, str]]:
        from blade.pipeline import reviewing

        for key in self.failed:
            yield key[:3], reviewing.dossier(self.session, key, None, budget).text

    def prompts(self) -> Iterator[tuple[str, Any]]:
        """What would be sent to a model about every failed task."""
        from blade.pipeline import model_reading

        for number, key in enumerate(self.failed):
            yield key[:3], model_reading.prompt(self.session, key, ("label", "explain")[number % 2])

    @cached_property
    def house(self) -> Any:
        from blade.agent.mcp.roots import House, roots

        return House(roots([str(self.folder / "a"), str(self.folder / "b")]))

    def tools(self, form: str) -> Iterator[tuple[str, str]]:
        """What the MCP server answers."""
        from blade.agent.mcp.tool_table import called

        house, here = self.house, str(self.run)

        def said(name: str, **given: Any) -> str:
            return called(house, name, {"format": form, **given}).text

        yield "list_runs", said("blade_list_runs")
        yield "summary", said("blade_summary", run=here)
        for name in ("tasks", "findings", "health"):
            yield name, said(f"blade_{name}", run=here, limit=8, offset=2)
        yield "compare", said("blade_compare", baseline=here, candidates=[str(self.other)])
        report = (self.folder / "out" / "wrong.md").read_text(encoding="utf-8")
        yield "check_claims", said("blade_check_claims", report=report, runs=[here], limit=5)
        for key in self.failed[::9]:
            yield f"show {key[:3]}", said("blade_show", run=here, task=key)
            yield f"show {key[:3]}/1", said("blade_show", run=here, task=key, repeat=1, chars=300)
            yield f"dossier {key[:3]}", said("blade_dossier", run=here, task=key, budget=20_000)
        yield "judgements", said("blade_judgements", run=here)

    def notebook(self) -> Iterator[tuple[str, Any]]:
        """What a notebook shows of the Python API."""
        import blade

        runs = blade.load(self.run)
        yield "runs", runs
        for name in ("tasks", "findings", "health", "attributions", "signatures", "recommendations"):
            if hasattr(runs, name):
                yield name, getattr(runs, name)()

    def judged(self) -> None:
        """Judgements that quote what rollouts say, and repeat it in their own words."""
        from blade.hostile import line
        from blade.pipeline import reviewing

        given = []
        for key in self.failed:
            trace = self.session.traces(self.session.loaded[0], key)[1]
            if len(trace.steps) > 3:
                quote = trace.steps[3].text[:200]
                told = re.sub(
                    r"step \d+", "", line(quote, 150)
                )  # a judgement that blames a later step is refused
                given.append(
                    {
                        "task": key,
                        "cause": "TI",
                        "repeat": 1,
                        "step": 3,
                        "quote": quote,
                        "mechanism": told,
                        "mode": told[:60],
                    }
                )
        reviewing.label(self.session, given, "a reader")
