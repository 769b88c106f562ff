"""Word the verdict of a comparison: is the change real, what would resolve it, how far the runs can be compared, the gate."""

from __future__ import annotations

import math

from blade import hostile, number_format
from blade.model import Checked, Comparison, Gate, Power, Report, Setting
from blade.report import comparison_words as say
from blade.report import queried_numbers
from blade.report.blocks import Badge, Block, Line, Para, Span, Strong
from blade.report.comparison_words import ALPHA, NEW, THESE, apart, cited, n_common, pair, sentence, tested
from blade.report.phrases import LABELS, code, explained, joined, line, name, paragraph, plain, short, table
from blade.report.queried_numbers import Cited, count, whole
from blade.report.row_addresses import left_out, names

BRIDGE = "bridge"  # the view that claims of the bridge are made in
ON = {THESE: "on these tasks", NEW: "for new tasks like these"}
WORTH = {THESE: "where only the repeats are left to chance", NEW: "where the choice of tasks is left to chance too"}
MDE = {THESE: "mde_these", NEW: "mde"}


def verdict(comparison: Comparison, report: Report) -> list[Block]:
    """The answer in one paragraph, what would sharpen it, then every test."""
    if comparison.refused is not None:
        return [Para((Strong("Not compared: "), *refusal(comparison)))]
    lines = [opening(comparison, report)]
    if not comparison.identical:
        lines += [mechanical(comparison), resolve(comparison, report), _differs(comparison)]
    notes = say.note_bullets(cited(comparison), pair(comparison))
    return [*(Para(line) for line in lines if line), *notes, *_tests(comparison)]


def refusal(comparison: Comparison, limit: int = 600) -> Line:
    """Why there is no comparison."""
    return sentence(comparison.refused or "", f"{cited(comparison).query}.refused", limit, pair(comparison))


def opening(comparison: Comparison, report: Report) -> Line:
    """The verdict, the two scores, and each question with its test, interval and n."""
    if comparison.identical:
        return explained("same rows", say.both(comparison), n_common(comparison))
    these, new = (answer(comparison, question) for question in (THESE, NEW))
    return (Strong(headline(comparison)), " ", *_scores(comparison, report), " ", *these, " ", *new)


def headline(comparison: Comparison) -> str:
    """Both verdicts in one sentence."""
    these, new = comparison.verdict, comparison.verdict_new_tasks

    def worded(word: str | None, question: str) -> str:
        text = {"equivalent": "equivalent within the margin", None: "no verdict"}.get(word, word or "")
        return f"{text}, {say.SMALL}," if say.is_small(comparison, question) else text

    first, second = worded(these, THESE), worded(new, NEW)
    start = f"{first[:1].upper()}{first[1:]} {ON[THESE]}"
    if first == second:
        return f"{start} and {ON[NEW]}."
    if new == "inconclusive":
        second = "not established"
    elif these not in (new, "inconclusive"):
        second = f"but {second}"
    return f"{start}; {second} {ON[NEW]}."


def _scores(comparison: Comparison, report: Report) -> Line:
    """Both headline scores, and those over the common tasks where they differ."""
    of = cited(comparison)
    scores = line(
        "{} scores {} {} and {} {}: {}",
        say.run(comparison.candidate), say.score_of(comparison, report, "candidate"), say.score_label(comparison.score_name),
        say.run(comparison.baseline), say.score_of(comparison, report, "baseline"), of.change("delta", strong=True),
    )  # fmt: skip
    if not is_other_on_common(comparison):
        return line("{} (n = {}).", scores, n_common(comparison))
    return explained(
        "common tasks scored", scores, n_common(comparison), of.level("common_baseline"), of.level("common_candidate"),
        of.change("delta_common", strong=True),
    )  # fmt: skip


def mechanical(comparison: Comparison) -> Line:
    """How much of the change is claimed by causes that say nothing about the model."""
    movers = [mover for mover in comparison.movers if mover.mechanical and mover.view == BRIDGE]
    if not movers or comparison.delta is None:
        return ()
    of, part = cited(comparison), math.fsum(mover.value for mover in movers)
    query = f"{of.query}.movers(mechanical=True, view={BRIDGE!r}).value"
    return explained(
        "mechanical part", of.changed(part, query), joined([name(say.term(mover.term, 80)) for mover in movers]),
        of.changed(comparison.delta - part, f"{of.query}.delta - {query}"),
    )  # fmt: skip


def is_other_on_common(comparison: Comparison) -> bool:
    """Whether the change over common tasks is another than that of the headline, as both are printed."""
    if comparison.delta is None or comparison.delta_common is None:
        return False
    of = cited(comparison)
    return number_format.change(comparison.delta, of.is_rate) != number_format.change(comparison.delta_common, of.is_rate)


def answer(comparison: Comparison, question: str) -> Line:
    """One question, its answer and what it rests on; nothing is called unchanged for a large p."""
    test, word = say.test_of(comparison, question), say.verdict_on(comparison, question)
    start = f"{ON[question][:1].upper()}{ON[question][1:]}, {WORTH[question]}, "
    if test is None or word is None:
        return line(f"{start}nothing could be tested (n = {{}}).", n_common(comparison))
    change = tested(comparison, test).estimate("estimate")
    margin, rests = say.margin(comparison), rests_on(comparison, question)
    if word in ("improved", "regressed"):
        better = "better" if word == "improved" else "worse"
        small = (f", {say.SMALL} of ", *margin) if say.is_small(comparison, question) else ()
        return line(f"{start}the candidate is {better}{{}}: {{}} ({{}}).", small, change, rests)
    if word == "equivalent":
        return line(f"{start}the change is {{}}, inside {{}} ({{}}).", change, margin, rests)
    cannot: Line = ()
    if smallest(comparison, question) is not None:
        cannot = ("; the smallest detectable effect is ", cited(comparison).of("power").size(MDE[question]))
    unknown = f"{start}neither a change nor equivalence within {{}} is established: {{}} ({{}}{{}})."
    return line(unknown, margin, change, rests, cannot)


def rests_on(comparison: Comparison, question: str) -> Line:
    """`paired t, p = 0.29; n = 8 tasks`; of an open question the equivalence too, of equivalence it alone."""
    tests, word = say.answers(comparison, question), say.verdict_on(comparison, question)
    tests = tests[:2] if word == "inconclusive" else tests[1:2] if word == "equivalent" else tests[:1]
    of = [tested(comparison, test) for test in tests]
    parts: list[Line] = [(test.said("name", 100), ", ", *test.p_value("p")) for test in of]
    if word == "inconclusive" and len(of) == 2:  # the margin stands beside it
        parts[1] = ("equivalence ", *of[1].p_value("p"))
    adjusted = "p_adjusted" if question == THESE else "p_adjusted_new"
    p: float | None = getattr(comparison, adjusted)
    if p is not None and tests and word != "equivalent" and tests[0].p is not None and abs(p - tests[0].p) > 1e-12:
        parts[0] = (*parts[0], ", ", cited(comparison).p_number(adjusted), " adjusted for all candidates")
    return joined([*parts, ("n = ", *n_common(comparison))], "; ", "; ")


def smallest(comparison: Comparison, question: str) -> float | None:
    """The smallest change that this comparison would have seen in 80 of 100 cases."""
    return getattr(comparison.power, MDE[question], None)


def resolve(comparison: Comparison, report: Report) -> Line:
    """What would make an open question decidable."""
    power = comparison.power
    if power is None or "inconclusive" not in (comparison.verdict, comparison.verdict_new_tasks):
        return ()
    lead = Strong("What would resolve it: ")
    if power.target is None or (power.repeats_needed is None and power.tasks_needed is None):
        return (lead, "unknown, since these rows do not show how much repeats and tasks vary.")
    of = cited(comparison).of("power")
    is_margin = power.target <= comparison.margin * (1 + 1e-9)
    seen: Line = (of.size("target"), " (the margin)" if is_margin else " (the size seen)")
    if power.tasks_needed == 0:
        return explained("enough tasks", lead, seen)
    ways: list[Line] = []
    if power.repeats_needed is not None:
        now = {run.coverage.repeats: run.name for run in report.runs if run.name in pair(comparison)}
        repeats: list[Line] = [(whole(n, queried_numbers.select("repeats", "runs", now[n])),) for n in sorted(now)]
        stated = line(" (now {})", joined(repeats)) if repeats else ()
        ways.append((*of.count("repeats_needed", "repeat"), " per task in each run", *stated))
    if power.tasks_needed is not None:
        ways.append((*of.count("tasks_needed", "more task"), " like these (with as many repeats)"))
    would = "{}{} would detect a true change of {} in 80 of 100 cases.{}"
    return line(would, lead, joined(ways, ", or ", ", or "), seen, _whether_repeats(power))


def _whether_repeats(power: Power) -> str:
    """Whether more repeats alone would resolve it, where no number of them is given."""
    if power.repeats_needed is not None:
        return ""
    if power.omega2 is None:
        return " With one try per task, the number of repeats that would be enough is unknown."
    if power.p_heterogeneity is not None and power.p_heterogeneity <= ALPHA:
        return " More repeats alone would not be enough: the change varies from task to task."
    return " These rows do not show whether more repeats alone would be enough."


def _differs(comparison: Comparison) -> Line:
    """That the change is not one and the same for every task."""
    p = comparison.power.p_heterogeneity if comparison.power is not None else None
    if p is None or p >= ALPHA:
        return ()
    return explained("differs by task", cited(comparison).of("power").p_value("p_heterogeneity"), n_common(comparison))


def _tests(comparison: Comparison) -> list[Block]:
    if not comparison.tests or comparison.identical:
        return []
    units, order = {derived.name: derived.unit for derived in comparison.derived}, {THESE: 0, NEW: 1}
    rows = []
    for test in sorted(comparison.tests, key=lambda test: order.get(test.question, 2)):
        of = tested(comparison, test)
        if test.question not in (THESE, NEW):
            of.is_rate = units.get(test.question) == "rate"
        rows.append((name(hostile.line(test.question, 60)), of.said("name", 100), of.estimate("estimate"), of.p_number("p")))
    return [
        table("Question|Test|Estimate, 95% interval (of equivalence 90%)|p", "llrr", rows),
        Para(explained("tests", n_common(comparison), say.margin(comparison))),
    ]


def in_short(comparison: Comparison) -> str:
    """One line: who against whom, both verdicts, the change for new tasks with its interval and n."""
    baseline, candidate = apart(pair(comparison), 30)
    who, n = f"{candidate} against {baseline}", plain(n_common(comparison))
    if comparison.refused is not None:
        return f"{who}: not compared, {plain(refusal(comparison, 160)).removesuffix('.')}"
    if comparison.identical:
        return f"{who}: the same rows (n = {n})"
    test = say.test_of(comparison, NEW)
    change = short(tested(comparison, test).estimate("estimate")) if test else "nothing to test"
    these, new = (
        (say.verdict_on(comparison, question) or "no verdict") + f" ({say.SMALL})" * say.is_small(comparison, question)
        for question in (THESE, NEW)
    )
    return f"{who}: {these} on these tasks, {new} for new ones; {change}, n = {n}"


# ---- Comparability: which tasks both runs share, which settings differ ---------------------------

MAX_SETTINGS = 40
KINDS: dict[str, str] = LABELS["tasks of two runs"]

def comparability(comparison: Comparison, file: str) -> list[Block]:
    """The tasks that can be compared, then the settings that changed with the model."""
    of, alignment = cited(comparison).of("alignment"), comparison.alignment
    blocks: list[Block] = [Para((Strong("Refused: "), *refusal(comparison)))] if comparison.refused is not None else []

    def listed(member: str) -> Line:
        return names(getattr(alignment, member), f"{of.query}.{member}.count")

    rows = [(means, of.length(member), listed(member)) for member, means in KINDS.items()]
    matched = of.said("matched_by", 200)
    blocks += [
        paragraph("Tasks were matched by {}.", matched if matched.text else "nothing: no task was matched"),
        table("Tasks|n|First keys", "lrl", rows),
    ]
    if alignment.common and (alignment.added or alignment.removed or alignment.modified):
        shared = len(alignment.common) + len(alignment.modified)
        n_a = shared + len(alignment.removed) + len(alignment.missing_candidate)
        n_b = shared + len(alignment.added) + len(alignment.missing_baseline)
        tasks = (
            whole(n, queried_numbers.measure("tasks", run, "not masked"))
            for n, run in zip((n_a, n_b), pair(comparison), strict=True)
        )
        blocks.append(Para(explained("common tasks", of.length("common"), *tasks)))
    if alignment.changed_fields:
        blocks.append(paragraph("Tasks with the same key that are not the same differ in {}.", listed("changed_fields")))
    if alignment.changed_everywhere:
        template = "Different in nearly all tasks, so treated as a change of template or format: {}."
        blocks.append(paragraph(template, listed("changed_everywhere")))
    return [*blocks, *_settings(comparison, file)]


def _settings(comparison: Comparison, file: str) -> list[Block]:
    diff, separable = comparison.config_diff, Para(separability(comparison))
    if not diff:
        return [separable]
    rows = [_setting(setting) for setting in diff[:MAX_SETTINGS]]
    every = f"{cited(comparison).query}.config_diff.count"
    shown = table("Setting that differs|Baseline|Candidate|Kind|Can move the score by itself", "lllll", rows)
    return [shown, *left_out(len(diff), len(rows), "setting", every, file), separable]


def _setting(setting: Setting) -> tuple[Span | Line, ...]:
    values = [code(value, 120) if value is not None else "not stated" for value in (setting.baseline, setting.candidate)]
    mark = Badge("mechanical", "warning") if setting.mechanical and setting.counts else number_format.NONE
    return code(setting.key), *values, name(hostile.line(setting.kind, 40)), mark


def separability(comparison: Comparison) -> Line:
    """Whether the change can be laid to one setting, and the run that would tell."""
    if not comparison.config_diff:
        return explained("no setting")
    query = f"{cited(comparison).query}.config_diff"
    known = [setting for setting in comparison.config_diff if setting.known and setting.counts]
    unknown = [setting.key for setting in comparison.config_diff if not setting.known]
    n_known, n_unknown = f"{query}(known=True, counts=True).count", f"{query}(known=False).count"
    if comparison.separable is False:
        keys = names([setting.key for setting in known] or unknown, n_known if known else n_unknown)
        run = sentence(comparison.missing_run, f"{cited(comparison).query}.missing_run", names=pair(comparison))
        return explained("not separable", keys, (" The run that would separate them: ", *run) if run else ())
    text: Line = ("No setting that both runs state and that can move a score differs.",)
    if known and comparison.separable:
        text = explained("separable", code(known[0].key))
    elif known:
        verb = "differs" if len(known) == 1 else "differ"
        text = line(f"{{}} of the table {verb} between the runs.", count(len(known), "stated setting", n_known))
    if unknown:
        text += line(" Stated by one run only, so unknown: {}.", names(unknown, n_unknown))
    return text


# ---- The gate: what a policy says ----------------------------------------------------------------

GATE_TONES = {"PASS": "good", "WARN": "warning", "FAIL": "bad", "INCONCLUSIVE": "warning"}
GATE_ORDER = ("FAIL", "INCONCLUSIVE", "WARN", "PASS")


def gate(policy: Gate) -> list[Block]:
    """The verdict of the policy, every line of it, failures first."""
    of = Cited(policy, "engine.gate")
    runs = {policy.baseline, *(check.candidate for check in policy.checks)}
    rows = [_check(of, check, runs) for check in sorted(policy.checks, key=lambda check: gate_rank(check.verdict))]
    question = hostile.line(policy.question, 20)
    return [
        paragraph("The policy {} says {}, on {}.", code(policy.policy, 200), _gate_badge(policy.verdict), question),
        table("Verdict|Tier|Metric|Candidate|Why|Tasks|Waived", "lllllrl", rows),
        *say.note_bullets(of, runs),
    ]


def _check(gate: Cited, check: Checked, runs: set[str]) -> tuple[Span | Line, ...]:
    of = gate.entry("checks", check, "candidate", "metric")
    return (
        _gate_badge(check.verdict), hostile.line(check.tier, 20), code(check.metric, 60), say.run(check.candidate, 60),
        sentence(check.text, f"{of.query}.text", 400, runs), of.whole("n") if check.n is not None else number_format.NONE,
        of.said("waived", 200) if check.waived else number_format.NONE,
    )  # fmt: skip


def gate_rank(word: str) -> int:
    return GATE_ORDER.index(word) if word in GATE_ORDER else len(GATE_ORDER)


def _gate_badge(word: str) -> Badge:
    return Badge(hostile.line(word, 20), GATE_TONES.get(word, "quiet"))
