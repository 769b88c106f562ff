"""Report what moved a score: claims, terms that add up to the change, the tasks that moved, what changed beside the score."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blade import hostile, number_format
from blade.model import Churn, Comparison, Flip, Measure, Mover, Report, Shift, Term
from blade.report import comparison_words as say
from blade.report import printed_names, queried_numbers
from blade.report.blocks import Badge, Block, Bullets, Commands, Figure, Line, Para, Span, para
from blade.report.comparison_verdict import BRIDGE
from blade.report.comparison_words import ALPHA, cited, pair, sentence
from blade.report.phrases import explained, heading, line, name, named, paragraph, table
from blade.report.queried_numbers import Cited, between, count, num, whole
from blade.report.row_addresses import left_out, read_next, show, task_name

MAX_TERMS = 25  # terms of a table; the smaller ones share its last row
SAME = 1e-9  # terms add up to this
CLAIM_ROLLOUTS = 2  # rollouts of a claim whose commands are written out
COMPOSITION = ("composition", "missing")  # sides of terms that say which tasks each run has


def key(comparison: Comparison) -> str:
    """What the figures of a comparison are known by."""
    return f"{comparison.baseline}\n{comparison.candidate}"


def what_moved_it(comparison: Comparison, report: Report, figures: tuple[Figure, ...], file: str) -> list[Block]:
    """The claims, mechanical causes first, then the bridge with its sum and its figure."""
    if comparison.refused is not None:
        return [para("Without a comparison there is nothing to explain.")]
    of, claims = cited(comparison), _claims(comparison, report)
    note = sentence(comparison.bridge_note, f"{of.query}.bridge_note", names=pair(comparison) if comparison.bridge else ())
    if not comparison.bridge:
        return [*claims, para("No bridge could be built: ", *(note or ("the scores have no parts that would add up.",)))]
    return [
        *claims, heading("From the score of the baseline to that of the candidate"),
        *_terms_blocks(comparison, of, "bridge", file), *named(figures, "bridge", key(comparison)), Para(note or explained("accounting")),
    ]  # fmt: skip


# ---- Claims --------------------------------------------------------------------------------------


def ranked(movers: Sequence[Mover]) -> list[Mover]:
    """Mechanical causes first, otherwise as they came: the strongest claim first."""
    return sorted(movers, key=lambda mover: not mover.mechanical)


def _claims(comparison: Comparison, report: Report) -> list[Block]:
    movers = ranked(comparison.movers)
    if not movers:
        adjusted = ". The terms below still add up to the change; they are corrected for the number of terms tried."
        same: Line = ("the rows are the same, so no term differs from 0.",)
        no_claim = same if comparison.identical else (*unclaimed(comparison), adjusted)
        return [paragraph("**No cause is claimed: **{}", no_claim)]
    blocks: list[Block] = [Para(explained("mechanical"))] if any(mover.mechanical for mover in movers) else []
    items: list[Line] = []
    for mover in movers:
        mark: Line = (Badge("mechanical", "warning"), " ") if mover.mechanical else ()
        also = [span for sentence in beside(mover, comparison) for span in (" ", *sentence)]
        items.append((*mark, *claim(comparison, mover), *also))
        if commands := rollouts_to_read(mover, comparison, report):
            blocks += [Bullets(tuple(items)), Commands(tuple(commands))]
            items = []
    if rest := undetermined(comparison):
        items.append((*rest, "."))
    return [*blocks, Bullets(tuple(items))] if items else blocks


def unclaimed(comparison: Comparison) -> Line:
    """That no failure group moved beyond noise, and which part of the change no known cause explains."""
    rest = undetermined(comparison)
    return ("no failure group with a known cause moved beyond noise", *((". ", *rest) if rest else ()))


def undetermined(comparison: Comparison) -> Line:
    """The largest term, where its cause is undetermined and it is beyond noise."""
    terms = [term for term in comparison.bridge if term.side not in COMPOSITION]
    largest = max(terms, key=lambda term: abs(term.value), default=None)
    if largest is None or largest.side != "undetermined" or largest.p is None or largest.p > ALPHA:
        return ()
    moved = cited(comparison).entry("bridge", largest, "term", "side").change("value")
    failures = "The largest part, {}, is in failures of undetermined cause: {}"
    return line(failures, moved, name(say.term(largest.term)))


def mover_of(comparison: Comparison, mover: Mover) -> Cited:
    return cited(comparison).entry("movers", mover, "term", "side", "view")


def claim(comparison: Comparison, mover: Mover) -> Line:
    """What is claimed to have moved the score: by how much, how surely, and what it would be in proportion."""
    of = mover_of(comparison, mover)
    side = "" if mover.side in ("slice", *COMPOSITION) else f" ({say.side(mover.side)})"
    text = line(
        "{}{} accounts for {}{}, adjusted {}",
        name(say.term(mover.term)), side, of.change("value", strong=True), of.interval() or " (no interval)", of.p_value("p_adjusted"),
    )  # fmt: skip
    if mover.share is not None and mover.share < -SAME:
        text += (", against the change",)
    elif mover.share is not None:
        # a part of the change may be larger than the whole
        text += (", more than the whole change",) if mover.share > 1 + SAME else (", ", of.percent("share"), " of the change")
    if mover.view != BRIDGE:
        text += (f", view {hostile.line(mover.view, 60)}",)
    return (*text, *_proportion(comparison, mover), ".")


def _proportion(comparison: Comparison, mover: Mover) -> Line:
    """What its share of the change would be, and the tasks that it rests on."""
    of = cited(comparison)
    if mover.view != BRIDGE:
        view = next((view for view in comparison.views if view.name == mover.view), None)
        if view is None:
            return ()
        of = of.entry("views", view, "name")
    members = "bridge" if mover.view == BRIDGE else "terms"
    term = next((t for t in getattr(of.noun, members) if (t.term, t.side) == (mover.term, mover.side)), None)
    if term is None:
        return ()
    of = of.entry(members, term, "term", "side")
    expected = ("; in proportion to all losses it would be ", of.change("expected")) if term.expected is not None else ()
    return (*expected, "; ", *of.count("n", "task"))


def beside(mover: Mover, comparison: Comparison) -> list[Line]:
    """What the rollouts of a claim show as well, a sentence each."""
    return say.notes(mover_of(comparison, mover), pair(comparison), "beside")


def rollouts_to_read(mover: Mover, comparison: Comparison, report: Report) -> list[tuple[str, str]]:
    """`blade show` lines for the first rollouts that show it."""
    runs = {run.name: run for run in report.runs}
    commands: list[tuple[str, str]] = []
    for run, task, repeat in mover.rollouts[:CLAIM_ROLLOUTS]:
        if run in runs:
            role = "baseline" if run == comparison.baseline else "candidate"
            commands += show(runs[run], task, repeat, f"{role}, {say.term(mover.term, 60)}")
    return commands


# ---- Terms that add up ---------------------------------------------------------------------------


def folded(terms: Sequence[Term], most: int) -> tuple[list[Term], list[Term]]:
    """The terms to show, in their order, and the smallest that share a row; a lone one is never folded."""
    if len(terms) <= most:
        return list(terms), []
    order = sorted(range(len(terms)), key=lambda place: (-abs(terms[place].value), place))
    largest = set(order[: most - 1])
    shown = [term for place, term in enumerate(terms) if place in largest]
    return shown, [term for place, term in enumerate(terms) if place not in largest]


def _terms_blocks(comparison: Comparison, of: Cited, members: str, file: str) -> list[Block]:
    """One row per term, the smaller ones of many on one row, so that the column still adds up; then their sum."""
    terms, query = getattr(of.noun, members), f"{of.query}.{members}"
    shown, left = folded(terms, MAX_TERMS)
    beyond = any(term.expected is not None or term.p_excess is not None for term in terms)
    rows: list[tuple[Span | Line, ...]] = []
    for row in (of.entry(members, term, "term", "side") for term in shown):
        more = (row.change("expected"), row.p_number("p_excess")) if beyond else ()
        names = (name(say.term(row.noun.term)), name(say.side(row.noun.side)))
        rows.append((*names, row.estimate("value"), row.p_number("p"), row.whole("n"), *more))
    if left:
        total = of.changed(math.fsum(term.value for term in left), _rest_query(query, terms, shown))
        several = count(len(left), "smaller term", f"{query}.count - {len(shown)}")
        rows.append(((*several, f", each in {file}"), "several", total, *[number_format.NONE] * (2 + 2 * beyond)))
    header = "Term|Side|Change, 95% interval|p|Tasks" + "|Expected|p beyond share" * beyond
    shown_terms = table(header, "llrrr" + "rr" * beyond, rows)
    return [shown_terms, Para(sum_line(comparison, terms, query)), *([Para(explained("expected"))] if beyond else [])]


def _rest_query(query: str, terms: Sequence[Term], shown: Sequence[Term]) -> str:
    """The query that gives what the terms that are not shown add up to."""
    names = tuple(term.term for term in shown)
    if sum(term.term in names for term in terms) == len(shown):
        return f"{query}.value - {query}(term={names!r}).value"
    places = {id(term): place for place, term in enumerate(terms)}
    return " - ".join([f"{query}.value", *(f"{query}[{places[id(term)]}].value" for term in shown)])


def sum_line(comparison: Comparison, terms: Sequence[Term], query: str) -> Line:
    """That the terms add up, to six decimals; a sum that does not is said aloud."""
    of, total, delta = cited(comparison), math.fsum(term.value for term in terms), comparison.delta
    six = num(number_format.exact(total), total, f"{query}.value")
    lead = line("**Sum of the terms: **{}, that is {}", six, of.changed(total, f"{query}.value"))
    change = f"the change of {say.score_label(comparison.score_name)}"
    if delta is None:
        return (*lead, "; there is no change to compare it with.")
    if abs(total - delta) <= SAME:
        return (*lead, f": {change}, exactly.")
    stated = num(number_format.exact(delta), delta, f"{of.query}.delta")
    return line("{}, which is not {}, {}: do not use these terms.", lead, change, stated)


def further_views(comparison: Comparison, file: str) -> list[Block]:
    """The other ways to add up to the change, each with its sum."""
    if not comparison.views:
        return [para("There is no further way to split the change: no slice or setting varies.")]
    blocks: list[Block] = [Para(explained("views"))]
    for view in comparison.views:
        of, title = cited(comparison).entry("views", view, "name"), say.term(view.name, 80)
        note = [Para(sentence(view.note, f"{of.query}.note"))] if view.note else []
        terms = _terms_blocks(comparison, of, "terms", file) if view.terms else [para("It has no terms.")]
        blocks += [heading(*name(f"{title[:1].upper()}{title[1:]}")), *note, *terms]
    return blocks


# ---- Tasks that moved ----------------------------------------------------------------------------

MAX_FLIPS = 20
FLIPS_TO_READ = 3  # tasks whose commands are written out, in both runs
BUCKET_ORDER = ("never", "sometimes", "always")
FEW = 8  # flips shown where all of them are equally sure
LEVEL = 0.95  # posterior probability from which a task is called better or worse


def tasks_that_moved(comparison: Comparison, report: Report, figures: tuple[Figure, ...], file: str) -> list[Block]:
    """How much moved against noise, between which buckets, then the surest tasks and how to read them."""
    if comparison.refused is not None or not comparison.alignment.common:
        return [para("The runs have no task in common, so none can have moved.")]
    return [
        *([Para(_churn(comparison, comparison.churn))] if comparison.churn is not None else []),
        *_surely(comparison),
        *named(figures, "scatter", key(comparison)),
        *_transitions(comparison, figures),
        *_flips(comparison, report, file),
        *read_next(flips_to_read(comparison, report)),
    ]


def _churn(comparison: Comparison, churn: Churn) -> Line:
    """Tasks up and down, and what exchanging the rollouts of each task between the runs would give."""
    of = cited(comparison).of("churn")
    moved_by = of.sized(churn.gains - churn.losses, f"{of.query}.gains - {of.query}.losses")
    moved = line(
        "{} rose ({}) and {} fell ({}), of {}: a churn of {}. ",
        of.count("n_up", "task"), of.change("gains"), of.whole("n_down"), of.change("losses"),
        cited(comparison).of("alignment").length("common"), moved_by,
    )  # fmt: skip
    if churn.p is None:
        return (*moved, "With so few repeats, how much of this is noise is unknown.")
    against = explained("churn beyond noise" if churn.p <= ALPHA else "churn as leads", of.p_value("p"))
    return explained(
        "churn of one model", moved, of.size("null_churn"), between(of.size("null_low"), of.size("null_high")), against,
        of.number("null_changed"), whole(churn.n_up + churn.n_down, f"{of.query}.n_up + {of.query}.n_down"),
    )  # fmt: skip


def _surely(comparison: Comparison) -> list[Block]:
    """Tasks that are surely better or worse, beside what noise alone would show as such."""
    of, sure = cited(comparison).of("sure"), comparison.sure
    if sure is None:
        return []
    verb = "is" if sure.up == 1 else "are"
    posterior = f"With a posterior probability of at least {LEVEL:g}, {{}} {verb} better and {{}} worse."
    surely = line(posterior, of.count("up", "task"), of.whole("down"))
    if sure.null_up is None or sure.null_down is None:
        return [para(*surely, " How many of them noise alone would show is unknown.")]
    return [paragraph("{} Noise alone would show {} and {} as such.", surely, of.number("null_up"), of.number("null_down"))]


def _transitions(comparison: Comparison, figures: tuple[Figure, ...]) -> list[Block]:
    if not comparison.transitions:
        return []
    query, moves = f"{cited(comparison).query}.transitions", comparison.transitions

    def total(member: str, before: str = "", after: str = "") -> Span:
        """Tasks that moved from one bucket to another, or to any."""
        picked = [move for move in moves if before in ("", move.before) and after in ("", move.after)]
        stated = ", ".join(f"{role}={bucket!r}" for role, bucket in (("before", before), ("after", after)) if bucket)
        return whole(sum(getattr(move, member) for move in picked), f"{query}({stated}).{member}")

    def changed(member: str) -> Span:
        stayed = [f"{query}(before={bucket!r}, after={bucket!r}).{member}" for bucket in BUCKET_ORDER]
        n = sum(getattr(move, member) for move in moves if move.before != move.after)
        return whole(n, " - ".join([f"{query}.{member}", *stayed]))

    rows = [
        (
            f"{before} in the baseline",
            *(line("{} ({})", total("n", before, after), total("sure", before, after)) for after in BUCKET_ORDER),
            total("n", before),
        ) for before in BUCKET_ORDER
    ]
    header = "|".join(("Tasks", *(f"{after} in the candidate" for after in BUCKET_ORDER), "All"))
    return [
        heading("Buckets before and after"),
        table(header, "lrrrr", rows),
        Para(explained("transitions", changed("n"), changed("sure"))),
        *named(figures, "transitions", key(comparison)),
    ]


def _flips(comparison: Comparison, report: Report, file: str) -> list[Block]:
    if not comparison.flips:
        return [para("No task has a different rate in the candidate than in the baseline.")]
    first = comparison.flips[:MAX_FLIPS]
    sure = {round(abs((0.5 if flip.p_better is None else flip.p_better) - 0.5), 6) for flip in first}
    # the rows do not tell which of several tasks moved more surely
    alike = len(first) > 1 and len(sure) == 1 and len({round(abs(flip.change), 9) for flip in first}) == 1
    shown = comparison.flips[: FEW if alike else MAX_FLIPS]
    judged = any(flip.p_better is not None for flip in shown)
    tabled = [run for run in pair(comparison) if say.is_tabled(comparison, report, run)]
    rows = [_flip(comparison, flip, judged, tabled) for flip in shown]
    header = "Task|Baseline|Candidate|Change" + "|P(candidate better)|P(bucket changed)|Buckets" * judged
    lead = explained("flips by size" if not judged else "flips alike" if alike else "flips by posterior")
    churn, query = comparison.churn, cited(comparison).query
    total, every = len(comparison.flips), f"{query}.flips.count"
    if churn is not None:
        total, every = churn.n_up + churn.n_down, f"{query}.churn.n_up + {query}.churn.n_down"
    more = count(total - len(shown), "more task", f"{every} - {len(shown)}")
    left = line(f" {{}} moved; the surest are in {file}.", more) if total > len(shown) else ()
    return [heading("The surest flips"), para(*lead, *left), table(header, "lrrr" + "rrl" * judged, rows)]


def _flip(comparison: Comparison, flip: Flip, judged: bool, tabled: Sequence[str]) -> tuple[Span | Line, ...]:
    of = cited(comparison).entry("flips", flip, "task")
    other = say.candidate_keys(comparison).get(flip.task, flip.task)
    base, cand = pair(comparison)
    before = _rate(of, "baseline", (base, flip.task) if base in tabled else None)
    after = _rate(of, "candidate", (cand, other) if cand in tabled else None)
    more: tuple[Span, ...] = ()
    if judged:
        classes = " → ".join(hostile.line(bucket, 20) for bucket in flip.classes)
        more = (of.probability("p_better"), of.probability("p_class_change"), classes)
    return task_name(flip.task, flip.task_name), before, after, of.change("change"), *more


def _rate(flip: Cited, role: str, place: tuple[str, str] | None) -> Line:
    """`3/4`, or the mean with its n where rewards are no passes; `place`: run and task, where its tables can count rollouts."""
    (total, n), query = flip[role]
    if not n:
        return (number_format.NONE,)
    is_counted = flip.is_rate and total == int(total)
    of_passes, of_repeats = f"{query}[0]", f"{query}[1]"
    if place is not None and is_counted:
        task = f"task = {queried_numbers.quoted(place[1])}"
        of_passes = queried_numbers.measure("count", place[0], task, "passed")
        of_repeats = queried_numbers.measure("count", place[0], task, "not masked")
    repeats = whole(n, of_repeats)
    if is_counted:
        return (whole(int(total), of_passes), "/", repeats)
    mean = num(number_format.level(total / n, flip.is_rate), total / n, f"{query}[0] / {query}[1]")
    return line("{} (n = {})", mean, repeats)


def flips_to_read(comparison: Comparison, report: Report) -> list[tuple[str, str]]:
    """`blade show` lines for the surest flips, in both runs."""
    runs, other = {run.name: run for run in report.runs}, say.candidate_keys(comparison)
    commands: list[tuple[str, str]] = []
    for flip in comparison.flips[:FLIPS_TO_READ]:
        for role, task in (("baseline", flip.task), ("candidate", other.get(flip.task, flip.task))):
            run = runs.get(getattr(comparison, role))
            commands += show(run, task, None, role) if run is not None else []
    return commands


# ---- What changed beside the score ---------------------------------------------------------------

MAX_SHIFTS = 15
# In the order of print: what ends a rollout first, since it can move the score mechanically.
SHIFT_KINDS = {
    "outcome": ("How rollouts end", "Outcome"),
    "effort": ("What rollouts cost", "Mean over tasks"),
    "behaviour": ("Facts behind the failure groups", "Fact"),
    "signature": ("Error texts", "Error"),
}


def what_else_changed(comparison: Comparison, file: str) -> list[Block]:
    """Everything but the score that was compared with the baseline, by kind."""
    if comparison.refused is not None:
        return [para("Without common tasks nothing else is compared.")]
    blocks: list[Block] = []
    for kind, (title, column) in SHIFT_KINDS.items():
        shifts = sorted((shift for shift in comparison.shifts if shift.kind == kind), key=_rank)
        if shifts:
            header = f"{column}|Baseline|Candidate|Change, 95% interval|Adjusted p|Tasks|Reading"
            rows = [_shift(comparison, shift) for shift in shifts[:MAX_SHIFTS]]
            every = f"{cited(comparison).query}.shifts(kind={kind!r}).count"
            more = left_out(len(shifts), len(rows), "row", every, file)
            blocks += [heading(title), table(header, "lrrrrrl", rows), *more]
    blocks += _derived(comparison)
    if not blocks:
        return [para("Nothing else was compared: no rollout reports effort, behaviour or errors.")]
    return [Para(explained("beside the score")), *blocks]


def _rank(shift: Shift) -> tuple[bool, float, str]:
    return (shift.status == "unclear", 2.0 if shift.p_adjusted is None else shift.p_adjusted, shift.name)


def _shift(comparison: Comparison, shift: Shift) -> tuple[Span | Line, ...]:
    of = cited(comparison).entry("shifts", shift, "kind", "name")
    of.is_rate = shift.kind != "effort"
    change = of.estimate("change")
    if not of.is_rate and shift.baseline > 0:
        part = shift.change / shift.baseline
        change += (", ", num(number_format.relative(part), part, f"{of.query}.change / {of.query}.baseline"))
    known = printed_names.EFFORTS.get(shift.name) if shift.kind == "effort" else None
    status = hostile.line(shift.status, 20)
    return (
        name(known or say.term(shift.name, 160)), of.level("baseline"), of.level("candidate"), change,
        of.p_number("p_adjusted"), of.whole("n"), Badge(status, "warning" if status in ("appeared", "disappeared") else "quiet"),
    )  # fmt: skip


def _derived(comparison: Comparison) -> list[Block]:
    """The measures that no table above has; a ratio of what they have is left out."""
    shifts = {shift.name for shift in comparison.shifts if shift.kind == "effort"}
    rows: list[tuple[Span | Line, ...]] = []
    for derived in comparison.derived:
        if derived.name in shifts or derived.unit == say.LOG_RATIO:
            continue
        of, unit = cited(comparison).entry("derived", derived, "name", "k"), hostile.line(derived.unit, 20)
        label = printed_names.EFFORTS.get(derived.name) or printed_names.label(Measure("", derived.name, None, 0, k=derived.k))
        of.is_rate = derived.unit == "rate"
        label += f" ({unit})" if unit and not of.is_rate and unit not in label else ""  # what is counted, if it is no rate
        levels = (of.level("baseline"), of.level("candidate"), of.estimate("change"))
        rows.append((label if of.is_rate else name(label), *levels, of.whole("n"), of.said("method", 80)))
    title = heading("Further measures, over the common tasks")
    return [title, table("Measure|Baseline|Candidate|Change, 95% interval|Tasks|Interval by", "lrrrrl", rows)] if rows else []

