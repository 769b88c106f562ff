"""Climb the ladder of rungs in order: what each asks, what refutes it, which label (TI, BI, IR, UK) it gives a failing row."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import msgspec

from blade.diagnose.expected_calls import adopt_golds
from blade.diagnose.population import Findings, Group, Mask, Population, Trust, adopt_flags, count
from blade.diagnose.reference import Reference, reference
from blade.diagnose.rungs import (
    behaviour,
    cut,
    delivered,
    environment,
    identity,
    kinds,
    knowledge,
    ran,
    verdicts,
    verifier,
)
from blade.model import Code

T = TypeVar("T")
MAX_GROUPS = 12  # more than a page shows one by one; what is beyond counts as unexplained


@dataclass
class Diagnosis:
    """What the ladder concluded of one run."""

    people: Population
    trust: list[Trust]
    groups: list[Group]
    slices: list[kinds.Slice]
    reference: Reference | None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def unexplained(self) -> Mask:
        left = self.people.failed.copy()
        for group in self.groups:
            left &= ~group.rows
        return left


def nothing_to_explain(people: Population) -> Diagnosis:
    """A run without rewards: there are traces to read, and nothing that was lost."""
    people.is_unscored = True
    people.passed[:] = True  # so that nothing counts as failing
    people.failed[:] = False
    people.lost[:] = 0
    text = "No row has a reward, so nothing says what passed: this is a report on the traces alone."
    return Diagnosis(people, [Trust("warning", None, text, ~people.none)], [], [], None)


def climb(people: Population, codes: Sequence[Code] = ()) -> Diagnosis:
    """Every question in order; later ones see only what is left. `codes` are meanings that `blade.toml` declares."""
    clock: dict[str, float] = {}
    left = people.failed.copy()
    trust: list[Trust] = []
    groups: list[Group] = []

    def timed(name: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = work()
        clock[name] = clock.get(name, 0.0) + time.perf_counter() - start
        return result

    timed("errors", lambda: adopt_flags(people))
    results, content = timed("identity", lambda: identity.ask(people))
    trust += results.trust
    groups += results.groups
    for group in results.groups:
        left = left & ~group.rows
    if content is not None:
        people.regroup(content)
    timed("verdicts", lambda: adopt_golds(people))
    known = timed("answers", lambda: reference(people))
    pieces = timed("kinds", lambda: kinds.slices(people, known))
    rungs: tuple[tuple[str, Callable[[Mask], Findings]], ...] = (
        ("declared", lambda rows: ask_declared(people, rows, codes)),
        ("ran", lambda rows: ran.ask(people, rows)),
        ("cut", lambda rows: cut.ask_recorded(people, rows)),
        ("ran", lambda rows: ran.ask_empty(people, rows)),
        ("errors", lambda rows: environment.ask_errors(people, rows)),
        ("cut", lambda rows: cut.ask(people, rows)),
        ("environment", lambda rows: environment.ask(people, rows)),
        ("verifier", lambda rows: verifier.ask(people, rows, known)),
        ("delivered", lambda rows: delivered.ask(people, rows)),
        ("verdicts", lambda rows: verdicts.ask(people, rows)),
        ("behaviour", lambda rows: behaviour.ask(people, rows, known)),
        ("kinds", lambda rows: kinds.ask(people, rows, known, pieces)),
        ("knowledge", lambda rows: knowledge.ask(people, rows, known)),
        ("verdicts", lambda rows: verdicts.ask_messages(people, rows)),
    )
    for name, ask in rungs:
        if not left.any():
            break
        results = timed(name, partial(ask, left))
        trust += results.trust
        groups += [group for group in results.groups if group.rows.any()]
        for group in results.groups:
            left = left & ~group.rows
    groups.sort(key=lambda group: -_weight(people, group))
    return Diagnosis(people, trust, groups[:MAX_GROUPS], pieces, known, clock)


def _weight(people: Population, group: Group) -> float:
    """Points, by which groups are told in order; where rewards leave 0 to 1 there are none to lose, and rows count."""
    return float(people.lost[group.rows].sum()) if people.lost.any() else float(group.rows.sum())


class Rule(msgspec.Struct, frozen=True):
    """One question of the ladder, in words for a reader."""

    name: str  # as the groups and the accuracy card spell it
    question: str
    proof: str
    refuted: str
    label: str


RULES: tuple[Rule, ...] = (
    Rule(
        "identity",
        "Are the rows grouped as they were run?",
        "The rows fall into equally large groups by prompt and expected answer, and these groups cross the task "
        "index or several lie under one; or every row has its own index while the prompts repeat regularly. Repeats and causes are then "
        "found by prompt, and the score stays as it is. Rollouts speak of what only other prompts name. Answers are the expected ones of "
        "other tasks, or, in part of the run, of the task beside theirs far beyond chance.",
        "Every row has a prompt of its own, as with simulated users; fewer than six rows; prompts are missing in "
        "more than a tenth of the rows.",
        "DA (data)",
    ),
    Rule(
        "declared",
        "What does the owner of the benchmark say?",
        "blade.toml declares what a value of a verifier field means, and a failing row has that value.",
        "Nothing: the declaration decides. A value declared to mean a pass is not counted.",
        "as declared",
    ),
    Rule(
        "recorded",
        "Is behaviour recorded at all?",
        "Rows without output pass at half of the usual rate or more: the transcripts are missing, not the behaviour. "
        "This is said once, nothing is blamed on it, and causes come from the other fields.",
        "A log, error or stop text explains the rows without output (see ran); no output is the right act, as where "
        "no call is due.",
        "none",
    ),
    Rule(
        "ran",
        "Did the agent run?",
        "Rows without output share a line of a log, an error or a stop text that no passing row has. Rows without "
        "output, without passes and without such a text are one group: empty output, stop reason not recorded.",
        "A pass among the rows with that text; the text is as frequent in rows that have output; tokens, time or "
        "failed tests alone.",
        "IR (infrastructure)",
    ),
    Rule(
        "cut",
        "Was the rollout stopped from outside?",
        "A recorded stop reason names a limit; the last call was never answered and hardly any such rollout passes; "
        "far more rollouts end at the maximum of an amount (turns, calls, tokens, seconds) than just below it; the "
        "answer ends inside a block, in an unfinished line, or after a line of a form that the prompt continues.",
        "Rows that end this way pass at about the usual rate; a rollout ends as passes do or records another end; nearly "
        "all rows below the limit pass, so the episode "
        "stops on success; the last acts repeat one call or one error: then the loop is the cause (BI) and the limit "
        "only its end.",
        "TI (task, verifier or harness); BI for a loop",
    ),
    Rule(
        "environment",
        "Did the environment around the agent work?",
        "Rows lack every verdict field that all passes have: they were never graded. A tool fails in one rollout and "
        "the same call after the same acts succeeds in another, so neither the arguments nor the state is the reason. A declared "
        "tool never works, whatever it is asked. The same tasks pass far less often on one node or worker than elsewhere.",
        "The call fails every time: it answers the model's own mistake; rollouts recover from the error and pass at "
        "the usual rate; only one verdict field is absent.",
        "TI if never graded or a tool never works, otherwise IR (infrastructure)",
    ),
    Rule(
        "verifier",
        "Does the grade follow from the answer?",
        "The answer equals the expected one and scores 0; equal answers to one task are graded both 0 and 1; all "
        "recorded checks pass and the reward is 0; answers in a code fence never pass while bare ones do; the "
        "grader's own record of the answer differs from the one that the text announces; the judge's own reply was cut off by a "
        "limit; a block of the prompt is empty; texts with a typographic sign fail where the same words with the plain sign pass on the "
        "same tasks; texts that give the expected answer late fail where those that give it early pass; an error says that there is no "
        "such name, and the prompt gives it as code; in one kind of task the answered letter is always the same number of places away from "
        "the expected one. A "
        "comparison counts only where it agrees in at least 90% of the passes; without passes only exact equality "
        "counts.",
        "Free text that a model judges; a comparison that would overturn more than a tenth of all rows without exact "
        "equality; an all-zero run by itself; transcripts that were not recorded.",
        "TI (task, verifier or harness)",
    ),
    Rule(
        "gold",
        "Is the expected answer right?",
        "Asked only where several runs share tasks: runs of two or more different models agree on another answer "
        "than the expected one, or two files expect different answers to the same task.",
        "Agreement among repeats of one model; a task that never passes. It is always a warning to review the named "
        "tasks, and takes no points.",
        "TI (task, verifier or harness), to review",
    ),
    Rule(
        "delivered",
        "Was the thing that is graded ever handed over?",
        "The act that ends at least 90% of the passes is absent: the call that submits or writes the result, any "
        "tool call at all, any call that succeeds, any of the few calls that end the passes, or the asked form of the answer (a box, a "
        "tag); or one call or one error is "
        "repeated to the end, where passes get past it.",
        "Fewer than five passes to learn it from; rows without that act pass too. Where nine in ten first tries end in an error, passes "
        "included, the environment is in doubt and the label stays undetermined.",
        "BI (behaviour: format or protocol)",
    ),
    Rule(
        "verdicts",
        "What does the grader itself say?",
        "The calls differ from the expected calls that the row states, where passes make exactly those; a named "
        "check, score of a field or test in a log fails; two objects with the same keys differ, in one way or in several; a field that "
        "varies within tasks has a value that no pass has, or that passes in one kind of task and never in another. Tests that only one "
        "task has are told together. Messages that differ in numbers alone are one; they are asked last.",
        "A value that equals all failures, or a letter beside an answer that can be read: it restates the verdict and names nothing; "
        "tools whose calls differ from "
        "the expected ones in passing rows too.",
        "BI (behaviour) for calls and checks; undetermined where only a field names the outcome",
    ),
    Rule(
        "behaviour",
        "What do failures do that passes of the same task do not?",
        "Never calling a tool, calling one, meeting an error, accepting an empty result, leaving a list unread, writing an argument "
        "or an answer in another form, or repeating a call goes with failing on the same tasks: "
        "rollouts that do it pass at most 30% as often as the others, p at most 0.05 after correction for all "
        "candidates. With one try per task the comparison is between tasks, and is called a lead.",
        "No task both passes and fails; the act is possible only in failures, as where episodes stop on success; "
        "lengths, word counts and single words are never candidates.",
        "BI (behaviour)",
    ),
    Rule(
        "kinds",
        "On which tasks are the points lost?",
        "Tasks with one value of a field, one class of expected answer or one word in their id pass less often than "
        "all others, tested between tasks and corrected for all slices. A slice becomes a group only where it holds "
        "at least 30% of what is left, passes at most half as often, and its answers are of another kind than "
        "expected.",
        "Fewer than three tasks inside or outside; amounts that grow with the length of the rollout. A slice says "
        "where, not why.",
        "none for a slice; BI (behaviour) for a group",
    ),
    Rule(
        "knowledge",
        "Is it the same wrong answer every time, or another each time?",
        "Wrong answers are one group with a label for each task. It never passes and more than half of its repeats agree: a "
        "knowledge gap. It passes "
        "sometimes, or its answers differ: unreliable knowledge. One answer that dominates whatever is expected is "
        "a bias. Replies that ask back where no pass does, texts in which the grader read no answer, and rollouts that never saw the "
        "expected answer where passes did are groups of their own.",
        "No answer can be compared: such rollouts stay unexplained. With one try per task the two cannot be told "
        "apart, and the label stays undetermined. A wrong expected answer looks the same.",
        "KG (knowledge gap), UK (unreliable knowledge), BI for a bias, undetermined with one try",
    ),
)


def ask_declared(people: Population, left: Mask, codes: Sequence[Code]) -> Findings:
    findings = Findings()
    for code in codes:
        if code.cause == "passed":
            continue
        rows = people.where(lambda row: row.fields.get(code.field) == code.equals) & left  # noqa: B023
        if rows.any():
            left = left & ~rows
            findings.groups.append(_declared_group(code, rows, int(rows.sum())))
    return findings


def _declared_group(code: Code, rows: Mask, n: int) -> Group:
    field, value = code.field, str(code.equals)
    return Group(
        rung="declared", label=code.cause, name=code.mode, rows=rows, matched=rows, confidence="proved", deciding=(field,),
        text=f"{count(n, 'failure')}: {code.mode} (`{field}` is `{value[:100]}`, which `blade.toml` explains so).",
        fix=f"Repair what `{field}` = `{value[:60]}` stands for: {code.mode}.",
        why="`blade.toml` declares what this value means", place=lambda row: (field, value),
        holds=lambda row: row.fields.get(field) == code.equals,
    )  # fmt: skip
