"""Builders: what the stages that explain conclude about a run, made by hand for a desk that handles orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from blade.model import (
    Attribution,
    Behaviour,
    Blame,
    Cause,
    Confidence,
    Contrast,
    Divergence,
    Evidence,
    Finding,
    Gain,
    Loss,
    Meaning,
    Measure,
    Mechanism,
    Recommendation,
    Report,
    RunCause,
    Signature,
    TaskResult,
)

Word = Callable[[str], str]

SKIPS, STALE, STOPS = (
    "exchanges without a product look-up",
    "quotes a stale balance",
    "stops after the first refund",
)
OUTAGE, GOLD, TWINS = "provider error", "expected result contradicts the policy", "two tasks under one id"
NOT_SAID = "no cause reaches the bar"
# The mode of each failed task in turn, with how sure its cause is.
MODES = (
    (Cause.BEHAVIOUR, SKIPS, 0.86),
    (Cause.UNRELIABLE_KNOWLEDGE, STALE, 0.64),
    (Cause.KNOWLEDGE_GAP, STOPS, 0.71),
    (Cause.BEHAVIOUR, SKIPS, 0.79),
    (Cause.TASK_OR_VERIFIER, GOLD, 0.92),
    (Cause.INFRASTRUCTURE, OUTAGE, 0.99),
    (Cause.UNDETERMINED, NOT_SAID, 0.38),
    (Cause.BEHAVIOUR, SKIPS, 0.81),
    (Cause.DATA_ARTIFACT, TWINS, 0.95),
)


def explain(report: Report, word: Word = lambda text: text, **changes: Any) -> Report:
    """The report with causes, mechanisms, contrasts and advice for its runs; its losses add up."""
    found: dict[str, list[Any]] = {}
    for run in report.runs:
        if run.score is None or not run.has_pass_rate:
            continue
        tasks = [
            task for task in report.tasks if task.run == run.name and task.rate is not None and task.rate < 1
        ]
        nouns = _of_run(
            run.name, tasks, run.score, len([t for t in report.tasks if t.run == run.name and t.n]), word
        )
        for name, values in nouns.items():
            found.setdefault(name, []).extend(values)
    behaved = found.pop("findings", [])
    clean = found.pop("measures", [])
    report = replace(
        report,
        **{name: tuple(values) for name, values in found.items()},
        findings=(*report.findings, *behaved),
        measures=(*report.measures, *clean),
        runs=tuple(replace(run, unexplained=0.047) for run in report.runs),
        accuracy=card(word),
    )
    return replace(report, **changes)


def _of_run(run: str, tasks: list[TaskResult], score: float, n: int, word: Word) -> dict[str, list[Any]]:
    attributions = [attribution(run, task, at, n, word) for at, task in enumerate(tasks)]
    sums: dict[tuple[Cause, str], float] = {}
    for one in attributions:
        sums[one.cause, one.mode] = sums.get((one.cause, one.mode), 0.0) + one.lost
    rest = (1 - score) - sum(sums.values())
    losses = [Loss(run, cause, mode, lost) for (cause, mode), lost in sums.items()]
    losses += [Loss(run, Cause.UNDETERMINED, word("not attributed"), rest)] if abs(rest) > 1e-12 else []
    at = tasks[0] if tasks else None
    if at is None:
        return {"attributions": [], "losses": losses}
    return {
        "attributions": attributions,
        "losses": losses,
        "run_causes": [outage(run, at, sums, score, n, word)],
        "mechanisms": mechanisms(run, tasks, word),
        "behaviours": behaviours(run, word),
        "signatures": signatures(run, tasks, word),
        "meanings": meanings(run, word),
        "contrasts": contrasts(run, tasks, word),
        "divergences": [parted for task in tasks for parted in divergence(run, task, word)],
        "recommendations": recommendations(run, tasks, word),
        "findings": [finding(run, task, number, word) for number, task in enumerate(tasks)],
        "measures": [Measure(run, "clean_pass_at_1", min(1.0, score + 0.08), max(1, n - 3), low=score / 2, high=1.0, method="task t")],
    }  # fmt: skip


def failing(task: TaskResult) -> int:
    return next(r.repeat for r in task.repeats if r.outcome is not None and r.outcome.value != "passed")


def passing(task: TaskResult) -> int | None:
    return next(
        (r.repeat for r in task.repeats if r.outcome is not None and r.outcome.value == "passed"), None
    )


def quoted(run: str, task: TaskResult, repeat: int | None, step: int, quote: str) -> Evidence:
    return Evidence(run, task.task, repeat, step=step, quote=quote)


def attribution(run: str, task: TaskResult, at: int, n: int, word: Word) -> Attribution:
    cause, mode, sure = MODES[at % len(MODES)]
    repeat = failing(task)
    named = cause not in (Cause.UNDETERMINED, Cause.DATA_ARTIFACT)
    return Attribution(
        id=f"A{at + 1}",
        run=run,
        task=task.task,
        cause=cause,
        confidence=sure,
        mode=word(mode),
        mechanism=word(
            f"The agent calls exchange_items in repeat {repeat} with an item id that no product look-up returned; "
            "the tool accepts it and the order ends with the wrong variant"
        ),
        repeat=repeat,
        step=7 if named else None,
        steps=(
            Blame(7, 0.61, word("first write that no passing repeat makes")),
            Blame(4, 0.22, word("last step both sides share")),
            Blame(9, 0.17, word("first error text after it")),
        ),
        grounds=(
            word("the look-up is missing in 3 of 3 failing repeats and in 0 of 1 passing ones"),
            word("over all tasks the missing look-up goes with failing (M1)"),
        ),
        against=(word("one failing repeat ends with a different wrong item"),) if at % 2 else (),
        evidence=(quoted(run, task, repeat, 7, word('{"order_id": "#W42", "new_item_ids": ["1008"]}')),),
        lost=(1 - (task.rate or 0.0)) / n,
    )


def outage(
    run: str, task: TaskResult, sums: dict[tuple[Cause, str], float], score: float, n: int, word: Word
) -> RunCause:
    lost = sum(lost for (cause, _), lost in sums.items() if cause is Cause.INFRASTRUCTURE)
    said = Evidence(run, task.task, failing(task), field=word("error"), quote=word("503 Service Unavailable"))
    return RunCause(
        run, Cause.INFRASTRUCTURE, word(OUTAGE), word("7 rollouts end in a provider error before the first output item"),
        7, lost, min(1.0, score + lost), n - 1, (said,),
    )  # fmt: skip


def mechanisms(run: str, tasks: list[TaskResult], word: Word) -> list[Mechanism]:
    rollouts = tuple(
        (task.task, r.repeat)
        for task in tasks
        for r in task.repeats
        if r.outcome is not None and r.outcome.value == "failed"
    )
    told = (quoted(run, tasks[0], failing(tasks[0]), 7, word('exchange_items {"new_item_ids": ["1008"]}')),)
    within = "each task compared with itself; rows with a provider error left out"
    return [
        Mechanism(
            "M1", run, word("Of the 59 completed rollouts that must exchange or modify items, 31 never call get_product_details: 6.5% of them pass, against 67.9% of those that do"),
            word("never_calls(get_product_details) within gold_has(exchange_items)"), 31, 2 / 31, 28, 19 / 28, 0.39, 0.78,
            0.00002, 0.004, True, word(within), "mechanism", 0.62, word("get_product_details"), rollouts, told,
        ),
        Mechanism(
            "M2", run, word("Rollouts whose last call is transfer_to_human pass in 1 of 14 cases"), word("last_call(transfer_to_human)"),
            14, 1 / 14, 45, 20 / 45, 0.11, 0.55, 0.001, 0.03, False, word("difficulty of the task as fitted from the other rollouts"),
            "mechanism", 0.19, word("transfer_to_human"), rollouts[:3], told,
        ),
        Mechanism(
            "L1", run, word("Final texts above 900 characters pass less often"), word("final_chars > 900"), 12, 0.25, 47, 0.42,
            -0.12, 0.44, 0.21, 0.66, False, word("none"), "lead", 0.13, word("final text"), rollouts[1:4], told,
        ),
    ]  # fmt: skip


def behaviours(run: str, word: Word) -> list[Behaviour]:
    return [
        Behaviour(
            run, word("writes-without-reading"), 33, 9, 29, 40, 4, 40, 11.4, 3.1, 41.8, 0.0003, 0.006, "cause"
        ),
        Behaviour(run, word("gives-up-early"), 6, 4, 5, 40, 1, 40, 3.2, 0.4, 26.0, 0.24, 0.51, "unproven"),
        Behaviour(run, word("long-apology"), 44, 15, 22, 40, 22, 40, 1.04, 0.5, 2.2, 0.91, 0.95, "style"),
        Behaviour(run, word("loops"), 2, 1, 2, 40, 0, 40, None, None, None, None, None, "unproven"),
    ]


def signatures(run: str, tasks: list[TaskResult], word: Word) -> list[Signature]:
    at = tasks[0]
    shown = (
        Evidence(
            run, at.task, failing(at), field=word("verifier.message"), quote=word("expected 3 actions, got 2")
        ),
    )
    rollouts = tuple((task.task, failing(task)) for task in tasks)
    return [
        Signature("S1", run, word("ActionMismatch"), word("expected <num> actions, got <num>"), word("verifier.message"), 21, 9, 21, 4,
                  "systemic", word("domain=exchange"), 3.4, 0.012, rollouts, shown),
        Signature("S2", run, word("HTTP 503"), word("503 Service Unavailable"), word("error"), 7, 5, 7, 1, "flaky", None, None, None,
                  rollouts[:2], ()),
        Signature("S3", run, word("NotFound"), word("Error: order <id> not found"), word("tool get_order"), 9, 4, 3, 2, "idiosyncratic", None,
                  None, None, rollouts[:1], shown),
    ]  # fmt: skip


def meanings(run: str, word: Word) -> list[Meaning]:
    return [
        Meaning(
            run,
            word("exit_code"),
            word("137"),
            Cause.INFRASTRUCTURE,
            word("killed for want of memory"),
            "known",
            3,
            0,
            2,
        ),
        Meaning(
            run, word("db_match"), word("false"), None, word("restates the reward"), "proposed", 30, 0, 12
        ),
        Meaning(
            run,
            word("status"),
            word("cut"),
            Cause.BEHAVIOUR,
            word("cut at the turn limit"),
            "proposed",
            4,
            0,
            3,
        ),
    ]


def contrasts(run: str, tasks: list[TaskResult], word: Word) -> list[Contrast]:
    found = [
        Contrast("C0", run, None, word("calls get_product_details"), 0.9, 0.31, 40, 40, 0.0001, 0.003,
                 word("Passing repeats call get_product_details before the first write, failing ones do not"), None, ()),
    ]  # fmt: skip
    for at, task in enumerate(tasks):
        good = passing(task)
        if good is None:
            continue
        told = (
            quoted(run, task, failing(task), 5, word("I will exchange the lamp now.")),
            quoted(run, task, good, 5, word('get_product_details {"product_id": "6817"}')),
        )
        found.append(
            Contrast(f"C{at + 1}", run, task.task, word("get_product_details before exchange_items"), 1.0, 0.0, 1, 3, 0.25, None,
                     word("The passing repeat looks the product up at step 5; the failing ones go straight to the exchange"), None, told)
        )  # fmt: skip
    return found


def divergence(
    run: str, task: TaskResult, word: Word = lambda text: text, **changes: Any
) -> list[Divergence]:
    """Where the first failing repeat leaves the first passing one; nothing for a task without both."""
    good, bad = passing(task), failing(task)
    if good is None:
        return []
    told = (
        quoted(run, task, bad, 6, word("transfer_to_human {}")),
        quoted(run, task, good, 4, word('get_product_details {"product_id": "6817"}')),
    )
    found = Divergence(
        run=run, task=task.task, repeat=bad, position=7, passer=good, passer_run=run, step=6, passer_step=4, does=word("calls transfer_to_human"),
        passer_does=word('calls get_product_details with {"product_id": "6817"}'), first_step=6, first_passer_step=4, distance=0.25,
        fitness=0.8, missing=(word("get_product_details"),), unusual=(word("get_order > transfer_to_human"),), evidence=told,
    )  # fmt: skip
    return [replace(found, **changes)]


def recommendations(run: str, tasks: list[TaskResult], word: Word) -> list[Recommendation]:
    keys = tuple(task.task for task in tasks)
    told = (quoted(run, tasks[0], failing(tasks[0]), 7, word('{"new_item_ids": ["1008"]}')),)
    return [
        Recommendation(1, run, "harness", word("Refuse exchange_items unless get_product_details returned the item id in the same rollout"),
                       Cause.BEHAVIOUR, word(SKIPS), Gain(0.031, 0.084, 0.142), False, "harness",
                       word("repeats of the same tasks without the mode pass at 61%; least-affected ablation, permutation p 0.004"), keys, told),
        Recommendation(2, run, "prompt", word("Tell the agent to re-read the balance after every refund"), Cause.UNRELIABLE_KNOWLEDGE,
                       word(STALE), Gain(0.0, 0.021, 0.05), False, "prompt", word("extrapolated from the slice: no task has repeats without the mode"),
                       keys[:2], told),
        Recommendation(3, run, "verifier", word("Correct the expected actions of the tasks whose gold breaks the policy"), Cause.TASK_OR_VERIFIER,
                       word(GOLD), Gain(0.0, 0.05, 0.05), True, "verifier", word("suspect tasks counted as passed"), keys[:1], ()),
        Recommendation(4, run, "infrastructure", word("Retry rollouts whose request ended with status 503"), Cause.INFRASTRUCTURE, word(OUTAGE),
                       Gain(0.01, 0.02, 0.035), True, "config", word("pass rate of the unaffected repeats of the same tasks"), keys[:1], told),
    ]  # fmt: skip


def finding(run: str, task: TaskResult, number: int, word: Word) -> Finding:
    where = quoted(run, task, failing(task), 7, word('exchange_items {"new_item_ids": ["1008"]}'))
    return Finding(f"writes-without-reading:{task.task}", run, word("writes-without-reading"), task.task, failing(task),
                   word("exchange_items is called before any read of the item"), 2 + number % 2, Confidence.LIKELY, (where,), Cause.BEHAVIOUR)  # fmt: skip


def card(word: Word) -> dict[str, Any]:
    def rate(value: float, low: float, high: float, n: int) -> dict[str, Any]:
        return {"value": value, "low": low, "high": high, "n": n}

    return {
        "date": "2026-11-01",
        "sets": [
            {"name": word("planted faults"), "kind": "planted", "causes": {"accuracy": rate(0.94, 0.91, 0.96, 340), "coverage": rate(0.9, 0.86, 0.93, 340)},
             "steps": {"within_1": rate(0.95, 0.92, 0.97, 340)}},
            {"name": word("labelled failures"), "kind": "natural", "steps": {"exact": rate(0.31, 0.17, 0.49, 29), "within_5": rate(0.72, 0.54, 0.85, 29)},
             "baselines": {"last": rate(0.07, 0.02, 0.22, 29), "before_first_error": rate(0.28, 0.15, 0.46, 29)}},
        ],
    }  # fmt: skip
