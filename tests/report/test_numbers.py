"""Every number of a page is a value with its query: none stands in plain text, each is found again."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from blade import hostile, pipeline
from blade.cli.check import read_report
from blade.model import Report
from blade.pipeline import comparing
from blade.query.engine import evaluate as engine
from blade.report import FILES, draft, html, markdown, printed, write
from blade.report.blocks import Badge, Num, Said, Section, Strong
from blade.report.change import pages as change
from blade.report.chapters import chapters, title
from blade.report.claims import (
    Claim,
    Claims,
    agrees,
    claims_of,
    escape_comment,
    lines,
    queries,
    unescape_comment,
)
from tests.inert import ANCHOR, uncited
from tools.planted import write_demo
from tools.planted.planted_runs import write_pair

from . import changed
from .conftest import CASES, make_report, twenty
from .explained import explain

Pages = Callable[[], tuple[Report, tuple[Section, ...]]]

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


def of_report(make: Callable[[], Report]) -> Pages:
    def made() -> tuple[Report, tuple[Section, ...]]:
        report = make()
        return report, chapters(report)

    return made


def of_change(make: Callable[[], Report]) -> Pages:
    def made() -> tuple[Report, tuple[Section, ...]]:
        report = make()
        return report, change.chapters(report)

    return made


PAGES: dict[str, Pages] = {
    **{name: of_report(make) for name, make in CASES.items()},
    "pair": of_change(changed.pair_report),
    "candidates": of_change(changed.many_report),
    "both": of_report(changed.many_report),
}


@pytest.fixture(scope="module", params=list(PAGES))
def page(request: pytest.FixtureRequest) -> tuple[Report, tuple[Section, ...]]:
    return PAGES[request.param]()


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


def test_every_number_carries_a_query_that_gives_it_again(page: tuple[Report, tuple[Section, ...]]) -> None:
    check_page(*page)


def test_ids_are_in_the_order_of_print_and_every_number_has_one(
    page: tuple[Report, tuple[Section, ...]],
) -> None:
    report, sections = page
    listed = claims_of(sections).listed
    assert [claim.id for claim in listed] == [f"c{place}" for place in range(1, len(listed) + 1)]
    assert len({(claim.query, claim.text) for claim in listed}) == len(listed)
    printed_page = markdown.page(title(report), sections, listed=True)
    assert list(dict.fromkeys(anchors(printed_page))) == [claim.id for claim in listed]
    assert queries(printed_page) == {claim.id: claim.query for claim in listed}
    assert uncited(printed_page) == markdown.page(title(report), sections, cited=False)
    assert anchors(markdown.page(title(report), sections)) == anchors(printed_page)
    spans = [
        span for section in sections for block in section.blocks for line in lines(block) for span in line
    ]
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
    said = markdown.page("t", sections, listed=True)
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
        ("42.0%", 0.42, True),
        ("42.0%", 0.4206, False),
        ("<0.1%", 0.0004, True),
        ("<0.1%", 0.002, False),
        (">99.9%", 0.9996, True),
        ("−5.2 points", -0.052, True),
        ("+5.2 points", -0.052, False),
        ("−<0.1 points", -0.0002, True),
        ("1,204", 1204, True),
        ("1,204", 1205, False),
        ("<0.001", 1e-9, True),
        ("2.5e-05", 2.5e-5, True),
        ("0.580000", 0.58, True),
        ("many", 3, False),
        ("45 of 116 fail.", "45 of 116 fail", True),
        ("45 of 116 fail.", "46 of 116 fail", False),
        ("Calls 3 of 4 and 12…", "calls 3 of 4 and 123 of 200", True),
        ("3 of 4", "in all: 3 of 4; again 5", True),
    ],
)
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
    from blade.tables.index import Silent

    return pipeline.load([str(folder / spec) for spec in specs], Silent())


RUNS = {
    "demo": ("run",),
    "two runs": ("runs/baseline.jsonl", "runs/candidate.jsonl"),
    "compared": ("runs/baseline.jsonl", "runs/candidate.jsonl"),
}


def made_of(case: str, loaded: Any) -> tuple[Report, tuple[Section, ...]]:
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
    from blade.pipeline.tabling import ground_of
    from blade.query import evaluate

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
    told = json.loads((tmp_path / "report" / FILES["wire"]).read_text(encoding="utf-8"))
    assert json.loads(printed(report)) == told
    assert set(told["claims"][0]) == {"id", "value", "text", "query"}
    path = tmp_path / "report" / FILES["markdown"]
    assert queries(path.read_text(encoding="utf-8")) == {}  # they stand once, in report.json
    assert queries(read_report(str(path))) == {claim["id"]: claim["query"] for claim in told["claims"]}
    score = next(claim for claim in told["claims"] if claim["query"] == "pass_at_1 where run = 'rollouts'")
    assert agrees(score["text"], score["value"])


def test_a_draft_carries_the_queries_of_what_it_keeps(folder: Path) -> None:
    report = pipeline.diagnose(loaded_of(folder, ("run",)), "blade demo")
    said = draft.draft(report, ["run"])
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
