"""What a page may never do with foreign text: style, link, quote or run it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync".split()
# The comments that a page may hold: the id of the claim behind a number, the list of queries at its end, and which files were
# written with it.
ANCHOR = re.compile(r"<!--c[1-9]\d*-->")
LISTED = re.compile(r"<!--blade claims\n(?:c[1-9]\d* [^\n]+\n)+-->\n?|<!-- written by blade: [^<>\n]+ -->\n?")
FOREIGN = set("html_block html_inline link_open s_open em_open hr code_block softbreak ordered_list_open".split())


def assert_inert_markdown(said: str, image: str = r"(?!)") -> list[Token]:
    """The tokens of Markdown with no markup but ours; its pictures are those whose address `image` matches."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").parse(said)
    tokens = [token for token in tokens if token.type != "html_block" or not LISTED.fullmatch(token.content)]
    inner = [child for token in tokens for child in token.children or ()]
    inner = [child for child in inner if child.type != "html_inline" or not ANCHOR.fullmatch(child.content)]
    assert not {token.type for token in (*tokens, *inner)} & FOREIGN
    assert len(headings(tokens, "h1")) == 1
    for place, token in enumerate(tokens):
        if token.type == "blockquote_open":  # a quotation of ours: one paragraph below the line that says whose
            assert tokens[place - 2].content.endswith(":")
            shape = [inside.type for inside in tokens[place + 1 : place + 5]]
            assert shape == ["paragraph_open", "inline", "paragraph_close", "blockquote_close"]
    for child in inner:
        assert child.type != "image" or re.fullmatch(image, str(child.attrs["src"]))
    return tokens


def uncited(page: str) -> str:
    """Markdown without the comments that name claims."""
    return ANCHOR.sub("", re.sub(f"\n(?:{LISTED.pattern})", "", page))


def headings(tokens: list[Token], tag: str) -> list[str]:
    """What stands in the headings of one depth."""
    opened = [place for place, token in enumerate(tokens) if token.type == "heading_open" and token.tag == tag]
    return [tokens[place + 1].content for place in opened]


def dumped(page: Path, profile: Path) -> str:
    """The page as a real browser holds it, once its scripts, if any, have run."""
    command = [str(BROWSER), "--headless", *QUIET, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
