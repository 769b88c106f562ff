"""`blade skill` and `blade mcp`: what coding agents are given: skills to install or write, and answers as tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blade import __version__
from blade.cli.options import THRESHOLD, force_option, json_option, output_option
from blade.cli.output import Progress, cannot_write, exit_failed
from blade.hostile import line

if TYPE_CHECKING:
    from blade.agent.skills.installation import Copy

KNOWN = ("claude", "codex", "agents", "cursor", "gemini", "copilot", "opencode")


@click.group(short_help="Skills for coding agents: list, install, check, write.")
def skill() -> None:
    """A skill is a folder that tells a coding agent how to analyse evaluations with BLADE."""


@skill.command("list", short_help="The skills that ship with BLADE, and the copies that agents see.")
@json_option()
def list_(as_json: bool) -> None:
    """List the skills of this BLADE, and every copy in this project and at home."""
    from blade.agent.skills.installation import copies, shipped

    installed = copies(Path.cwd(), Path.home())
    if as_json:
        skills = [
            {"name": each.name, "description": each.description, "blade": each.version, "folder": str(each.folder)}
            for each in shipped()
        ]
        document = {"blade": __version__, "skills": skills, "copies": _as_json(installed)}
        click.echo(json.dumps(document, indent=2))
        return
    for each in shipped():
        about = each.description.partition(". ")[0]
        click.echo(f"{each.name}  (BLADE {each.version})\n    {about}\n    {each.folder}")
    click.echo(_listed(installed) if installed else "\nNo copy is installed here: blade skill install")


@skill.command(short_help="Copy a skill to where agents look for it.")
@click.argument("name", required=False)
@click.option(
    "--agent", "agents", type=click.Choice(KNOWN), multiple=True,
    help="Whose folder; may be repeated (default: those that are in use, else agents).",
)  # fmt: skip
@click.option("--project", "scope", flag_value="project", default="project", help="Below this folder (default).")
@click.option("--user", "scope", flag_value="user", help="Below the home folder: for all projects.")
@force_option("Write over a copy that somebody changed.")
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
def install(name: str | None, agents: tuple[str, ...], scope: str, force: bool, dry_run: bool) -> None:
    """Copy the skill NAME: one that ships (default), or a folder with a SKILL.md, under the skill's name.

    A copy that nobody changed is brought up to date; one that somebody changed is kept.
    """
    from blade.agent.skills.installation import install as installed
    from blade.agent.skills.installation import skill as chosen

    root = Path.home() if scope == "user" else Path.cwd()
    try:
        done = installed(chosen(name), scope, agents, root, force, dry_run)
    except OSError as error:
        raise cannot_write(root, error) from error
    for copy in done:
        path, who = line(str(copy.path)), ", ".join(copy.agents)
        if copy.did == "unchanged":
            click.echo(f"{path} is up to date ({who})")
        elif dry_run:
            click.echo(line(f"Would write {path}/ ({who}): {', '.join(copy.files)}"))
        else:
            click.echo(f"Wrote {path}/ ({who}): {len(copy.files)} files {copy.did}")


@skill.command(short_help="Were skills written for this version of BLADE.")
@click.option("--for", "version", metavar="VERSION", help="Only say whether this BLADE is VERSION.")
@json_option()
def check(version: str | None, as_json: bool) -> None:
    """Compare skills with the engine: the version that one names, or every copy that agents see here.

    The exit code is 1 if one was written for another version.
    """
    if version is not None:
        fits = version == __version__
        if as_json:
            click.echo(json.dumps({"blade": __version__, "written_for": version, "fits": fits}))
        else:
            misfit = (
                f"This skill was written for BLADE {line(version, 80)}, installed is {__version__}: commands may differ.\n"
                "Run `blade skill install` for the skill of the installed version, or `blade COMMAND --help`."
            )
            click.echo(f"BLADE {__version__}: the skill fits" if fits else misfit)
        exit_failed(not fits)
        return
    from blade.agent.skills.installation import copies

    installed = copies(Path.cwd(), Path.home())
    if as_json:
        click.echo(json.dumps({"blade": __version__, "copies": _as_json(installed)}, indent=2))
    else:
        nothing = f"BLADE {__version__}; no skill is installed here"
        click.echo(_listed(installed).lstrip() if installed else nothing)
    exit_failed(any(copy.state == "older" for copy in installed))


@skill.command(short_help="Write the skill of one benchmark from runs of it.")
@click.argument("name", required=False)
@click.option("--run", "runs", metavar="RUN", multiple=True, required=True, help="A run; may be repeated.")
@output_option("Where its folder goes.", default=".agents/skills", show_default=True)
@THRESHOLD
@force_option("Write over a skill that is there.")
def new(name: str | None, runs: tuple[str, ...], output: str, pass_threshold: float | None, force: bool) -> None:
    """Write DIR/NAME/SKILL.md: schema, funnel, failure labels and worked examples from the rows.

    NAME is the benchmark (default: as its rows or blade.toml say). It is a draft: a person reviews it.
    """
    from blade.agent.skills import skill_draft
    from blade.pipeline import session

    with Progress() as progress:
        opened = session(runs, progress, pass_threshold)
        called, folder = skill_draft.folder_of(name, opened, Path(output), force)
        try:
            path = skill_draft.write(called, folder, opened)
        except OSError as error:
            raise cannot_write(folder, error) from error
    click.echo(f"Wrote {path}")


@click.command(short_help="Serve the answers to a coding agent, over MCP.")
@click.argument("runs", nargs=-1, metavar="[RUN|FOLDER]...")
def mcp(runs: tuple[str, ...]) -> None:
    """Serve the runs under FOLDER, or under the working directory, as MCP tools over stdio.

    Nothing outside these folders is read. All tools read only, but for the one that keeps judgements
    beside a run. A coding agent starts this command; docs/mcp.md tells how to add it.
    """
    from blade.agent.mcp.server import serve

    serve(runs)


def _as_json(copies: list[Copy]) -> list[dict[str, object]]:
    return [
        {"name": copy.name, "agents": list(copy.agents), "scope": copy.scope, "path": str(copy.path),
         "blade": copy.version, "state": copy.state}
        for copy in copies
    ]  # fmt: skip


def _listed(copies: list[Copy]) -> str:
    states = {
        "current": "fits this BLADE", "older": "written for another BLADE: blade skill install",
        "changed": "changed since it was installed", "own": "names no version",
    }  # fmt: skip
    lines = [
        f"{line(str(copy.path))}  ({', '.join(copy.agents)}; {copy.version or 'no version'}): {states[copy.state]}"
        for copy in copies
    ]
    return "\nCopies that agents see here\n" + "\n".join(lines)
