"""Every form of a report and of a comparison, each made once."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import yaml
from msgspec.structs import replace

from blade import report as room
from blade.model import Comparison, Report
from blade.report import comparison_screen, first_page, html, markdown, report_json

SAYINGS = yaml.safe_load(Path(__file__).with_name("sayings.yaml").read_text(encoding="utf-8"))


def sayings(kind: str) -> list[Any]:
    """What the pages of one kind must say, case by case."""
    return list(SAYINGS[kind])


def changes(name: str) -> dict[str, Any]:
    """What is changed of a pair, by this name."""
    hints = get_type_hints(Comparison)
    changed = SAYINGS["changes"][name].items()
    return {member: msgspec.convert(value, hints[member]) if member in hints else value for member, value in changed}


def assert_says(text: str, saying: dict[str, Any]) -> None:
    assert [part for part in saying["says"] if part not in text] == []
    assert [part for part in saying.get("not_says", ()) if part in text] == []


def assert_in_order(text: str, parts: list[str]) -> None:
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def edited(report: Report, saying: dict[str, Any]) -> Report:
    """The report with what a case changes: lists cut to these places, members of the report, members of every noun of a list."""
    lists = {name: tuple(getattr(report, name)[place] for place in places) for name, places in saying.get("only", {}).items()}
    report = replace(report, **lists, **saying.get("with", {}))
    nouns = {name: (getattr(report, name), members) for name, members in saying.get("each", {}).items()}
    return replace(report, **{name: tuple(replace(noun, **new) for noun in old) for name, (old, new) in nouns.items()})


class Forms:
    """What goes out of a report, or of a comparison, by form; without figures."""

    def __init__(self, report: Report, is_comparison: bool = False) -> None:
        self.report = report
        self.is_comparison = is_comparison

    @cached_property
    def shown(self) -> room.Pages:
        return room.pages(self.report, self.is_comparison, None)

    @cached_property
    def text(self) -> str:
        return comparison_screen.compare_text(self.report) if self.is_comparison else first_page.render(self.report)

    @cached_property
    def markdown(self) -> str:
        return markdown.page(self.shown.title, self.shown.sections)

    @cached_property
    def html(self) -> str:
        return html.page(self.shown.title, self.shown.sections, "0")

    @cached_property
    def json(self) -> str:
        return report_json.render(self.report, self.shown.sections)

    @cached_property
    def metrics(self) -> str:
        return report_json.metrics_text(self.report)

    @property
    def all(self) -> list[str]:
        return [self.text, self.markdown, self.html, self.json, self.metrics]
