"""List what a report states without a source: uncited numbers, and causes that rest on nothing it cites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from blade.check.arithmetic.figures import phrase
from blade.check.cited_numbers import Answers, Cited, is_sentence
from blade.check.ids import mentions, numbered, runs_named, step_spans, with_noun
from blade.check.passages import Passage, blanked, quotes_in
from blade.check.suggestions import Suggestions
from blade.check.world import World
from blade.model.checked import OPINION, UNCITED, Finding
from blade.model.measured import PLACEHOLDER
from blade.query.figures import last_figure
from blade.query.ground import value

Spans = list[tuple[int, int]]
_NUMBERING = re.compile(r"^\s*(?:\d+(?:\.\d+)*[.)]?|\(?\d+\))\s+")
_ID_HEADS = "# no. no k rank step steps line row repeat task rollout id index version seed date year".split()
_DAY = re.compile(
    r"\b\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]*\b"
)
_COUNTED = re.compile(r"(count|tasks)\b(?! *[.(])")
_CAUSE = re.compile(
    r"\b(?:because|due to|owing to|caus(?:ed by|ing|es? (?:the|an?|this|it|these|most|all|many))|thanks to"
    r"|as a result|result(?:s|ed|ing)? (?:in|from)|leads? to|led to|driven by|stem(?:s|med)? from"
    r"|explain(?:s|ed)?|(?:the|main|root) reason)\b",
    re.IGNORECASE,
)


def uncited(passages: list[Passage], items: list[Cited], answers: Answers, world: World) -> Iterator[Finding]:
    """One finding for each number that nothing is cited for, with the query that would give it."""
    suggestions, taken = Suggestions(world), _taken(passages, items, answers)
    covered = {line for item in items if item.passage is None for line in item.lines}
    for passage in passages:
        if passage.line in covered or (passage.kind == "cell" and _is_label(passage)):
            continue
        runs = runs_named(" ".join((passage.text, *passage.headings)), world.rows.runs)
        for figure in phrase(_masked(passage, taken.get(id(passage), []), world)).figures:
            query = suggestions.query(figure, runs)
            why = f"{figure.text} = {query}; cite it?" if query else ""
            place = (passage.line, passage.lines, passage.text, figure.text, query or "", "", why, query)
            yield Finding(UNCITED, "number", *place)
    yield from _wholes(items, answers)


def _wholes(items: Sequence[Cited], answers: Answers) -> Iterator[Finding]:
    """What a cited count is said to be out of, where that is not all there are: `84 of 999`."""
    for item in items:
        figure, counted = last_figure(item.before), _COUNTED.match(item.citation.query)
        if figure is None or figure.whole is None or counted is None:
            continue
        if len(answers.runs) > 1 or value(counted[1], answers) != figure.whole:
            yield Finding(UNCITED, "number", item.line, item.lines, item.text, f"{figure.whole:,g}")


def _taken(passages: Sequence[Passage], items: Sequence[Cited], answers: Answers) -> dict[int, Spans]:
    """What is cited in each passage; of a sentence of the engine, all of it back to the citation before."""
    taken: dict[int, Spans] = {}
    whole: set[int] = set()  # passages that belong to such a sentence from their beginning
    for item in items:
        start = item.after if is_sentence(item, answers) else item.start
        taken.setdefault(id(item.passage), []).append((start, item.end))
        whole |= {id(item.passage)} if start < item.start and not start else set()
    for passage, following in zip(reversed(passages[:-1]), reversed(passages[1:]), strict=True):
        if id(following) in whole and following.before and id(passage) not in taken:
            taken[id(passage)] = [(0, len(passage.own))]
            whole.add(id(passage))
    return taken


def _is_label(passage: Passage) -> bool:
    """Whether a cell names its row, or its column names things by number."""
    is_named = passage.header.strip().lower() in _ID_HEADS or with_noun(passage) != passage.own
    return is_named or (passage.column == 0 and re.fullmatch(r"[\W\d]*", passage.own) is not None)


def _masked(passage: Passage, taken: Spans, world: World) -> str:
    """A passage without what is cited, quoted or named by a number."""
    text = blanked(passage.own, taken)
    text = blanked(text, [hit.span() for pattern in (PLACEHOLDER, _DAY) for hit in pattern.finditer(text)])
    text = blanked(text, [(start, end) for _, start, end in quotes_in(text)])
    names = [(name.start, name.end) for name in numbered(text)] + step_spans(text)
    text = blanked(text, names + [(name.start, name.end) for name in mentions(text, world.rows)])
    return _NUMBERING.sub("", text) if passage.kind == "heading" else text


def opinions(passages: Sequence[Passage]) -> Iterator[Finding]:
    """Causal sentences that neither cite nor quote anything."""
    for passage in passages:
        cause = _CAUSE.search(passage.own) if passage.kind in ("sentence", "item") else None
        is_cited = any(re.match(r"blade:|c\d+$", comment.text) for comment in passage.comments)
        if cause is not None and not is_cited and not any(True for _ in quotes_in(passage.own)):
            yield Finding(OPINION, "cause", passage.line, passage.lines, passage.text, cause[0])
