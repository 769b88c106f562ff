"""Check the anchor facts of a golden report: reviewed, well formed, distinct, true in the rows, met by it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from blade.package import files
from blade.package.judge.anchors import DIFFICULTIES, MIN_FACT, needs_review, of_file
from blade.package.layout import Golden
from blade.package.validate.phases import ANCHORS, EVIDENCE, SHALLOW, Check, words

if TYPE_CHECKING:
    from blade.package.judge.score import Bench
    from blade.package.worlds import Worlds

SHOWN = 5  # facts named in one line
_CONCRETE = re.compile(r"\d|`[^`]+`|[“\"][^”\"]{3,}[”\"]|\b\w+_\w+|\b[a-z]+[A-Z]\w+")


def anchor_checks(parts: Golden, least: int, worlds: Worlds | None, text: str) -> Iterator[Check]:
    """The checks of one file of anchor facts; against rollouts and report where these could be read."""
    name = parts.anchors.name
    if not parts.anchors.is_file():
        if parts.is_comparison:
            yield Check(True, f"{parts.report.name}: comparison report anchor facts missing; optional")
        else:
            yield Check(False, f"{parts.report.name}: missing anchor facts {name}", ANCHORS)
        return
    try:
        data = files.data(parts.anchors)
    except files.Broken as broken:
        yield Check(False, f"{name}: anchor facts JSON failed to parse ({broken})", ANCHORS)
        return
    facts = data.get("anchor_facts") if isinstance(data, dict) else data
    facts = facts if isinstance(facts, list) else []
    yield Check(len(facts) >= least, f"{name}: {len(facts)} anchor facts", ANCHORS)
    if needs_review(data):
        how = 'strike weak facts, then set "review_required" to false'
        yield Check(False, f"{name}: anchor facts are not reviewed: {how}", ANCHORS)
    formed = [fact for fact in facts if _is_formed(fact)]
    malformed = len(facts) - len(formed)
    yield Check(not malformed, f"{name}: {malformed} malformed anchor facts", ANCHORS)
    yield from _distinct(name, formed)
    if formed and worlds is not None and text:
        yield from _usable(parts, formed, least, worlds, text)


def _distinct(name: str, facts: Sequence[dict[str, Any]]) -> Iterator[Check]:
    """Whether facts differ and name something that can be looked up."""
    texts = [" ".join(fact["fact"].lower().split()) for fact in facts]
    keys = {(text, str(fact.get("query"))) for text, fact in zip(texts, facts, strict=True)}
    again = len(texts) - len(keys)
    if again:
        yield Check(False, f"{name}: {again} of {len(texts)} anchor facts repeat another one", ANCHORS)
    vague = [_id(fact, number) for number, fact in enumerate(facts, 1) if not _is_concrete(fact)]
    if vague:
        result = f"{len(vague)} of {len(texts)} anchor facts name nothing that could be looked up"
        yield Check(False, f"{name}: {result}: {_some(vague)}", ANCHORS)
    if not again and not vague and texts:
        yield Check(True, f"{name}: anchor facts are concrete and distinct", ANCHORS)


def _usable(
    parts: Golden, facts: Sequence[dict[str, Any]], least: int, worlds: Worlds, text: str
) -> Iterator[Check]:
    """Whether the rows bear the facts out, enough of them can be judged by, and the report states them."""
    from blade.package.judge.score import bench

    name = parts.anchors.name
    made = bench(worlds, text, of_file(list(facts)), files.text_or_nothing(parts.shallow))
    false = [f"{anchor.id} ({anchor.problem})" for anchor in made.anchors if anchor.problem]
    if false:
        yield Check(False, f"{name}: the rollouts do not bear out {_some(false)}", ANCHORS)
    worded = sum(anchor.by_wording for anchor in made.telling)
    result = f"{len(made.telling)} of {len(made.anchors)} anchor facts can be judged by"
    result += f", {worded} of them by wording alone" if worded else ""
    if len(made.telling) < least:
        trivial = [anchor.id for anchor in made.usable if not anchor.weighs]
        why = f": the shallow report has {_some(trivial)} too" if trivial else ""
        yield Check(False, f"{name}: only {result}, at least {least} must be{why}", ANCHORS)
        return
    yield Check(True, f"{name}: {result}", ANCHORS)
    if made.telling:
        yield from _scores(parts, made, text)


def _scores(parts: Golden, bench: Bench, text: str) -> Iterator[Check]:
    """Whether the report meets the facts that others are to be judged by, and its baseline does not."""
    from blade.package.calibrate.battery import TARGETS
    from blade.package.judge.score import judged

    name = parts.report.name
    score, least = judged(text, bench), TARGETS["golden_vs_self_min"]
    unmet = [hit.anchor.id for hit in score.hits if not hit.met]
    met = f"{len(score.hits) - len(unmet)} of {len(score.hits)}"
    if score.score >= least:
        result = f"meets its own anchor facts: {met}, a score of {score.score:.2f}"
        yield Check(True, f"{name}: {result}", EVIDENCE)
    else:
        reasons = [f"{met} are met{f', not {_some(unmet)}' if unmet else ''}"]
        reasons += [f"precision {score.precision:.2f}, evidence {score.evidence:.2f}", *score.problems[:1]]
        result = f"scores {score.score:.2f} by its own anchor facts, at least {least} is needed"
        yield Check(False, f"{name}: {result}: {'; '.join(reasons)}", EVIDENCE)
    baseline, most = files.text_or_nothing(parts.shallow), TARGETS["shallow_vs_golden_max"]
    if baseline and (thin := judged(baseline, bench).score) > most:
        result = f"scores {thin:.2f}, at most {most:.2f} is allowed: it is not shallow"
        yield Check(False, f"{parts.shallow.name}: {result}", SHALLOW)


def _is_formed(fact: Any) -> bool:
    if not isinstance(fact, dict) or not isinstance(fact.get("fact"), str):
        return False
    difficulty = fact.get("difficulty", "low")
    is_known = isinstance(difficulty, str) and difficulty in DIFFICULTIES
    return len(fact["fact"].strip()) >= MIN_FACT and is_known


def _is_concrete(fact: dict[str, Any]) -> bool:
    """A query, or a number, a name or a quotation among other words."""
    is_query = isinstance(fact.get("query"), str) and bool(fact["query"].strip())
    return len(words(fact["fact"])) >= 3 and (is_query or bool(_CONCRETE.search(fact["fact"])))


def _id(fact: dict[str, Any], number: int) -> str:
    given = fact.get("id")
    return given[:20] if isinstance(given, str) and given else f"#{number}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
