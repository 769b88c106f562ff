"""`blade check`: verify the citations, quotations, ids and sums of any report."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blade.cli.output import refuse_existing, write_text
from blade.cli.report_file import read_report
from blade.errors import EXIT_FAILED_GATE

if TYPE_CHECKING:
    from blade.model.checked import Finding

MOST = 40  # entries of each part on the screen


@click.command(short_help="Verify every citation, quotation, id and sum of a report.")
@click.argument("report", metavar="REPORT")
@click.argument("more", nargs=-1, metavar="[RUN...]")
@click.option(
    "--run", "runs", metavar="RUN", multiple=True, help="A run that the report is about; may be repeated."
)
@click.option("-o", "--output", metavar="FILE", help="Write a copy of the report with its problems marked.")
@click.option(
    "--baseline", metavar="NAME", help="The run the others are compared with (default: as the report says)."
)
@click.option(
    "--pass-threshold",
    metavar="X",
    type=float,
    help="A row passes at reward >= X (default: as the report says).",
)
@click.option(
    "--llm", is_flag=True, help="Have a model propose queries for uncited numbers; its sentences are sent."
)
@click.option("--model", metavar="NAME", help="The model of --llm (default: BLADE_MODEL).")
@click.option("--base-url", metavar="URL", help="Its endpoint (default: OPENAI_BASE_URL, else OpenAI's).")
@click.option("--key-env", metavar="NAME", help="The variable that holds the key (default: OPENAI_API_KEY).")
@click.option("--all", "is_all", is_flag=True, help="Show every finding, what holds too.")
@click.option("--json", "as_json", is_flag=True, help="Print counts and all findings as JSON.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def check(
    report: str,
    more: tuple[str, ...],
    runs: tuple[str, ...],
    output: str | None,
    baseline: str | None,
    pass_threshold: float | None,
    llm: bool,
    is_all: bool,
    as_json: bool,
    force: bool,
    **whom: str | None,
) -> None:
    """Check any report in Markdown or JSON.

    Cited numbers are queried again, quotations and ids are looked up in the rows, sums are added up. Numbers
    without a citation are listed with the query that gives them where only one does. Without --run
    only the arithmetic is checked. The exit code is 1 if a citation, quotation, id or sum is wrong.

    With --llm a model proposes queries for numbers that have none; they are run, and you see what they give.
    It is sent those sentences of the report and the names of columns, and it changes no verdict.
    """
    from blade.cli.diagnose import refuse_threshold
    from blade.cli.watch import Progress

    refuse_threshold(pass_threshold)
    from blade.cli.proposals import asker, proposed

    ask = asker(whom, bool(runs or more)) if llm else None
    if output:
        refuse_existing(Path(output), force)
    from blade.check import checked, wire, world_for

    text = read_report(report)
    with Progress() as progress:
        world = world_for(text, (*runs, *more), progress, pass_threshold, baseline) if runs or more else None
        findings = checked(text, world)
        if ask is not None and world is not None:
            findings = proposed(findings, world, ask)
    if output:
        write_text(Path(output), annotated(text, findings))
    names = world.rows.runs if world is not None else ()
    is_ours = "<!--blade claims" in text  # our own page: every number of it is cited
    shown = as_text(findings, report, names, is_all, is_ours)
    click.echo(wire.as_json(findings) if as_json else shown, nl=False)
    if output:
        click.echo(f"Wrote {output}", err=as_json)
    if wire.counts(findings)["contradicted"]:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


def as_text(
    findings: Sequence[Finding], name: str, runs: Sequence[str], is_all: bool = False, is_ours: bool = False
) -> str:
    """The summary, then what is wrong or open, what each citation says, and what names no source."""
    from blade.check import wire
    from blade.hostile import line
    from blade.model.checked import CONTRADICTED, OPINION, SUPPORTED, UNCITED, UNVERIFIABLE

    against = f"against {', '.join(line(run, 40) for run in runs[:4])}" if runs else "alone"
    lines = [f"BLADE check  {line(name, 60)} {against}", wire.summary(findings, bool(runs))]
    by_verdict = {
        verdict: [finding for finding in findings if finding.verdict == verdict] for verdict in wire.VERDICTS
    }
    most = len(findings) if is_all else MOST
    for verdict in (CONTRADICTED, UNVERIFIABLE):
        for finding in by_verdict[verdict][:most]:
            lines += ["", *_problem(finding)]
        lines += _more(len(by_verdict[verdict]) - most, verdict)
    supported = by_verdict[SUPPORTED]
    cited = [finding for finding in supported if finding.kind == "citation"]
    groups = [list(group) for _, group in groupby(cited, key=lambda finding: finding.text)]
    groups = [] if is_ours and not is_all else groups
    lines += ["", "What the citations say"] if groups else []
    for group in groups[:most]:
        lines.append(f"  line {group[0].line}  {line(group[0].text, 150)}")
        lines += [f"      {line(item.printed, 40)}: {line(item.reading, 200)}" for item in group]
    lines += _more(len(groups) - most, "cited sentences")
    if is_all:
        others = [finding for finding in supported if finding.kind != "citation"]
        lines += ["", "What was found"] if others else []
        lines += [f"  line {item.line}  {line(item.printed, 80)}: {line(item.why, 100)}" for item in others]
    lines += ["", "Numbers without a citation"] if by_verdict[UNCITED] else []
    for finding in by_verdict[UNCITED][:most]:
        told = line(finding.why, 200) or line(finding.printed, 40)
        lines.append(f"  line {finding.line}  {told}  in: {line(finding.text, 80)}")
    lines += _more(len(by_verdict[UNCITED]) - most, "uncited numbers")
    lines += ["", "Causes without a citation or quotation"] if by_verdict[OPINION] else []
    lines += [f"  line {item.line}  {line(item.text, 150)}" for item in by_verdict[OPINION][:most]]
    lines += _more(len(by_verdict[OPINION]) - most, "causal sentences")
    return "\n".join(lines) + "\n"


def _more(n: int, what: str) -> list[str]:
    return [f"  {n:,} more {what} with --all or --json"] if n > 0 else []


def _problem(finding: Finding) -> list[str]:
    from blade.hostile import line

    first, last = min(finding.lines, default=finding.line), max(finding.lines, default=finding.line)
    place = f"line {finding.line}" if first == last else f"lines {first}-{last}"
    lines = [f"{finding.verdict}  {place}  {finding.kind}: {line(finding.printed, 90)}"]
    pairs = (
        ("expected", finding.expected), ("cited as", finding.reading if finding.kind == "citation" else ""),
        ("because", finding.why), ("in", finding.text if finding.text != finding.printed else ""),
    )  # fmt: skip
    return lines + [f"  {name:<10} {line(text, 160)}" for name, text in pairs if text]


def annotated(text: str, findings: Sequence[Finding]) -> str:
    """The report with a quoted remark after each paragraph, table or quotation that is wrong or open."""
    from blade.check.document import parse
    from blade.model.checked import CONTRADICTED, UNVERIFIABLE

    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ends: dict[int, int] = {}  # a remark inside a table would tear it apart
    for table in parse("\n".join(lines)).tables:
        last = max([table.line, *(row.line for row in table.rows)])
        ends |= dict.fromkeys(range(table.line, last + 1), last)
    remarks: dict[int, list[str]] = {}
    for finding in findings:
        if finding.verdict in (CONTRADICTED, UNVERIFIABLE):
            place = max(finding.lines, default=finding.line)
            remarks.setdefault(ends.get(place, place), []).append(_remark(finding))
    made: list[str] = []
    for number, content in enumerate(lines, 1):
        made.append(content)
        if number in remarks:
            made += ["", *dict.fromkeys(remarks[number]), ""]
    return "\n".join(made)


def _remark(finding: Finding) -> str:
    from blade.hostile import line, markdown_inline

    printed, expected, why = (
        markdown_inline(line(part, 200)) for part in (finding.printed, finding.expected, finding.why)
    )
    meant = f"; expected {expected}" if expected else ""
    return f"> **{finding.verdict}**, line {finding.line}: {printed}{meant}{f' ({why})' if why else ''}\n>"
