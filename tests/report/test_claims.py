"""Every number of a page is a value with its query: none stands in plain text, each is found again, as it was said."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache as cached
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from blade import hostile, pipeline
from blade.check import checked, world_for
from blade.check.json_reports import read_report
from blade.model import Report
from blade.model.conclusions import CONTRADICTED, UNVERIFIABLE
from blade.pipeline import comparing
from blade.pipeline.run_tables import ground_of
from blade.query.comments import escape_comment, unescape_comment
from blade.query.engine import evaluate as engine
from blade.query.query_ground import value as evaluate
from blade.report import comparison_pages as change
from blade.report import draft_report, html, json_text, markdown, report_json, write
from blade.report.blocks import Badge, Claim, Num, Said, Section, Strong, agrees, claims_of, lines, queries
from blade.report.chapters import chapters, title
from blade.tables.index import Silent
from tests.builders import make_row, make_run
from tests.conftest import Blade
from tests.inert import ANCHOR, uncited
from tools.planted import write_demo
from tools.planted.paired_runs import CAUSES
from tools.planted.planted_runs import write_pair

from . import changed
from .behaving import TOOL, write_behaving, write_mixed
from .conftest import CASES, make_report, twenty
from .explained import explain
from .renders import sayings

Page = tuple[Report, tuple[Section, ...]]

# What may hold a digit in plain text: names of measures, and settings of the method that no row can change.
STATIC = re.compile(
    "|".join(
        (
            r"pass@\d+|pass\^\d+|majority@\d+|(?:best|worst) of \d+|pass_at_\d",
            r"\b(?:5|10|50|90|95)%|\b0\.05\b|at least 0\.(?:8|95)\b|in (?:at least )?(?:80|95) of 100 cases|1e-9",
            r"from 0 to 1\b|\[0, 1\]|1 − |scores 1\b|lies above 1\b|excludes 0\b|is 0\b|0 or ∞|½|k above 8\b",
            r"every missing row scored [01]\b",
            r"^\d\. $",  # the place of a group in its list
        )
    )
)


@pytest.fixture(scope="module", params=[*CASES, "pair", "candidates", "both"])
def page(request: pytest.FixtureRequest) -> Page:
    if request.param in CASES:
        report = CASES[request.param]()
        return report, chapters(report)
    report = changed.pair_report() if request.param == "pair" else changed.many_report()
    return report, (chapters if request.param == "both" else change.chapters)(report)


def listed_page(name: str, sections: tuple[Section, ...]) -> str:
    """A page in Markdown with the queries of its claims at its end, as a draft has them."""
    comment = claims_of(sections).comment() if claims_of(sections).listed else ""
    return markdown.page(name, sections) + f"\n{comment}\n"


def plain_texts(sections: tuple[Section, ...]) -> Iterator[str]:
    """What stands on a page as our own words: neither a number of the rows nor a name taken from elsewhere."""
    for section in sections:
        for block in section.blocks:
            for line in lines(block):
                yield from (span for span in line if isinstance(span, str))
                yield from (span.text for span in line if isinstance(span, Strong | Badge))


def is_same(answer: Any, claim: Claim) -> bool:
    if isinstance(claim.value, str):
        return bool(answer == claim.value)
    return isinstance(answer, int | float) and math.isclose(answer, claim.value, rel_tol=1e-9, abs_tol=1e-9)


def is_said(text: str, value: str) -> bool:
    """Whether a printed sentence is what the stage wrote, to the letter: all of it, a part, or its beginning.

    White space and backticks do not count: a page sets a capital and a full stop, and names as code.
    """
    printed, written = ("".join(hostile.line(one).lower().replace("`", "").split()) for one in (text, value))
    return bool(printed) and printed.rstrip(".…") in written


def check_page(report: Report, sections: tuple[Section, ...]) -> list[Claim]:
    """No digit in plain text, every text states its value, every engine query gives it again."""
    for text in plain_texts(sections):
        assert not re.search(r"\d", STATIC.sub("", text)), text
    listed = claims_of(sections).listed
    for claim in listed:
        assert agrees(claim.text, claim.value), claim
        assert not isinstance(claim.value, str) or is_said(claim.text, claim.value), claim
        if claim.query.startswith("engine."):
            assert is_same(engine(claim.query, report), claim), claim
        else:
            assert claim.query.partition(" ")[0] == "select" or " where run = '" in claim.query, claim
    return listed


def test_every_number_carries_a_query_and_ids_are_in_the_order_of_print(page: Page) -> None:
    report, sections = page
    listed = check_page(report, sections)
    assert [claim.id for claim in listed] == [f"c{place}" for place in range(1, len(listed) + 1)]
    assert len({(claim.query, claim.text) for claim in listed}) == len(listed)
    printed_page, plain_page = listed_page(title(report), sections), markdown.page(title(report), sections)
    assert list(dict.fromkeys(anchors(printed_page))) == [claim.id for claim in listed]
    assert queries(printed_page) == {claim.id: claim.query for claim in listed}
    assert uncited(plain_page) == markdown.page(title(report), sections, cited=False)
    assert anchors(plain_page) == anchors(printed_page)
    spans = [span for section in sections for block in section.blocks for line in lines(block) for span in line]
    text = html.page(title(report), sections, "1")
    assert text.count('<data class="n" ') == sum(isinstance(span, Num) for span in spans)
    assert text.count('<span class="n" ') == sum(isinstance(span, Said) for span in spans)


def anchors(page: str) -> list[str]:
    """The claims that the comments of a Markdown page name; what stands in a fence is no comment."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(page)
    inline = [child for token in tokens for child in token.children or () if child.type == "html_inline"]
    assert all(ANCHOR.fullmatch(child.content) for child in inline)
    assert [token.type for token in tokens].count("html_block") <= 1
    return [child.content.removeprefix("<!--").removesuffix("-->") for child in inline]


@pytest.mark.parametrize(
    "text", ["<!--c1-->", "--> <!--c2-->", "\n\n-->\n\n<!--blade claims\nc1 count\n-->", '" title="c1', "%2D%0A\\'\""]
)
def test_no_text_of_a_rollout_forges_a_claim(text: str) -> None:
    def word(usual: str) -> str:
        return f"{text} {usual}"

    report = explain(make_report({f"desk{text}": twenty()}, word=word), word=word)
    sections = chapters(report)
    listed = check_page(report, sections)
    page = listed_page("t", sections)
    assert list(dict.fromkeys(anchors(page))) == [claim.id for claim in listed]
    assert queries(page) == {claim.id: claim.query for claim in listed}
    assert page.rstrip().count("-->\n") == 1 or page.endswith("-->\n")


@given(st.text())
def test_an_escaped_query_is_one_line_that_ends_no_comment(query: str) -> None:
    escaped = escape_comment(query)
    assert ("--" in escaped, len(escaped.splitlines()) <= 1, unescape_comment(escaped)) == (False, True, query)
    for plain in ("pass_at_1 where run = 'a'", "engine.losses(run='a', cause='KG').lost", "select 1 / n from tasks"):
        assert escape_comment(plain) == plain


@pytest.mark.parametrize(("text", "value", "agreed"), sayings("agreements"))
def test_a_text_agrees_with_its_value_to_the_printed_digit(text: str, value: float | str, agreed: bool) -> None:
    assert agrees(text, value) is agreed


BEHAVING: dict[str, Callable[[Path, int], tuple[Path, Path]]] = {"behaving": write_behaving, "mixed": write_mixed}
PLACE = re.compile(r"\b(movers|shifts|bridge|views|terms|flips|derived|placed|alone|checkpoints|checks)\[\d")
Case = tuple[str, int]
QUICK: list[Case] = [("behaving", 1), ("mixed", 0), ("tasks dropped", 1)]
SLOW = [("mixed", 1), ("behaving", 0), *((cause, 1) for cause in CAUSES if cause != "tasks dropped")]
Planted = Callable[[Case], tuple[list[str], Report]]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    """The runs of a case, written and compared once, in a cache of their own; `demo` is a run, not a pair."""
    folder = tmp_path_factory.mktemp("planted")

    @cached
    def made(case: Case) -> tuple[list[str], Report]:
        name, seed = case
        place = folder / f"{name} {seed}"
        if name == "demo":
            write_demo(place / "run")
            return [str(place / "run")], pipeline.diagnose(pipeline.load([str(place / "run")], Silent()), "blade demo")
        if name in BEHAVING:
            specs = list(map(str, BEHAVING[name](place, seed)))
        else:
            pair = write_pair(place, name, seed=seed, n_tasks=30, repeats=3, effect=1.0)
            specs = [str(pair.baseline), str(pair.candidate)]
        return specs, compared(specs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(folder / "cache"))
        yield made


def compared(specs: list[str], **options: Any) -> Report:
    return comparing.compare(pipeline.load(specs, Silent()), "blade compare", **options)


def assert_answered(listed: list[Claim], ground: Any) -> None:
    """Each query gives its number again."""
    assert [claim for claim in listed if not is_same(evaluate(claim.query, ground), claim)] == []


def test_the_pages_of_runs_carry_queries_that_give_each_number_again(planted: Planted) -> None:
    for case in (("demo", 0), ("behaving", 1)):
        loaded = pipeline.load(planted(case)[0], Silent())
        report = pipeline.diagnose(loaded, "blade diagnose")
        listed = check_page(report, chapters(report))
        assert sum(not claim.query.startswith("engine.") for claim in listed) > 50
        assert_answered(listed, ground_of(loaded, report=report))


def test_report_json_holds_the_claims_of_the_pages_and_a_draft_those_it_keeps(planted: Planted, tmp_path: Path) -> None:
    _, report = planted(("demo", 0))
    write(report, tmp_path / "report")
    wire = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert json.loads(json_text(report)) == wire
    assert (claims_of(()).listed, markdown.page("t", ())) == ([], "# t\n")  # the claims of nothing
    assert set(wire["claims"][0]) == {"id", "value", "text", "query"}
    path = tmp_path / "report" / "report.md"
    assert queries(path.read_text(encoding="utf-8")) == {}  # they stand once, in report.json
    assert queries(read_report(str(path))) == {claim["id"]: claim["query"] for claim in wire["claims"]}
    score = next(claim for claim in wire["claims"] if claim["query"] == "pass_at_1 where run = 'rollouts'")
    assert agrees(score["text"], score["value"])
    drafted = draft_report.draft(report, ["run"])
    assert list(dict.fromkeys(re.findall(r"<!--(c\d+)-->", drafted))) == list(queries(drafted))
    assert len({claim["query"] for claim in wire["claims"]} & set(queries(drafted).values())) > 100


def test_the_same_report_makes_the_same_claims_whatever_the_seed_of_hashes() -> None:
    code = "from tests.report import changed; from blade.report import report_json; print(report_json.render(changed.pair_report()))"
    root, seed = Path(__file__).resolve().parents[2], "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    path = os.pathsep.join([str(root), str(root / "src")])
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=root, timeout=300,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path, "PYTHONUTF8": "1"},
    ).stdout  # fmt: skip
    assert printed.decode("utf-8").strip() == report_json.render(changed.pair_report()).strip()


@pytest.mark.parametrize("case", [*QUICK, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)], ids=str)
def test_every_claim_of_a_comparison_is_said_as_its_query_gives_it(planted: Planted, case: Case) -> None:
    specs, report = planted(case)
    listed = check_page(report, change.chapters(report))
    assert_answered(listed, ground_of(pipeline.load(specs, Silent())))  # as `blade query` asks: no report is given
    assert [claim for claim in listed if PLACE.search(claim.query)] == []
    page = listed_page(change.title(report), change.chapters(report))
    findings = checked(page, world_for(page, specs, Silent()))
    assert [finding for finding in findings if finding.verdict in (CONTRADICTED, UNVERIFIABLE)] == []


@pytest.mark.parametrize("seed", [0, 1])
def test_failure_groups_are_named_in_words_and_the_planted_one_is_claimed(planted: Planted, seed: int) -> None:
    (comparison,) = planted(("behaving", seed))[1].comparisons
    names = [*(term.term for term in comparison.bridge), *(mover.text for mover in comparison.movers),
             *(shift.name for shift in comparison.shifts if shift.kind == "behaviour")]  # fmt: skip
    for name in names:
        assert not re.search(r"\w\(|[a-z]_[a-z]", re.sub(r"`[^`]*`", "", name)), name
    if seed == 0:
        (mover,) = comparison.movers
        assert (mover.term, mover.side) == ("repeats one call or one error", "model")
        assert any(f"`{TOOL}`" in term.term for term in comparison.bridge)


@pytest.mark.parametrize("options", [{"margin": 0.05, "ordered": True}, {"quick": True}, {"threshold": 0.5}], ids=str)
def test_the_query_names_what_is_not_usual(planted: Planted, options: dict[str, Any]) -> None:
    specs, _ = planted(("behaving", 1))
    listed = claims_of(change.chapters(compared(specs, **options))).listed
    # that no trace was read is no gap of a whole comparison
    whole = [claim for claim in listed if not claim.query.startswith("engine.gaps")]
    assert_answered(whole, ground_of(pipeline.load(specs, Silent()), options.get("threshold")))


def test_several_candidates_and_the_other_order(planted: Planted, tmp_path: Path) -> None:
    specs = [*planted(("behaving", 0))[0], f"third={write_behaving(tmp_path / 'y', 2)[1]}"]
    ground = ground_of(pipeline.load(specs, Silent()))
    for options in ({"ordered": True}, {"baseline": "after"}):
        report = compared(specs, **options)
        assert report.matrix is not None
        first = "sim-a → sim->0 (before → after) −" if "ordered" in options else "sim->0 → sim-a (after → before) +"
        assert first in dict(report.matrix.settings)["model"]
        listed = check_page(report, change.chapters(report))
        is_series = [claim.query.startswith("engine.series.checkpoints(run='third')") for claim in listed]
        assert any(is_series) == ("ordered" in options)
        assert_answered(listed, ground)


def test_scores_and_counts_are_cited_by_base_queries_unless_the_tables_judge_otherwise(planted: Planted) -> None:
    _, report = planted(("behaving", 1))
    values = {claim.query: claim.value for claim in claims_of(change.chapters(report)).listed}
    (pair,) = report.comparisons
    for run, score, (passes, _) in (
        (pair.baseline, pair.score_baseline, pair.flips[0].baseline), (pair.candidate, pair.score_candidate, pair.flips[0].candidate)
    ):  # fmt: skip
        assert values[f"pass_at_1 where run = '{run}'"] == pytest.approx(score)
        assert values[f"count where run = '{run}' and task = '{pair.flips[0].task}' and passed"] == passes
        assert values[f"count where run = '{run}' and task = '{pair.flips[0].task}' and not masked"] == 3
    _, dropped = planted(("tasks dropped", 1))
    values = {claim.query: claim.value for claim in claims_of(change.chapters(dropped)).listed}
    for run in dropped.runs:
        assert values[f"tasks where run = '{run.name}' and not masked"] == run.n_tasks
    mixed = [claim.query for claim in claims_of(change.chapters(planted(("mixed", 0))[1])).listed]
    assert "pass_at_1 where run = 'before'" in mixed
    assert "pass_at_1 where run = 'after'" not in mixed
    assert any(query.endswith(".score_candidate") for query in mixed)


def test_parts_of_one_run_are_told_apart(tmp_path: Path, cache: Path) -> None:
    """Two parts with as many rows: the tables of one must not answer for the other."""
    rows = [make_row(task, repeat, float(repeat), kind="b" if repeat else "a") for task in range(8) for repeat in range(2)]
    parts = comparing.split_runs(pipeline.load([str(make_run(tmp_path, rows))], Silent()), "kind")
    ground = ground_of(parts)
    assert [evaluate(f"pass_at_1 where run = '{part.name}'", ground) for part in parts] == [0.0, 1.0]


def test_a_page_holds_its_own_check_and_is_asked_again(planted: Planted, tmp_path: Path, blade: Blade) -> None:
    specs, _ = planted(("mixed", 0))
    assert blade("compare", *specs, "-o", tmp_path / "out").code == 0
    said = blade("check", tmp_path / "out" / "compare.md", *(word for spec in specs for word in ("--run", spec)))
    assert said.code == 0, said.out
    claims = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))["claims"]
    kinds = r"transitions\(before='never', after='never'\)\.n$|\.bridge\.value$|\.movers\(.*\)\.value$|\.delta$|score_"
    chosen = {hit[0].partition("(")[0]: claim for claim in claims if (hit := re.search(kinds, claim["query"]))}
    assert len(chosen) >= 4
    for claim, order in zip(chosen.values(), (specs, specs[::-1], specs, specs[::-1]), strict=False):
        value = json.loads(blade("query", *order, claim["query"], "--json").out)["value"]
        assert value == (pytest.approx(claim["value"]) if isinstance(claim["value"], float) else claim["value"])
    for arguments, error in (
        ((specs[0], "engine.comparisons(baseline='before', candidate='after').delta"), "takes two runs or more, and only before was given"),
        ((*specs, "engine.comparisons(baseline='before', candidate='nobody').delta"), "nothing matches candidate='nobody'"),
    ):
        said = blade("query", *arguments)
        assert (said.code, error in said.err) == (2, True)
