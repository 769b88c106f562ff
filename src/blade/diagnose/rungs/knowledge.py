"""Ask whether wrong answers are the same every time or another each time: a knowledge gap, or unreliable knowledge.

Only where an answer can be compared; agent rollouts without one stay unexplained. With one try per task a wrong answer
is a wrong answer, and its cause stays undetermined.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from blade.diagnose.answers import value_of, words
from blade.diagnose.population import Findings, Group, Mask, Population, count
from blade.diagnose.reference import Reference
from blade.diagnose.rungs.cut import is_best_of_many

DOMINATES = 0.9
LIKE = 0.6  # share of words that two free answers have in common, from which they agree
MAX_CLASSES = 6
ONE_SIDED = 5  # errors of one kind from which they are called one-sided


def ask(people: Population, left: Mask, reference: Reference | None) -> Findings:
    found = Findings()
    bias = _bias(people, left, reference) or _blind_spot(people, left, reference)
    if bias is not None:
        found.groups.append(bias)
        left = left & ~bias.rows
    rows = left & _comparable(people, reference)
    if not rows.any():
        return Findings([*found.groups, *_never_accepted(people, left)])
    single, gap, unsure = people.none, people.none, people.none
    for task in np.unique(people.task[rows]):
        mine = (people.task == task) & rows
        every = people.task == task
        if every.sum() == 1:
            single |= mine
        elif people.passed[every].any() or not _agrees(people, mine, reference):
            unsure |= mine
        else:
            gap |= mine
    if (gap.any() or unsure.any()) and not _is_closed(reference):
        found.groups.append(_free(people, gap, unsure))
        gap, unsure = people.none, people.none
    for mask, make in ((gap, _gap), (unsure, _unsure), (single, _single)):
        if mask.any():
            found.groups.append(make(people, mask, reference))
    return found


def _is_closed(reference: Reference | None) -> bool:
    """Whether answers can be compared exactly: numbers, letters and literals that passes share with the gold."""
    return reference is not None and reference.is_telling


def _free(people: Population, gap: Mask, unsure: Mask) -> Group:
    """Wrong answers in free words: one group, since whether two of them say the same is only likely."""
    rows = gap | unsure
    n, n_tasks = int(rows.sum()), people.n_tasks(rows)
    n_gap, n_unsure = int(gap.sum()), int(unsure.sum())
    label = "KG" if n_gap >= n_unsure else "UK"
    return Group(
        rung="knowledge", label=label, name="answer graded wrong", rows=rows,
        text=f"{count(n, 'failure')} in {count(n_tasks, 'task')}: an answer that was graded wrong, {n_gap:,} in tasks that never pass and "
        "whose repeats "
        f"mostly say the same (a knowledge gap), {n_unsure:,} in tasks that pass sometimes or whose answers differ (unreliable "
        "knowledge).",
        fix="Add training data or retrieval for tasks that never pass, after a look at their expected answers; vote over several "
        "samples for the others.",
        why="the answers are compared word by word, so which of the two labels holds is only likely", matched=rows,
        label_of=lambda at: "KG" if gap[at] else "UK",
        place=_place, against=["a wrong expected answer looks the same"],
    )  # fmt: skip


def _never_accepted(people: Population, left: Mask) -> list[Group]:
    """Where episodes stop on success: rows whose calls work, and whose results are never accepted."""
    rows = left & people.where(lambda row: any(not act.failed for act in row.acts))
    if not is_best_of_many(people) or not rows.any():
        return []
    n = int(rows.sum())
    reply, n_reply = Counter(people.rows[at].reply for at in np.flatnonzero(rows)).most_common(1)[0]
    often = n_reply >= 3 and n_reply >= 0.1 * n and reply
    answer = f" The last answer of the environment begins most often: {reply[:110]} ({count(n_reply, 'rollout')})." if often else ""
    return [
        Group(
            rung="knowledge", label="undetermined", name="no try is accepted", rows=rows,
            text=f"{count(n, 'failure')}: no result is accepted in as many tries as the run allows."
            f"{answer} Which of these are errors of the model and which of the environment the rows do not show.",
            fix="Read two of these rollouts beside the expected result: a wrong reading of the question, or of the data?",
            why="no try was accepted; without the expected result nothing more can be said",
            confidence="unsure", matched=rows, place=lambda row: (row.acts[-1].step, "") if row.acts else None,
            blame=lambda row: None,
        )
    ]  # fmt: skip


def _comparable(people: Population, reference: Reference | None) -> Mask:
    """Rows that give an answer: compared with a gold, or the one text of a single turn."""
    single = people.where(
        lambda row: (
            row.final.strip()
            and row.end == "message"
            and (
                (row.n_acts <= 1 and row.is_spoken)
                or (bool(row.gold_text) and row.expected is None and not row.is_spoken)
            )
        )
    )
    if reference is None:
        return single
    if not reference.is_telling:
        return single
    return (single | reference.held) & ~reference.same


def _text(people: Population, at: int, reference: Reference | None) -> str:
    answer = reference.answer[at] if reference is not None else None
    return answer or people.rows[at].final


def _agrees(people: Population, rows: Mask, reference: Reference | None) -> bool:
    """Whether more than half of some answers say the same."""
    texts = [_text(people, int(at), reference) for at in np.flatnonzero(rows)]
    if len(texts) < 2:
        return False
    counts = Counter(value_of(text) for text in texts if len(text) <= 100)
    if counts and counts.most_common(1)[0][1] > 0.5 * len(texts):
        return True
    bags = [words(text) for text in texts]
    near = [
        sum(len(bag & other) >= LIKE * max(len(bag | other), 1) for other in bags if bag and other) for bag in bags
    ]  # fmt: skip
    return max(near) > 0.5 * len(texts)


def _bias(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """One closed answer that is given whatever is expected."""
    if reference is None or not reference.is_telling:
        return None
    golds = Counter(value_of(gold) for gold in reference.gold if gold)
    if not 2 <= len(golds) <= MAX_CLASSES:
        return None
    wrong = np.flatnonzero(left & reference.held & ~reference.same).tolist()
    given = Counter(value_of(reference.answer[at] or "") for at in wrong)
    if len(wrong) < 10 or not given:
        return None
    value, n = given.most_common(1)[0]
    overall = [value_of(answer) for answer in reference.answer if answer]
    if (
        n < DOMINATES * len(wrong)
        or overall.count(value) < 0.7 * len(overall)
        or golds[value] > 0.6 * sum(golds.values())
    ):
        return None
    rows = people.none
    rows[[at for at in wrong if value_of(reference.answer[at] or "") == value]] = True
    shown = str(value[1])
    return Group(
        rung="knowledge", label="BI", name=f"answers `{shown}` whatever is expected", rows=rows,
        text=f"{count(int(rows.sum()), 'failure')}: the answer is `{shown}`, which "
        f"{overall.count(value) / len(overall):.0%} of all answers are, "
        f"while it is expected in {golds[value] / sum(golds.values()):.0%} of the rows: a bias, not a lack of knowledge case by case.",
        fix="Balance the prompt's examples and options, or calibrate the decision threshold.",
        why="one answer dominates whatever the gold is", matched=rows,
        place=lambda row: (row.final_step, "") if row.final_step is not None else None,
    )  # fmt: skip


def _blind_spot(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Wrong answers that all lie on one class of the gold, while the model is right on the others."""
    if reference is None or not reference.is_telling:
        return None
    golds = Counter(value_of(gold) for gold in reference.gold if gold)
    if not 2 <= len(golds) <= MAX_CLASSES:
        return None
    wrong = np.flatnonzero(left & reference.held & ~reference.same).tolist()
    missed = Counter(value_of(reference.gold[at] or "") for at in wrong)
    if len(wrong) < 10:
        return None
    value, n = missed.most_common(1)[0]
    inside = np.array([bool(gold) and value_of(gold or "") == value for gold in reference.gold], bool)
    if n < DOMINATES * len(wrong) or people.rate(inside) > 0.5 * people.rate(~inside) or people.n_tasks(inside) < 3:
        return None
    rows = people.none
    rows[[at for at in wrong if inside[at]]] = True
    shown = next(gold for gold in reference.gold if gold and value_of(gold) == value).strip()
    return Group(
        rung="knowledge", label="BI", name=f"never answers `{shown}` where it is expected"[:90], rows=rows,
        text=f"{count(n, 'failure')}: `{shown}` is expected and another answer is given. {people.rate(inside):.0%} of these tasks' "
        f"rollouts pass, against {people.rate(~inside):.0%} of all others: a bias against one answer.",
        fix=f"Check that the prompt makes `{shown}` as available as the other answers, and balance the examples.",
        why="nearly all errors lie on one expected answer", matched=inside, passed=int(people.passed[inside].sum()), place=_place,
    )  # fmt: skip


def _place(row: object) -> tuple[int, str] | None:
    return (row.final_step, "") if row.final_step is not None else None  # type: ignore[attr-defined]


def _confused(people: Population, rows: Mask, reference: Reference | None) -> str:
    """Which closed answers stand for which golds, where there are few."""
    if reference is None or not reference.is_telling:
        return ""
    golds = {value_of(gold) for gold in reference.gold if gold}
    if not 2 <= len(golds) <= MAX_CLASSES:
        return ""
    pairs = Counter(
        (reference.gold[at], reference.answer[at])
        for at in np.flatnonzero(people.failed & reference.held & ~reference.same)
    )
    if not pairs:
        return ""
    (gold, answer), n = pairs.most_common(1)[0]
    if n < 0.6 * sum(pairs.values()) or n < ONE_SIDED:
        return ""
    of_gold = np.array([other == gold for other in reference.gold], bool)
    return (
        f" The errors are one-sided: {n:,} of all {sum(pairs.values()):,} answer {answer} where {gold} is expected "
        f"(right on {people.rate(of_gold):.0%} of {gold}, on {people.rate(~of_gold):.0%} of the rest)."
    )


def _gap(people: Population, rows: Mask, reference: Reference | None) -> Group:
    n, n_tasks = int(rows.sum()), people.n_tasks(rows)
    return Group(
        rung="knowledge", label="KG", name="the same wrong answer in most repeats", rows=rows,
        text=f"{count(n, 'failure')} in {count(n_tasks, 'task')} that never passed: the repeats agree on a wrong answer, a knowledge gap."
        f"{_confused(people, rows, reference)}",
        fix=f"Add training data or retrieval for these {count(n_tasks, 'task')}; review their expected answers first.",
        why="the task never passes, and more than half of its repeats agree", matched=rows, place=_place,
        against=["a wrong expected answer looks the same"],
    )  # fmt: skip


def _unsure(people: Population, rows: Mask, reference: Reference | None) -> Group:
    n, n_tasks = int(rows.sum()), people.n_tasks(rows)
    flaky = people.n_tasks(rows & people.is_mixed)
    return Group(
        rung="knowledge", label="UK", name="wrong answer, but right at times or varying", rows=rows,
        text=f"{count(n, 'failure')} in {count(n_tasks, 'task')}: wrong answers to tasks that pass sometimes ({flaky:,}) or whose repeats "
        f"disagree ({n_tasks - flaky:,}): unreliable knowledge.{_concentrated(people, rows)}{_voted(people, reference)}"
        f"{_confused(people, rows, reference)}",
        fix="Vote over several samples, or train on these tasks: the model knows them now and then.",
        why="the task passes sometimes, or its repeats give different answers", matched=rows, place=_place,
    )  # fmt: skip


def _concentrated(people: Population, rows: Mask) -> str:
    """Which few tasks hold most of some rows, as a sentence."""
    by_task = Counter(people.task[rows].tolist())
    if len(by_task) < 5:
        return ""
    n = 0
    names: list[str] = []
    for task, number in by_task.most_common(max(1, len(by_task) // 4)):
        n += number
        names.append(people.name_of(task))
        if n >= 0.5 * rows.sum():
            return f" {n:,} of them lie in {count(len(names), 'task')} ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})."
    return ""


def _voted(people: Population, reference: Reference | None) -> str:
    """What the most frequent answer of each task would score, as a sentence."""
    if reference is None or not reference.is_telling or not people.has_repeats:
        return ""
    right = n = 0
    for task in np.unique(people.task):
        rows = np.flatnonzero((people.task == task) & reference.held)
        given = Counter(value_of(reference.answer[at] or "") for at in rows)
        n += 1
        if given:
            best, _ = given.most_common(1)[0]
            right += any(people.passed[at] for at in rows if value_of(reference.answer[at] or "") == best)
    return f" A majority vote over the repeats would pass {right:,} of {n:,} tasks ({right / n:.1%})."


def _single(people: Population, rows: Mask, reference: Reference | None) -> Group:
    n = int(rows.sum())
    return Group(
        rung="knowledge", label="undetermined", name="answer graded wrong (one try)", rows=rows,
        text=f"{count(n, 'failure')}: an answer was given and graded wrong. With one try per task, a knowledge gap and bad luck "
        f"cannot be told apart.{_confused(people, rows, reference)}",
        fix="Repeat these tasks a few times: the same wrong answer each time is a knowledge gap, a changing one is not.",
        why="one try per task does not tell lack of knowledge from chance", confidence="unsure", matched=rows, place=_place,
    )  # fmt: skip
