"""Turn questions into results: asked at once, tried again within bounds, verified, kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread

import msgspec

from blade import hostile
from blade.agent.reader.decoded import decoded, without
from blade.agent.reader.endpoint import Endpoint, Fault
from blade.agent.reader.kept import Kept
from blade.agent.reader.prompts import correction
from blade.agent.reader.questions import Answer, Question, schema
from blade.agent.reader.spending import Purse, Usage, believed

KEPT, ACCEPTED, DISCARDED, FAILED, LEFT = "kept", "accepted", "discarded", "failed", "left"
STATUSES = (KEPT, ACCEPTED, DISCARDED, FAILED, LEFT)
_REPEATED = 4000  # characters of a refused reply that the model is shown again
_HOPELESS = 3  # questions that fail before any is answered: then the others are not asked

Verify = Callable[
    [Question, Answer], "Answer | list[str]"
]  # the answer with exact quotations, or what is wrong


class Patience(msgspec.Struct, frozen=True):
    """How often a call is tried, and how long is waited between: base x 2^n with jitter, or as asked for."""

    tries: int = 5
    base: float = 0.5  # seconds
    longest: float = 30.0
    longest_asked: float = 120.0  # an endpoint that asks for more is not waited for

    def wait(self, tried: int, asked: float | None) -> float | None:
        """Seconds before the next try; None: give up."""
        if tried >= self.tries or (asked is not None and asked > self.longest_asked):
            return None
        drawn = min(self.longest, self.base * 2 ** (tried - 1)) * random.uniform(0.5, 1.0)
        return drawn if asked is None else asked


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
        kept: Kept,
        verify: Verify,
        purse: Purse,
        patience: Patience | None = None,
        told: Callable[[Result], None] | None = None,
    ) -> None:
        self.endpoint, self.kept, self.verify, self.purse = endpoint, kept, verify, purse
        self.patience = patience or Patience()
        self.told = told
        self.stopped: Stopped | None = None
        self.is_kept = True  # False: the cache could not be written
        self._over = Event()  # no further question is taken
        self._end = Event()  # and those under way wait no longer
        self._turn, self._state = Lock(), Lock()
        self._answered = self._failed = 0
        self._next = 0

    def ask(self, questions: Sequence[Question], at_once: int = 4) -> list[Result]:
        """The results of all questions, in their order, however many are asked at once."""
        results: list[Result | None] = [None] * len(questions)
        errors: list[BaseException] = []

        def work() -> None:
            try:
                while (number := self._taken(questions)) is not None:
                    results[number] = self._answered_once(questions[number])
            except BaseException as error:
                errors.append(error)
                self._over.set()
                self._end.set()

        threads = [Thread(target=work, daemon=True) for _ in range(max(1, min(at_once, len(questions))))]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)
        finally:
            self._over.set()
            self._end.set()  # an interrupt ends the waiting; what was accepted is kept already
        if errors:
            raise errors[0]
        why = self.stopped.text if self.stopped else "not asked"
        return [
            found or Result(question, LEFT, reasons=(why,))
            for question, found in zip(questions, results, strict=True)
        ]

    # ---- One question --------------------------------------------------------------------------

    def _most(self, question: Question, turns: Sequence[tuple[str, str]] = ()) -> Usage:
        """What a call can cost at most; a token has at least one byte, and mostly three or more."""
        more = sum(len(text.encode("utf-8", "replace")) for _, text in turns) // 2
        return Usage(question.tokens + more, self.endpoint.limit)

    def _taken(self, questions: Sequence[Question]) -> int | None:
        """The next question that may be asked, its cost set aside; in order, so that a cap cuts the tail."""
        with self._turn:
            if self._over.is_set() or self._next >= len(questions):
                return None
            most = self._most(questions[self._next])
            if not self.purse.take(most):
                left = len(questions) - self._next
                why = f"the next call could pass the cap; {left} not asked"
                self._stop(Stopped(why, "raise the cap", is_cap=True))
                return None
            if self._over.is_set():  # while the cap was waited for
                self.purse.settle(most, Usage())
                return None
            self._next += 1
            return self._next - 1

    def _answered_once(self, question: Question) -> Result:
        """Ask, verify, and let the model correct itself once."""
        turns: list[tuple[str, str]] = []
        reasons: list[str] = []
        usage, calls = Usage(), 0
        for attempt in (1, 2):
            if attempt == 2 and not self.purse.take(self._most(question, turns)):
                return self._done(
                    Result(
                        question, DISCARDED, None, (*reasons, "a second try could pass the cap"), usage, calls
                    )
                )
            try:
                text, fault, cost, sent = self._called(question, turns)
            except _GivenUp as given_up:
                told = (*reasons, given_up.text)
                status = DISCARDED if reasons else FAILED
                return self._done(
                    Result(question, status, None, told, usage + given_up.usage, calls + given_up.calls)
                )
            usage, calls = usage + cost, calls + sent
            found = [fault] if fault else decoded(text, question)
            if isinstance(found, Answer):
                found = self.verify(question, without(found, self.endpoint.without_key))
            if isinstance(found, Answer):
                self.is_kept &= self.kept.keep(question.key, found, usage)
                return self._done(Result(question, ACCEPTED, found, (), usage, calls))
            reasons = [self.endpoint.without_key(hostile.line(reason, 400)) for reason in found]
            shown = hostile.lines(text[:_REPEATED]) or "(empty)"
            turns = [("assistant", shown), ("user", correction(reasons))]
        return self._done(Result(question, DISCARDED, None, tuple(reasons), usage, calls))

    def _done(self, result: Result) -> Result:
        with self._state:
            if result.status == FAILED:
                self._failed += 1
                if not self._answered and self._failed >= _HOPELESS:
                    self._stop(
                        Stopped(f"the first {self._failed} questions all failed: {result.reasons[-1]}", "")
                    )
            else:
                self._answered += 1
            if self.told is not None:
                self.told(result)
        return result

    def _stop(self, why: Stopped) -> None:
        self.stopped = self.stopped or why
        self._over.set()
        if not why.is_cap:
            self._end.set()

    # ---- One call, tried again ------------------------------------------------------------------

    def _called(self, question: Question, turns: Sequence[tuple[str, str]]) -> tuple[str, str, Usage, int]:
        """The text of a reply, what is wrong with it, its cost, and the requests it took."""
        most = self._most(question, turns)
        spent = Usage()
        for tried in range(1, self.patience.tries + 1):
            if tried > 1 and not self.purse.take(most):
                raise _GivenUp("another try could pass the cap", spent, tried - 1)
            cost = Usage()
            try:
                reply = self.endpoint.ask(question.prompt, turns, schema(question))
                cost = believed(reply.usage, most, reply.text)
                return reply.text, reply.fault, spent + cost, tried
            except Fault as fault:
                cost = believed(None, most, "") if fault.is_charged else Usage()
                failed = fault
            finally:
                self.purse.settle(most, cost)
            spent += cost
            self._wait(failed, tried, spent)
        raise AssertionError("the last try returns or gives up")

    def _wait(self, fault: Fault, tried: int, spent: Usage) -> None:
        """Wait before the next try, or give up."""
        if fault.is_final:
            self._stop(Stopped(fault.text, fault.hint))
        wait = self.patience.wait(tried, fault.wait) if fault.again and not fault.is_final else None
        if wait is None or self._end.wait(wait):
            how = f" ({tried} tries)" if tried > 1 else ""
            hint = f"; {fault.hint}" if fault.hint else ""
            raise _GivenUp(f"{fault.text}{how}{hint}", spent, tried)


class _GivenUp(Exception):
    def __init__(self, text: str, usage: Usage, calls: int) -> None:
        super().__init__(text)
        self.text, self.usage, self.calls = text, usage, calls
