"""Runs full of foreign text through every exit, each as one text, and the frame of each text."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run
from tests.injections import KINDS, Kind, tamed, word_of

Put = Callable[[str, str], str]  # a place and what stands there otherwise -> what stands there


def putter(number: int, kind: Kind, is_tame: bool) -> Put:
    """Puts the payload of a kind where it can stand, or what is harmless in its stead."""
    word = word_of(number)
    payload = kind.payload(word)
    said = tamed(payload, word) if is_tame else payload
    return lambda place, usual: f"{usual} {said}" if place in kind.places else usual


def rows_of(number: int, put: Put, passes: tuple[bool, bool], part: int) -> list[Row]:
    """Two repeats of a task; a failing one changes the wrong record, or meets a provider that is down."""
    found = []
    key = put("task", f"{number:03d}")[:90]
    for repeat, passed in enumerate(passes):
        is_down = not passed and part % 3 == 2
        record = f"R-{number}" if passed else "R-999"
        output: list[Row] = [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": put("reasoning", "Which record is it?")}]},
            make_call("c1", put("tool", "find")[:64], json.dumps({"name": put("arguments", "Ada"), put("nested_key", "k")[:60]: 1})),
            make_result("c1", put("result", f"found R-{number}")),
            {"type": "message", "role": "user", "content": put("other_turn", "Go on.")},
            make_call("c2", "save", json.dumps({"record": record})),
            make_result("c2", "saved"),
            make_message(put("message", f"Done, {record} is saved.")),
        ]
        told = make_row(
            key, repeat, float(passed),
            response=make_response([] if is_down else output),
            task_id=put("task_name", f"T-{number}"),
            question=put("instruction", f"Save the record of customer {number}."),
            category=put("category", "ab"[number % 2])[:80],
            expected_actions=[{"name": "save", "arguments": {"record": f"R-{number}"}}],
            verifier_message=put("verifier", "the record holds" if passed else "the record does not hold"),
            **{put("field_name", "extra")[:60]: put("field_value", "value")},
        )  # fmt: skip
        told["responses_create_params"] = {
            "input": [
                {"role": "system", "content": put("system", "You save records.")},
                {"role": "user", "content": put("instruction", f"Save the record of customer {number}.")},
            ]
        }
        if is_down:
            told["error"] = put("error", "model endpoint answered 503: service overloaded")
        found.append(told)
    return found


def write(folder: Path, is_tame: bool, shift: int = 0, kinds: tuple[Kind, ...] = KINDS) -> Path:
    """One task for each kind; `shift` makes other tasks fail."""
    rows: list[Row] = []
    for number, kind in enumerate(kinds):
        part = number + shift
        passes = ((True, True), (True, False), (False, False))[part % 3]
        rows += rows_of(number, putter(number, kind, is_tame), passes, part // 3)
    return make_run(folder, [json.dumps(row) for row in rows], name="run")


def printed(command: Any, *arguments: object) -> str:
    """What a command prints, stdout and stderr; an error as `blade` tells it."""
    from blade.cli.main import _tell
    from blade.errors import BladeError

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command.main([str(one) for one in arguments], prog_name="blade", standalone_mode=False)
        except BladeError as error:
            _tell(error, "--json" in arguments)
    return f"{out.getvalue()}\x1d{err.getvalue()}"


# -- the frame of a text ---------------------------------------------------------------------------


def markdown_frame(said: str) -> list[str]:
    """Headings, tables, fences, lists and paragraphs, without what stands in them."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").parse(said)
    return [f"{token.type} {token.tag} {token.info} {token.level}" for token in tokens]


def html_frame(said: str) -> list[str]:
    """The elements that make up a page, with the names of their attributes; spans inside a line apart."""
    from tests.report.test_html import Page

    page = Page(said)
    assert not page.open
    inline = {"code", "strong", "span", "img"}
    return [f"{tag} {sorted(attributes)} {attributes.get('class')}" for tag, attributes in page.tags if tag not in inline]


def json_frame(value: Any, at: str = "$") -> Iterator[str]:
    """Keys, kinds and numbers; texts are only said to be texts."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from json_frame(item, f"{at}.{key}")
        yield f"{at} {len(value)} keys"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from json_frame(item, f"{at}[{number}]")
        yield f"{at} {len(value)} items"
    else:
        yield f"{at} text" if isinstance(value, str) else f"{at} {value}"


def labels(said: str) -> list[str]:
    """The words that begin lines which are not indented: what a screen says in our name."""
    return [re.split(r"\s{2,}|[:|]", line)[0] for line in said.splitlines() if line[:1].strip()]
