"""`blade check` and `blade cite`: verify what a report cites, quotes and sums; fill in what it cites by query."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import ENDPOINT, THRESHOLD, force_option, json_option, output_option, threshold_option
from blade.cli.output import Progress, exit_failed, files_of, refuse_existing, write_text
from blade.errors import BladeError, UsageError
from blade.hostile import line, markdown_inline

if TYPE_CHECKING:
    from blade.check import World
    from blade.check.cited_numbers import Answers
    from blade.check.report_ground import Rows
    from blade.model.conclusions import Finding

MOST = 40  # entries of each part on the screen, and numbers that a model is asked about
SECONDS, MOST_TOKENS = 120.0, 8000  # of a reply
LONGEST = 300  # characters of a quotation that is filled in
Ask = Callable[[Mapping[str, str], Sequence[str], Sequence[tuple[str, str]]], dict[int, str]]


@click.command(short_help="Verify every citation, quotation, id and sum of a report.")
@click.argument("report", metavar="REPORT")
@click.argument("more", nargs=-1, metavar="[RUN...]")
@click.option("--run", "runs", metavar="RUN", multiple=True, help="A run that the report is about; may be repeated.")
@output_option("Write a copy of the report with its problems marked.", "FILE")
@click.option("--baseline", metavar="NAME", help="The run the others are compared with (default: as the report says).")
@threshold_option("A row passes at reward >= X (default: as the report says).")
@click.option("--llm", is_flag=True, help="Have a model propose queries for uncited numbers; its sentences are sent.")
@click.option("--model", metavar="NAME", help="The model of --llm (default: BLADE_MODEL).")
@ENDPOINT
@click.option("--all", "is_all", is_flag=True, help="Show every finding, what holds too.")
@json_option("Print counts and all findings as JSON.")
@force_option("Overwrite an existing file.")
def check(
    report: str, more: tuple[str, ...], runs: tuple[str, ...], output: str | None, baseline: str | None,
    pass_threshold: float | None, llm: bool, is_all: bool, as_json: bool, force: bool, **whom: str | None,
) -> None:  # fmt: skip
    """Check any report in Markdown or JSON.

    Cited numbers are queried again, quotations and ids are looked up in the rows, sums are added up. Numbers
    without a citation are listed with the query that gives them where only one does. Without --run
    only the arithmetic is checked. The exit code is 1 if a citation, quotation, id or sum is wrong.

    With --llm a model proposes queries for numbers that have none; they are run, and you see what they give.
    It is sent those sentences of the report and the names of columns, and it changes no verdict.
    """
    ask = asker(whom, bool(runs or more)) if llm else None
    if output:
        refuse_existing(Path(output), force, [Path(report), *files_of((*runs, *more))])
    from blade.check import check_findings, checked, world_for
    from blade.check.json_reports import read_report

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
    click.echo(check_findings.as_json(findings) if as_json else shown, nl=False)
    if output:
        click.echo(f"Wrote {output}", err=as_json)
    exit_failed(check_findings.counts(findings)["contradicted"])


def as_text(
    findings: Sequence[Finding], name: str, runs: Sequence[str], is_all: bool = False, is_ours: bool = False
) -> str:
    """The summary, then what is wrong or open, what each citation says, and what names no source."""
    from blade.check import check_findings
    from blade.model.conclusions import CONTRADICTED, OPINION, SUPPORTED, UNCITED, UNVERIFIABLE

    against = f"against {', '.join(line(run, 40) for run in runs[:4])}" if runs else "alone"
    lines = [f"BLADE check  {line(name, 60)} {against}", check_findings.summary(findings, bool(runs))]
    by_verdict = {
        verdict: [finding for finding in findings if finding.verdict == verdict] for verdict in check_findings.VERDICTS
    }
    most = len(findings) if is_all else MOST

    def part(title: str, entries: Sequence[Any], what: str, text: Callable[[Any], list[str]]) -> None:
        """A part of the page, and how many more entries than `most` it has."""
        rows = [row for entry in entries[:most] for row in text(entry)]
        lines.extend(["", title] if rows and title else [])
        lines.extend(rows)
        if len(entries) > most:
            lines.append(f"  {len(entries) - most:,} more {what} with --all or --json")

    def sentence(group: list[Finding]) -> list[str]:
        readings = [f"      {line(item.printed, 40)}: {line(item.reading, 200)}" for item in group]
        return [f"  line {group[0].line}  {line(group[0].text, 150)}", *readings]

    def uncited(item: Finding) -> list[str]:
        return [f"  line {item.line}  {line(item.why, 200) or line(item.printed, 40)}  in: {line(item.text, 80)}"]

    for verdict in (CONTRADICTED, UNVERIFIABLE):
        part("", by_verdict[verdict], verdict, lambda finding: ["", *_problem(finding)])
    cited = [finding for finding in by_verdict[SUPPORTED] if finding.kind == "citation" and (is_all or not is_ours)]
    groups = [list(group) for _, group in groupby(cited, key=lambda finding: finding.text)]
    part("What the citations say", groups, "cited sentences", sentence)
    if is_all:
        others = [finding for finding in by_verdict[SUPPORTED] if finding.kind != "citation"]
        part("What was found", others, "",
             lambda item: [f"  line {item.line}  {line(item.printed, 80)}: {line(item.why, 100)}"])  # fmt: skip
    part("Numbers without a citation", by_verdict[UNCITED], "uncited numbers", uncited)
    part("Causes without a citation or quotation", by_verdict[OPINION], "causal sentences",
         lambda item: [f"  line {item.line}  {line(item.text, 150)}"])  # fmt: skip
    return "\n".join(lines) + "\n"


def _problem(finding: Finding) -> list[str]:
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
    from blade.check.markdown_document import parse
    from blade.model.conclusions import CONTRADICTED, UNVERIFIABLE

    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ends: dict[int, int] = {}  # a remark inside a table would tear it apart
    for table in parse("\n".join(lines)).tables:
        last = max([table.line, *(row.line for row in table.rows)])
        ends |= dict.fromkeys(range(table.line, last + 1), last)
    remarks: dict[int, list[str]] = {}
    for finding in findings:
        if finding.verdict in (CONTRADICTED, UNVERIFIABLE):
            place = max(finding.lines, default=finding.line)
            printed, expected, why = (
                markdown_inline(line(part, 200)) for part in (finding.printed, finding.expected, finding.why)
            )
            more = (f"; expected {expected}" if expected else "") + (f" ({why})" if why else "")
            remark = f"> **{finding.verdict}**, line {finding.line}: {printed}{more}\n>"
            remarks.setdefault(ends.get(place, place), []).append(remark)
    copy: list[str] = []
    for number, content in enumerate(lines, 1):
        copy.append(content)
        if number in remarks:
            copy += ["", *dict.fromkeys(remarks[number]), ""]
    return "\n".join(copy)


# ---- Queries that a model proposes ---------------------------------------------------------------


def asker(options: dict[str, str | None], has_runs: bool) -> Ask:
    """Asks the model that is named; what cannot be asked is told here."""
    from blade.agent import reader
    from blade.cli.read import named_model, warn_open

    if not has_runs:
        raise UsageError("--llm needs the runs that the report is about", "add --run RUN", "usage")
    whom = named_model({**dict.fromkeys(("price", "max_cost", "max_tokens", "dry_run")), **options})
    warn_open(whom.url)
    click.echo(f"note: sentences with uncited numbers are sent to {reader.host_of(whom.url)}", err=True)
    return partial(reader.proposals, whom.endpoint(SECONDS, MOST_TOKENS))


def proposed(findings: Sequence[Finding], world: World, ask: Ask) -> tuple[Finding, ...]:
    """The findings; an uncited number that nothing was suggested for has what the model's query gives."""
    from blade.check.cited_numbers import Answers
    from blade.model.conclusions import UNCITED

    places = [n for n, item in enumerate(findings) if item.verdict == UNCITED and not item.query][:MOST]
    if not places:
        return tuple(findings)
    numbers = [(findings[place].printed, findings[place].text) for place in places]
    queries = ask(world.columns(), world.rows.runs, numbers)
    answers, results = Answers(world.ground, queries.values()), list(findings)
    for number, query in queries.items():
        results[places[number]] = _answered(results[places[number]], query, answers)
    return tuple(results)


def _answered(finding: Finding, query: str, answers: Answers) -> Finding:
    from msgspec.structs import replace

    from blade.query.number_readings import agrees, last_figure
    from blade.query.query_ground import value

    figure, proposal = last_figure(finding.printed), f"{finding.printed}: the model proposes {query}"
    try:
        answer = value(query, answers)
    except BladeError as error:
        return replace(finding, why=f"{proposal}, which cannot be run: {error.message}")
    if figure is None or not isinstance(answer, int | float) or not agrees(figure, answer):
        return replace(finding, expected=str(answer)[:80], why=f"{proposal}, which gives {str(answer)[:80]}")
    return replace(finding, query=query, why=f"{proposal}, which gives it; cite it if you mean that")


# ---- Filling in ----------------------------------------------------------------------------------


@click.command(short_help="Fill in the numbers that a report cites by query.")
@click.argument("file", metavar="FILE")
@click.option(
    "--run", "runs", metavar="RUN", multiple=True, required=True, help="A run of the report; may be repeated."
)
@output_option("Write the filled report to OUT (default: print it).", "OUT")
@click.option("--in-place", is_flag=True, help="Overwrite FILE itself.")
@THRESHOLD
@json_option("Print what was filled in, and what was not, as JSON.")
@force_option("Overwrite an existing OUT.")
def cite(
    file: str, runs: tuple[str, ...], output: str | None, in_place: bool, pass_threshold: float | None,
    as_json: bool, force: bool,
) -> None:  # fmt: skip
    """Fill in every `{{ QUERY }}` of a Markdown file from the rows.

    `{{ pass_at_1 where difficulty = 'easy' }}` becomes `27.8%` with the query in a comment behind it, so that
    `blade check` can verify it again; `{{ 12/0#4 }}` becomes the text of step 4 of rollout 12/0. What cannot
    be filled in is left as it is, and the exit code is 1.
    """
    if in_place and (output or file == "-"):
        raise UsageError("--in-place overwrites FILE itself", "leave out -o, or name a file", "usage")
    if output:
        refuse_existing(Path(output), force, [Path(file), *files_of(runs)])
    from blade.check.cited_numbers import Answers
    from blade.check.json_reports import read_report
    from blade.check.report_ground import world_for
    from blade.query.citations import PLACE, citations, filled

    text = read_report(file)

    with Progress() as progress:
        world = world_for(text, runs, progress, pass_threshold)
        queries = [item.query for item in citations(text) if item.is_open]
        answers = Answers(world.ground, (query for query in queries if not PLACE.fullmatch(query)))
        copy, problems = filled(text, answers, lambda *place: step_text(world.rows, *place))
    path = Path(file) if in_place else Path(output) if output else None
    if path is not None:
        write_text(path, copy)
    n = len(queries) - len(problems)
    if as_json:
        wrote = str(path) if path else None
        wire = {"schema": "blade.cite/1", "filled": n, "problems": problems, "wrote": wrote}
        click.echo(json.dumps(wire if path else {**wire, "text": copy}, ensure_ascii=False, indent=2))
    else:
        click.echo(copy, nl=False) if path is None else click.echo(f"Filled in {n:,}; wrote {path}")
        for problem in problems:
            click.echo(f"not filled in: {problem}", err=True)
    exit_failed(problems)


def step_text(rows: Rows, task: str, repeat: int, where: str) -> str | None:
    """The text of a step or field as it can stand in quotation marks in Markdown; None if there is none."""
    from blade import hostile
    from blade.events import step_texts
    from blade.formats.rollout_steps import NOTHING, quotable, value_at

    traces = [trace for run in rows.runs for trace in rows.at(run, task, repeat)]
    if len(traces) != 1 or task in rows.ambiguous:
        return None
    if where.isdecimal():
        texts = [text for step in traces[0].steps if step.index == int(where) for text in step_texts(step)]
    else:
        value = value_at(traces[0].row, where)
        texts = [] if value is NOTHING else [quotable(value)]
    text = hostile.line(texts[0], LONGEST).translate(str.maketrans("“”", "‘’")) if texts else ""
    return hostile.markdown_inline(text) or None
