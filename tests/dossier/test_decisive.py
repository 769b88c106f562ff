"""Where a fault is planted at a known step, the dossier shows that step with its words, in few tokens."""

from __future__ import annotations

from collections import Counter, defaultdict

from blade import events, hostile
from blade.agent.dossier import BUDGET, dossier
from blade.model import Outcome, Step
from tests.dossier.conftest import Written
from tests.dossier.reading import shown
from tools.planted.injected import INJECTIONS

# Faults of single calls, of loops, of ends, of checks, of limits, and of the whole run.
FAULTS = (
    "timeout", "dangling_call", "ungrounded_arg", "cycle", "ignored_error", "missing_required_tool",
    "extra_side_effect", "finish_on_red", "refusal", "right_then_wrong", "unconfirmed_write", "broken_verifier",
)  # fmt: skip
LEAST = 0.95
MOST_TOKENS = 4000
WORDS = 40  # characters from its beginning by which the words of a step are known


def is_shown(text: str, repeat: int, step: Step) -> bool:
    """Whether the words of a step stand beside its number, not its number alone."""
    said = shown(text, repeat, step.index)
    if said is None:
        return False
    words = " ".join(hostile.lines(events.step_text(step)).split())
    told = said.removeprefix(step.tool or "").strip() if step.kind == "call" else said
    told = told.partition("[…")[0].strip()
    least = min(WORDS, len(words))  # a word or two would do for any step
    return told[:least] == words[:least] if words else told in ("", "(empty)")


def test_the_decisive_step_is_in_the_dossier_of_nearly_every_failed_task(planted: Written) -> None:
    of: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    for fault in FAULTS:
        made, asked = planted(fault, 0.05)
        facts, run = asked.facts[asked.loaded[0].name], asked.loaded[0]
        true = defaultdict(list)
        for truth in made.truths:
            true[truth.task].append(truth)
        for task, truths in true.items():
            result = facts.task(task)
            assert result is not None
            passed = {one.repeat for one in result.repeats if one.outcome is Outcome.PASSED}
            failing = [one for one in truths if one.step is not None and one.repeat not in passed]
            if not failing:
                continue
            traces = asked.traces(run, task)
            told = dossier(facts, task, traces)
            assert told.tokens <= told.budget == BUDGET < MOST_TOKENS
            steps = {trace.rollout.repeat: trace.steps for trace in traces}
            of[fault] += 1
            hits[fault] += any(
                is_shown(told.text, one.repeat, steps[one.repeat][one.step])
                for one in failing
                if one.step is not None
            )
    table = "\n".join(f"{fault:24} {hits[fault]} of {of[fault]}" for fault in FAULTS)
    assert sum(of.values()) >= len(FAULTS), table
    assert sum(hits.values()) >= LEAST * sum(of.values()), table


def test_the_faults_that_are_asked_about_are_planted_ones() -> None:
    assert set(FAULTS) <= set(INJECTIONS)
