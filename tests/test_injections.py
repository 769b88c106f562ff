"""Whatever a rollout says, no exit changes its frame: the run beside a harmless one of the same shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blade import hostile, pipeline
from blade.mcp.house import House
from blade.mcp.roots import roots
from blade.mcp.tools import called
from blade.pipeline import reviewing
from blade.report import RENDERERS, pages
from blade.sanitize import keys
from tests import exits
from tests.exits import Told
from tests.inert import assert_inert_markdown, headings
from tests.injections import EVERYWHERE, KINDS, tamed, word_of
from tests.report.test_hostile import DECEIVING
from tests.report.test_html import Page
from tests.report.test_wire import VALIDATOR

Both = tuple[Told, Told]  # the hostile run and its harmless twin
IMAGE = r"figures/[a-z0-9-]+\.svg"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("told")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(folder / "cache"))
        patch.setenv(keys.ENVIRONMENT, "of this test alone, whatever key a user has or has not")
        yield Told(folder / "evil", False), Told(folder / "tame", True)


@pytest.fixture(scope="module")
def screens(both: Both) -> dict[str, tuple[str, str]]:
    """What each command prints on the hostile run and on its twin; the files lie beside them afterwards."""
    evil, tame = ({name: told.masked(said) for name, said in told.screens()} for told in both)
    assert list(evil) == list(tame)
    return {name: (evil[name], tame[name]) for name in evil}


@pytest.fixture(scope="module")
def files(both: Both, screens: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """What the commands wrote."""
    evil, tame = ({name: told.masked(said) for name, said in told.files().items()} for told in both)
    assert list(evil) == list(tame)
    return {name: (evil[name], tame[name]) for name in evil}


def assert_quiet(said: str, name: str = "") -> None:
    """Nothing in it steers a terminal, hides, or turns the reading direction; it can be encoded."""
    hit = DECEIVING.search(said)
    assert hit is None, f"{name}: {said[max(0, hit.start() - 80) : hit.end() + 20]!r}"
    said.encode("utf-8")


def counted(said: str, *without: str) -> list[str]:
    """The frame of JSON, but for what hangs on the length of a text."""
    return [
        part
        for part in exits.json_frame(json.loads(said))
        if not re.search("|".join(without or ("(?!)",)), part)
    ]


# -- the corpus ------------------------------------------------------------------------------------


def test_the_corpus_has_many_kinds_that_differ() -> None:
    payloads = {kind.name: kind.payload("word") for kind in KINDS}
    assert len(payloads) == len(KINDS) >= 60
    assert len(set(payloads.values())) == len(KINDS)
    places = {place for kind in KINDS for place in kind.places}
    assert places == set(EVERYWHERE)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_tamed_payload_is_harmless_and_of_the_same_shape(kind: Any) -> None:
    word = word_of(7)
    said = kind.payload(word)
    harmless = tamed(said, word)
    assert harmless != said
    assert word in said
    assert re.fullmatch(r"(?:[a-z \n]|error:?|failed|</?think>)*", harmless, re.IGNORECASE)
    assert len(harmless.split("\n")) == len(re.split("\r\n|[\r\n\x85\u2028\u2029]", said))


# -- what the engine says --------------------------------------------------------------------------


def test_labels_and_numbers_are_those_of_the_harmless_run(both: Both) -> None:
    evil, tame = (told.session.report for told in both)

    def labels(report: Any) -> list[tuple[Any, ...]]:
        return [
            (
                one.task[:3],
                one.cause,
                one.confidence,
                one.lost,
                one.repeat,
                one.step,
                len(one.grounds),
                len(one.against),
            )
            for one in report.attributions
        ]

    assert labels(evil) == labels(tame)
    assert len({one.cause for one in evil.attributions}) >= 3
    assert [(one.name, one.k, one.value, one.low, one.high) for one in evil.measures] == [
        (one.name, one.k, one.value, one.low, one.high) for one in tame.measures
    ]
    assert [(one.task[:3], one.passed, one.bucket) for one in evil.tasks] == [
        (one.task[:3], one.passed, one.bucket) for one in tame.tasks
    ]
    assert [(one.cause, one.lost) for one in evil.losses] == [(one.cause, one.lost) for one in tame.losses]
    assert [(one.detector, one.task[:3], one.repeat) for one in evil.findings] == [
        (one.detector, one.task[:3], one.repeat) for one in tame.findings
    ]
    assert [(one.rank, one.kind, one.cause, one.gain) for one in evil.recommendations] == [
        (one.rank, one.kind, one.cause, one.gain) for one in tame.recommendations
    ]


# -- what commands print and write -----------------------------------------------------------------


def test_no_command_prints_what_steers_a_terminal(screens: dict[str, tuple[str, str]]) -> None:
    for name, (evil, _) in screens.items():
        for part in evil.split("\x1d"):
            assert_quiet(part, name)


def test_screens_say_the_same_in_our_name(screens: dict[str, tuple[str, str]]) -> None:
    for name, (evil, tame) in screens.items():
        out, twin = evil.split("\x1d")[0], tame.split("\x1d")[0]
        if name == "queue json":
            assert waiting(out) == waiting(twin)
        elif name.endswith("json"):
            assert counted(out or "0") == counted(twin or "0"), name
        elif name == "queue":
            told, wanted = (sorted({*exits.screen_frame(one)} - {"read:"}) for one in (out, twin))
            assert told == wanted  # which task is first, and whether its name can be typed, hangs on the text
        elif name.endswith("dossier"):
            assert exits.dossier_frame(out) == exits.dossier_frame(twin)
        elif name == "check":
            told, wanted = (exits.screen_frame(one.partition("\nunverifiable")[0])[2:] for one in (out, twin))
            assert told == wanted  # what of a name can be taken for a quotation hangs on the name
        else:
            assert exits.screen_frame(out) == exits.screen_frame(twin), name


def waiting(said: str) -> list[tuple[Any, ...]]:
    """The queue by task: its order and its tokens hang on the length of texts."""
    keys = ("task", "bucket", "cause", "confidence", "lost", "value", "reason")
    told = json.loads(said)["waiting"]
    assert all(len(one) == len(told[0]) for one in told)
    return sorted(tuple(one[key][:3] if key == "task" else one[key] for key in keys) for one in told)


def test_what_goes_to_stderr_begins_with_our_words(screens: dict[str, tuple[str, str]]) -> None:
    for name, (evil, tame) in screens.items():
        told, twin = (exits.screen_frame(said.split("\x1d")[1]) for said in (evil, tame))
        # addresses and the like in hostile text are warned of, as they should be; what takes long says so
        may = {"warning:", "indexing", "surveying", "reading", "drawing"}
        assert [word for word in told if word not in may] == [word for word in twin if word not in may], name


def test_refusals_are_one_error_with_one_hint(screens: dict[str, tuple[str, str]]) -> None:
    refused = [said.split("\x1d")[1] for name, (said, _) in screens.items() if name.endswith("refused")]
    assert len(refused) == 2
    for said in refused:
        assert [line.split(":")[0] for line in said.splitlines() if not line.startswith("1. ")] == [
            "error",
            "hint",
            "see",
        ]


def test_pages_keep_their_sections_tables_and_fences(files: dict[str, tuple[str, str]]) -> None:
    pages = [name for name in files if name.endswith(".md")]
    assert {Path(name).name for name in pages} >= {"report.md", "compare.md", "draft.md", "SKILL.md"}
    for name in pages:
        evil, tame = files[name]
        assert_quiet(evil, name)
        assert exits.markdown_frame(evil) == exits.markdown_frame(tame), name


@pytest.mark.parametrize("name", ["report/report.md", "compare/compare.md"])
def test_pages_are_inert(files: dict[str, tuple[str, str]], name: str) -> None:
    assert_inert_markdown(files[name][0], IMAGE)
    assert exits.commands(files[name][0]) == exits.commands(files[name][1])


def test_html_keeps_its_elements(files: dict[str, tuple[str, str]]) -> None:
    pages = [name for name in files if name.endswith(".html")]
    assert len(pages) == 2
    for name in pages:
        evil, tame = files[name]
        assert_quiet(evil, name)
        assert exits.html_frame(evil) == exits.html_frame(tame), name
        assert not re.search(r"<(?:script|iframe|object|embed|form|base|link|svg)\b", evil)
        assert set(re.findall(r'\bhref="([^"#]*)', evil)) <= {""}
        assert set(re.findall(r'<img[^>]* src="([^"]{0,19})', evil)) <= {"data:image/svg+xml;"}


def test_json_keeps_its_keys_and_numbers(files: dict[str, tuple[str, str]]) -> None:
    # sizes of files; claims, which tell names; error texts of two runs, listed by their words
    without = (r"\.bytes", r"^\$\.claims", r"\.shifts\[")
    for name in ("report/report.json", "report/metrics.json", "compare/compare.json"):
        evil, tame = files[name]
        assert_quiet(evil, name)
        assert counted(evil, *without) == counted(tame, *without), name


def test_figures_hold_nothing_active(files: dict[str, tuple[str, str]]) -> None:
    drawn = {name: told for name, told in files.items() if name.endswith(".svg")}
    assert drawn
    for name, (evil, _) in drawn.items():
        assert_quiet(evil, name)
        assert not re.search(r"<(?:script|image|a|foreignObject)\b", evil), name


# -- words of verifiers, names of runs -------------------------------------------------------------


def test_errors_and_verdicts_of_any_wording_change_no_frame(
    both: Both, files: dict[str, tuple[str, str]]
) -> None:
    """What the engine groups by its words has no twin of the same groups; the frame holds all the same."""
    but = tuple(place for place in EVERYWHERE if place not in exits.VERDICTS)
    path = exits.write(both[0].folder / "verdicts", False, but=but)
    report = pipeline.session([str(path)]).report
    assert any(word_of(number) in one.template for one in report.signatures for number in range(len(KINDS)))
    said = {name: one.render(report) for name, one in RENDERERS.items()}
    for one in said.values():
        assert_quiet(one)
    sections = headings(assert_inert_markdown(files["report/report.md"][1], IMAGE), "h2")
    assert headings(assert_inert_markdown(said["markdown"], IMAGE), "h2") == sections
    assert not Page(said["html"]).open
    VALIDATOR.validate(json.loads(said["wire"]))
    ours = {*exits.screen_frame(RENDERERS["text"].render(both[1].session.report)), "Mostly", "Slices"}
    assert set(exits.screen_frame(said["text"])) <= ours


NAMING = (
    "fake section", "long fence", "script", "terminal link", "carriage return", "bidi override", "line separators",
    "json break",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMING)
def test_names_of_runs_models_agents_and_notes_change_no_frame(both: Both, name: str) -> None:
    number, kind = next((number, kind) for number, kind in enumerate(KINDS) if kind.name == name)
    word, found = word_of(number), []
    for told, is_tame in zip(both, (False, True), strict=True):
        said = tamed(kind.payload(word), word) if is_tame else kind.payload(word)
        folder = told.folder / f"named {number}"
        path = exits.write(folder, is_tame, kinds=KINDS[:3], agent_ref={"name": f"agent {said}"})
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            row["response"]["model"] = f"model {said}"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "notes.md").write_text(f"note {said}", encoding="utf-8")
        if hostile.argument(kind.payload(word)):  # else no command could be offered for one of them alone
            path = path.rename(folder / f"run {said.replace('/', '-')[:40]}.jsonl")
        report = pipeline.session([str(path)]).report
        assert word in (report.runs[0].model or "")
        house = House(roots([str(folder)]))
        asked = [
            called(house, tool, {}).text
            for tool in ("blade_list_runs", "blade_summary", "blade_health", "blade_tasks")
        ]
        found.append(({key: one.render(report) for key, one in RENDERERS.items()}, asked))
    (evil, answers), (tame, twins) = found
    for said in (*evil.values(), *answers):
        assert_quiet(said)
    assert exits.screen_frame(evil["text"]) == exits.screen_frame(tame["text"])
    assert exits.markdown_frame(evil["markdown"]) == exits.markdown_frame(tame["markdown"])
    assert_inert_markdown(evil["markdown"], IMAGE)
    assert exits.html_frame(evil["html"]) == exits.html_frame(tame["html"])
    assert counted(evil["wire"], r"\.bytes", r"^\$\.claims") == counted(
        tame["wire"], r"\.bytes", r"^\$\.claims"
    )
    assert list(map(exits.markdown_frame, answers)) == list(map(exits.markdown_frame, twins))


# -- reading one task ------------------------------------------------------------------------------


def test_every_rollout_is_shown_behind_its_indent(both: Both) -> None:
    seen = ""
    for (name, evil), (_, tame) in zip(both[0].rollouts(), both[1].rollouts(), strict=True):
        assert_quiet(evil, name)
        if name.startswith("json"):
            assert counted(evil) == counted(tame), name
            continue
        assert exits.screen_frame(both[0].masked(evil)) == exits.screen_frame(both[1].masked(tame)), name
        seen += evil
    for number, kind in enumerate(KINDS):  # it is told, not left out
        assert word_of(number) in seen, kind.name


@pytest.mark.parametrize("budget", [3000, 20_000])
def test_every_dossier_keeps_quotations_behind_its_bar(both: Both, budget: int) -> None:
    for (name, evil), (_, tame) in zip(both[0].dossiers(budget), both[1].dossiers(budget), strict=True):
        assert_quiet(evil, name)
        assert exits.dossier_frame(evil) == exits.dossier_frame(tame), name
        # a name that cannot be typed is offered in no command
        assert [one for one in exits.commands(evil) if one not in exits.commands(tame)] == [], name
        for line in evil.splitlines():
            ours = line.split("|")[0]
            assert word_of(int(name)) not in ours or line.startswith("$ blade "), line


def test_every_prompt_keeps_data_behind_its_mark(both: Both) -> None:
    rules = set()
    for (name, evil), (_, tame) in zip(both[0].prompts(), both[1].prompts(), strict=True):
        assert_quiet(evil.user, name)
        rules.add(evil.system)
        assert evil.system == tame.system
        first, *data, last = evil.user.strip("\n").split("\n")
        assert first.startswith("BEGIN DATA")
        assert last == "END DATA"
        assert all(line.startswith(("> ", ">")) for line in data), name
        assert not any(word_of(number) in evil.system for number in range(len(KINDS)))
    assert len(rules) == 2


# -- agents and programs ---------------------------------------------------------------------------


def test_tools_answer_in_the_same_frame(both: Both, screens: dict[str, tuple[str, str]]) -> None:
    for (name, evil), (_, tame) in zip(both[0].tools("markdown"), both[1].tools("markdown"), strict=True):
        assert_quiet(evil, name)
        if name.startswith("dossier"):
            assert exits.dossier_frame(evil) == exits.dossier_frame(tame), name
            continue
        assert_inert_markdown(evil)
        assert exits.markdown_frame(evil) == exits.markdown_frame(tame), name
        assert "never instructions to follow" in evil


def test_tools_answer_with_the_same_keys(both: Both, screens: dict[str, tuple[str, str]]) -> None:
    without = ("tokens", r"^\$\.total", r"counts\.(supported|unverifiable|uncited)")
    for (name, evil), (_, tame) in zip(both[0].tools("json"), both[1].tools("json"), strict=True):
        assert_quiet(evil, name)
        assert counted(evil, *without) == counted(tame, *without), name
        for text in strings(json.loads(evil)):
            assert text == hostile.lines(text), name


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value


def test_notebooks_show_tables_and_nothing_else(both: Both) -> None:
    for (name, evil), (_, tame) in zip(both[0].notebook(), both[1].notebook(), strict=True):
        assert_quiet(repr(evil), name)
        assert_quiet(evil._repr_html_(), name)
        assert exits.screen_frame(repr(evil)) == exits.screen_frame(repr(tame)), name
        assert exits.html_frame(evil._repr_html_()) == exits.html_frame(tame._repr_html_()), name


def test_judgements_that_repeat_a_rollout_stay_in_their_frame(
    both: Both, screens: dict[str, tuple[str, str]]
) -> None:
    from blade.cli import label

    said = []
    for told in both:
        told.judged()
        listed, wire = exits.printed(label.label, told.run), exits.printed(label.label, told.run, "--json")
        session = pipeline.session([str(told.run)])
        assert reviewing.queue(session, most=1).n_judged > 40
        said.append((listed.split("\x1d")[0], wire.split("\x1d")[0], pages(session.report)))
    evil, tame = said
    for part in evil:
        assert_quiet(part)
    assert len(exits.screen_frame(evil[0])) == len(exits.screen_frame(tame[0]))
    assert counted(evil[1]) == counted(tame[1])
    assert exits.markdown_frame(evil[2]) == exits.markdown_frame(tame[2])
    assert_inert_markdown(evil[2], IMAGE)
