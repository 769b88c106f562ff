"""Find what a text is about: the runs, tasks, buckets, causes and other entities that it names."""

from __future__ import annotations

import re
from functools import cached_property

from blade.facts import names
from blade.facts.known import Known
from blade.facts.query import running
from blade.prose.slots import CODE, slots

Entity = tuple[str, str]

IS_TASK = re.compile(r"\btasks?\b|\bkeys?\b")
_TASK = re.compile(r"\btasks? ([^\s,;:()`]+)")
_REPEAT = re.compile(r"\brepeat (\d+)\b")
_AT = re.compile(r"(?:[@^]|\bk = |\b[Gg]iven |\ball |\bone of )(\d+)\b")
# Entities that a text names by words of ours rather than by their value.
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "cause": names.CAUSES,
    "bucket": names.BUCKETS,
    "measure": names.MEASURES,
    "outcome": {**names.OUTCOMES, "timed_out": ("timed out",)},
}
SIDES = {"before": "baseline", "after": "candidate"}  # of a move between buckets
IMPLIED = {("view", "bridge")}
# Texts that stand for what they are about.
TOLD = ("recommendation_action", "mechanism_text", "run_cause_text", "mover_text", "contrast_text")
_START = 48  # characters that such a text is known by
_SHORT = 3  # values of fewer signs are known only where they stand as code, or as a whole word


def places(code: str) -> list[str]:
    """The tasks that a code span may name: one, or several as TASK/REPEAT."""
    parts = code.split()
    return parts if len(parts) == 1 or all("/" in part for part in parts) else []


class Spoken:
    """The entities of all facts by how texts name them."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._cache: dict[str, frozenset[Entity]] = {}

    def of(self, text: str) -> frozenset[Entity]:
        """The entities that a text names; runs as ("run", name), tasks as ("task", key)."""
        if text not in self._cache:
            self._cache[text] = frozenset(self._found(text))
        return self._cache[text]

    def _found(self, text: str) -> set[Entity]:
        lower = text.lower()
        found = {entity for phrase, entity in self._phrases if phrase in lower}
        words = {word.strip(".-") for word in re.findall(r"[\w.-]+", lower)}
        found |= {entity for word, entity in self._words if word in words}
        spans = [slot for slot in slots(text) if slot.kind == CODE]
        codes = [slot.text for slot in spans]
        for slot in spans:
            found |= self._codes.get(slot.text, set())
            if slot.text.isdigit() and not IS_TASK.search(lower[: slot.start]):
                continue
            for part in places(slot.text):
                found |= self._task(part)
        found |= {("repeat", hit[1]) for hit in _REPEAT.finditer(lower)}
        for hit in _TASK.finditer(text):
            found |= self._task(hit[1])
        for code in codes:
            found |= {("slice", f"{code}={other}") for other in codes}
        flat = running(text)
        for start, entities in self._told:
            if start in flat:
                found |= entities
        return found | {("k", hit[1]) for hit in _AT.finditer(text)}

    def cell(self, text: str, header: str) -> frozenset[Entity]:
        """The entities that the first cell of a row names, however short, and its task."""
        header = header.lower()
        codes = [slot.text for slot in slots(text) if slot.kind == CODE]
        tasks = self._task(codes[0]) if codes and "task" in header else set()
        held = self._values.get(text.strip("`"), ())
        only = "recommendation" if header == "rank" else None
        return frozenset(tasks) or frozenset(
            entity for entity in held if entity[0] != "task" and only in (None, entity[0])
        )

    @cached_property
    def _values(self) -> dict[str, list[Entity]]:
        found: dict[str, list[Entity]] = {}
        for entity in self._entities:
            found.setdefault(entity[1], []).append(entity)
        return found

    def card(self, name: str, label: str) -> frozenset[Entity]:
        """The measure of the accuracy card that a row is about, of the set that is told before it."""
        name = name.lower()
        return frozenset(entity for of, entity in self._cards.get(label.lower(), ()) if of in name)

    @cached_property
    def _cards(self) -> dict[str, list[tuple[str, Entity]]]:
        found: dict[str, list[tuple[str, Entity]]] = {}
        for kind, value in self._entities:
            if kind == "accuracy":
                parts = value.removeprefix("sets / ").split(" / ")
                label = " ".join(parts[1:]).replace("_", " ")
                found.setdefault(label, []).append((parts[0], (kind, value)))
        return found

    def is_place(self, word: str) -> bool:
        """Whether a word names a task or one of its repeats."""
        return bool(self._task(word))

    def _task(self, text: str) -> set[Entity]:
        """A task by its key or name, and its repeat where `TASK/REPEAT` is told."""
        if self._known.keys(text):
            return {("task", key) for _, key in self._known.keys(text)}
        task, _, repeat = text.rpartition("/")
        if task and repeat.isdigit() and self._known.keys(task):
            return {("task", key) for _, key in self._known.keys(task)} | {("repeat", repeat)}
        return set()

    @cached_property
    def _entities(self) -> list[Entity]:
        return list(dict.fromkeys(entity for fact in self._known.all for entity in fact.scope))

    @cached_property
    def _codes(self) -> dict[str, set[Entity]]:
        found: dict[str, set[Entity]] = {}
        for kind, value in self._entities:
            if kind != "task" and not value.isdigit():
                found.setdefault(value, set()).add((kind, value))
        for run in self._known.report.runs:
            for name in filter(None, (run.name, run.model)):
                found.setdefault(name, set()).add(("run", run.name))
        return found

    @cached_property
    def _spoken(self) -> list[tuple[str, Entity]]:
        found: list[tuple[str, Entity]] = []
        for kind, value in self._entities:
            if kind in ("task", "repeat", "k", "accuracy", "gap") or value.isdigit():
                continue
            if kind in SIDES:
                found.append((f"{value.lower()} in the {SIDES[kind]}", (kind, value)))
                continue
            told: tuple[str, ...] = (value.lower(), value.lower().replace("_", " "))
            if value in WORDS.get(kind, {}):
                told += tuple(one.replace("{k}", "") for one in WORDS[kind][value])
            found += [(phrase, (kind, value)) for phrase in dict.fromkeys(told) if phrase]
        return found

    @cached_property
    def _told(self) -> list[tuple[str, set[Entity]]]:
        """What begins the text of a finding, an action or the like, and what that text is about."""
        found: dict[str, set[Entity]] = {}
        for fact in self._known.all:
            if fact.subject in TOLD and fact.scope and isinstance(fact.value, str):
                start = running(fact.value)[:_START]
                if len(start) >= _START // 2:
                    found.setdefault(start, set()).update(fact.scope)
        return list(found.items())

    @cached_property
    def _phrases(self) -> list[tuple[str, Entity]]:
        return [(phrase, entity) for phrase, entity in self._spoken if len(phrase) > _SHORT]

    @cached_property
    def _words(self) -> list[tuple[str, Entity]]:
        return [(phrase, entity) for phrase, entity in self._spoken if len(phrase) <= _SHORT]
