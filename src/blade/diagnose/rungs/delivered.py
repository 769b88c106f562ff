"""Ask whether the thing that is graded was handed over: the act or form that ends the passes, absent in failures.

Fires on agents that never submit, never write the file or answer outside the asked form; needs that hardly any pass lacks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from blade.diagnose.evidence import Act, RowEvidence
from blade.diagnose.groups import Findings, Group, ask_each, at_act, count, group, joined, short, warning
from blade.diagnose.population import Mask, Population, most_common
from blade.diagnose.rungs import cut

ENDS = 0.9  # share of the passes that end so
PASSES = 5
LEAST = 2
EXCEPT = 0.02  # share of the passes that may have no call that succeeds
LEAST_MET = 3  # passes that met an error and got past it
CLOSED = 0.95  # share of the passes that make one of the calls that end passes
ENDING = 120  # characters of how a message ends
MAX_KINDS = 6  # values of a field that tells kinds of task apart

Passes = list[RowEvidence]


def ask(people: Population, left: Mask) -> Findings:
    passes = people.of(people.passed)
    if len(passes) < PASSES:
        return Findings()
    findings = ask_each(people, left, (_no_tools, _no_success, _stuck, _no_end, _no_close, _no_form), passes)
    if (barred := cut.fails_at_first(people)) is not None:
        rows = people.where(lambda row: row.acts and row.acts[0].failed)
        findings.trust.append(warning("delivered.first tries", people, rows, failed=barred[0], tries=barred[1]))
    return findings


def _no_tools(people: Population, left: Mask, passes: Passes) -> Group | None:
    """Rows without any call where nearly all passes of their kind of task call tools."""
    silent = people.where(lambda row: row.is_spoken or row.n_acts == 0)
    rows, kinds = people.none, _kinds(people)
    # kinds of task that pass without any call show that it is not due in all
    has_idle = any((people.passed & scope).sum() >= 3 and silent[people.passed & scope].all() for scope in kinds)
    for scope in kinds if has_idle else kinds[:1]:
        own = people.passed & scope
        if own.sum() >= PASSES and not silent[own].any():
            rows |= silent & scope
    return group("delivered.no tools", people, rows, left) if (rows & left).sum() >= LEAST else None


def _kinds(people: Population) -> list[Mask]:
    """All rows, then the rows of each kind of task."""
    return [~people.none, *(rows for _, _, rows in people.kinds_of_task(MAX_KINDS))]


def _no_success(people: Population, left: Mask, passes: Passes) -> Group | None:
    """Rows in which not one call succeeds, where nearly every pass has one that does."""
    # a call may do the work and still count as failed: a pass in fifty at most, so none in a small run
    n_without = sum(all(act.failed for act in row.acts if act.is_answered) for row in passes)
    if n_without > EXCEPT * len(passes):
        return None
    # the last call may have been cut off
    rows = people.where(
        lambda row: sum(act.is_answered for act in row.acts) >= 2 and all(act.failed for act in row.acts if act.is_answered)
    )
    own = people.of(rows & left)
    if len(own) < max(LEAST, 0.02 * left.sum()):
        return None
    template, n_met = cut.common_error(people, rows & left, 0.2)
    barred = cut.fails_at_first(people) is not None

    def detail(i: int) -> str:
        error, _ = most_common(act.error for act in people.rows[i].acts if act.failed and act.error)
        shown = f", such as: {short(error, 100)}" if error else ""
        return f"{people.rows[i].n_failed:,} of {count(people.rows[i].n_acts, 'call')} end in an error{shown}"

    label, confidence = ("undetermined", "unsure") if barred else ("BI", "likely" if n_without else "proved")
    return group(
        "delivered.no success", people, rows, left, barred=barred, met=n_met, error=cut.shown_error(people, rows & left, template),
        loops=sum(map(cut.is_looping, own)), place=at_act(lambda act: not template or act.template == template), detail=detail,
        label=label, confidence=confidence,
    )  # fmt: skip


def _is_stuck(known: set[str], by_call: bool, row: RowEvidence, end: int = 2) -> bool:
    """Whether of its last six acts three or more are one call, or meet one of some errors, and so does one of the last `end`."""
    if not row.is_spoken and max(row.most_made, row.most_met) < 3:
        return False
    acts = row.acts[-6:]
    errors = Counter(act.template for act in acts if act.template in known)
    calls = Counter(act.reply or act.key for act in acts) if by_call else Counter[int]()
    return any(errors[act.template] >= 3 or calls[act.reply or act.key] >= 3 for act in acts[-end:])


def _stuck(people: Population, left: Mask, passes: Passes) -> Group | None:
    """Rows that end on the same call or the same error again and again, where passes of that length get past it."""
    met = Counter(template for row in passes for template in {act.template for act in row.acts if act.template})
    # only an error that passes met too, and got past, can be overcome
    known = {template for template, times in met.items() if times >= LEAST_MET}
    long = sum(row.n_acts >= 6 for row in passes) >= PASSES
    # a pass that repeats itself and then gets past it shows that this is no end
    for by_call in (True, False) if long else (False,):
        if sum(_is_stuck(known, by_call, row, 6) for row in passes) <= 0.02 * len(passes):
            break
    else:
        return None
    rows = people.where(lambda row: _is_stuck(known, by_call, row))
    if (rows & left).sum() < max(LEAST, 0.1 * left.sum()):
        return None
    template, n_met = cut.common_error(people, rows & left, 0.2)
    return group(
        "delivered.stuck", people, rows, left, met=n_met, error=cut.shown_error(people, rows & left, template),
        overcome=sum(any(act.template in known for act in row.acts) for row in passes), detail=lambda i: cut.repeated(people.rows[i]),
    )  # fmt: skip


def _no_end(people: Population, left: Mask, passes: Passes) -> Group | None:
    """Rows that never make the call that ends the passes of their kind of task, or never with success."""
    if all(row.is_spoken and row.n_acts <= 1 for row in passes):
        return None  # single answers: no call ends them
    for scope in _kinds(people):
        mine = people.of(people.passed & scope)
        for name in (lambda act: act.tool, cut.act_name):
            proved = _ending(people, left, scope, mine, name) if len(mine) >= PASSES else None
            if proved is not None:
                return proved
    return None


def _ending(people: Population, left: Mask, scope: Mask, passes: Passes, name: Callable[[Act], str]) -> Group | None:
    """The rows of a kind of task that lack the call that ends its passes."""
    ends = Counter(name(row.acts[-1]) for row in passes if row.acts)
    used = {name(act) for row in people.of(scope) for act in row.acts}
    last, n_ends = most_common(ends.elements())
    if n_ends < ENDS * len(passes) or len(used) < 2:
        return None
    rows = people.where(lambda row: all(name(act) != last or act.failed for act in row.acts)) & scope
    # the last call of a pass was accepted, however its result reads
    rows &= ~(people.passed & people.where(lambda row: bool(row.acts) and name(row.acts[-1]) == last))
    tries = people.where(lambda row: any(name(act) == last for act in row.acts))
    claimed = rows & left
    if cut.ends_on_success(people):  # what never succeeds goes on to the limit: only who stops before it, or tries in vain, lacks it
        most = max(row.n_turns for row in people.rows)
        claimed &= tries | people.where(lambda row: row.n_turns < most)
    n, others = int(claimed.sum()), ~rows & scope
    if n < LEAST or not others.any() or people.rate(rows) > 0.1 * people.rate(others):
        return None
    tried = int((tries & claimed).sum())
    instead, n_instead = most_common("" if row.is_spoken else cut.last_act(row) for row in people.of(claimed))
    is_instead = instead and n_instead >= max(LEAST, 0.8 * n) and instead not in ends
    called = f"never a successful `{last}`" if tried else f"never calls `{last}`"
    return group(
        "delivered.no end", people, claimed, matched=rows, called=f"ends with `{instead}`, never `{last}`" if is_instead else called,
        last=last, ends=n_ends, passes=len(passes), of_kind="" if scope.all() else " of this kind of task", tried=tried,
        instead=instead if is_instead else "", n_instead=n_instead, show=2 * tried >= n, find_out=2 * tried < n and is_instead,
        remind=2 * tried < n and not is_instead,
        detail=lambda i: "" if people.rows[i].is_spoken else f"the last call is `{short(cut.last_act(people.rows[i]), 60)}`",
    )  # fmt: skip


def _no_close(people: Population, left: Mask, passes: Passes) -> Group | None:
    """Rows without any of the few calls that end nearly all passes, where what else there is to call ends hardly any."""
    if any(row.expected for row in passes):
        return None  # which calls are due is known, and tells more
    ends = Counter(row.acts[-1].tool for row in passes if row.acts and not row.is_spoken)
    closing = frozenset(tool for tool, n in ends.items() if n >= max(LEAST, 0.02 * len(passes)))
    used = {act.tool for row in passes for act in row.acts}
    n_closed = sum(any(act.tool in closing and not act.failed for act in row.acts) for row in passes)
    if not 2 <= len(closing) < len(used) or n_closed < CLOSED * len(passes):
        return None
    rows = people.where(lambda row: row.n_acts > 0 and not row.is_spoken and all(act.tool not in closing or act.failed for act in row.acts))
    n = int((rows & left).sum())
    if n < max(LEAST, 0.1 * left.sum()) or people.rate(rows) > 0.1 * people.rate(~rows) or cut.ends_on_success(people):
        return None
    asks = sum("?" in row.final.strip()[-ENDING:] for row in people.of(rows & left))
    return group(
        "delivered.no close", people, rows, left, named=joined(sorted(closing, key=lambda tool: -ends[tool])), closed=n_closed,
        passes=len(passes), questions=asks if asks >= 0.1 * n else 0, asking=asks >= 0.5 * n,
        detail=lambda i: f'it ends "{short(people.rows[i].final.strip()[-ENDING:], ENDING)}"',
    )  # fmt: skip


def _no_form(people: Population, left: Mask, passes: Passes) -> Group | None:
    """Rows without the box or tag that nearly all passes answer in."""
    for form, words in (("box", "a box (\\boxed{})"), ("tag", "a tag")):
        if sum(form in row.answers for row in passes) < ENDS * len(passes):
            continue
        rows = people.where(lambda row: form not in row.answers)  # noqa: B023
        n = int((rows & left).sum())
        if n >= LEAST and people.rate(rows) <= 0.02:
            is_asked = sum(form in row.forms for row in people.of(rows & left)) >= 0.5 * n
            unasked = "" if is_asked else "; the prompt never asks for it"
            result = group("delivered.no form", people, rows, left, words=words, asked=is_asked, unasked=unasked)
            return replace(result, label="BI" if is_asked else "TI", passed=0)
    return None
