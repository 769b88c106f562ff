"""Print whether the score can be trusted: alarms, warnings and notes, then the flags of the columns."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import msgspec

from blade import hostile, number_format
from blade.model import Evidence, Health, Level, Report, Trust
from blade.report import causes, first_page
from blade.report.blocks import short
from blade.report.facts import Facts, facts
from blade.report.places import place
from blade.report.report_json import indented, number, values
from blade.report.text import columns

SCHEMA = "blade.health/2"
LABEL = 9  # columns of the levels on the left
TEXT = 1200  # characters of one entry
QUOTE = 210
LEVELS = {Level.PROBLEM: "problem", Level.WARNING: "warning", Level.INFO: "note"}


def render(report: Report) -> str:
    """Write the trust in each run and the flags of its columns as plain text, the gravest first."""
    width = columns()
    lines = [line for run in facts(report) for line in (*_run(run, width), "")]
    lines.append("`blade show RUN TASK/REPEAT` opens a rollout; --json adds the query that selects the rows.")
    return "\n".join(hostile.lines(line).rstrip() for line in lines) + "\n"


def _run(run: Facts, width: int) -> list[str]:
    lines = [*wrap(short(first_page.headline(run), "`"), width), f"{first_page.TRUSTED} {_answer(run)}"]
    for one in run.trust:
        lines += _entry(one.level, _trusted(one), width)
        lines += _entry("", f"Fix: {hostile.line(one.fix, TEXT)}", width) if one.fix else []
    lines += ["", "Flags of the columns"]
    for flag in run.health:
        lines += _entry(LEVELS[flag.level], hostile.line(flag.text, TEXT), width)
        lines += _quotation(flag.evidence)
    return lines if run.health else [*lines, "None."]


def _answer(run: Facts) -> str:
    """Answer in a word; a grave flag of the columns is reason for care as well."""
    if any(flag.level is not Level.INFO for flag in run.health) and not any(
        one.level in ("alarm", "warning") for one in run.trust
    ):
        return "With care, see the flags below."
    return short(first_page.trust(run)[0])


def _trusted(one: Trust) -> str:
    """Write an entry with its label spelled out and the number of rows that it concerns."""
    label = f"{causes.called(one.label)}; " if one.label is not None else ""
    return f"{hostile.line(one.text, TEXT)} [{label}{number_format.count(one.rows, 'row')}]"


def _entry(level: str, text: str, width: int) -> list[str]:
    lines = wrap(text, width - LABEL, break_on_hyphens=False) or [""]
    return [f"{level if at == 0 else '':<{LABEL}}{line}" for at, line in enumerate(lines)]


def _quotation(evidence: tuple[Evidence, ...]) -> list[str]:
    quoted = next((one for one in evidence if one.quote), None)
    if quoted is None:
        return []
    where = f"step {quoted.step}" if quoted.step is not None else hostile.line(quoted.field or "", 40)
    address = f"{hostile.line(place(quoted.task, quoted.repeat), 40)}, {where}"
    return [f"{'':<{LABEL}}{address}: {hostile.line(quoted.quote or '', QUOTE)!r}"]


def as_json(report: Report) -> str:
    """Write the same for a program: for each run its score, the trust in it, and the flags of its columns."""
    document = {
        "schema": SCHEMA,
        "made_by": dict(report.made_by),
        "runs": [_document(run) for run in facts(report)],
    }
    return indented(document)


def _document(run: Facts) -> dict[str, Any]:
    return {
        "name": run.run.name,
        "score_name": run.run.score_name,
        "score": number(run.run.score),
        "n_tasks": run.run.n_tasks,
        "n_rollouts": run.run.n_rollouts,
        "trust": values(run.trust),
        "flags": [_flag(flag) for flag in run.health],
    }


def _flag(flag: Health) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(flag)
    return {**fields, "value": number(flag.value), "n": int(flag.n)}
