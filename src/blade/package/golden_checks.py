"""Check the golden reports of a package: substance, truth, evidence, metrics, anchors, shallow baselines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from blade.check import checked
from blade.errors import BladeError, NothingToRead
from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNCITED, UNVERIFIABLE, Finding
from blade.package import layout as place
from blade.package.anchors import DIFFICULTIES, MIN_FACT, number_or_none, of_file
from blade.package.calibration import TARGETS
from blade.package.drafts import threshold_in, why_draft
from blade.package.matching import Tasks, figures, passages, tasks_of
from blade.package.package_queries import Worlds, worlds_of
from blade.package.report_score import Bench, bench, is_shown, judged
from blade.package.validation import ANCHORS, DRAFT, EVIDENCE, METRICS, SHALLOW, Check, either, plural, words
from blade.query.number_readings import agrees
from blade.query.query_ground import value as value_of
from blade.tables.index import Watcher

MIN_LINES = 40
MIN_WORDS = 100  # distinct ones
MIN_CITED = 3  # tasks that a report must name, if there are as many
MIN_SHOWN = 3  # quotations and citations about single tasks that must hold
SHOWN, NAMED = 8, 5  # contradictions listed one by one, facts named in one line
_CONCRETE = re.compile(r"\d|`[^`]+`|[“\"][^”\"]{3,}[”\"]|\b\w+_\w+|\b[a-z]+[A-Z]\w+")


def golden_checks(package: place.Layout, min_facts: int, watcher: Watcher) -> list[Check]:
    """The checks of D3."""
    if not package.has_reports:
        return [Check(False, "D3 golden reports missing: expected golden_reports/", EVIDENCE)]
    n = len(package.goldens)
    checks = (check for parts in package.goldens for check in _of_golden(parts, package, min_facts, watcher))
    return [Check(n > 0, f"D3 golden reports found: {n}", EVIDENCE), *checks]


def _of_golden(parts: place.Golden, package: place.Layout, min_facts: int, watcher: Watcher) -> Iterator[Check]:
    name, text, worlds = parts.report.name, "", None
    sidecar, lacking = _sidecar(parts, parts.metrics, "metrics sidecar", METRICS)
    try:
        text = place.read_text(parts.report)
        is_long, known = len(text.splitlines()) >= MIN_LINES and "##" in text, len(words(text))
        yield Check(is_long, f"{name}: report has substantial markdown structure", EVIDENCE)
        says = "says something" if known >= MIN_WORDS else "says hardly anything"
        yield Check(known >= MIN_WORDS, f"{name}: {says}: {known} distinct words", EVIDENCE)
        own = place.own_rollouts(parts, package, place.models_in(sidecar))
        if not own:
            expected_path = f"rollouts/{parts.prefix}_rollouts.jsonl"
            raise NothingToRead(f"no rollouts of it: expected {expected_path}", "copy them there", "no-such-path")
        beside = [path for path in package.rollouts if path not in own]
        worlds = worlds_of(own, beside, watcher, threshold_in(text))
        if draft := why_draft(text, package, parts, watcher):
            yield Check(False, f"{name}: draft: not reviewed; {draft}", DRAFT)
    except (place.Broken, BladeError) as error:
        yield Check(False, f"{name}: {getattr(error, 'message', error)}", EVIDENCE)
    if text:
        yield from _proof(name, text, worlds)
    yield from lacking or identity_checks(parts.metrics.name, sidecar)
    if worlds is not None and isinstance(sidecar, dict) and not parts.is_comparison:
        yield from match_checks(parts.metrics.name, sidecar, expected(worlds, sidecar))
        yield from in_report(parts.metrics.name, sidecar, text)
    yield from anchor_checks(parts, min_facts, worlds, text)
    yield from _shallow(parts)


def _sidecar(parts: place.Golden, path: Path, noun: str, about: str) -> tuple[Any, list[Check]]:
    """What a sidecar holds; where it is missing or broken, the line that says so."""
    report = parts.report.name
    missing = Check(False, f"{report}: missing {noun} {path.name}", about)
    if parts.is_comparison:
        missing = Check(True, f"{report}: comparison report {noun} missing; optional")
    try:
        return (place.read_json(path), []) if path.is_file() else (None, [missing])
    except place.Broken as broken:
        what = noun.removesuffix(" sidecar")
        return None, [Check(False, f"{path.name}: {what} JSON failed to parse ({broken})", about)]


def _shallow(parts: place.Golden) -> Iterator[Check]:
    name, about = parts.report.name, "" if parts.is_comparison else SHALLOW
    if not parts.shallow.is_file():
        yield Check(True, f"{name}: optional shallow baseline missing; recommended for calibration")
        return
    yield Check(True, f"{name}: optional shallow baseline exists", about)
    try:
        if not re.search(r"(?m)^\|.*\d", place.read_text(parts.shallow)):
            wrong = "holds no table with a number, so it controls nothing; make it anew with make-shallow"
            yield Check(False, f"{parts.shallow.name}: {wrong}", about)
    except place.Broken as broken:
        yield Check(False, f"{parts.shallow.name}: {broken}", about)


# -- truth and evidence -----------------------------------------------------------------------------


def _proof(name: str, text: str, worlds: Worlds | None) -> Iterator[Check]:
    """Whether `blade check` finds nothing wrong, and whether single tasks are shown."""
    findings = worlds.checked(text) if worlds is not None else checked(text, None)
    wrong = [each for each in findings if each.verdict == CONTRADICTED]
    right = [each for each in findings if each.verdict == SUPPORTED]
    holds = {(each.line, each.query) for each in right}
    unproved = [each for each in findings if each.verdict == UNVERIFIABLE and each.kind == "citation"]
    wrong += [each for each in unproved if (each.line, each.query) not in holds]
    for each in wrong[:SHOWN]:
        says = f", the rollouts say {each.expected[:80]}" if each.expected else ""
        why = f" ({each.why[:120]})" if each.why else ""
        printed = each.printed[:80] or (each.query or "")[:80]
        yield Check(False, f"{name}: line {each.line}: says {printed}{says}{why}", EVIDENCE)
    if len(wrong) > SHOWN:
        yield Check(False, f"{name}: {len(wrong) - SHOWN} further claims are contradicted", EVIDENCE)
    if worlds is None:
        yield from [] if wrong else [Check(True, f"{name}: does not contradict itself", EVIDENCE)]
        return
    if not right:
        yield Check(False, f"{name}: holds no claim that its rollouts support", EVIDENCE)
    elif not wrong:
        uncited = plural(sum(each.verdict == UNCITED for each in findings), "number")
        result = f"{plural(len(right), 'claim')} supported, 0 contradicted, {uncited} uncited"
        yield Check(True, f"{name}: passes blade check: {result}", EVIDENCE)
    yield from _evidence(name, text, right, worlds)


def _evidence(name: str, text: str, right: Sequence[Finding], worlds: Worlds) -> Iterator[Check]:
    """Whether a report names tasks, not only aggregates, and shows what happened in them."""
    known = tasks_of(worlds.home)
    keys = set(known.keys.values())
    n = len({task for passage in passages(text, known) for task in passage.tasks})
    passed = n >= min(MIN_CITED, len(keys))
    of_all = f"{plural(n, 'task')} of {len(keys):,}"
    good, bad = f"cites task-level evidence: {of_all} named", f"only aggregates: names {of_all}"
    yield either(passed, f"{name}: {good}", f"{name}: {bad}", EVIDENCE)
    if passed:
        shown = {each.query or each.printed for each in right if is_shown(each, worlds)}
        few = "" if len(shown) >= MIN_SHOWN else f", at least {MIN_SHOWN} are needed"
        pieces = plural(len(shown), "quotation or citation", "quotations and citations")
        result = f"{name}: {pieces} about single tasks supported by the rollouts{few}"
        yield Check(not few, result, EVIDENCE)


# -- anchor facts -----------------------------------------------------------------------------------


def anchor_checks(parts: place.Golden, least: int, worlds: Worlds | None, text: str) -> Iterator[Check]:
    """Whether anchor facts are reviewed, well formed, distinct, true in the rows, and met by the report."""
    name = parts.anchors.name
    data, lacking = _sidecar(parts, parts.anchors, "anchor facts", ANCHORS)
    if lacking:
        yield from lacking
        return
    facts = data.get("anchor_facts") if isinstance(data, dict) else data
    facts = facts if isinstance(facts, list) else []
    yield Check(len(facts) >= least, f"{name}: {len(facts)} anchor facts", ANCHORS)
    if isinstance(data, dict) and data.get("review_required") is True:
        how = 'strike weak facts, then set "review_required" to false'
        yield Check(False, f"{name}: anchor facts are not reviewed: {how}", ANCHORS)
    texts = [fact for fact in facts if isinstance(fact, dict) and isinstance(fact.get("fact"), str)]
    formed = [fact for fact in texts if len(fact["fact"].strip()) >= MIN_FACT]
    formed = [fact for fact in formed if fact.get("difficulty", "low") in tuple(DIFFICULTIES)]
    malformed = len(facts) - len(formed)
    yield Check(not malformed, f"{name}: {malformed} malformed anchor facts", ANCHORS)
    yield from _distinct(name, formed)
    if formed and worlds is not None and text:
        yield from _usable(parts, formed, least, worlds, text)


def _distinct(name: str, facts: Sequence[dict[str, Any]]) -> Iterator[Check]:
    """Whether facts differ and name something that can be looked up."""
    n, keys = len(facts), {(" ".join(fact["fact"].lower().split()), str(fact.get("query"))) for fact in facts}
    vague = []
    for number, fact in enumerate(facts, 1):
        query, key = fact.get("query"), fact.get("id")
        is_concrete = (isinstance(query, str) and query.strip()) or _CONCRETE.search(fact["fact"])
        if not is_concrete or len(words(fact["fact"])) < 3:
            vague.append(key[:20] if isinstance(key, str) and key else f"#{number}")
    if n > len(keys):
        yield Check(False, f"{name}: {n - len(keys)} of {n} anchor facts repeat another one", ANCHORS)
    if vague:
        result = f"{len(vague)} of {n} anchor facts name nothing that could be looked up"
        yield Check(False, f"{name}: {result}: {_some(vague)}", ANCHORS)
    elif n == len(keys) and facts:
        yield Check(True, f"{name}: anchor facts are concrete and distinct", ANCHORS)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _usable(parts: place.Golden, facts: Sequence[Any], least: int, worlds: Worlds, text: str) -> Iterator[Check]:
    """Whether the rows bear the facts out, enough of them can be judged by, and the report states them."""
    name = parts.anchors.name
    seat = bench(worlds, text, of_file(list(facts)), place.text_or_nothing(parts.shallow))
    false = [f"{anchor.id} ({anchor.problem})" for anchor in seat.anchors if anchor.problem]
    if false:
        yield Check(False, f"{name}: the rollouts do not bear out {_some(false)}", ANCHORS)
    worded, n = sum(anchor.by_wording for anchor in seat.telling), len(seat.telling)
    result = f"{n} of {len(seat.anchors)} anchor facts can be judged by"
    result += f", {worded} of them by wording alone" if worded else ""
    trivial = [anchor.id for anchor in seat.usable if not anchor.weighs]
    why = f": the shallow report has {_some(trivial)} too" if trivial else ""
    few = f"{name}: only {result}, at least {least} must be{why}"
    yield either(n >= least, f"{name}: {result}", few, ANCHORS)
    yield from _scores(parts, seat, text) if n >= max(1, least) else ()


def _scores(parts: place.Golden, seat: Bench, text: str) -> Iterator[Check]:
    """Whether the report meets the facts that others are to be judged by, and its baseline does not."""
    name = parts.report.name
    score, least = judged(text, seat), TARGETS["golden_vs_self_min"]
    unmet = [hit.anchor.id for hit in score.hits if not hit.met]
    met = f"{len(score.hits) - len(unmet)} of {len(score.hits)}"
    reasons = [f"{met} are met{f', not {_some(unmet)}' if unmet else ''}"]
    reasons += [f"precision {score.precision:.2f}, evidence {score.evidence:.2f}", *score.problems[:1]]
    good = f"meets its own anchor facts: {met}, a score of {score.score:.2f}"
    bad = f"scores {score.score:.2f} by its own anchor facts, at least {least} is needed: {'; '.join(reasons)}"
    yield either(score.score >= least, f"{name}: {good}", f"{name}: {bad}", EVIDENCE)
    baseline, most = place.text_or_nothing(parts.shallow), TARGETS["shallow_vs_golden_max"]
    if baseline and (thin := judged(baseline, seat).score) > most:
        result = f"scores {thin:.2f}, at most {most:.2f} is allowed: it is not shallow"
        yield Check(False, f"{parts.shallow.name}: {result}", SHALLOW)


# -- the numbers of a sidecar -----------------------------------------------------------------------

RATES = ("pass_at_1", "pass_at_k", "consistency", "coverage", "mean_reward")
TOLERANCE = 0.005  # of a rate that somebody rounded
MAX_K = 16
_QUERIES: dict[str, list[str]] = place.table()["metrics"]["queries"]
_ALSO: dict[str, str] = place.table()["metrics"]["also"]


def identity_checks(name: str, sidecar: Any) -> Iterator[Check]:
    """Whether a sidecar is an object that says whose numbers it holds."""
    yield Check(isinstance(sidecar, dict), f"{name}: metrics JSON parses", METRICS)
    if not isinstance(sidecar, dict):
        return
    identity = [key for key in place.table()["metrics"]["identity"] if key in sidecar]
    yield Check(len(identity) >= 3, f"{name}: contains common metric identity fields", METRICS)
    for what, keys in (("model", ("model_name", "model")), ("benchmark", ("benchmark",))):
        present = [key for key in keys if key in sidecar]
        if not present:
            yield Check(False, f"{name}: names no {what}", METRICS)
        elif not any(isinstance(sidecar[key], str) and sidecar[key].strip() for key in present):
            wrong = f"{present[0]} is {place.compact(sidecar[present[0]])}, not a name"
            yield Check(False, f"{name}: {wrong}", METRICS)
    for key in RATES:
        if wrong := _no_fraction(sidecar.get(key)):
            yield Check(False, f"{name}: {key} is {place.compact(sidecar[key])}, {wrong}", METRICS)


def expected(worlds: Worlds, keys: Iterable[str]) -> dict[str, list[float]]:
    """What the rollouts say under some keys of a sidecar; several where honest readings differ."""
    (repeats,) = worlds.own("select repeats from runs")[0]
    k = max(1, min(int(repeats or 1), MAX_K))
    answers: dict[str, list[float]] = {}
    for key in {_ALSO.get(key, key) for key in keys} & _QUERIES.keys():
        queries = [query.format(k=k) for query in _QUERIES[key]]
        queries += [f"pass_at_k({n})" for n in range(1, k + 1)] if key == "pass_at_k" else []
        answers[key] = []
        for query in queries:
            with suppress(BladeError):
                number = number_or_none(value_of(query, worlds.home.ground))
                answers[key] += [float(number)] if number is not None else []
    return answers


def match_checks(name: str, sidecar: Mapping[str, Any], expected: Mapping[str, Sequence[float]]) -> Iterator[Check]:
    """Every number of a sidecar that the rollouts give too; one line for each that they give otherwise."""
    right = others = wrong = 0
    for key, value in sidecar.items():
        allowed = expected.get(_ALSO.get(key, key))
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        value = value if place.is_finite(value) else math.inf
        if not allowed:
            others += 1
        elif key in RATES and _no_fraction(value):
            continue  # reported already
        elif any(_agrees(value, number, key) for number in allowed):
            right += 1
        else:
            wrong += 1
            says = " or ".join(dict.fromkeys(_spelled(number) for number in allowed))
            yield Check(False, f"{name}: {key} is {_spelled(value)}, the rollouts say {says}", METRICS)
    if not wrong:
        verb = "matches" if right == 1 else "match"
        result = f"{plural(right, 'number')} {verb} the rollouts" if right else "no number can be compared"
        result += f", {plural(others, 'other')} could not be compared" if right and others else ""
        yield Check(right > 0, f"{name}: {result}", METRICS)


def in_report(name: str, sidecar: Mapping[str, Any], text: str) -> Iterator[Check]:
    """Whether the headline numbers of a sidecar stand in its report."""
    absent, looked = [], 0
    for key, pattern in place.table()["metrics"]["lines"].items():
        value = number_or_none(sidecar.get(key))
        if value is None or (key in RATES and _no_fraction(value)):
            continue
        looked, places = looked + 1, len(repr(value).partition(".")[2])
        lines = [line[:20_000] for line in text.splitlines()]
        lines = [line for line in lines if re.search(pattern, line, re.IGNORECASE)] or lines
        numbers = [each for line in lines for each in figures(re.sub(r"<!--.*?-->", "", line), Tasks())]
        if key in RATES:
            numbers = [each for each in numbers if each.is_percent or each.step < 1]  # `1` is a count
        shares = [each.number / (100 if each.is_percent else 1) for each in numbers]
        is_rounded = places >= 2 and any(round(share, places) == value for share in shares)  # fewer decimals, two at least
        if not is_rounded and not any(agrees(each, float(value)) for each in numbers):
            absent.append(f"{key} {_spelled(value)}")
    if looked:
        wrong = f"{' and '.join(absent)} {'do' if len(absent) > 1 else 'does'} not stand in the report"
        right = "its headline numbers stand in the report"
        yield either(not absent, f"{name}: {right}", f"{name}: {wrong}", METRICS)


def _agrees(value: float, expected: float, key: str) -> bool:
    if key in RATES:
        return abs(value - expected) <= TOLERANCE
    return math.isclose(value, expected, rel_tol=1e-3, abs_tol=1e-9 if expected == int(expected) else 5e-4)


def _no_fraction(value: Any) -> str:
    """What is wrong with a rate; nothing if it is a fraction, or not told."""
    if value is not None and number_or_none(value) is None:
        return "not a number"
    if value is None or 0 <= value <= 1:
        return ""
    return "a percentage; sidecars hold fractions" if 1 < value <= 100 else "not a fraction between 0 and 1"


def _spelled(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e12 else f"{value:.4g}"
