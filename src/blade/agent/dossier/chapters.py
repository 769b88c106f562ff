"""Word the chapters of a dossier: the task, how its repeats ended, the proposed cause, the verifier's words, the rollout in focus."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from blade import events, hostile, rollout_text
from blade.agent.dossier.budget import BAR, Lines, Page, Part, behind, block, ours, price, several
from blade.agent.dossier.case import Case, named
from blade.model import Attribution, Call, Cause, Confidence, Outcome, Step, Trace
from blade.number_format import count, number, size
from blade.report import printed_names, row_addresses

KINDS = frozenset("message user system reasoning call result other".split())
_MARK = "*"  # beside steps that the cause points to
_MOST = 400  # steps that are considered for the outline
_MISSES = 6
_RESULTS = 6  # of a rollout that are read at length where nothing is proposed
_NEAR = 3  # steps around a candidate that come before all others


def head(step: Step, calls: dict[int, Call], mark: str = "") -> str:
    """Head a step in our words: `[12] call, failed`."""
    call = calls.get(step.index)
    failed = call.failed if call is not None else step.failed
    kind = step.kind if step.kind in KINDS else "other"
    return ", ".join([f"[{step.index}]{mark} {kind}", *rollout_text.states(step.answered, failed)])


def text(step: Step) -> str:
    """Give what a step says, the tool of a call first."""
    words = events.step_text(step)
    if step.kind == "call":
        tool = hostile.line(step.tool or "", 80)
        return f"{tool} {words}" if words != tool else tool
    return words


class Trajectory:
    """Lay the steps of a rollout out as parts of a page, and say what is left out between them."""

    def __init__(self, page: Page, case: Case, scale: float) -> None:
        self.page, self.case, self.scale = page, case, scale
        self.steps = case.focus.steps if case.focus is not None else ()
        self.parts: dict[int, Part] = {}
        self.shown: list[int] = []  # in order
        self.failed = {call.result_step for call in case.calls.values() if call.failed}
        self.slot = page.add()  # the lines of the steps go here
        most = len(self.steps)  # no number of a step is longer
        self.gap = price([left_out(most, most + 1)])
        page.room -= self.gap if self.steps else 0  # at first all of it is left out

    def step(self, index: int, level: int) -> bool:
        """Show a step at a level: 0 one line, 1 in full, 2 at length."""
        if index not in self.parts:
            self.parts[index] = Part(self._levels(index))
        part = self.parts[index]
        if part.level >= 0:
            return self.page.raise_to(part, level)
        # what showing it costs or saves in lines that say what is left out
        place = bisect_left(self.shown, index)
        before = self.shown[place - 1] if place else -1
        after = self.shown[place] if place < len(self.shown) else len(self.steps)
        gaps = (before + 1 < index) + (index + 1 < after) - (before + 1 < after)
        if not self.page.raise_to(part, level, gaps * self.gap):
            return False
        insort(self.shown, index)
        return True

    def _levels(self, index: int) -> list[Callable[[], list[str]]]:
        step, call, quotes = self.steps[index], self.case.calls.get(index), self.case.quotes
        title = head(step, self.case.calls, _MARK if index in quotes else "")
        around = quotes.get(index, "")
        # results of tools open with much that says little
        room = int(32 * self.scale)
        room = room if step.kind in ("message", "call", "user") else room * 2 // 3
        if step.kind == "user":  # what was wanted by then: short, and it decides more than it seems to
            room *= 2
        if (call is not None and call.does == events.WRITE) or index in self.failed:
            room *= 2

        def full(size: int) -> list[str]:
            """As many lines as the step has, thinking before the text."""
            lines = [title]
            if step.reasoning and step.text:
                lines += block(f"(thinking) {step.reasoning}", size // 3)
                size -= size // 3
            body = block(text(step), size, around)
            if len(lines) == 1 and len(body) == 1:
                return [f"{title} {body[0]}"]
            return [*lines, *(body or [f"{BAR} (empty)"])]

        return [
            lambda: [behind(title, text(step), room, around)],
            lambda: full(int(170 * self.scale)),
            lambda: full(int(500 * self.scale)),
        ]

    def outline(self) -> list[int]:
        """Order all steps: those near a candidate, the first and the last, then the rest from the end."""
        n, candidates = len(self.steps), self.case.candidates
        near = [c + d for d in range(1, _NEAR + 1) for c in candidates[:3] for d in (d, -d)]
        order = (*candidates, *near, 0, n - 1, 1, n - 2, n - 3, 2, 3, *range(n - 1, max(-1, n - _MOST), -1))
        return [index for index in dict.fromkeys(order) if 0 <= index < n]

    def raise_all(self, order: Iterable[int], level: int) -> None:
        """Show steps in an order until several in a row find no room."""
        misses = 0
        for index in order:
            misses = 0 if self.step(index, level) else misses + 1
            if misses > _MISSES:
                return

    def _last(self, *kinds: str) -> list[int]:
        """The steps of some kinds, from the end."""
        return [step.index for step in self.steps[: -_MOST - 1 : -1] if step.kind in kinds]

    def telling(self) -> list[int]:
        """Choose steps to read at length where nothing is proposed: what the model says and does, from the end."""
        results = self._last("result")
        few = results if len(results) <= _RESULTS else []
        return self._last("message", "reasoning") + self._last("call") + few

    def resting(self) -> list[int]:
        """Order steps that give the context: what a user wanted, results before suspects, then what the model
        said, then all that tools returned."""
        results = {step.index for step in self.steps if step.kind == "result"}
        before = [c - d for d in range(1, 2 * _NEAR + 1) for c in self.case.candidates[:3]]
        order = [step.index for step in self.steps[:_MOST] if step.kind == "user"]
        order += [index for index in before if index in results]
        return list(dict.fromkeys(order + self._last("message", "reasoning") + self._last("result")))

    def finish(self) -> None:
        """Put the lines of the steps, and what is left out between them, into the page."""
        place = 0
        for index in [*self.shown, len(self.steps)]:
            self.slot.shown += [left_out(place, index - 1)] if index > place else []
            self.slot.shown += self.parts[index].shown if index in self.parts else []
            place = index + 1


def left_out(first: int, last: int) -> str:
    """Say which steps are left out, and what shows them."""
    which = f"step {first}" if first == last else f"steps {first}-{last}"
    return f"({which} left out: --steps {first}:{last + 1})"


def focus_title(case: Case) -> list[str]:
    """Name the rollout that is read closely, and what the star means."""
    if case.focus is None:
        return []
    repeat, steps = case.focus.rollout.repeat, count(len(case.focus.steps), "step")
    stars = f"; {_MARK} marks steps that the cause points to" if case.quotes else ""
    return [ours(f"## rollout in focus: repeat {repeat}, {case.outcome(repeat)}, {steps}{stars}")]


# ---- Chapters ---------------------------------------------------------------------------------------


MEANS = {
    Cause.KNOWLEDGE_GAP: "the model does not know it or cannot do it",
    Cause.UNRELIABLE_KNOWLEDGE: "the model gets it right only sometimes",
    Cause.BEHAVIOUR: "the model could do it and went about it wrongly",
    Cause.TASK_OR_VERIFIER: "the task, its expected answer, the verifier or a limit of the harness is wrong",
    Cause.INFRASTRUCTURE: "provider, sandbox, tool or network broke it",
    Cause.DATA_ARTIFACT: "the row or its data is broken, doubled or misplaced",
    Cause.UNDETERMINED: "the rows do not decide the cause",
}

# ---- The task ----------------------------------------------------------------------------------

_ROLES = ("system", "developer", "user", "assistant")
_ACTIONS = ("expected_actions", "gold_actions", "expected_tool_calls", "expected_calls")
_SYSTEM = 40  # tokens of a system prompt: all tasks share it, so it is read once elsewhere
_MAX_DECLARED = 40
_MAX_CALLS = 8  # expected calls that were not made as expected
_MAX_GOLD = 60
_LONGEST = 120  # characters of an answer that is looked for


def task(case: Case, rooms: tuple[int, int]) -> Lines:
    """State what is asked and what is expected, each in at most about as many tokens as it has room for."""
    if case.focus is None:
        return []
    return [*_request(case, case.focus, rooms[0]), *_expected(case, case.focus, rooms[1])]


def _request(case: Case, focus: Trace, room: int) -> Lines:
    # a row that broke may lack the request, which its siblings have
    rows = (trace.row for trace in (focus, *case.traces.values()))
    row = next((row for row in rows if next(_turns(row), None) is not None), focus.row)
    turns = list(_turns(row))
    known = " ".join(words for _, words in turns)[:20_000]
    parts = [  # with the share of the room that each gets
        ("field", f"{hostile.line(key, 40)}: {value}", 4)
        for key, value in rollout_text.sorted_fields(row, {}).task.items()
        if value[:200] not in known
    ]
    system = [words for role, words in turns if role in ("system", "developer")]
    others = [(role, words) for role, words in turns if role not in ("system", "developer")]
    if others:
        parts.append((f"first {others[0][0]} turn", others[0][1], 2 if parts else 6))
    if len(others) > 1:
        parts.append((f"last of {len(others)} turns", others[-1][1], 2))
    if system:
        parts.append(("system prompt", "\n".join(system), 1))
    shares = sum(share for _, _, share in parts) or 1
    lines = []
    for name, words, share in parts:
        most = max(12, room * share // shares)
        lines += several(name, words, most) if share > 1 else [behind(name, words, min(most, _SYSTEM))]
    if tools := list(events.declared_tools(row)):
        listing = ", ".join(hostile.line(tool, 40) for tool in tools[:_MAX_DECLARED])
        lines.append(behind(f"{len(tools)} tools", listing, max(12, room // 4)))
    return lines


def _turns(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield role and text of each turn of the request."""
    params = row.get("responses_create_params")
    system = params.get("instructions") if isinstance(params, Mapping) else None
    for turn in [{"role": "system", "text": system if isinstance(system, str) else ""}, *rollout_text.turns(row)]:
        if turn["text"].strip():
            yield turn["role"] if turn["role"] in _ROLES else "other", turn["text"]


def _expected(case: Case, focus: Trace, room: int) -> Lines:
    """State the expected answer, and each expected call beside what the rollout did instead."""
    gold, row, lines = case.gold, focus.row, []
    if gold.answer is not None:
        lines = [behind("expected answer", gold.answer, room // 2), *_occurrences(focus, gold.answer)]
    done, undone = _compared(case, focus.rollout.repeat)
    share = max(20, room // max(2, min(len(undone), 4)))
    lines += [behind(f"expected call, {did}", words, share) for did, words in undone[:_MAX_CALLS]]
    if done:
        lines.append(behind("expected calls that were made, with their steps", ", ".join(done), room // 4))
    left = len(undone) - _MAX_CALLS + max(0, len(gold.actions) - _MAX_GOLD)
    lines += [f"{left} more expected calls not listed"] if left > 0 else []
    lines += ["no call is expected: the list is empty"] if any(row.get(key) == [] for key in _ACTIONS) else []
    known = (gold.answer_field, gold.actions_field)
    for key, value in [field for field in rollout_text.sorted_fields(row, {}).expected if field[0] not in known][:3]:
        lines.append(behind("expected, field", f"{hostile.line(key, 40)}: {_listed(value)}", room // 2))
    return lines


def _occurrences(focus: Trace, answer: str) -> Lines:
    """Say where the expected answer occurs word for word: in what tools returned, and in what the model said."""
    wanted = answer.strip()
    if not 1 <= len(wanted) <= _LONGEST:
        return []
    word = re.compile(rf"(?<![\w.]){re.escape(wanted)}(?![\w]|\.\d)")
    hits = [step for step in focus.steps if word.search(events.step_text(step))]
    brought = ", ".join([f"[{step.index}]" for step in hits if step.kind == "result"][:5])
    spoken = ", ".join([f"[{step.index}]" for step in hits if step.kind == "message"][:5])
    results = f"in results {brought}" if brought else "in no result"
    says = f"says it at {spoken}" if spoken else "never says it"
    return [f"it occurs word for word {results}; the model {says}"]


def _listed(value: Any) -> str:
    """Spell a list of calls by name and arguments, and anything else as JSON."""
    if not isinstance(value, list) or not all(isinstance(call, Mapping) and "name" in call for call in value):
        return value if isinstance(value, str) else events.compact(value)
    calls = [(call, events.compact(call.get("arguments", call.get("kwargs", {})))) for call in value[:_MAX_GOLD]]
    return "; ".join(f"{call.get('requestor', '')} {call['name']} {words}".strip() for call, words in calls)


def _compared(case: Case, repeat: int) -> tuple[Lines, list[tuple[str, str]]]:
    """Split the expected calls into those made, with their step, and the others, with what was done instead."""
    calls = list(case.calls.values())
    free = [call for call in calls if not call.failed]
    parsed = [call for call in reversed(free) if call.arguments is not None]
    done_at = {(call.tool, events.canonical(call.arguments)): call.step for call in parsed}
    wanted = [(tool, want, (tool, events.canonical(want))) for tool, want in case.gold.actions[:_MAX_GOLD]]
    done = [f"{hostile.line(key[0], 40)} [{done_at[key]}]" for *_, key in wanted if key in done_at]
    taken = {done_at[key] for *_, key in wanted if key in done_at}
    undone = []
    for tool, arguments, key in wanted:
        if key in done_at:
            continue
        others = [call for call in free if call.tool == tool and call.step not in taken]
        likely = [(_differing(arguments, call.arguments), call.step) for call in others]
        differs, step = min(likely, key=lambda pair: len(pair[0]), default=([], None))
        failed = next((call.step for call in calls if call.tool == tool and call.failed), None)
        did = f"not made in repeat {repeat}" if failed is None else f"made but failed, at step {failed}"
        did = did if step is None else f"made differently at step {step}"
        names = f" (differs in {', '.join(hostile.line(name, 24) for name in differs[:5])})" if differs else ""
        undone.append((did, f"{hostile.line(tool, 60)} {events.compact(arguments)}{names}"))
    return done, undone


def _differing(want: Any, got: Any) -> list[str]:
    if not isinstance(want, Mapping) or not isinstance(got, Mapping):
        return ["arguments"]
    return sorted(str(key) for key in {*want, *got} if want.get(key) != got.get(key))


# ---- How the repeats ended ---------------------------------------------------------------------

_MAX_LINES = 12  # repeats that have a line of their own
_MAX_RANGES = 12
_MAX_SIGNS = 16  # repeats whose outcomes are listed in order
_MAX_CHANGES = 4
_MAX_TOOLS = 30
_SIGNS = {None: "?", Outcome.PASSED: "1", Outcome.MISSING: "-", Outcome.MASKED: "-"}


def ends(case: Case, room: int) -> Lines:
    """Count the outcomes, and with any room describe each repeat."""
    return _counted(case) + (_listed_repeats(case, room) if room else [])


def _counted(case: Case) -> Lines:
    """Count the outcomes: `4 repeats: 1 passed, 3 failed (0 0 1 0)`."""
    repeats = case.result.repeats if case.result else ()
    if not repeats:
        return ["no repeat of this task was scored"]
    seen = Counter(named(row.outcome) for row in repeats)
    parts = ", ".join(f"{seen[name]} {name}" for name in map(named, [*Outcome, None]) if seen[name])
    line = f"{count(len(repeats), 'repeat')}: {parts}"
    if 1 < len(repeats) <= _MAX_SIGNS:
        signs = " ".join(_SIGNS.get(row.outcome, "0") for row in repeats)
        line += f" (in order {signs}; 1 passes)"
    elif len(repeats) > 1:
        passed = [row.repeat for row in repeats if row.outcome is Outcome.PASSED]
        others = [row.repeat for row in repeats if row.repeat not in set(passed)]
        is_few = 2 * len(passed) <= len(repeats)
        numbers = enumerate(sorted(set(passed if is_few else others)))  # as ranges: `0-3, 7, 9-12`
        runs = [[each for _, each in row] for _, row in groupby(numbers, key=lambda pair: pair[1] - pair[0])]
        ranges = [f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:_MAX_RANGES]]
        if 0 < len(passed) < len(repeats):
            more = " …" if len(runs) > _MAX_RANGES else ""
            line += f"; {'passing' if is_few else 'not passing'}: {', '.join(ranges)}{more}"
    return [line]


def _listed_repeats(case: Case, room: int) -> Lines:
    """Describe each repeat by its reward, steps, calls and last words."""
    lines = []
    for repeat in _chosen(case):
        trace = case.traces[repeat]
        reward, n_calls = trace.rollout.reward, sum(step.kind == "call" for step in trace.steps)
        effort = f"{count(len(trace.steps), 'step')}, {count(n_calls, 'call')}"
        scored = "none" if reward is None else number(reward)
        words = f"repeat {repeat} {case.outcome(repeat)}, reward {scored}, {effort}"
        if trace is case.focus and trace.steps:
            lines.append(f"{words}; read below")
        else:
            what, last = _last(trace)
            # where nothing is called, the answer comes at the end
            lines.append(behind(f"{words}; {what}", last, room, ends=not n_calls))
    left = len(case.traces) - len(lines)
    return [*lines, f"{left} more repeats, counted above"] if left > 0 else lines


def _chosen(case: Case) -> list[int]:
    """Choose all repeats, or the one in focus, a few that pass and a few that do not."""
    if len(case.traces) <= _MAX_LINES:
        return list(case.traces)
    focus = [case.focus.rollout.repeat] if case.focus else []
    passed = [repeat for repeat in case.traces if case.outcome(repeat) == "passed"]
    others = [repeat for repeat in case.traces if repeat not in set(passed)]
    picked = list(dict.fromkeys([*focus, *passed[:4], *others]))[: _MAX_LINES - 4]
    return [repeat for repeat in case.traces if repeat in picked]


def _last(trace: Trace) -> tuple[str, str]:
    """Find the error of the row, else the last words of the model, else the last step; and what it is."""
    response = trace.row.get("response")
    error = trace.row.get("error") or (response.get("error") if isinstance(response, dict) else None)
    if error:
        return "error", error if isinstance(error, str) else str(error)[:2000]
    for step in reversed(trace.steps):
        if step.kind == "message" and step.text.strip():
            return f"last words [{step.index}]", step.text
    return (f"ends {head(trace.steps[-1], {})}", text(trace.steps[-1])) if trace.steps else ("no steps", "")


def changes(case: Case, room: int) -> Lines:
    """Quote the last call that changed something in each other failing repeat."""
    lines: Lines = []
    for repeat, trace in case.traces.items():
        if trace is case.focus or case.outcome(repeat) == "passed" or len(lines) >= _MAX_CHANGES:
            continue
        written = [call.step for call in events.calls(trace.steps, {}, {}) if call.does == events.WRITE]
        if written:
            step = trace.steps[written[-1]]
            lines.append(behind(f"repeat {repeat} {head(step, {})}", text(step), room))
    return lines


def beside(case: Case, room: int) -> Lines:
    """Lay out both sides, where another repeat passes; whether a difference matters is for the reader to judge."""
    if case.passer is None or case.focus is None:
        return []
    sides = (("in focus", case.focus), ("passing", case.passer))
    lines = [_sequence(name, trace, room) for name, trace in sides]
    for (name, trace), call in zip(sides, case.parting or (), strict=False):
        words = f"first different call, {name}"
        if call is None:
            lines.append(f"{words}: none, it makes no further call")
        else:
            step = trace.steps[call.step]
            lines.append(behind(f"{words} {head(step, {})}", text(step), room))
    last = [step for step in case.passer.steps if step.kind == "message" and step.text.strip()][-1:]
    titles = [f"passing {head(step, {})}, its last words" for step in last]
    return lines + [behind(title, step.text, room, ends=True) for title, step in zip(titles, last, strict=True)]


def _sequence(name: str, trace: Trace, room: int) -> str:
    """List the calls of one side by name; calls of one tool in a row are named once."""
    tools = [hostile.line(step.tool or "", 40) for step in trace.steps if step.kind == "call"]
    if not tools:
        return f"{name} repeat {trace.rollout.repeat}: no calls"
    runs = [tool for tool, _ in groupby(tools)]
    more = [] if len(runs) <= _MAX_TOOLS else [f"… {len(runs) - _MAX_TOOLS} more"]
    words = f"{name} repeat {trace.rollout.repeat}, {count(len(tools), 'call')}"
    return behind(words, " > ".join([*runs[:_MAX_TOOLS], *more]), room)


# ---- The proposal of the engine ----------------------------------------------------------------


_MAX_GROUNDS = 5
_MAX_FLAGS = 4


def proposal(case: Case, room: int) -> Lines:
    """State the proposed cause, and with any room the reasons."""
    return _proposed(case) + (_grounds(case, room) if room else [])


def _proposed(case: Case) -> Lines:
    """Name the cause with its confidence, what the task's own rows show, and the step."""
    cause, group = case.cause, case.group
    if cause is None:
        return ["no cause: this task loses no points"]
    lines = _labelled(cause)
    if cause.mechanism.strip():
        lines.append(behind("what happened", cause.mechanism, 100))
    if group is not None:
        sizes = f"{count(group.rows, 'failure')} in {count(group.tasks, 'task')}, {size(group.points)}"
        passes = count(group.passed_rows, "passing rollout")
        lines.append(behind(f"failure group {ours(group.id)}", group.name, 40))
        lines.append(f"in the whole run: {sizes} of the score; {passes} show it too")
    if not cause.steps and cause.step is None:
        return [*lines, "where: no step is named"]
    others = ", ".join(str(blame.step) for blame in cause.steps if blame.step != cause.step)
    which = f"one of the steps {others}"
    if cause.step is not None:
        which = f"step {cause.step}" + (f"; also {others}" if others else "")
    return [*lines, f"where: repeat {cause.repeat}, {which}"]


def _labelled(cause: Attribution) -> Lines:
    words = f"{printed_names.called(cause.cause)} ({MEANS[cause.cause]})"
    if cause.judged_by:
        engine, sure = "nothing", (cause.proposed_confidence or Confidence.UNSURE).value
        if cause.proposed:
            engine = f"{printed_names.called(cause.proposed)}, {sure}"
        disputed = "; the judges disagree" if cause.disputed else ""
        line = f"judged: {words}; the engine proposes {engine}{disputed}"
        return [line, behind("judged by", cause.judged_by, 20)]
    if cause.cause is not Cause.UNDETERMINED:
        return [f"cause: {words}, {cause.confidence.value}"]
    causes = [f"{label.value} {means}" for label, means in MEANS.items() if label is not Cause.UNDETERMINED]
    return [f"undetermined: {MEANS[cause.cause]}; judge it from what follows", f"causes: {'; '.join(causes)}"]


def _grounds(case: Case, room: int) -> Lines:
    """Give the reasons for and against the label, and what the group is, with a quotation from one of its rows."""
    cause, group = case.cause, case.group
    if cause is None:
        return []
    lines = [behind("group in words", group.text, room)] if group is not None else []
    for name, texts in (("for", cause.grounds), ("against", cause.against)):
        lines += [behind(name, words, room) for words in texts[:_MAX_GROUNDS]]
        left = len(texts) - _MAX_GROUNDS
        lines += [f"{name}: {left} more in report.json"] if left > 0 else []
    if group is None:
        return lines
    lines += [behind("consequence", words, room) for words in group.consequences[:2]]
    quote, focus = group.quote, case.focus.rollout if case.focus is not None else None
    place = (focus.task, focus.repeat) if focus is not None else None
    # the rollout in focus is read below
    if quote and quote.quote and (quote.step is None or (quote.task, quote.repeat) != place):
        where = f"step {quote.step}" if quote.step is not None else quote.field or ""
        example = f"{row_addresses.place(quote.task, quote.repeat)}, {where}: {quote.quote}"
        lines.append(behind("group example", example, room))
    return lines


def flags(case: Case, room: int) -> Lines:
    """List what limits trust in the score of the whole run, the gravest first; the group's text is not repeated."""
    lines = []
    for doubt in [doubt for doubt in case.facts.trust if doubt.level in ("alarm", "warning")][:_MAX_FLAGS]:
        label = f", {doubt.label.value}" if doubt.label else ""
        is_group = case.group is not None and doubt.text == case.group.text
        words = "the failure group above" if is_group else doubt.text
        lines.append(behind(f"{doubt.level} on the whole run{label}, {count(doubt.rows, 'row')}", words, room))
    return lines


# ---- What the verifier left --------------------------------------------------------------------


_WORTH = 160  # characters of a value beyond which the failed checks in it come first
_MAX_UNMET, _CHECK = 8, 80  # failed checks that are named, characters of each
_MAX_FIELDS = 16


def verdict(case: Case, share: int) -> Lines:
    """List the fields that may hold a verdict, the telling ones first, each in about `share` tokens."""
    if (trace := case.focus) is None:
        return []
    reward = trace.rollout.reward
    lines = [f"reward {'none' if reward is None else repr(reward)}"]
    quiet: Lines = []
    fields = rollout_text.sorted_fields(trace.row, rollout_text.stops(trace.row.get("response")))
    for name, value in fields.recorded[:_MAX_FIELDS]:
        words = value if isinstance(value, str) else events.compact(value)
        is_telling = rollout_text.TELLING.search(name)
        if len(words) > _WORTH and name in fields.failed:
            unmet = dict.fromkeys(hostile.line(check.name, _CHECK) for check in fields.failed[name])
            words = f"not met: {', '.join(list(unmet)[:_MAX_UNMET])}; {words}"
        if len(words) <= 24 and (not is_telling or type(value) in (int, float)):
            quiet.append(f"{hostile.line(name, 40)}={hostile.line(words)}")
        else:
            room = max(12, share if is_telling else share // 3)
            lines.append(behind("field", f"{hostile.line(name, 60)}: {words}", room))
    lines += [behind("other fields", ", ".join(quiet), share)] if quiet else []
    n_left = len(fields.recorded) - _MAX_FIELDS
    return [*lines, f"{n_left} more fields"] if n_left > 0 else lines
