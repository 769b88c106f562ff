"""Check what a lead-in or note announces against the table or list beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from blade.check.arithmetic.figures import Figure, phrase
from blade.check.arithmetic.labels import PARTIAL, pattern, summary
from blade.check.arithmetic.tables import Contradiction, Grid
from blade.check.document import Cell, Document, List, Row, Sentence, Table

_ANNOUNCES = pattern(
    "split* break_down breaks_down broken_down breakdown divid* distribut* categor* classif* fall_into by "
    "below grouped following as_follows compris* consist* made_up sorted assigned attribut* spread causes",
    "|:$",
)
_ADDS = re.compile(r"\b(?:sums?|adds? up|add|total|amounts?) to (?:the )?⟨(\d+)n⟩")


def unmet(grids: Sequence[Grid]) -> Iterator[Contradiction]:
    """Numbers that a text announces and the table or list beside it does not have."""
    for source in grids:
        columns = [source.sums(series) for series in source.series if series.role in ("value", "top")]
        sums, is_stated = {sums[0].value for sums in columns if sums}, any(sums[1:] for sums in columns)
        above, below = source.table.lead[-2:], source.table.note[:1]
        lead = [(figure, sentence) for sentence in above for figure in phrase(sentence.text).figures]
        text = " ".join(sentence.text for sentence in above)
        is_sure = is_stated or any(figure.value in sums for figure, _ in lead)
        if _ANNOUNCES.search(text) and (is_sure or not PARTIAL.search(text)):
            yield from _missed(source, lead, sums)
        for sentence in below:
            words = phrase(sentence.text)
            said = [(words.figures[int(hit[1])], sentence) for hit in _ADDS.finditer(words.text)]
            yield from _missed(source, said, sums)


def _missed(source: Grid, said: list[tuple[Figure, Sentence]], sums: set[float]) -> Iterator[Contradiction]:
    """One announced number that no column adds up to, and one sum close by that nothing announces."""
    met = (0, *sums, sum(not summary(name) for name in source.names))
    left = sums - {figure.value for figure, _ in said}
    rest = [(figure, sentence) for figure, sentence in said if figure.is_count and figure.value not in met]
    near = [(pair, value) for pair in rest for value in left if abs(value / pair[0].value - 1) <= 0.2]
    if len(near) == 1:
        (figure, sentence), value = near[0]
        why = f"the table or list adds up to {value:,.0f}, this announces {figure.text}"
        lines = (*range(sentence.line, sentence.last_line + 1), *(row.line for row in source.table.rows))
        expected = f"{value:,.0f}"
        yield Contradiction(sentence.line, lines, "announced", sentence.text, figure.text, expected, why)


_COUNT, _SHARED = r"(?P<count>⟨\d+n⟩)", r"(?: ?[(,] ?(?P<share>⟨\d+%⟩)\)?)?"
_HEADED = rf"(?P<name>[^⟨⟩()]{{2,80}}?) \({_COUNT} [a-z-]+{_SHARED}\)?"
_LABELLED = (
    rf"(?P<name>[^:]{{2,80}}?)(?::| [—–-]) ?{_COUNT}(?: of (?P<whole>⟨\d+n⟩))?"
    rf"(?P<noun>(?: [a-z-]+){{0,2}}){_SHARED}(?:[ ,.;(].*)?"
)
_COUNTED = rf"{_COUNT}{_SHARED} (?P<name>[^⟨⟩.;:(]{{2,80}}?)(?: ?\((?P<later>⟨\d+%⟩)\))?(?:[.;:(,].*)?"


def as_tables(document: Document) -> Iterator[Table]:
    """Lists of counts as tables: `- Timeouts: 31 (7.5%)`, `- 31 timeouts`, `## Timeouts (31 rollouts)`."""
    headings = (sentence for sentence in document.sentences if sentence.kind == "heading")
    headed = tuple((title,) for title in headings if re.fullmatch(_HEADED, phrase(title.text).text))
    for listed in (*document.lists, List(headed, 0, ())):
        if (table := _as_table(listed)) is not None:
            yield table


def _as_table(listed: List) -> Table | None:
    rows, nouns = [], set()
    for item in listed.items:
        words = phrase(item[0].text if item else "")
        hits = (re.fullmatch(form, words.text) for form in (_LABELLED, _COUNTED, _HEADED))
        groups = next((hit.groupdict() for hit in hits if hit), None)
        if groups is None:
            return None
        tokens = groups["count"], groups.get("whole"), groups["share"] or groups.get("later")
        count, whole, share = (words.figures[int(token[1:-2])].text if token else "" for token in tokens)
        text = f"{count}{' of ' * bool(whole)}{whole}{f' ({share})' if share else ''}"
        nouns.add((groups.get("noun") or "").strip())
        rows.append(Row((Cell((groups["name"] or "").strip(" *")), Cell(text)), item[0].line))
    header = Cell(""), Cell(nouns.pop() if len(nouns) == 1 else "")
    return Table(header, tuple(rows), listed.line, listed.headings, listed.lead) if len(rows) > 1 else None
