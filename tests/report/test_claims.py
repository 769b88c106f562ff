"""Every number of a page is a value with its query: none stands in plain text, each is found again, as it was said."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from blade import hostile, pipeline
from blade.check import checked, world_for
from blade.cli.check import read_report
from blade.model import Report
from blade.model.conclusions import CONTRADICTED, UNVERIFIABLE
from blade.pipeline import comparing
from blade.pipeline.run_tables import ground_of
from blade.query import evaluate
from blade.query.comments import escape_comment, unescape_comment
from blade.query.engine import evaluate as engine
from blade.report import comparison_pages as change
from blade.report import draft_report, html, json_text, markdown, write
from blade.report.blocks import (
    Badge,
    Claim,
    Claims,
    Num,
    Said,
    Section,
    Strong,
    agrees,
    claims_of,
    lines,
    queries,
)
from blade.report.chapters import chapters, title
from blade.tables.index import Silent
from tests.conftest import Blade
from tests.inert import ANCHOR, uncited
from tools.planted import write_demo
from tools.planted.paired_runs import CAUSES
from tools.planted.planted_runs import write_pair

from . import changed
from .behaving import TOOL, write_behaving, write_mixed
from .conftest import CASES, make_report, twenty
from .explained import explain

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


def test_every_number_carries_a_query_that_gives_it_again(page: Page) -> None:
    check_page(*page)


def test_ids_are_in_the_order_of_print_and_every_number_has_one(page: Page) -> None:
    report, sections = page
    listed = claims_of(sections).listed
    assert [claim.id for claim in listed] == [f"c{place}" for place in range(1, len(listed) + 1)]
    assert len({(claim.query, claim.text) for claim in listed}) == len(listed)
    printed_page = listed_page(title(report), sections)
    assert list(dict.fromkeys(anchors(printed_page))) == [claim.id for claim in listed]
    assert queries(printed_page) == {claim.id: claim.query for claim in listed}
    assert uncited(markdown.page(title(report), sections)) == markdown.page(title(report), sections, cited=False)
    assert anchors(markdown.page(title(report), sections)) == anchors(printed_page)
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
    def word(told: str) -> str:
        return f"{text} {told}"

    report = explain(make_report({f"desk{text}": twenty()}, word=word), word=word)
    sections = chapters(report)
    listed = check_page(report, sections)
    said = listed_page("t", sections)
    assert list(dict.fromkeys(anchors(said))) == [claim.id for claim in listed]
    assert queries(said) == {claim.id: claim.query for claim in listed}
    assert said.rstrip().count("-->\n") == 1 or said.endswith("-->\n")


@given(st.text())
def test_an_escaped_query_is_one_line_that_ends_no_comment(query: str) -> None:
    escaped = escape_comment(query)
    assert "--" not in escaped
    assert len(escaped.splitlines()) <= 1
    assert unescape_comment(escaped) == query


def test_a_plain_query_stays_as_it_is() -> None:
    for query in ("pass_at_1 where run = 'a'", "engine.losses(run='a', cause='KG').lost", "select 1 / n from tasks"):
        assert escape_comment(query) == query


@pytest.mark.parametrize(
    ("text", "value", "agreed"),
    [
        ("42.0%", 0.42, True), ("42.0%", 0.4206, False), ("<0.1%", 0.0004, True), ("<0.1%", 0.002, False), (">99.9%", 0.9996, True),
        ("−5.2 points", -0.052, True), ("+5.2 points", -0.052, False), ("−<0.1 points", -0.0002, True), ("1,204", 1204, True),
        ("1,204", 1205, False), ("<0.001", 1e-9, True), ("2.5e-05", 2.5e-5, True), ("0.580000", 0.58, True), ("many", 3, False),
        ("45 of 116 fail.", "45 of 116 fail", True), ("45 of 116 fail.", "46 of 116 fail", False),
        ("Calls 3 of 4 and 12…", "calls 3 of 4 and 123 of 200", True), ("3 of 4", "in all: 3 of 4; again 5", True),
    ],
)  # fmt: skip
def test_a_text_agrees_with_its_value_to_the_printed_digit(text: str, value: float | str, agreed: bool) -> None:
    assert agrees(text, value) is agreed


# ---- Real runs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A planted run and a planted pair, and a cache of their own."""
    folder, before = tmp_path_factory.mktemp("planted"), os.environ.get("BLADE_CACHE_DIR")
    os.environ["BLADE_CACHE_DIR"] = str(folder / "cache")
    write_demo(folder / "run")
    write_pair(folder / "runs", "one failure mode fixed", seed=5, n_tasks=26, repeats=4, effect=1.0)
    yield folder
    del os.environ["BLADE_CACHE_DIR"]
    if before is not None:
        os.environ["BLADE_CACHE_DIR"] = before


def loaded_of(folder: Path, specs: tuple[str, ...]) -> Any:
    return pipeline.load([str(folder / spec) for spec in specs], Silent())


RUNS = {
    "demo": ("run",),
    "two runs": ("runs/baseline.jsonl", "runs/candidate.jsonl"),
    "compared": ("runs/baseline.jsonl", "runs/candidate.jsonl"),
}


def made_of(case: str, loaded: Any) -> Page:
    if case == "compared":
        report = comparing.compare(loaded, "blade compare")
        return report, change.chapters(report)
    report = pipeline.diagnose(loaded, "blade diagnose")
    return report, chapters(report)


@pytest.mark.parametrize("case", list(RUNS))
def test_the_pages_of_planted_runs_carry_their_queries(folder: Path, case: str) -> None:
    loaded = loaded_of(folder, RUNS[case])
    _, sections = made_of(case, loaded)
    fresh, _ = made_of(case, loaded_of(folder, RUNS[case]))
    check_page(fresh, sections)


@pytest.mark.parametrize("case", list(RUNS))
def test_every_query_over_the_tables_gives_its_number_again(folder: Path, case: str) -> None:
    loaded = loaded_of(folder, RUNS[case])
    report, sections = made_of(case, loaded)
    ground = ground_of(loaded, report=report)
    listed = claims_of(sections).listed
    assert case == "compared" or sum(not claim.query.startswith("engine.") for claim in listed) > 50
    for claim in listed:
        assert is_same(evaluate(claim.query, ground), claim), claim


def test_report_json_holds_the_claims_of_the_pages(folder: Path, tmp_path: Path) -> None:
    report = pipeline.diagnose(loaded_of(folder, ("run",)), "blade demo")
    write(report, tmp_path / "report")
    told = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert json.loads(json_text(report)) == told
    assert set(told["claims"][0]) == {"id", "value", "text", "query"}
    path = tmp_path / "report" / "report.md"
    assert queries(path.read_text(encoding="utf-8")) == {}  # they stand once, in report.json
    assert queries(read_report(str(path))) == {claim["id"]: claim["query"] for claim in told["claims"]}
    score = next(claim for claim in told["claims"] if claim["query"] == "pass_at_1 where run = 'rollouts'")
    assert agrees(score["text"], score["value"])


def test_a_draft_carries_the_queries_of_what_it_keeps(folder: Path) -> None:
    report = pipeline.diagnose(loaded_of(folder, ("run",)), "blade demo")
    said = draft_report.draft(report, ["run"])
    named = dict.fromkeys(re.findall(r"<!--(c\d+)-->", said))
    assert list(named) == list(queries(said))
    whole = {claim.query for claim in claims_of(chapters(report)).listed}
    assert len(whole & set(queries(said).values())) > 100


def test_the_same_report_makes_the_same_claims_whatever_the_seed_of_hashes() -> None:
    code = (
        "from tests.report import changed; from blade.report import report_json;"
        "import hashlib; print(hashlib.sha256(report_json.render(changed.pair_report()).encode()).hexdigest())"
    )
    root = Path(__file__).resolve().parents[2]
    said = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, timeout=300,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1


def test_claims_of_nothing_are_none() -> None:
    assert Claims().listed == []
    assert markdown.page("t", ()) == "# t\n"


# ---- Comparisons of planted pairs ----------------------------------------------------------------

BEHAVING = {"behaving": write_behaving, "mixed": write_mixed}
PLACE = re.compile(r"\b(movers|shifts|bridge|views|terms|flips|derived|placed|alone|checkpoints|checks)\[\d")
Case = tuple[str, int]
CASES: list[Case] = [*((name, seed) for name in BEHAVING for seed in range(2)), *((cause, 1) for cause in CAUSES)]


def written(folder: Path, case: Case) -> list[str]:
    name, seed = case
    if name in BEHAVING:
        return list(map(str, BEHAVING[name](folder, seed)))
    pair = write_pair(folder, name, seed=seed, n_tasks=30, repeats=3, effect=1.0)
    return [str(pair.baseline), str(pair.candidate)]


def compared(specs: list[str], **options: Any) -> Report:
    return comparing.compare(pipeline.load(specs, Silent()), "blade compare", **options)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_claim_is_said_as_its_query_gives_it(tmp_path: Path, cache: Path, case: Case) -> None:
    specs = written(tmp_path, case)
    report = compared(specs)
    sections = change.chapters(report)
    check_page(report, sections)
    listed = claims_of(sections).listed
    loaded = pipeline.load(specs, Silent())
    ground = ground_of(loaded)  # as `blade query` asks: no report is given
    for claim in listed:
        assert is_same(evaluate(claim.query, ground), claim), claim
        assert not PLACE.search(claim.query), claim
    page = listed_page(change.title(report), sections)
    findings = checked(page, world_for(page, specs, Silent()))
    assert [one for one in findings if one.verdict in (CONTRADICTED, UNVERIFIABLE)] == []


def test_the_pairs_have_claims_that_name_a_failure_group(tmp_path: Path, cache: Path) -> None:
    """What the test above is worth: the cause that was planted is claimed, and its tool is named in the bridge."""
    (comparison,) = compared(written(tmp_path, ("behaving", 0))).comparisons
    (mover,) = comparison.movers
    assert (mover.term, mover.side) == ("repeats one call or one error", "model")
    assert any(f"`{TOOL}`" in term.term for term in comparison.bridge)


@pytest.mark.parametrize("seed", range(4))
def test_failure_groups_are_named_in_words(tmp_path: Path, cache: Path, seed: int) -> None:
    (comparison,) = compared(written(tmp_path, ("behaving", seed))).comparisons
    names = [*(term.term for term in comparison.bridge), *(mover.text for mover in comparison.movers),
             *(shift.name for shift in comparison.shifts if shift.kind == "behaviour")]  # fmt: skip
    for name in names:
        assert not re.search(r"\w\(|[a-z]_[a-z]", re.sub(r"`[^`]*`", "", name)), name


@pytest.mark.parametrize("options", [{"margin": 0.05}, {"quick": True}, {"ordered": True}, {"threshold": 0.5}], ids=str)
def test_the_query_names_what_is_not_usual(tmp_path: Path, cache: Path, options: dict[str, Any]) -> None:
    specs = written(tmp_path, ("behaving", 1))
    report = compared(specs, **options)
    ground = ground_of(pipeline.load(specs, Silent()), options.get("threshold"))
    for claim in claims_of(change.chapters(report)).listed:
        if claim.query.startswith("engine.gaps"):
            continue  # that no trace was read is no gap of a whole comparison
        assert is_same(evaluate(claim.query, ground), claim), claim


def test_several_candidates_and_the_other_order(tmp_path: Path, cache: Path) -> None:
    specs = [*written(tmp_path / "x", ("behaving", 0)), f"third={write_behaving(tmp_path / 'y', 2)[1]}"]
    ground = ground_of(pipeline.load(specs, Silent()))
    for options in ({"ordered": True}, {"baseline": "after"}):
        report = compared(specs, **options)
        assert report.matrix is not None
        first = "sim-a → sim->0 (before → after) −" if "ordered" in options else "sim->0 → sim-a (after → before) +"
        assert first in dict(report.matrix.settings)["model"]
        listed = claims_of(change.chapters(report)).listed
        check_page(report, change.chapters(report))
        is_series = [claim.query.startswith("engine.series.checkpoints(run='third')") for claim in listed]
        assert any(is_series) == ("ordered" in options)
        for claim in listed:
            assert is_same(evaluate(claim.query, ground), claim), claim


def test_scores_and_counts_are_cited_by_base_queries(tmp_path: Path, cache: Path) -> None:
    report = compared(written(tmp_path, ("behaving", 0)))
    by_query = {claim.query: claim for claim in claims_of(change.chapters(report)).listed}
    (comparison,) = report.comparisons
    assert by_query["pass_at_1 where run = 'before'"].value == pytest.approx(comparison.score_baseline)
    assert by_query["pass_at_1 where run = 'after'"].value == pytest.approx(comparison.score_candidate)
    flip = comparison.flips[0]
    assert by_query[f"count where run = 'after' and task = '{flip.task}' and passed"].value == flip.candidate[0]
    assert by_query[f"count where run = 'after' and task = '{flip.task}' and not masked"].value == 3


def test_tasks_of_each_run_are_cited_by_a_base_query(tmp_path: Path, cache: Path) -> None:
    report = compared(written(tmp_path, ("tasks dropped", 1)))
    queries = {claim.query: claim.value for claim in claims_of(change.chapters(report)).listed}
    runs = {run.name: run for run in report.runs}
    for name in ("baseline", "candidate"):
        assert queries[f"tasks where run = '{name}' and not masked"] == runs[name].n_tasks


def test_a_run_that_its_tables_do_not_judge_is_cited_by_the_comparison(tmp_path: Path, cache: Path) -> None:
    report = compared(written(tmp_path, ("mixed", 0)))
    listed = [claim.query for claim in claims_of(change.chapters(report)).listed]
    assert "pass_at_1 where run = 'before'" in listed
    assert "pass_at_1 where run = 'after'" not in listed
    assert any(query.endswith(".score_candidate") for query in listed)


def test_parts_of_one_run_are_told_apart(tmp_path: Path, cache: Path) -> None:
    """Two parts with as many rows: the tables of one must not answer for the other."""
    from tests.builders import make_row, make_run

    rows = [make_row(task, repeat, float(repeat), kind="b" if repeat else "a") for task in range(8) for repeat in range(2)]
    parts = comparing.split_runs(pipeline.load([str(make_run(tmp_path, rows))], Silent()), "kind")
    ground = ground_of(parts)
    assert [evaluate(f"pass_at_1 where run = '{part.name}'", ground) for part in parts] == [0.0, 1.0]


# ---- On the command line -------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(BEHAVING))
def test_a_page_holds_its_own_check_and_is_asked_again(tmp_path: Path, blade: Blade, name: str) -> None:
    specs = written(tmp_path / "runs", (name, 1))
    assert blade("compare", *specs, "-o", tmp_path / "out").code == 0
    said = blade("check", tmp_path / "out" / "compare.md", *(word for spec in specs for word in ("--run", spec)))
    assert said.code == 0, said.out
    claims = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))["claims"]
    asked = [
        claim for claim in claims
        if re.search(r"transitions\(before='never', after='never'\)\.n$|\.bridge\.value$|\.movers\(.*\)\.value$|\.delta$|score_", claim["query"])
    ]  # fmt: skip
    assert len({claim["query"].rpartition(")")[2] for claim in asked}) >= 4
    for claim in asked:
        for order in (specs, specs[::-1]):
            told = json.loads(blade("query", *order, claim["query"], "--json").out)["value"]
            assert told == (pytest.approx(claim["value"]) if isinstance(claim["value"], float) else claim["value"])


def test_one_run_is_refused_at_once(tmp_path: Path, blade: Blade) -> None:
    specs = written(tmp_path, ("behaving", 0))
    said = blade("query", specs[0], "engine.comparisons(baseline='before', candidate='after').delta")
    assert said.code == 2
    assert "engine.comparisons takes two runs or more, and only before was given" in said.err
    said = blade("query", *specs, "engine.comparisons(baseline='before', candidate='nobody').delta")
    assert said.code == 2
    assert "nothing matches candidate='nobody'" in said.err
