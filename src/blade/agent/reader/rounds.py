"""Ask a model questions: several at once, tried again within bounds, each answer verified and kept."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from blade import hostile
from blade.agent.reader.answer_cache import Kept
from blade.agent.reader.endpoint import Endpoint, Fault, Reply
from blade.agent.reader.questions import (
    QUERIES,
    Answer,
    Prompt,
    Question,
    correction,
    decoded,
    query_prompt,
    schema,
    without,
)
from blade.agent.reader.spending import Purse, Usage, believed
from blade.errors import Unreadable
from blade.model import Agreement, Cause
from blade.stats import cohen_kappa

if TYPE_CHECKING:
    from blade.endpoint.client import Client

KEPT, ACCEPTED, DISCARDED, FAILED, LEFT = "kept", "accepted", "discarded", "failed", "left"
STATUSES = (KEPT, ACCEPTED, DISCARDED, FAILED, LEFT)
_REPEATED = 4000  # characters of a refused reply that the model is shown again
_HOPELESS = 3  # questions that fail before any is answered: then the others are not asked

# the answer with exact quotations, or what is wrong
Verify = Callable[[Question, Answer], "Answer | list[str]"]
Turns = Sequence[tuple[str, str]]


class Patience(msgspec.Struct, frozen=True):
    """How often a call is tried, and how long is waited between: base x 2^n with jitter, or as asked for."""

    tries: int = 5
    base: float = 0.5  # seconds
    longest: float = 30.0
    longest_asked: float = 120.0  # an endpoint that asks for more is not waited for

    def wait(self, tried: int, wanted: float | None) -> float | None:
        """Seconds before the next try; None: give up."""
        if tried >= self.tries or (wanted is not None and wanted > self.longest_asked):
            return None
        drawn = min(self.longest, self.base * 2 ** (tried - 1)) * random.uniform(0.5, 1.0)
        return drawn if wanted is None else wanted


class Result(msgspec.Struct, frozen=True):
    """What became of a question."""

    question: Question
    status: str
    answer: Answer | None = None
    reasons: tuple[str, ...] = ()  # why there is no answer
    usage: Usage = Usage()
    calls: int = 0  # requests that were sent


class Stopped(msgspec.Struct, frozen=True):
    """Why no further question was asked."""

    text: str
    hint: str
    is_cap: bool = False


class Asking:
    """One round of questions to one endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        cache: Kept,
        verify: Verify,
        purse: Purse,
        patience: Patience | None = None,
        progress: Callable[[Result], None] | None = None,
    ) -> None:
        self.endpoint, self.kept, self.verify, self.purse = endpoint, cache, verify, purse
        self.patience = patience or Patience()
        self.progress = progress
        self.stopped: Stopped | None = None
        self.is_kept = True  # False: the cache could not be written
        self._end = asyncio.Event()  # those under way wait no longer
        self._n_answered = self._n_failed = 0

    def ask(self, questions: Sequence[Question], at_once: int = 4) -> list[Result]:
        """The results of all questions, in their order, however many are asked at once.

        An interrupt ends the waiting; what was accepted is kept already.
        """
        return asyncio.run(self._asked(questions, at_once))

    async def _asked(self, questions: Sequence[Question], at_once: int) -> list[Result]:
        results: dict[int, Result] = {}
        waiting = iter(enumerate(questions))  # in order, so that a cap cuts the tail
        turn = asyncio.Lock()

        async def work(connection: Client) -> None:
            while not self.stopped:
                async with turn:
                    number, question = next(waiting, (-1, None))
                    if question is None or not await self._may_ask(question, len(questions) - number):
                        return
                results[number] = self._done(await self._result(connection, question))

        try:
            async with self.endpoint.connected() as connection, asyncio.TaskGroup() as group:
                for _ in range(max(1, min(at_once, len(questions)))):
                    group.create_task(work(connection))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        left = (self.stopped.text if self.stopped else "not asked",)
        return [results.get(n) or Result(entry, LEFT, reasons=left) for n, entry in enumerate(questions)]

    # ---- One question --------------------------------------------------------------------------

    def _most(self, question: Question, turns: Turns = ()) -> Usage:
        """What a call can cost at most; a token has at least one byte, and mostly three or more."""
        more = sum(len(text.encode("utf-8", "replace")) for _, text in turns) // 2
        return Usage(question.tokens + more, self.endpoint.limit)

    async def _may_ask(self, question: Question, n_left: int) -> bool:
        """Set the cost of the next question aside, if nothing has ended the round."""
        most = self._most(question)
        if not await self.purse.taken(most):
            why = f"the next call could pass the cap; {n_left} not asked"
            self._stop(Stopped(why, "raise the cap", is_cap=True))
        elif self.stopped:  # while the cap was waited for
            self.purse.settle(most, Usage())
        return not self.stopped

    async def _result(self, connection: Client, question: Question) -> Result:
        """Ask, verify, and let the model correct itself once."""
        turns: list[tuple[str, str]] = []
        reasons: list[str] = []
        usage, calls = Usage(), 0
        for attempt in (1, 2):
            if attempt == 2 and not await self.purse.taken(self._most(question, turns)):
                reasons.append("a second try could pass the cap")
                break
            try:
                reply, cost, sent = await self._reply(connection, question, turns)
            except _GivenUp as given_up:
                why = (*reasons, given_up.text)
                status = DISCARDED if reasons else FAILED
                return Result(question, status, None, why, usage + given_up.usage, calls + given_up.calls)
            usage, calls = usage + cost, calls + sent
            verdict = [reply.fault] if reply.fault else decoded(reply.text, question)
            if isinstance(verdict, Answer):
                clean = without(verdict, self.endpoint.without_key)
                verdict = await asyncio.to_thread(self.verify, question, clean)
            if isinstance(verdict, Answer):
                self.is_kept &= self.kept.keep(question.key, verdict, usage)
                return Result(question, ACCEPTED, verdict, (), usage, calls)
            reasons = [self.endpoint.without_key(hostile.line(reason, 400)) for reason in verdict]
            shown = hostile.lines(reply.text[:_REPEATED]) or "(empty)"
            turns = [("assistant", shown), ("user", correction(reasons))]
        return Result(question, DISCARDED, None, tuple(reasons), usage, calls)

    def _done(self, result: Result) -> Result:
        if result.status == FAILED:
            self._n_failed += 1
            if not self._n_answered and self._n_failed >= _HOPELESS:
                why = f"the first {self._n_failed} questions all failed: {result.reasons[-1]}"
                self._stop(Stopped(why, ""))
        else:
            self._n_answered += 1
        if self.progress is not None:
            self.progress(result)
        return result

    def _stop(self, why: Stopped) -> None:
        self.stopped = self.stopped or why
        if not why.is_cap:
            self._end.set()

    # ---- One call, tried again ------------------------------------------------------------------

    async def _reply(self, connection: Client, question: Question, turns: Turns) -> tuple[Reply, Usage, int]:
        """A reply, its cost, and the requests it took; the cost of the first is set aside."""
        most = self._most(question, turns)
        spent = Usage()
        for tried in range(1, self.patience.tries + 1):
            if tried > 1 and not await self.purse.taken(most):
                raise _GivenUp("another try could pass the cap", spent, tried - 1)
            cost = Usage()
            try:
                reply = await self.endpoint.ask(connection, question.prompt, turns, schema(question))
                cost = believed(reply.usage, most, reply.text)
                return reply, spent + cost, tried
            except Fault as error:
                cost = believed(None, most, "") if error.is_charged else Usage()
                fault = error
            finally:
                self.purse.settle(most, cost)
            spent += cost
            await self._wait(fault, tried, spent)
        raise AssertionError("the last try returns or gives up")

    async def _wait(self, fault: Fault, tried: int, spent: Usage) -> None:
        """Wait before the next try, or give up."""
        if fault.is_final:
            self._stop(Stopped(fault.text, fault.hint))
        wait = self.patience.wait(tried, fault.wait) if fault.again and not fault.is_final else None
        if wait is not None:
            try:
                await asyncio.wait_for(self._end.wait(), wait)
            except TimeoutError:
                return
        how = f" ({tried} tries)" if tried > 1 else ""
        hint = f"; {fault.hint}" if fault.hint else ""
        raise _GivenUp(f"{fault.text}{how}{hint}", spent, tried)


class _GivenUp(Exception):
    def __init__(self, text: str, usage: Usage, calls: int) -> None:
        super().__init__(text)
        self.text, self.usage, self.calls = text, usage, calls


# ---- Queries for uncited numbers ---------------------------------------------------------------


class _Proposal(msgspec.Struct):
    id: int
    query: str


class _Proposals(msgspec.Struct):
    proposals: list[_Proposal]


def proposals(
    endpoint: Endpoint,
    columns: Mapping[str, str],
    runs: Sequence[str],
    numbers: Sequence[tuple[str, str]],
    patience: Patience | None = None,
) -> dict[int, str]:
    """By the place of each number the query that the model proposes for it; whoever asked runs them."""
    try:
        reply = asyncio.run(_once(endpoint, query_prompt(columns, runs, numbers), patience or Patience()))
        text = reply.text[reply.text.find("{") : reply.text.rfind("}") + 1]
        proposed = msgspec.json.decode(text, type=_Proposals).proposals
    except Fault as fault:
        raise _proposed_nothing(fault.text, fault.hint) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _proposed_nothing(reply.fault or "its reply is not the JSON that was asked for", "") from error
    return {entry.id: entry.query for entry in proposed if 0 <= entry.id < len(numbers)}


async def _once(endpoint: Endpoint, prompt: Prompt, patience: Patience) -> Reply:
    """The reply to a prompt of its own, tried again within our patience."""
    async with endpoint.connected() as connection:
        tried = 0
        while True:
            tried += 1
            try:
                return await endpoint.ask(connection, prompt, (), QUERIES)
            except Fault as fault:
                wait = patience.wait(tried, fault.wait) if fault.again else None
                if wait is None:
                    raise
            await asyncio.sleep(wait)


def _proposed_nothing(why: str, hint: str) -> Unreadable:
    hint = hint or "is --base-url right?"
    return Unreadable(f"the model proposed nothing: {why}", hint, "endpoint-refused")


# ---- What a round comes to ---------------------------------------------------------------------


def statuses(results: Sequence[Result]) -> dict[str, int]:
    """How many questions ended how."""
    counts = Counter(result.status for result in results)
    return {status: counts[status] for status in STATUSES}


def answers(results: Sequence[Result]) -> list[tuple[str, tuple[str, ...]]]:
    """Each answer with the tasks it was given of, the most frequent first; case does not matter."""
    spelled: dict[str, str] = {}
    tasks: dict[str, list[str]] = {}
    for result in results:
        if result.answer is not None:
            key = result.answer.answer.casefold()
            spelled.setdefault(key, result.answer.answer)
            tasks.setdefault(key, []).append(result.question.about)
    counted = [(spelled[key], tuple(abouts)) for key, abouts in tasks.items()]
    return sorted(counted, key=lambda entry: (-len(entry[1]), entry[0]))


def agreement(
    run: str, by: str, results: Sequence[Result], proposed: Mapping[str, Cause]
) -> Agreement | None:
    """How far the accepted labels say what the engine proposes; None where there are none."""
    pairs = [
        (proposed[result.question.about], Cause(result.answer.answer))
        for result in results
        if result.answer is not None and result.question.about in proposed
    ]
    if not pairs:
        return None
    causes, counts = list(Cause), Counter(pairs)
    matrix = [[float(counts[a, b]) for b in causes] for a in causes]
    confusion = tuple((a, b, counts[a, b]) for a in causes for b in causes if counts[a, b])
    agreed = sum(count for (a, b), count in counts.items() if a is b)
    return Agreement(run, "engine", by, len(pairs), agreed, cohen_kappa(matrix), confusion)
