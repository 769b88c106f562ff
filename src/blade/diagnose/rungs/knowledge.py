"""Ask whether wrong answers are the same every time or another each time: a knowledge gap, or unreliable knowledge.

Only where an answer can be compared; agent rollouts without one stay unexplained. With one try per task a wrong answer
is a wrong answer, and its cause stays undetermined.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blade.answers import value_of, words
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.fields import template
from blade.diagnose.groups import Findings, Group, count, explained, group, in_final, sentence, short
from blade.diagnose.population import Mask, Population, most_common
from blade.diagnose.reference import ANSWER_ORDER, Reference, answered, gives_answer
from blade.diagnose.rungs.cut import act_name, fails_at_first, goal_of, is_best_of_many, repeated

DOMINATES = 0.9
WORTH = 0.01  # points that a vote must win to be advised
READ = 0.8  # share of the passes whose results hold the gold, from which it must be found there
LIKE = 0.5  # share of words that two free answers have in common, from which they agree
RARELY = 0.5  # of the pass rate of all others, up to which what some rows do is no way to pass
MANY_NUMBERS = 5  # of a free answer, from which it is a list
MOST_COMPARED = 100  # free answers to one task that are compared, each with all others
NEAR = 0.01  # of a number, up to which two free answers give the same one
_NUMBERS = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
MAX_CLASSES = 6
ASKED, MAX_REPLY = 3, 400  # failures that ask back, from which they are a group; characters in which the question is
LOOP = 3  # times from which a call counts as repeated
ONE_SIDED = 5  # errors of one kind from which they are called one-sided


def ask(people: Population, left: Mask, reference: Reference | None) -> Findings:
    makes = (_asked_back, _unreadable, _bias, _unread)
    groups = [entry for make in makes if (entry := make(people, left, reference)) is not None]
    left = left & ~explained(people, groups)
    rows = left & _comparable(people, reference)
    if not rows.any():
        return Findings([*groups, *_never_accepted(people, left)])
    labels = np.full(people.n, "", object)
    for task in np.unique(people.task[rows]):
        every = people.task == task
        labels[every & rows] = _label(people, every & rows, every, reference)
    return Findings([*groups, _wrong(people, labels, reference)])


def _label(people: Population, rows: Mask, every: Mask, reference: Reference | None) -> str:
    """What the wrong answers to one task show beside all tries of it."""
    has_passed = people.passed[every].any()
    if every.sum() == 1 or (rows.sum() == 1 and not has_passed):
        return "undetermined"
    if has_passed:
        return "UK"
    if _agrees(people, rows, reference):
        return "KG"
    # whether long lists of numbers say the same is not for their digits to tell
    is_list = float(np.median([len(_NUMBERS.findall(row.final)) for row in people.of(rows)])) >= MANY_NUMBERS
    return "undetermined" if is_list and (reference is None or not reference.is_telling) else "UK"


def _unreadable(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Rows with a text in which the grader found no answer: the field that holds it in nearly all passes is empty."""
    if reference is None or not reference.is_telling or reference.source in ANSWER_ORDER:
        return None
    empty = people.where(gives_answer) & np.array([not (answer or "").strip() for answer in reference.answer], bool)
    if (empty & left).sum() < ASKED or (people.passed & empty).sum() > 0.02 * people.passed.sum():
        return None
    return group(
        "knowledge.unreadable", people, empty, left, path=reference.source, place=_place,
        detail=lambda i: f'it ends "…{short(people.rows[i].final.strip()[-80:], 80)}"',
    )  # fmt: skip


def _question(row: RowEvidence) -> str:
    return row.final[: row.final.rfind("?") + 1]


def _asked_back(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Single replies that ask a question, where no pass does: nothing was answered."""
    answers = people.where(gives_answer)
    # in a short reply or near the end of a long one
    rows = answers & people.where(lambda row: row.n_turns == 1 and "?" in row.final[-MAX_REPLY:])
    others = answers & ~rows
    if (rows & left).sum() < ASKED or people.passed[rows].any() or not others.any() or people.rate(others) < 0.1:
        return None
    return group(
        "knowledge.asks back", people, rows, left, place=in_final(lambda row: _question(row)[-90:]),
        detail=lambda i: f'it asks "…{short(_question(people.rows[i]).strip()[-90:], 90)}"',
    )  # fmt: skip


def _unread(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Wrong answers of rollouts to which no result showed the gold, where it is shown to nearly all that pass."""
    passes = [row.saw_gold for row in people.of(people.passed) if row.saw_gold is not None]
    rows = left & _comparable(people, reference) & people.where(lambda row: row.saw_gold is False)
    n = int(rows.sum())
    if len(passes) < 10 or sum(passes) < READ * len(passes) or n < 3:
        return None
    capped = int((rows & people.is_capped).sum())
    return group(
        "knowledge.cut results" if 2 * capped >= n else "knowledge.unread", people, rows, saw=sum(passes), passes=len(passes),
        capped=capped, top=max(row.longest[0] for row in people.rows), place=_place, detail=lambda i: answered(people, i, reference),
    )  # fmt: skip


def _wrong(people: Population, labels: NDArray[Any], reference: Reference | None) -> Group:
    """All wrong answers: one group, since the same fact shows them; the label is that of each task."""
    rows = labels != ""
    n, sizes = int(rows.sum()), Counter(labels[rows].tolist())
    label = max(("KG", "UK", "undetermined"), key=lambda name: sizes[name])
    label = label if 2 * sizes[label] >= n else "undetermined"  # no label holds for most of them
    is_closed = reference is not None and reference.is_telling
    parts = {
        "KG": "in tasks that never pass and whose repeats mostly agree (a knowledge gap)",
        "UK": "in tasks that pass sometimes or whose repeats differ (unreliable knowledge)",
        "undetermined": "where one answer, or answers that cannot be compared, do not tell a knowledge gap from chance",
    }
    n_right, n_tasks, score = _voted(people, reference) if sizes["UK"] else (0, 0, 0.0)
    voted = n_right / n_tasks if n_tasks else 0.0
    searched = _searched(people, rows)
    never_pass = np.isin(people.task[rows], people.task[people.passed]).mean() < 0.5
    fix = "review" if label == "KG" or (label == "undetermined" and sizes["KG"]) else "repeat"
    if label == "UK":
        fix = "vote_wins" if n_tasks and voted - score >= WORTH else "train_hard" if never_pass else "train"
    elif label == "undetermined" and searched:
        fix = "search"
    result = group(
        "knowledge.wrong", people, rows, closed=is_closed, place=_place, searched=searched, voted=voted, score=score,
        what="the answer differs from the expected one" if is_closed else "an answer was given and graded wrong",
        parts=", ".join(f"{sizes[name]:,} {where}" for name, where in parts.items() if sizes[name]),
        concentrated=_concentrated(people, rows), confused=_confused(people, rows, reference),
        vote=f" A majority vote over the repeats would pass {n_right:,} of {n_tasks:,} tasks ({voted:.1%})." if n_tasks else "",
        is_gap=label == "KG", is_unsure=label == "UK", is_open=label == "undetermined", **dict[str, Any]({fix: True}),
        detail=lambda i: answered(people, i, reference)
        + ("; most of its repeats say one and the same, so check the expected answer too" if labels[i] == "KG" else ""),
        against=["a wrong expected answer looks the same"] if sizes["KG"] or sizes["undetermined"] else [],
        label=label, confidence="unsure" if label == "undetermined" else "likely",
    )  # fmt: skip
    return replace(result, label_of=lambda i: str(labels[i]), most=0.0 if fix == "vote_wins" else None)


def _searched(people: Population, rows: Mask) -> str:
    """In how many of some rows no result holds the expected answer, beside the passes, as a sentence."""
    mine, passes = ([row.saw_gold for row in people.of(mask) if row.saw_gold is not None] for mask in (rows, people.passed))
    without, passed = mine.count(False), passes.count(False)
    if len(passes) < 5 or without < 3 or without / len(mine) < 1.5 * passed / len(passes):
        return ""
    return sentence("knowledge.searched", without=without, n=len(mine), passes_without=passed, passes=len(passes))


def _never_accepted(people: Population, left: Mask) -> list[Group]:
    """Where episodes stop on success: rows whose tries are mostly errors, and rows whose results are never accepted."""
    rows = left & people.where(lambda row: any(not act.failed for act in row.acts))
    if not is_best_of_many(people) or not rows.any():
        return []
    goal = goal_of(people, act_name)
    detail = lambda i: _tries(people.rows[i], goal)  # noqa: E731
    failing = people.where(lambda row: row.n_failed >= 3 and row.n_failed > 0.5 * row.n_acts)
    # where rows with as many errors pass about as often, errors are how one gets there
    wrong = rows & failing if people.rate(failing) <= RARELY * people.rate(~failing) else people.none
    rest = rows & ~wrong
    reply, n_reply = most_common(template(row.reply) for row in people.of(rest))
    is_often = reply and n_reply >= max(3, 0.1 * rest.sum())
    is_barred = fails_at_first(people) is not None
    errors = group(
        "knowledge.mostly errors", people, wrong, matched=failing, barred=is_barred, passes=int(people.passed.sum()), detail=detail,
        label="undetermined" if is_barred else "", confidence="unsure" if is_barred else "",
    )  # fmt: skip
    return [errors, group("knowledge.never accepted", people, rest, reply=reply, often=n_reply if is_often else 0, detail=detail)]


def _tries(row: RowEvidence, goal: str) -> str:
    """What became of the tries of a row: whether it made the call that ends passes, how many are errors, how the last is answered."""
    calls = sum(act_name(act) == goal for act in row.acts)
    # some errors do not read as such
    errors = f"at least {row.n_failed:,} of {count(row.n_acts, 'try', 'tries')} end in an error" if row.n_failed else ""
    empty = sum(act.is_empty for act in row.acts)
    last = next((act for act in reversed(row.acts) if act.is_answered), None)
    end = f'the last answer it gets is "{short(row.reply, 90)}"' if row.reply else ""
    parts = (
        f"`{short(goal, 60)}`, the call that ends the passes, is never made" if goal and not calls else "",
        errors,
        f"{empty:,} {'finds' if empty == 1 else 'find'} nothing" if empty else "",
        repeated(row) if row.most_made >= LOOP and not row.n_failed else "",
        f"the last one that is answered, in: {short(last.error, 90)}" if last is not None and last.failed and last.error else end,
    )
    return "; ".join(filter(None, parts))


def _comparable(people: Population, reference: Reference | None) -> Mask:
    """Rows that give an answer: compared with a gold, or the one text of a single turn."""
    single = people.where(gives_answer)
    if reference is None or not reference.is_telling:
        return single
    return (single | reference.held) & ~reference.same


def _agrees(people: Population, rows: Mask, reference: Reference | None) -> bool:
    """Whether more than half of some answers say the same."""
    is_closed = reference is not None and reference.is_telling
    texts = [(reference.answer[i] if reference is not None and is_closed else "") or people.rows[i].final for i in np.flatnonzero(rows)]
    if len(texts) < 2:
        return False
    if most_common(value_of(text) for text in texts if len(text) <= 100)[1] > 0.5 * len(texts):
        return True
    if is_closed:
        return False  # closed answers are compared as values alone
    claims = [_claim(people.rows[i], text) for i, text in zip(np.flatnonzero(rows), texts, strict=True)]
    claims = claims[:: len(claims) // MOST_COMPARED + 1]
    return max(sum(_say_the_same(claim, other) for other in claims) for claim in claims) > 0.5 * len(claims)


Claim = tuple[frozenset[str], list[float]]


def _claim(row: RowEvidence, text: str) -> Claim:
    """The words and the numbers of a free answer that its question does not say already; scores of a list in their order."""
    own = row.own_words or words(text)
    numbers = [number for number in _NUMBERS.findall(text) if number not in row.asked]
    return frozenset(word for word in own if not word.isdigit()), [float(number.replace(",", "")) for number in numbers]


_MONTHS = frozenset("january february march april june july august september october november december".split())  # `may` is a verb as well


def _say_the_same(first: Claim, second: Claim) -> bool:
    """Whether two free answers give the same numbers and months, and mostly the same words beside them."""
    (bag, numbers), (other, others) = first, second
    if len(numbers) != len(others) or any(abs(a - b) > NEAR * abs(a) for a, b in zip(numbers, others, strict=True)):
        return False
    if bag & _MONTHS != other & _MONTHS:
        return False
    is_one_number = len(numbers) == 1 and (bool(bag & other) or not bag or not other)
    return is_one_number or (len(bag & other) >= LIKE * len(bag | other) and bool(bag or numbers))


def _bias(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """One closed answer that is given whatever is expected; or wrong answers that all lie on one expected answer of few."""
    if reference is None or not reference.is_telling:
        return None
    golds, answers = ([value_of(text) if text else None for text in texts] for texts in (reference.gold, reference.answer))
    expected, actual = (Counter(value for value in values if value is not None) for values in (golds, answers))
    wrong = np.flatnonzero(left & reference.held & ~reference.same).tolist()
    if not 2 <= len(expected) <= MAX_CLASSES or len(wrong) < 10:
        return None
    value, n = most_common(answers[i] for i in wrong)
    shares = actual[value] / actual.total(), expected[value] / expected.total()
    if n >= DOMINATES * len(wrong) and shares[0] >= 0.7 and shares[1] <= 0.6:
        rows = people.mask(i for i in wrong if answers[i] == value)
        return group("knowledge.bias", people, rows, shown=str(value[1]), given=shares[0], expected=shares[1])
    value, n = most_common(golds[i] for i in wrong)
    inside = np.array([gold == value for gold in golds], bool)
    if n < DOMINATES * len(wrong) or people.rate(inside) > 0.5 * people.rate(~inside) or people.n_tasks(inside) < 3:
        return None
    result = group(
        "knowledge.blind spot", people, people.mask(i for i in wrong if inside[i]), matched=inside & reference.held & ~reference.same,
        shown=next(gold for gold, is_inside in zip(reference.gold, inside, strict=True) if gold and is_inside).strip(),
        inside=people.rate(inside), outside=people.rate(~inside), place=_place,
    )  # fmt: skip
    return replace(result, name=result.name[:90])


def _place(row: RowEvidence) -> tuple[int, str] | None:
    """The end of the answer, where it says what it comes to."""
    text = row.final.strip()
    end = text if len(text) <= 120 else text[-120:].partition(" ")[2]
    return (row.final_step, end) if row.final_step is not None else None


def _confused(people: Population, rows: Mask, reference: Reference | None) -> str:
    """Which closed answers stand for which golds, where there are few."""
    if reference is None or not reference.is_telling:
        return ""
    golds = {value_of(gold) for gold in reference.gold if gold}
    errors = np.flatnonzero(people.failed & reference.held & ~reference.same)
    if len(golds) < 2 or not errors.size:
        return ""
    (gold, answer), n = most_common((reference.gold[i], reference.answer[i]) for i in errors)
    of_gold = np.array([other == gold for other in reference.gold], bool)
    if len(golds) > MAX_CLASSES:
        is_often = n >= 2 * ONE_SIDED and n >= 0.5 * of_gold.sum() and people.n_tasks(of_gold) >= 3
        return sentence("knowledge.confused", gold=gold, n=n, of_gold=int(of_gold.sum()), answer=answer) if is_often else ""
    facts = {"gold": gold, "answer": answer, "inside": people.rate(of_gold), "outside": people.rate(~of_gold)}
    return sentence("knowledge.one-sided", n=n, errors=errors.size, **facts) if n >= max(ONE_SIDED, 0.6 * errors.size) else ""


def _concentrated(people: Population, rows: Mask) -> str:
    """Which few tasks hold most of some rows, as a sentence."""
    by_task = Counter(people.task[rows].tolist())
    if len(by_task) < 5:
        return ""
    n, names = 0, list[str]()
    for task, number in by_task.most_common(max(1, len(by_task) // 4)):
        n += number
        names.append(people.name_of(task))
        if n >= 0.5 * rows.sum():
            listed = ", ".join([*names[:5], "…"] if len(names) > 5 else names)
            return sentence("knowledge.concentrated", n=n, tasks=len(names), names=listed)
    return ""


def _voted(people: Population, reference: Reference | None) -> tuple[int, int, float]:
    """How many tasks the most frequent answer of each would pass, of how many, and their score without; zeros where none can be told."""
    if reference is None or not reference.is_telling or not people.has_repeats:
        return 0, 0, 0.0
    right, rates = 0, []
    for task in np.unique(people.task):
        own = people.task == task
        answers = {i: value_of(reference.answer[i] or "") for i in np.flatnonzero(own & reference.held).tolist()}
        best, n = most_common(answers.values())
        right += bool(n and np.mean([people.passed[i] for i, answer in answers.items() if answer == best]) > 0.5)
        rates.append(people.rate(own))
    return right, len(rates), float(np.mean(rates))
