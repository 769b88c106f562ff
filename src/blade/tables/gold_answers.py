"""Find what a rollout answered and what its task expects, and compare the two once both are normalised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blade.answers import normalised
from blade.formats.assemble import Assembled
from blade.formats.rollout_ends import SOURCES
from blade.formats.single_rows import input_rows
from blade.tables.database import Array, coded, is_none, masked, spelled

# Names only break ties between fields that behave alike, and choose where nothing passes.
_GOLD_NAMES = (
    "expected_answer expected_output gold_answer gold ground_truth reference_answer correct_answer target "
    "answer_key label solution answer expected_outputs".split()
)
AGREES = 0.9  # share of the passes whose answer equals the gold, from which a field is taken for it
MAX_FIELDS = 400  # tried as gold or as answer
SAMPLE = 2_000  # rows of each outcome that fields are compared by
FEW = 50  # failing rows that tell most fields apart from an answer


Sources = dict[str, Array]  # the places where answers stand: a text or None for each row


@dataclass(frozen=True)
class Answers:
    """What the rows answer and expect."""

    sources: Sources
    answer: Array  # by the source that is taken for the answer
    gold: Array
    is_telling: bool  # passing answers equal the gold

    def equals(self, texts: Array) -> Array:
        """Whether each text is the gold once both are normalised; masked where that says nothing."""
        same = equal(texts, self.gold)
        return same if self.is_telling else masked(np.ma.getdata(same), np.ones(len(same), bool))


def equal(texts: Array, others: Array) -> Array:
    """Whether texts are equal once both are normalised; masked where one of them is missing."""
    forms = {text: normal(text) for text in {*texts.tolist(), *others.tolist()}}
    pairs = [(forms[text], forms[other]) for text, other in zip(texts.tolist(), others.tolist(), strict=True)]
    same = np.array([first == second for first, second in pairs], bool)
    return masked(same, np.array([not first or not second for first, second in pairs], bool))


def normal(text: str | None) -> str:
    """The form in which equal answers are equal."""
    return normalised(text) if text is not None else ""


def answers(run: Assembled, passed: Array, fields: dict[str, Array], task_level: set[str]) -> Answers:
    """What was answered and expected; `fields` are short scalars of the rows as texts, by path."""
    order = run.rollouts.row_id
    sources = _spoken(run, order)
    golds = {**{name: fields[name] for name in fields if name in task_level}, **_input_fields(run)}
    # the rows by which fields are compared: all, or as many of each outcome as tell enough, evenly spaced
    halves = [np.flatnonzero(passed), np.flatnonzero(~passed)]
    rows = np.sort(np.concatenate([half[:: max(1, len(half) // SAMPLE)] for half in halves]))
    gold_field = _gold(golds, sources, passed, rows)
    none = np.full(len(order), None, object)
    gold = golds[gold_field] if gold_field else none
    own = {name: texts for name, texts in fields.items() if name != gold_field}
    # the field in which the rows keep their own answer: passes hold the gold in it, failures do not
    names = [name for name in own if name not in task_level][:MAX_FIELDS]
    extracted = _first_best({name: _agreement(own[name][rows], gold[rows], passed[rows]) for name in names})
    extracted = extracted or _repeated(own, sources, passed, rows)
    if extracted is not None:
        # none for an empty text: a verifier that writes nothing down has read no answer
        own_answers = [text if text and text.strip() else None for text in fields[extracted].tolist()]
        sources = {"field": np.array(own_answers, object), **sources}
    answer = sources.get("field", none)
    if sources and extracted is None:  # whose answers go with passing; else the first: a box, a tag, a line, a call
        answer = max(sources.values(), key=lambda texts: _agreement(texts[rows], gold[rows], passed[rows]))
    # being equal can be what is judged if most answers that pass are the gold, where three or more do
    same = equal(answer, gold)
    right = np.ma.getdata(same)[passed & ~np.ma.getmaskarray(same)]
    return Answers(sources, answer, gold, len(right) < 3 or float(right.mean()) >= 0.5)


def _spoken(run: Assembled, order: Array) -> Sources:
    """The answers that messages and last calls give."""
    codes, texts = run.rows.texts("answer")
    answers = coded(codes[order], texts)
    source = run.rows.numbers("answer_source")[order].astype(int)
    nothing = np.full(len(answers), None, object)
    sources = {name: np.where(source == code, answers, nothing) for code, name in enumerate(SOURCES) if code}
    codes, texts = run.rows.texts("submitted")
    sources["call"] = coded(codes[order], texts)
    return {name: texts for name, texts in sources.items() if not is_none(texts).all()}


def _input_fields(run: Assembled) -> dict[str, Array]:
    """Fields that only the materialised inputs hold, for each row the value of its task."""
    if run.inputs is None:
        return {}
    rollouts, first = run.rollouts, input_rows(run)
    rows = np.array([first.get(key, -1) for key in rollouts.task_keys], np.int64)[rollouts.task]
    columns = {}
    names = [("f", name) for name in run.inputs.fields()] + [("s", path) for path in run.inputs.paths()]
    for family, name in names[:MAX_FIELDS]:
        values = run.inputs.values(name, family)
        texts = np.array([*coded(values.code, values.texts), None], object)
        for row in np.flatnonzero(values.kind == 3).tolist():
            texts[row] = spelled(float(values.number[row]))
        column = texts[rows]
        if name not in rollouts.fields and not is_none(column).all():
            columns[name] = column
    return columns


def _gold(golds: dict[str, Array], sources: Sources, passed: Array, rows: Array) -> str | None:
    """The field that passing answers equal; where none is shown to be, the first that is named like one."""
    named = sorted((name for name in golds if _rank(name) < len(_GOLD_NAMES)), key=lambda n: (_rank(n), n))
    others = [name for name in golds if name not in named][:MAX_FIELDS]
    share = {
        name: max((_agreement(texts[rows], golds[name][rows], passed[rows]) for texts in sources.values()), default=0.0)
        for name in (*named, *others)
    }
    return _first_best(share) or (named[0] if named else None)


def _first_best(share: dict[str, float]) -> str | None:
    """The first name with the highest share, if that is high enough."""
    best = max(share, key=share.__getitem__, default=None)
    return best if best is not None and share[best] >= AGREES else None


def _rank(name: str) -> int:
    last = name.rpartition(".")[2].lower()
    return _GOLD_NAMES.index(last) if last in _GOLD_NAMES else len(_GOLD_NAMES)


def _agreement(texts: Array, gold: Array, passed: Array) -> float:
    """The share of passes whose text equals the gold; 0 where as many failures do, which says nothing."""
    same = equal(texts, gold)
    both, plain = ~np.ma.getmaskarray(same), np.ma.getdata(same)
    right, wrong = plain[passed & both], plain[~passed & both]
    if len(right) < 3:
        return 0.0
    share = float(right.mean())
    return share if not len(wrong) or share > float(wrong.mean()) else 0.0


def _repeated(fields: dict[str, Array], sources: Sources, passed: Array, rows: Array) -> str | None:
    """The field that repeats what was said, in failures too: what a verifier read, not what it expects."""
    wrong = rows[~passed[rows]]
    few = wrong[:: max(1, len(wrong) // FEW)]  # most fields are told by these
    best, name_of_best = 0.0, None
    for name in list(fields)[:MAX_FIELDS]:
        for texts in (texts for texts in sources.values() if _share(fields[name], texts, few) > 0.5):
            share = min(_share(fields[name], texts, chosen) for chosen in (wrong, rows))
            if share >= AGREES and share > best:
                best, name_of_best = share, name
    return name_of_best


def _share(texts: Array, others: Array, rows: Array) -> float:
    """The share of some rows in which two texts are equal; 0 where fewer than half of them hold both."""
    same = equal(texts[rows], others[rows])
    both = np.ma.getdata(same)[~np.ma.getmaskarray(same)]
    return float(both.mean()) if len(both) >= max(3, len(rows) / 2) else 0.0
