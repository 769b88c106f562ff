"""Tell why a score changed between runs, and which claims of a report are false."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.agent.mcp import arguments, roots
from blade.agent.mcp.answers import Answer, answer, cut, listed, paged
from blade.agent.mcp.house import House, refuse_threshold
from blade.errors import Unreadable, UsageError
from blade.hostile import line, quoted
from blade.report import report_json
from blade.report.blocks import Block, Code, Heading, Quote, para, prose

if TYPE_CHECKING:
    from blade.model import Report
    from blade.model.checked import Finding

REPORT = 16 << 20  # bytes of a report that is checked
TERMS = 12


def compare(house: House, asked: arguments.Compare) -> Answer:
    """Is the change real, and what moved it, in terms that add up."""
    refuse_threshold(asked.pass_threshold)
    report = _compared(house, asked)
    if asked.format == "markdown":
        from blade.report.change.text import compare_text

        names = ", ".join(line(run.name, 60) for run in report.runs[:4])
        told = Quote(("As ", Code("blade compare"), " tells it"), compare_text(report))
        return answer(asked, f"Comparison of {names}", {}, [told])
    wire = [report_json.values(one) for one in report.comparisons]
    document = {
        "runs": [{"name": run.name, "score_name": run.score_name, "score": run.score} for run in report.runs],
        "comparisons": [_brief(one) for one in wire],
        "series": report_json.values(report.series),
    }
    return answer(asked, "", document, [])


def _compared(house: House, asked: arguments.Compare) -> Report:
    from blade.pipeline import comparing
    from blade.pipeline.session import depends_on

    loaded = house.loaded([asked.baseline, *asked.candidates])
    if len({one.name for one in loaded}) < len(loaded):
        from blade import pipeline

        loaded = pipeline.load(house.specs([asked.baseline, *asked.candidates]), house.watcher)
    if len(loaded) < 2:
        raise UsageError("a comparison takes two runs", "name another run among the candidates", "one-run")
    settings = f"compare {asked.margin} {asked.series} {asked.pass_threshold}"
    key = depends_on(loaded, settings) or settings
    return house.once(
        ("compare", key, *(one.name for one in loaded)),
        lambda: comparing.compare(
            loaded, "blade mcp", threshold=asked.pass_threshold, margin=asked.margin, ordered=asked.series,
            watcher=house.watcher,
        ),
    )  # fmt: skip


def _brief(one: dict[str, Any]) -> dict[str, Any]:
    """A comparison with the first entries of its long lists."""
    whole = ("tests", "bridge")
    return {
        key: cut(value, TERMS) if isinstance(value, list) and key not in whole else _short(value)
        for key, value in one.items()
    }


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    return value[: TERMS * 5] if isinstance(value, list) else value


def check_claims(house: House, asked: arguments.CheckClaims) -> Answer:
    """Check a report: what is wrong, what cannot be verified, what names no source."""
    from blade.check import check_findings

    findings, names = _checked(house, asked)
    seen = check_findings.counts(findings)
    problems = json.loads(check_findings.as_json(check_findings.problems(findings)))["findings"]
    page = paged(problems, asked, dict, _problem)
    head = {"against": names, "counts": seen}
    against = ", ".join(line(name, 60) for name in names) or "nothing but itself; name runs to check it by"
    intro = [para(f"Checked against {against}: {check_findings.summary(findings, bool(names))}.")]
    return listed(asked, "Check of a report", head, "problems", page, intro)


def _checked(house: House, asked: arguments.CheckClaims) -> tuple[tuple[Finding, ...], list[str]]:
    from blade.check import checked, world_for

    refuse_threshold(asked.pass_threshold)
    text, world = _text(house, asked), None
    if asked.runs:
        world = world_for(text, house.specs(asked.runs), house.watcher, asked.pass_threshold)
    return checked(text, world), list(world.rows.runs) if world is not None else []


def _text(house: House, asked: arguments.CheckClaims) -> str:
    from blade.check.json_reports import claims_file, with_claims

    if (asked.report is None) == (asked.path is None):
        raise UsageError(
            "there is no one report to check", "give its text as `report`, or its `path`", "usage"
        )
    if asked.report is not None:
        if not asked.report.strip():
            raise UsageError("the report is empty", "give Markdown or JSON", "usage")
        return asked.report
    path: Path = roots.file_of(house.roots, asked.path or "")
    try:
        if path.stat().st_size > REPORT:
            raise Unreadable(f"{path.name} is too large for a report", "give a part of it", "unreadable-file")
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise Unreadable(
            f"cannot read {path.name}: {error.strerror}", "check it", "unreadable-file"
        ) from error
    except UnicodeDecodeError as error:
        raise Unreadable(
            f"{path.name} is no text", "give Markdown or JSON in UTF-8", "unreadable-file"
        ) from error
    return with_claims(text, path) if house.roots.holds(str(claims_file(path))) else text


def _problem(one: dict[str, Any]) -> tuple[Block, ...]:
    expected = f" Expected {line(str(one['expected']), 200)}." if one["expected"] else ""
    why = line(one["why"] or f"{one['verdict']}: {one['printed']}", 400).rstrip(".")
    return (
        Heading((f"{one['verdict']}, {one['kind']}, line {one['line']}",)),
        para(*prose(f"{why[:1].upper()}{why[1:]}.{expected}")),
        Quote(("The report says",), quoted(one["text"], 400)),
    )
