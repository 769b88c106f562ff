"""Ask whether wrong answers are the same every time or another each time: a knowledge gap, or unreliable knowledge.

Only where an answer can be compared; agent rollouts without one stay unexplained. With one try per task a wrong answer
is a wrong answer, and its cause stays undetermined.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from blade.answers import value_of, words
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.fields import template
from blade.diagnose.population import Findings, Group, Mask, Population, at_end, count, short
from blade.diagnose.reference import ANSWER_ORDER, Reference, answered, gives_answer
from blade.diagnose.rungs.cut import (
    BARRED_WHY,
    SHOW_TOOL,
    act_name,
    fails_at_first,
    goal_of,
    is_best_of_many,
    repeated,
)

DOMINATES = 0.9
WORTH = 0.01  # points that a vote must win to be advised
READ = 0.8  # share of the passes whose results hold the gold, from which it must be found there
LIKE = 0.5  # share of words that two free answers have in common, from which they agree
RARELY = 0.5  # of the pass rate of all others, up to which what some rows do is no way to pass
MANY_NUMBERS = 5  # of a free answer, from which it is a list
MOST_COMPARED = 300  # free answers to one task that are compared, each with all others
NEAR = 0.01  # of a number, up to which two free answers give the same one
_NUMBERS = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
MAX_CLASSES = 6
ASKED, MAX_REPLY = 3, 400  # failures that ask back, from which they are a group; characters in which the question is
LOOP = 3  # times from which a call counts as repeated
ONE_SIDED = 5  # errors of one kind from which they are called one-sided


def ask(people: Population, left: Mask, reference: Reference | None) -> Findings:
    findings = Findings()
    requests = (
        _asked_back(people, left), _unreadable(people, left, reference),
        _bias(people, left, reference) or _blind_spot(people, left, reference), _unread(people, left, reference),
    )  # fmt: skip
    for group in requests:
        if group is not None:
            findings.groups.append(group)
            left = left & ~group.rows
    rows = left & _comparable(people, reference)
    if not rows.any():
        return Findings([*findings.groups, *_never_accepted(people, left)])
    single, gap, unsure = people.none, people.none, people.none
    for task in np.unique(people.task[rows]):
        mine = (people.task == task) & rows
        every = people.task == task
        is_single = every.sum() == 1 or (mine.sum() == 1 and not people.passed[every].any())
        # whether long lists of numbers say the same is not for their digits to tell
        is_listed = not people.passed[every].any() and _are_lists(people, mine, reference)
        if is_single or (is_listed and not _agrees(people, mine, reference)):
            single |= mine
        elif people.passed[every].any() or not _agrees(people, mine, reference):
            unsure |= mine
        else:
            gap |= mine
    findings.groups.append(_wrong(people, Wrong(gap, unsure, single), reference))
    return findings


def _unreadable(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Rows with a text in which the grader found no answer: the field that holds it in nearly all passes is empty."""
    if reference is None or not reference.is_telling or reference.source in ANSWER_ORDER:
        return None
    empty = people.where(gives_answer) & np.array([not (answer or "").strip() for answer in reference.answer], bool)
    rows = empty & left
    n = int(rows.sum())
    if n < ASKED or (people.passed & empty).sum() > 0.02 * people.passed.sum():
        return None
    return Group(
        rung="knowledge", label="BI", name=f"no answer found in the text (`{reference.source}` is empty)", rows=rows, matched=empty,
        text=f"{count(n, 'failure')}: `{reference.source}`, in which the grader keeps what it read, is empty, and no such rollout passes: "
        "the answer is not given in the form that is read.",
        fix="Repeat the form of the answer at the end of the prompt, or have the grader read the forms that occur in these texts.",
        why="nothing was there for the grader to compare", deciding=(reference.source,), place=_place, confidence="likely",
        passed=int((people.passed & empty).sum()), detail=lambda i: f'it ends "…{short(people.rows[i].final.strip()[-80:], 80)}"',
        against=["if the prompt never asks for the form, the task is at fault (TI)"],
    )  # fmt: skip


def _asks(row: RowEvidence) -> bool:
    """Whether the one text of a single turn asks a question, in a short reply or near the end of a long one."""
    return row.n_turns == 1 and gives_answer(row) and "?" in row.final[-MAX_REPLY:]


def _asked_back(people: Population, left: Mask) -> Group | None:
    """Single replies that ask a question, where no pass does: nothing was answered."""
    rows = people.where(_asks)
    n = int((rows & left).sum())
    others = ~rows & people.where(gives_answer)
    if n < ASKED or people.passed[rows].any() or not others.any() or people.rate(others) < 0.1:
        return None
    return Group(
        rung="knowledge", label="BI", name="asks back instead of answering", rows=rows & left, matched=rows,
        text=f"{count(n, 'failure')}: the reply asks the user a question, which nobody answers. No reply that asks one passes.",
        fix="Tell the model that nobody will answer, and that it must give its best answer.",
        why="a question is no answer, and no reply that asks one passes", holds=_asks, confidence="likely",
        place=lambda row: (row.final_step, row.final[: row.final.rfind("?") + 1][-90:]) if row.final_step is not None else None,
        detail=lambda i: f'it asks "…{short(people.rows[i].final[: people.rows[i].final.rfind("?") + 1].strip()[-90:], 90)}"',
        against=["a question that cannot be answered as it is asked would look the same"],
    )  # fmt: skip


def _unread(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Wrong answers of rollouts to which no result showed the gold, where it is shown to nearly all that pass."""
    passes = [row.saw_gold for row in people.of(people.passed) if row.saw_gold is not None]
    rows = left & _comparable(people, reference) & people.where(lambda row: row.saw_gold is False)
    n = int(rows.sum())
    if len(passes) < 10 or sum(passes) < READ * len(passes) or n < 3:
        return None
    capped = int((rows & people.is_capped).sum())
    if 2 * capped >= n:
        top = max(row.longest[0] for row in people.rows)
        return Group(
            rung="knowledge", label="TI", name="results are cut off, and none holds the answer", rows=rows, matched=rows,
            text=f"{count(n, 'failure')}: no result that the model got holds the expected answer word for word, which {sum(passes):,} of "
            f"{len(passes):,} passes had before them; in {capped:,} of them a result is exactly {top:,} characters long, where results "
            "seem to be cut.",
            fix=f"Raise the limit of {top:,} characters, or let the model read on, and rerun these rollouts.",
            why="what the model was given ends where results are cut", place=_place, confidence="likely",
            detail=lambda i: answered(people, i, reference), against=["the answer may not be in what was cut off"],
        )  # fmt: skip
    return Group(
        rung="knowledge", label="BI", name="what it looked up does not hold the answer", rows=rows, matched=rows,
        text=f"{count(n, 'failure')}: no result that the model got holds the expected answer word for word, which {sum(passes):,} of "
        f"{len(passes):,} passes had before them: the search or the reading failed, not the answer.",
        fix="Have the model search or read on when what it found does not answer the question, before it answers.",
        why="passes find the expected answer in their results, and these never do", place=_place,
        detail=lambda i: answered(people, i, reference), against=["the results may say it in other words"],
    )  # fmt: skip


class Wrong(NamedTuple):
    """Failing rows with a wrong answer, by what the repeats of their task show."""

    gap: Mask  # the task never passes, and most of its repeats say the same
    unsure: Mask  # the task passes sometimes, or its repeats differ
    single: Mask  # one try, or answers that cannot be compared

    def label(self, i: int) -> str:
        return "KG" if self.gap[i] else "UK" if self.unsure[i] else "undetermined"


def _wrong(people: Population, wrong: Wrong, reference: Reference | None) -> Group:
    """All wrong answers: one group, since the same fact shows them; the label is that of each task."""
    rows = wrong.gap | wrong.unsure | wrong.single
    n, n_tasks = int(rows.sum()), people.n_tasks(rows)
    sizes = {"KG": int(wrong.gap.sum()), "UK": int(wrong.unsure.sum()), "undetermined": int(wrong.single.sum())}
    label = max(sizes, key=lambda name: sizes[name])
    label = label if 2 * sizes[label] >= n else "undetermined"  # no label holds for most of them
    is_closed = reference is not None and reference.is_telling
    parts = [
        f"{sizes['KG']:,} in tasks that never pass and whose repeats mostly agree (a knowledge gap)" if sizes["KG"] else "",
        f"{sizes['UK']:,} in tasks that pass sometimes or whose repeats differ (unreliable knowledge)" if sizes["UK"] else "",
        f"{sizes['undetermined']:,} where one answer, or answers that cannot be compared, do not tell a knowledge gap from chance"
        if sizes["undetermined"]
        else "",
    ]
    vote, fix = _voted(people, reference) if sizes["UK"] else ("", "")
    fix = fix if label == "UK" and fix else _FIXES["KG" if label == "undetermined" and sizes["KG"] else label]
    if fix is _FIXES["UK"] and np.isin(people.task[rows], people.task[people.passed]).mean() < 0.5:
        fix = "Train on problems like these: most of these failures are in tasks that never pass, and the answers change from try to try."
    searched = _found(people, rows)
    if searched and label == "undetermined":
        fix = "Have the model search or read on when what it found does not answer the question, before it answers."
    phrase = "the answer differs from the expected one" if is_closed else "an answer was given and graded wrong"
    return Group(
        rung="knowledge", label=label, name="wrong answer" if is_closed else "answer graded wrong", rows=rows, matched=rows,
        text=f"{count(n, 'failure')} in {count(n_tasks, 'task')}: {phrase}; {', '.join(filter(None, parts))}."
        f"{_concentrated(people, rows)}{searched}{vote}{_confused(people, rows, reference)}",
        fix=fix, most=0.0 if fix.startswith("Take") else None, why=_REASONS[label],
        confidence="unsure" if label == "undetermined" else "likely",
        label_of=wrong.label, place=_place,
        detail=lambda i: answered(people, i, reference)
        + ("; most of its repeats say one and the same, so check the expected answer too" if wrong.gap[i] else ""),
        against=["a wrong expected answer looks the same"] if sizes["KG"] or sizes["undetermined"] else [],
    )  # fmt: skip


def _found(people: Population, rows: Mask) -> str:
    """In how many of some rows no result holds the expected answer, beside the passes, as a sentence."""
    seen = [[row.saw_gold for row in people.of(mask)] for mask in (rows, people.passed)]
    mine, passes = ([saw for saw in some if saw is not None] for some in seen)
    without = mine.count(False)
    if len(passes) < 5 or without < 3 or without / len(mine) < 1.5 * passes.count(False) / len(passes):
        return ""
    return (
        f" In {without:,} of {len(mine):,} no result that the model got holds the expected answer word for word "
        f"({passes.count(False):,} of {len(passes):,} passes): look at how it searches."
    )


_FIXES = {
    "KG": "Review the expected answers of the tasks that never pass; where they are right, train on problems like these.",
    "UK": "Train on problems like these: most of these tasks pass sometimes.",
    "undetermined": "Repeat these tasks a few times: the same wrong answer each time is a knowledge gap, a changing one is not.",
}
_REASONS = {
    "KG": "most of these tasks never pass, and more than half of their repeats agree",
    "UK": "most of these tasks pass sometimes, or their repeats give different answers",
    "undetermined": "for most of them one answer, or answers that cannot be compared, do not tell lack of knowledge from chance",
}


def _never_accepted(people: Population, left: Mask) -> list[Group]:
    """Where episodes stop on success: rows whose tries are mostly errors, and rows whose results are never accepted."""
    rows = left & people.where(lambda row: any(not act.failed for act in row.acts))
    if not is_best_of_many(people) or not rows.any():
        return []
    goal = goal_of(people, act_name)
    failing = people.where(_mostly_fails)
    # where rows with as many errors pass about as often, errors are how one gets there
    wrong = rows & failing if people.rate(failing) <= RARELY * people.rate(~failing) else people.none
    rest = rows & ~wrong
    n = int(rest.sum())
    reply, n_reply = Counter(template(row.reply) for row in people.of(rest)).most_common(1)[0] if n else ("", 0)
    often = n_reply >= 3 and n_reply >= 0.1 * n and reply
    barred = fails_at_first(people)
    answer = f" The last answer of the environment begins most often: {reply[:110]} ({count(n_reply, 'rollout')})." if often else ""
    return [
        Group(
            rung="knowledge", label="undetermined" if barred else "BI", name="most tries end in an error", rows=wrong, matched=failing,
            text=f"{count(int(wrong.sum()), 'failure')}: more than half of the tries, and at least three, end in an error, which "
            f"{int(people.passed[failing].sum()):,} of {count(int(people.passed.sum()), 'pass', 'passes')} show, and none is accepted; "
            f"{people.rate(failing):.0%} of such rollouts pass, against {people.rate(~failing):.0%} of all others.",
            fix="Run a solution that is known to be right through the environment: does it accept it as the prompt asks for it, without "
            "anything added?" if barred
            else SHOW_TOOL,
            why=BARRED_WHY if barred
            else "tries that are errors cannot be accepted, and rollouts with so many pass far less often",
            confidence="unsure" if barred else "likely",
            passed=int(people.passed[failing].sum()), place=lambda row: next(((act.step, "") for act in row.acts if act.failed), None),
            detail=lambda i: _tries(people.rows[i], goal),
        ),
        Group(
            rung="knowledge", label="undetermined", name="no try is accepted", rows=rest,
            text=f"{count(n, 'failure')}: the rollout ends without a result that is accepted."
            f"{answer}",
            fix="Read two of these rollouts: a wrong reading of the question or of the data, or an environment that does not work?",
            why="no try was accepted; without the expected result nothing more can be said",
            confidence="unsure", matched=rest, place=lambda row: (row.acts[-1].step, "") if row.acts else None,
            blame=lambda row: None, detail=lambda i: _tries(people.rows[i], goal),
        ),
    ]  # fmt: skip


def _mostly_fails(row: RowEvidence) -> bool:
    """Whether more than half of the calls of a row, and at least three, are errors."""
    return row.n_failed >= 3 and row.n_failed > 0.5 * row.n_acts


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


def _text(people: Population, i: int, reference: Reference | None) -> str:
    answer = reference.answer[i] if reference is not None and reference.is_telling else None
    return answer or people.rows[i].final


def _are_lists(people: Population, rows: Mask, reference: Reference | None) -> bool:
    """Whether most of some free answers give many numbers."""
    if reference is not None and reference.is_telling:
        return False
    lengths = [len(_NUMBERS.findall(row.final)) for row in people.of(rows)]
    return float(np.median(lengths)) >= MANY_NUMBERS


def _agrees(people: Population, rows: Mask, reference: Reference | None) -> bool:
    """Whether more than half of some answers say the same."""
    texts = [_text(people, int(i), reference) for i in np.flatnonzero(rows)]
    if len(texts) < 2:
        return False
    counts = Counter(value_of(text) for text in texts if len(text) <= 100)
    if counts and counts.most_common(1)[0][1] > 0.5 * len(texts):
        return True
    if reference is not None and reference.is_telling:
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


def _closed(left: Mask, reference: Reference | None) -> tuple[Counter[Any], list[int]]:
    """The expected answers, where they are few, and the rows that give another one, where they are many; else nothing."""
    if reference is None or not reference.is_telling:
        return Counter(), []
    golds = Counter(value_of(gold) for gold in reference.gold if gold)
    wrong = np.flatnonzero(left & reference.held & ~reference.same).tolist()
    return (golds, wrong) if 2 <= len(golds) <= MAX_CLASSES and len(wrong) >= 10 else (Counter(), [])


def _bias(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """One closed answer that is given whatever is expected."""
    golds, wrong = _closed(left, reference)
    if reference is None or not golds:
        return None
    value, n = Counter(value_of(reference.answer[i] or "") for i in wrong).most_common(1)[0]
    overall = [value_of(answer) for answer in reference.answer if answer]
    if n < DOMINATES * len(wrong) or overall.count(value) < 0.7 * len(overall) or golds[value] > 0.6 * sum(golds.values()):
        return None
    rows = people.mask([i for i in wrong if value_of(reference.answer[i] or "") == value])
    shown = str(value[1])
    return Group(
        rung="knowledge", label="BI", name=f"answers `{shown}` whatever is expected", rows=rows,
        text=f"{count(int(rows.sum()), 'failure')}: the answer is `{shown}`, which "
        f"{overall.count(value) / len(overall):.0%} of all answers are, "
        f"while it is expected in {golds[value] / sum(golds.values()):.0%} of the rows: a bias, not a lack of knowledge case by case.",
        fix="Balance the prompt's examples and options, or calibrate the decision threshold.",
        why="one answer dominates whatever the gold is", matched=rows,
        place=at_end,
    )  # fmt: skip


def _blind_spot(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Wrong answers that all lie on one class of the gold, while the model is right on the others."""
    golds, wrong = _closed(left, reference)
    if reference is None or not golds:
        return None
    value, n = Counter(value_of(reference.gold[i] or "") for i in wrong).most_common(1)[0]
    inside = np.array([bool(gold) and value_of(gold or "") == value for gold in reference.gold], bool)
    if n < DOMINATES * len(wrong) or people.rate(inside) > 0.5 * people.rate(~inside) or people.n_tasks(inside) < 3:
        return None
    rows = people.mask([i for i in wrong if inside[i]])
    shown = next(gold for gold in reference.gold if gold and value_of(gold) == value).strip()
    return Group(
        rung="knowledge", label="BI", name=f"never answers `{shown}` where it is expected"[:90], rows=rows,
        text=f"{count(n, 'failure')}: `{shown}` is expected and another answer is given. {people.rate(inside):.0%} of these tasks' "
        f"rollouts pass, against {people.rate(~inside):.0%} of all others: a bias against one answer.",
        fix=f"Check that the prompt makes `{shown}` as available as the other answers, and balance the examples.",
        why="nearly all errors lie on one expected answer", matched=inside & reference.held & ~reference.same,
        passed=int(people.passed[inside & reference.held & ~reference.same].sum()), place=_place,
    )  # fmt: skip


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
    pairs = Counter(
        (reference.gold[i], reference.answer[i])
        for i in np.flatnonzero(people.failed & reference.held & ~reference.same)
    )
    if len(golds) < 2 or not pairs:
        return ""
    (gold, answer), n = pairs.most_common(1)[0]
    of_gold = np.array([other == gold for other in reference.gold], bool)
    if len(golds) > MAX_CLASSES:
        is_often = n >= 2 * ONE_SIDED and n >= 0.5 * of_gold.sum() and people.n_tasks(of_gold) >= 3
        return f" Where {gold} is expected, {n:,} of {int(of_gold.sum()):,} answer {answer}." if is_often else ""
    if n < 0.6 * sum(pairs.values()) or n < ONE_SIDED:
        return ""
    return (
        f" The errors are one-sided: {n:,} of all {sum(pairs.values()):,} answer {answer} where {gold} is expected "
        f"(right on {people.rate(of_gold):.0%} of {gold}, on {people.rate(~of_gold):.0%} of the rest)."
    )


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


def _voted(people: Population, reference: Reference | None) -> tuple[str, str]:
    """What the most frequent answer of each task would score, as a sentence; and as a fix, where that is more."""
    if reference is None or not reference.is_telling or not people.has_repeats:
        return "", ""
    right = n = 0
    for task in np.unique(people.task):
        rows = np.flatnonzero((people.task == task) & reference.held)
        actual = Counter(value_of(reference.answer[i] or "") for i in rows)
        n += 1
        if actual:
            best, _ = actual.most_common(1)[0]
            right += bool(np.mean([people.passed[i] for i in rows if value_of(reference.answer[i] or "") == best]) > 0.5)
    score = float(np.mean([people.rate(people.task == task) for task in np.unique(people.task)]))
    fix = f"Take a majority vote over the repeats: it would pass {right / n:.1%} of the tasks instead of {score:.1%}."
    phrase = f" A majority vote over the repeats would pass {right:,} of {n:,} tasks ({right / n:.1%})."
    return phrase, fix if right / n - score >= WORTH else ""

