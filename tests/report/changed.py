"""Builders: comparisons made from counts by plain arithmetic, so that every term adds up."""

from __future__ import annotations

from itertools import product
from math import sqrt
from typing import Any

from msgspec.structs import replace

from blade import model
from blade.model import Alignment, Checked, Comparison, Derived, Flip, Report, Setting, Shift, Term, Tested

from .conftest import A, make_report, rewards
from .nouns import Word, nouns

B = "1111 1111 1000 1111 1111 1111 1100 0000"
BUCKETS = ("always", "sometimes", "never")


def bucket(values: list[float]) -> str:
    return "always" if all(values) else "sometimes" if any(values) else "never"


def compared(
    before: dict[str, list[Any]],
    after: dict[str, list[Any]],
    names: tuple[str, str] = ("base", "cand"),
    word: Word = str,
    verdicts: tuple[str, str] = ("improved", "inconclusive"),
    **changes: Any,
) -> Comparison:
    """A comparison of two runs of 0s and 1s; `word` makes every foreign text."""
    common = tuple(task for task in before if task in after)
    added, removed = tuple(t for t in after if t not in before), tuple(t for t in before if t not in after)
    mean = {run: {t: sum(v) / len(v) for t, v in tasks.items()} for run, tasks in (("a", before), ("b", after))}
    d = {task: mean["b"][task] - mean["a"][task] for task in common}
    score_a, score_b = (sum(mean[run].values()) / len(mean[run]) for run in "ab")
    n, delta, on_common = len(common), score_b - score_a, sum(d.values()) / len(common)
    half = 2 * sqrt(sum((x - on_common) ** 2 for x in d.values()) / max(1, n - 1) / n)
    between = (on_common - half, on_common + half)
    wide = {"half": 0.5, "inner": 0.84, "whole": 1.0}
    ends = {f"{way}_{name}": on_common + sign * part * half for name, part in wide.items() for way, sign in (("low", -1), ("high", 1))}
    bridge = _bridge(delta, on_common, half, n, len(added) + len(removed), word)
    most = 0.75 * delta
    slices = (
        Term(word("domain=air"), most, most - half, most + half, 0.03, "slice", n - 2, 0.5 * delta, 0.2),
        Term(word("domain=sea"), delta - most, None, None, None, "slice", 2, 0.5 * delta, None),
    )
    moves = [(bucket(before[task]), bucket(after[task])) for task in common]
    comparison = Comparison(
        baseline=names[0], candidate=names[1], score_name="pass_at_1", score_baseline=score_a, score_candidate=score_b,
        delta=delta, delta_common=on_common, common_baseline=sum(mean["a"][t] for t in common) / n,
        common_candidate=sum(mean["b"][t] for t in common) / n,
        alignment=Alignment(word("task key, and the contents agree"), tuple(map(word, common)), tuple(map(word, added)),
                            tuple(map(word, removed))),
        verdict=verdicts[0], verdict_new_tasks=verdicts[1], margin=0.03,
        power=model.Power(half / 2, 1.4 * half, 0.7 * half, 0.2388, 0.14, 0.12, 0.01, abs(on_common), 16, 140),
        tests=nouns(Tested, "tests", word, change=on_common, **ends),
        bridge=bridge, bridge_note=word("This is accounting, not causation."),
        views=(model.View(word("slices: domain"), slices, word("Terms of other fields do not add up.")),),
        movers=_movers(bridge, delta, between, word),
        flips=_flips(before, after, d, word), churn=_churn(d), sure=model.SureFlips(1, 0, 0.2, 0.1),
        transitions=tuple(model.Transition(*pair, moves.count(pair), moves.count(pair) // 2) for pair in product(BUCKETS, BUCKETS)),
        shifts=nouns(Shift, "shifts", word, n=n), derived=nouns(Derived, "derived", word, n=n),
        config_diff=nouns(Setting, "settings", word),
        separable=False, missing_run=word("the candidate's model with max_output_tokens = 4096"),
        notes=(word("the change is below 3 points"),),
    )  # fmt: skip
    return replace(comparison, **changes)


def _bridge(delta: float, common: float, half: float, n: int, others: int, word: Word) -> tuple[Term, ...]:
    """Composition takes what the common tasks leave; four modes share the rest."""
    parts = [
        ("request timed out", "infrastructure", 0.4), ("calls with a wrong argument", "model", 0.5),
        ("never calls `get_order`", "model", 0.3), ("no mode found", "model", -0.2),
    ]  # fmt: skip
    terms = [Term(word("added tasks"), delta - common, None, None, None, "composition", others)] if others else []
    left = common
    for place, (name, side, share) in enumerate(parts):
        value = left if place == len(parts) - 1 else share * common
        left -= value
        p, n_tasks = 0.004 * (place + 1), n - place
        terms.append(Term(word(name), value, value - half / 3, value + half / 3, p, word(side), n_tasks))
    return tuple(terms)


def _movers(bridge: tuple[Term, ...], delta: float, between: tuple[float, float], word: Word) -> tuple[model.Mover, ...]:
    movers = []
    for term, mechanical in ((bridge[-3], False), (bridge[-4], True)):
        text = word(f"`{term.term}` gave {100 * term.value:.1f} points: {term.n} tasks are concerned")
        share = term.value / delta if abs(delta) > 1e-9 else None
        rollouts = (("cand", "5", 0), ("base", "4", 1), ("cand", "3", 2)) if mechanical else ()
        beside = (word("of the 7 failing rollouts of base 5 also time out"),) if mechanical else ()
        movers.append(
            model.Mover("bridge", term.term, term.side, term.value, *between, 0.004, share, mechanical, text, rollouts, beside)
        )
    return tuple(movers)


def _flips(before: dict[str, Any], after: dict[str, Any], d: dict[str, float], word: Word) -> tuple[Flip, ...]:
    flips = [
        Flip(word(task), word(f"tau-{task}"), (sum(before[task]), len(before[task])), (sum(after[task]), len(after[task])),
             change, 0.5 + change / 2.1, 0.2 + 0.7 * abs(change), (bucket(before[task]), bucket(after[task])))
        for task, change in d.items() if change
    ]  # fmt: skip
    return tuple(sorted(flips, key=lambda flip: -abs(flip.change)))


def _churn(d: dict[str, float]) -> model.Churn:
    n = len(d)
    gains, losses = sum(x for x in d.values() if x > 0) / n, sum(x for x in d.values() if x < 0) / n
    up, down = sum(x > 0 for x in d.values()), sum(x < 0 for x in d.values())
    return model.Churn(gains, losses, up, down, 0.15, 0.08, 0.24, 0.4 * n, 0.02)


def pair_report(before: str = A, after: str = B, word: Word = str, **changes: Any) -> Report:
    """A report of two runs with their comparison."""
    runs = {"base": rewards(before), "cand": rewards(after)}
    report = make_report(runs, word=word)
    comparison = compared(runs["base"], runs["cand"], word=word, **changes)
    return replace(report, comparisons=(comparison,), made_by={"blade": "0.1.0", "command": word("blade compare a b")})


def large(n: int = 120) -> tuple[str, str]:
    """Many tasks of eight repeats, some of which truly change."""
    before, after = [], []
    for at in range(n):
        c = (at * 7) % 9
        up = min(8, c + (5 if at % 6 == 0 else at % 3 - 1)) if at % 11 else max(0, c - 5)
        before.append("1" * c + "0" * (8 - c))
        after.append("1" * max(0, up) + "0" * (8 - max(0, up)))
    return " ".join(before), " ".join(after)


def many_report(word: Word = str, n: int = 3) -> Report:
    """A baseline and `n` candidates, with matrix, series and gate; one candidate is refused."""
    names = ["base", *(word(f"step-{at}") for at in range(1, n + 1))]
    runs = {name: rewards(A if at % 2 == 0 else B) for at, name in enumerate(names)}
    report = make_report(runs, word=word)
    adjusted = {"p_adjusted": 0.1, "p_adjusted_new": 0.4}
    pairs = [compared(runs["base"], runs[name], ("base", name), word, **adjusted) for name in names[1:]]
    pairs[-1] = replace(
        pairs[-1], refused=word("the runs have no task in common"), delta=None, verdict=None, verdict_new_tasks=None, power=None,
        tests=(), bridge=(), views=(), movers=(), flips=(), churn=None, sure=None, transitions=(), shifts=(), derived=(),
        alignment=Alignment("", (), (word("90"),), (word("1"), word("2"))),
    )  # fmt: skip
    return replace(
        report, comparisons=tuple(pairs), matrix=make_matrix(names, word), series=make_series(names, word), gate=make_gate(word)
    )  # fmt: skip


def make_matrix(names: list[str], word: Word) -> model.Matrix:
    size = len(names)
    verdicts = tuple(tuple("" if a == b else "improved" if a > b else "regressed" for b in range(size)) for a in range(size))
    deltas = tuple(tuple(None if a == b else 0.1 * (a - b) for b in range(size)) for a in range(size))
    ps = tuple(tuple(None if a == b else 0.01 * (a + b) for b in range(size)) for a in range(size))
    placed = tuple(
        model.Placed(name, 0.5 + 0.05 * at, None if at == 1 else 0.01 * (size - at), 900.0 + 100 * (at % 2), None if at == 1 else at == size - 1,
               at % 2 == 0)
        for at, name in enumerate(names)
    )  # fmt: skip
    only = {name: tuple(word(str(at)) for at in range(place)) for place, name in enumerate(names)}
    alone = (model.Alone(names[1], word("0"), word("tau-0"), 4, 4, 12, 0.001),)
    return model.Matrix(tuple(names), 8, verdicts, deltas, ps, placed, only, (word("7"),), (word("0"), word("6")),
                  ((word("temperature"), word("its effect cannot be told from that of the model")),), alone, {names[1]: 0.7},
                  (word("A front goes by the values as measured."),))  # fmt: skip


def make_series(names: list[str], word: Word) -> model.Series:
    points = tuple(
        model.Checkpoint(name, 0.5 + 0.05 * at, 0.05 * at if at else None, 0.05 * at - 0.04 if at else None,
                   0.05 * at + 0.04 if at else None, 0.2 / at if at else None)
        for at, name in enumerate(names)
    )  # fmt: skip
    return model.Series(tuple(names), 8, 0.05, 0.01, 0.09, 0.02, points, names[-1], ((word("5"), 0.98), (word("4"), 0.96)), (),
                  2, 0, notes=(word("Of 2 tasks about 0.1 may be neither."),))  # fmt: skip


def make_gate(word: Word) -> model.Gate:
    return model.Gate(word("policy.toml"), "FAIL", nouns(Checked, "checks", word), (word("one waiver has expired"),))
