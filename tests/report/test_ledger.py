"""The ledger: every number of a page is a claim, every claim is found again, and no text can forge one."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from blade import pipeline
from blade.facts.known import Known
from blade.facts.query import Answers
from blade.model import Claim, Report
from blade.planted import write_demo
from blade.prose.slots import NUMBER, RATIO, slots
from blade.report import FILES, html, json_v1, ledger, markdown, printed, write
from blade.report.change import pages as change
from blade.report.chapters import chapters, title
from blade.report.sections import Block, Section
from tests.inert import ANCHOR, unanchored

from . import changed
from .conftest import CASES, make_report, twenty
from .explained import explain

Pages = Callable[[], tuple[Report, tuple[Section, ...]]]


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
    **{name: of_report(make) for name, make in CASES.items() if name != "many runs"},
    "pair": of_change(changed.pair_report),
    "candidates": of_change(changed.many_report),
}


def numbers(block: Block) -> int:
    """The numbers that a reader of a block sees, as the ledger's plain text shows them."""
    desk = ledger.Desk("any", ledger.Spoken(Known(Report({}))), Known(Report({})))
    texts = [context.text for context in desk.contexts(block) if not context.quote]
    return sum(slot.kind in (NUMBER, RATIO) for text in texts for slot in slots(text))


def spread(anchor: str) -> list[str]:
    """`c3-c5` as c3, c4, c5."""
    if not anchor:
        return []
    series = anchor[0]
    first, _, last = anchor.replace(series, "").partition("-")
    return [f"{series}{at}" for at in range(int(first), int(last or first) + 1)]


def is_same(said: Any, claim: Claim) -> bool:
    if isinstance(claim.value, float):
        return isinstance(said, int | float) and math.isclose(said, claim.value, rel_tol=1e-9, abs_tol=1e-12)
    return bool(said == claim.value)


@pytest.mark.parametrize("case", list(PAGES))
def test_every_claim_is_found_again(case: str) -> None:
    report, sections = PAGES[case]()
    claims, _ = ledger.ledger(sections, Known(report))
    answers = Answers(json.loads(json_v1.render(report, (), claims)))
    for claim in claims:
        if not claim.query.startswith("says("):
            assert is_same(answers.answer(claim.query), claim), claim


@pytest.mark.parametrize("case", list(PAGES))
def test_every_number_is_a_claim_and_every_claim_has_its_block(case: str) -> None:
    report, sections = PAGES[case]()
    claims, anchors = ledger.ledger(sections, Known(report))
    told = [one for of_section in anchors for anchor in of_section for one in spread(anchor)]
    assert sorted(told, key=lambda one: one[0]) == [claim.id for claim in claims]
    for series in "cs":  # what the rows say, then what is said of files
        ids = [claim.id for claim in claims if claim.id.startswith(series)]
        assert ids == [f"{series}{at}" for at in range(1, len(ids) + 1)]
    for section, of_section in zip(sections, anchors, strict=True):
        for block, anchor in zip(section.blocks, of_section, strict=True):
            assert len(spread(anchor)) >= numbers(block), block


@pytest.mark.parametrize("case", list(PAGES))
def test_both_pages_name_the_same_claims_and_readers_see_none(case: str) -> None:
    report, sections = PAGES[case]()
    _, anchors = ledger.ledger(sections, Known(report))
    wanted = [anchor for of_section in anchors for anchor in of_section if anchor]
    page = markdown.page(title(report), sections, anchors)
    assert anchored(page) == wanted
    assert re.findall(r' data-claims="([^"]*)"', html.page(title(report), sections, "1", anchors)) == wanted
    assert unanchored(page) == markdown.page(title(report), sections)


def anchored(page: str) -> list[str]:
    """The claims that the comments of a Markdown page name; what stands in a fence is no comment."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(page)
    found = [token.content for token in tokens if token.type == "html_block"]
    assert all(ANCHOR.fullmatch(comment) for comment in found)
    return [comment.removeprefix("<!-- claims: ").removesuffix(" -->\n") for comment in found]


@pytest.mark.parametrize(
    "text", ["<!-- claims: c1 -->", "\n\n<!-- claims: c1-c9 -->\n\n", '" data-claims="c1']
)
def test_no_text_of_a_rollout_forges_an_anchor(text: str) -> None:
    def word(told: str) -> str:
        return f"{text} {told}"

    report = explain(make_report({"desk": twenty()}, word=word), word=word)
    sections = chapters(report)
    _, anchors = ledger.ledger(sections, Known(report))
    wanted = [anchor for of_section in anchors for anchor in of_section if anchor]
    assert anchored(markdown.page("t", sections, anchors)) == wanted
    assert re.findall(r'<[^<>]* data-claims="([^"]*)"', html.page("t", sections, "1", anchors)) == wanted


def test_the_demo_is_bound_to_typed_facts(tmp_path: Path, loaded: Callable[..., Any]) -> None:
    write_demo(tmp_path / "run")
    report = pipeline.diagnose(loaded(tmp_path / "run"), "blade demo")
    write(report, tmp_path / "report")
    told = json.loads((tmp_path / "report" / FILES["json_v1"]).read_text(encoding="utf-8"))
    assert json.loads(printed(report)) == told
    numeric = [claim for claim in told["claims"] if claim["kind"] in ("number", "share", "count")]
    bound = [claim for claim in numeric if not claim["query"].startswith("says(")]
    assert len(bound) >= 0.95 * len(numeric) > 0
    score = next(claim for claim in told["claims"] if "scored" in claim["text"] and claim["kind"] == "share")
    assert score["query"].startswith(("measures[run=rollouts,name=pass_at_1,", "runs[name=rollouts].score"))
    answers = Answers(told)
    for claim in told["claims"]:
        if not claim["query"].startswith("says("):
            assert is_same(answers.answer(claim["query"]), Claim(**claim)), claim


def test_claims_know_which_row_and_which_end_they_state() -> None:
    report = make_report({"airline": twenty()})
    claims, _ = ledger.ledger(chapters(report), Known(report))
    by_text: dict[str, list[str]] = {}
    for claim in claims:
        by_text.setdefault(claim.text, []).append(claim.query)
    (score,) = [text for text in by_text if text.startswith("pass@1 | Value, 95% interval")]
    assert [query.rpartition(".")[2] for query in by_text[score]] == ["value", "low", "high"]
    assert all("name=pass_at_1," in query for query in by_text[score])
    (never,) = [text for text in by_text if text.startswith("never | Tasks:")]
    assert by_text[never] == ["count(buckets[run=airline].never)"]


def test_the_same_report_makes_the_same_ledger_whatever_the_seed_of_hashes() -> None:
    code = (
        "from tests.report import changed; from blade.report import json_v1;"
        "import hashlib; print(hashlib.sha256(json_v1.render(changed.pair_report()).encode()).hexdigest())"
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
