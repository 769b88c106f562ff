"""`blade mcp`: the same answers as tools of the Model Context Protocol."""

from __future__ import annotations

import click


@click.command(short_help="Serve the answers to a coding agent, over MCP.")
@click.argument("runs", nargs=-1, metavar="[RUN|FOLDER]...")
def mcp(runs: tuple[str, ...]) -> None:
    """Serve the runs under FOLDER, or under the working directory, as MCP tools over stdio.

    Nothing outside these folders is read. All tools read only, but for the one that keeps judgements
    beside a run. A coding agent starts this command; docs/mcp.md tells how to add it.
    """
    from blade.agent.mcp.server import serve

    serve(runs)
