"""Ask a model about tasks: several questions at once, tried again within bounds, each answer verified and kept.

Every answer quotes its rollouts, or it is thrown away. In a prompt our own words stand outside the frame and
foreign text inside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.structs import replace

from blade import hostile
from blade.agent import judgements
from blade.endpoint import client, faults
from blade.endpoint.chat import Form
from blade.endpoint.faults import Fault
from blade.errors import Unreadable, UsageError
from blade.model import Agreement, Cause
from blade.targets import append_whole, locked

if TYPE_CHECKING:
    from yarl import URL

LABEL, NAME, EXPLAIN, ASK = KINDS = ("label", "name", "explain", "ask")
UNDETERMINED = Cause.UNDETERMINED.value
PROMPTS = Path(__file__).with_name("prompts.yaml")
VERSION = "1"  # of the prompts: another number means that kept answers were given to another question
MOST_SAID, MOST_NAMED, MOST_QUOTED, MOST_PLACES = 600, 80, 600, 6  # characters, and places that are quoted
MOST_REPLY = 40_000  # characters of a reply that are looked at
_MOST_COLUMNS = 300


# ---- Questions ---------------------------------------------------------------------------------


class Cited(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place of a rollout and what stands there."""

    task: Annotated[str, msgspec.Meta(max_length=400)]
    repeat: int
    quote: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_QUOTED)]
    step: int | None = None  # exactly one of step and field
    field: Annotated[str, msgspec.Meta(max_length=400)] | None = None


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model says of one task or of one cluster."""

    about: Annotated[str, msgspec.Meta(max_length=400)]  # the task or the cluster
    answer: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_NAMED)]
    because: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_SAID)]
    evidence: Annotated[tuple[Cited, ...], msgspec.Meta(max_length=MOST_PLACES)]
    mode: Annotated[str, msgspec.Meta(max_length=MOST_NAMED)] = ""  # of a label: a name for what happened


class Prompt(msgspec.Struct, frozen=True):
    """What is sent: our own words, then the data in its frame."""

    system: str
    user: str


class Question(msgspec.Struct, frozen=True):
    """One question about one task or cluster, ready to be asked."""

    kind: str
    about: str
    prompt: Prompt
    key: str  # of the rows it is about, what is asked, and of whom: an answer is kept under it
    tokens: int  # of the prompt, estimated from above
    choices: tuple[str, ...] = ()  # the answers that are allowed; empty: any short text


def _object(**properties: Any) -> dict[str, Any]:
    """The JSON Schema of an object, in the dialect that strict structured output allows."""
    shape = {"type": "object", "properties": properties, "required": list(properties)}
    return {**shape, "additionalProperties": False}


_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_STEP, _FIELD = {"type": ["integer", "null"]}, {"type": ["string", "null"]}
_PLACES = {"type": "array", "items": _object(task=_TEXT, repeat=_NUMBER, step=_STEP, field=_FIELD, quote=_TEXT)}
_QUERIES = _object(proposals={"type": "array", "items": _object(id=_NUMBER, query=_TEXT)})


def schema(question: Question) -> dict[str, Any]:
    """The JSON Schema of an answer."""
    answer = _TEXT | ({"enum": list(question.choices)} if question.choices else {})
    mode = {"mode": _TEXT} if question.kind == LABEL else {}
    return _object(about=_TEXT, answer=answer, **mode, because=_TEXT, evidence=_PLACES)


# ---- Prompts -----------------------------------------------------------------------------------

MARK = "> "  # before every line of data
BEGIN = f'BEGIN DATA. Every line of it begins with "{MARK.strip()}"; it ends at the first line that does not.'
END = "END DATA"


@cache
def _prompts() -> dict[str, str]:
    import yaml

    names = {"said": MOST_SAID, "named": MOST_NAMED, "quoted": MOST_QUOTED, "places": MOST_PLACES}
    words = {**names, "end": END, "mark": MARK.strip(), "undetermined": UNDETERMINED}
    texts = yaml.safe_load(PROMPTS.read_text(encoding="utf-8"))
    return {name: text.strip("\n").format(**words) for name, text in texts.items()}


def framed(text: str) -> str:
    """Foreign text as a block that nothing inside it can end: each of its lines begins with the mark."""
    return "\n".join([BEGIN, *(MARK + line for line in hostile.lines(text).strip("\n").split("\n")), END])


def prompt(kind: str, about: str, data: str, question: str = "", choices: Sequence[str] = ()) -> Prompt:
    """A question of a kind about a task or a cluster; `question` are the user's own words."""
    words = _prompts()
    parts = [words["rules"], words[kind], *([words["causes"]] if kind == LABEL else [])]
    if kind == ASK and choices:
        parts.append("The answers that are allowed: " + ", ".join(f'"{choice}"' for choice in choices) + ".")
    user = [f"The question: {hostile.line(question)}"] if question else []
    # an id is foreign text too, and stands inside the frame
    user.append(framed(f"id: {shown(about)}\n\n{data}"))
    return Prompt("\n\n".join(parts), "\n\n".join(user) + "\n")


def shown(about: str) -> str:
    """An id as the prompt gives it and as an answer repeats it."""
    return hostile.line(about, 200)


def correction(reasons: Sequence[str]) -> str:
    """What the model is told when its answer does not hold."""
    # reasons repeat words of the answer and of rollouts: one line each, marked like data
    lines = "\n".join(MARK + hostile.line(reason, 400) for reason in reasons[:8])
    return (
        f"Your answer does not hold:\n{lines}\n"
        f'Answer once more, in full and in the same form; "{UNDETERMINED}" is allowed. There is no third try.'
    )


# ---- Replies -----------------------------------------------------------------------------------

_DECODER = msgspec.json.Decoder(Answer)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)  # as open models put it before their answer
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.DOTALL)


def decoded(text: str, question: Question) -> Answer | list[str]:
    """The answer in a reply: one JSON object of the right form, about the right thing, within the choices.

    It is spelled as among the choices, and its id as in the rows.
    """
    reply = _THOUGHT.sub("", text, count=1).strip()
    if len(reply) > MOST_REPLY:
        return [f"the reply has {len(reply):,} characters"]
    fenced = _FENCE.match(reply)
    try:
        answer = _DECODER.decode((fenced[1] if fenced else reply).encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError) as error:
        return [f"the reply is not the JSON object that was asked for: {hostile.line(str(error), 200)}"]
    answer = _cleaned(answer, hostile.line)  # quotations stay as they are until they are found
    spelled = {choice.casefold(): choice for choice in (*question.choices, UNDETERMINED)}
    words = spelled.get(answer.answer.casefold(), answer.answer)
    return _against(answer, question) or replace(answer, about=question.about, answer=words)


def again(answer: Answer, question: Question) -> Answer | list[str]:
    """Check a kept answer against the question once more."""
    try:
        return decoded(msgspec.json.encode(replace(answer, about=shown(answer.about))).decode(), question)
    except UnicodeEncodeError:
        return ["it holds what is no text"]


def _cleaned(answer: Answer, clean: Callable[[str], str]) -> Answer:
    return replace(answer, **{name: clean(getattr(answer, name)) for name in ("answer", "because", "mode")})


def _against(answer: Answer, question: Question) -> list[str]:
    about, verdict, choices = shown(question.about), answer.answer.casefold(), question.choices
    is_foreign = bool(choices) and verdict not in {choice.casefold() for choice in choices}
    spelled = hostile.line(answer.answer, 60)
    foreign = f"{spelled!r} is none of the answers that are allowed: {', '.join(choices)}"
    checks = [
        (answer.about.strip() != about, f"about is {shown(answer.about)!r}, the question is about {about!r}"),
        (not answer.answer or not answer.because, "answer and because must say something"),
        (answer.mode and question.kind != LABEL, "only a label has a mode"),
        (is_foreign, foreign),
        (not answer.evidence and verdict != UNDETERMINED, f"nothing is quoted, and the answer is not {UNDETERMINED}"),
    ]
    for number, place in enumerate(answer.evidence, 1):
        is_unclear = (place.step is None) == (place.field is None)
        checks.append((is_unclear, f"quotation {number} must name a step or a field, one of them"))
    return [reason for is_wrong, reason in checks if is_wrong]


# ---- What it costs -----------------------------------------------------------------------------

EXPECTED_OUT = 350  # tokens of an answer, where nobody counted them
_LONGEST = 10  # no tokenizer makes less than a tenth of the tokens that we estimate


class Usage(msgspec.Struct, frozen=True):
    """Tokens in and out, and how many of them were estimated: the endpoint did not say, or too few."""

    tokens_in: int = 0
    tokens_out: int = 0
    estimated: int = 0

    @property
    def total(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Usage(*map(sum, pairs))


def believed(counted: Usage | None, most: Usage, text: str) -> Usage:
    """What a call is charged with: what the endpoint says, unless it says nothing or less than can be.

    A cap must bind at an endpoint that counts nothing, too: there the greater of both counts.
    """
    known = counted or Usage()
    if counted and known.tokens_in * _LONGEST >= most.tokens_in and (known.tokens_out or not text):
        return known
    tokens_in = max(known.tokens_in, most.tokens_in)
    tokens_out = max(known.tokens_out, min(most.tokens_out, max(EXPECTED_OUT, len(text) // 4)))
    return Usage(tokens_in, tokens_out, tokens_in + tokens_out)


class Price(msgspec.Struct, frozen=True):
    """Dollars for a million tokens."""

    per_in: float
    per_out: float

    def of(self, usage: Usage) -> float:
        return (usage.tokens_in * self.per_in + usage.tokens_out * self.per_out) / 1_000_000


class Cap(msgspec.Struct, frozen=True):
    """The most that may be spent; None: no limit."""

    cost: float | None = None
    tokens: int | None = None


class Purse:
    """What was spent, what is being spent, and whether one more call fits."""

    def __init__(self, cap: Cap, price: Price | None = None) -> None:
        self.cap, self.price, self.spent = cap, price, Usage()
        self._under_way: list[Usage] = []  # by each call, at most
        self._settled = asyncio.Event()

    def take(self, most: Usage) -> bool:
        """Set aside the most that a call can cost; False if that would pass the cap."""
        usage = sum(self._under_way, self.spent + most)
        fits = self.cap.tokens is None or usage.total <= self.cap.tokens
        if self.cap.cost is not None and self.price is not None:
            fits = fits and self.price.of(usage) <= self.cap.cost
        self._under_way += [most] if fits else []
        return fits

    async def taken(self, most: Usage) -> bool:
        """The same once calls under way are over, where they decide: mostly they cost less than set aside."""
        while not self.take(most):
            if not self._under_way:
                return False
            self._settled.clear()
            await self._settled.wait()
        return True

    def settle(self, most: Usage, cost: Usage) -> None:
        """A call for which `most` was set aside did cost this."""
        self._under_way.remove(most)
        self.spent += cost
        self._settled.set()


# ---- Answers that were paid for ----------------------------------------------------------------

_MOST_KEPT = 256 << 20  # bytes: a file beyond this is not what its name says


class _Line(msgspec.Struct, frozen=True):
    """An answer under the key of its question."""

    key: str
    answer: Answer
    usage: Usage


class Kept:
    """The answers of one model at one endpoint, as JSON lines: what was paid for is not asked again."""

    def __init__(self, folder: Path, model: str, host: str) -> None:
        name = blake2b(f"{host}\0{model}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        self.path = folder / f"{name}.jsonl"
        self._answers: dict[str, Answer] | None = None

    def get(self, key: str) -> Answer | None:
        """The last answer that was kept under a key."""
        if self._answers is None:
            self._answers = self._read()
        return self._answers.get(key)

    def _read(self) -> dict[str, Answer]:
        """The whole lines of the file; one that was torn, or written in another form, is asked again."""
        answers = {}
        with contextlib.suppress(OSError):
            content = self.path.read_bytes() if self.path.stat().st_size <= _MOST_KEPT else b""
            for line in content.split(b"\n"):
                with contextlib.suppress(msgspec.DecodeError):
                    entry = msgspec.json.decode(line, type=_Line)
                    answers[entry.key] = entry.answer
        return answers

    def keep(self, key: str, answer: Answer, usage: Usage) -> bool:
        """Append an answer whole; False where the folder cannot be written."""
        try:
            line = msgspec.json.encode(_Line(key, answer, usage)) + b"\n"
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with locked(self.path, 0o600) as file:  # what is quoted is as private as the rollouts
                append_whole(file, line)
        except (OSError, UnicodeError):  # half a character of a broken row cannot be written as JSON
            return False
        if self._answers is not None:
            self._answers[key] = answer
        return True


# ---- The endpoint ------------------------------------------------------------------------------

PUBLIC = "https://api.openai.com/v1"
_MOST_BODY = 8 << 20  # bytes of a response
_SHORT, _LONG = 10, 24  # characters of a key, with a digit in it and without
_FORM = Form(limits=("max_completion_tokens", "max_tokens", ""))
Turns = Sequence[tuple[str, str]]  # what was said after the prompt, by role


class Reply(msgspec.Struct, frozen=True):
    """What came back: the text, what it cost, and why there may be no text."""

    text: str
    usage: Usage | None  # None: the endpoint does not say
    fault: str = ""  # cut short, refused


class Endpoint:
    """One model behind one URL."""

    def __init__(self, model: str, url: str, key: str, timeout: float, limit: int) -> None:
        self.model, self.limit, self._url = model, limit, _address(url)
        self.host, self._key, self._timeout = client.host(self._url), key, timeout
        # endpoints that want no key are given words such as `none` or `EMPTY`, which rollouts may hold too
        is_secret = len(key) >= _LONG or (len(key) >= _SHORT and any(sign.isdigit() for sign in key))
        self._secret = _spelled(key) if is_secret else None

    def connected(self) -> AbstractAsyncContextManager[client.Client]:
        """The connections to it, open while the block lasts."""
        return client.connected(self._url, self._key, self._timeout, _FORM, most_body=_MOST_BODY)

    async def ask(self, connection: client.Client, prompt: Prompt, turns: Turns, schema: dict[str, Any]) -> Reply:
        """One reply; a `Fault` says what went wrong in words that do not hold the key."""
        try:
            response = await connection.ask(lambda form: self._request(form, prompt, turns, schema))
        except Fault as fault:
            # before it is cut, for half a key is not found; and after, for what is invisible may have hidden it
            fault.text = self.without_key(hostile.line(self.without_key(fault.text), 300))
            raise
        return self._reply(response)

    def without_key(self, text: str) -> str:
        """A text of the endpoint in which it repeats the key, plainly or escaped, does not keep it."""
        return text if self._secret is None else self._secret.sub("[key]", text)

    def _request(self, form: Form, prompt: Prompt, turns: Turns, schema: dict[str, Any]) -> dict[str, Any]:
        system = prompt.system
        shape = {"type": "json_schema", "name": "answer", "strict": True, "schema": schema}
        if not form.has_schema:
            text = msgspec.json.encode(schema).decode()
            system += f"\n\nReply with one JSON object and nothing else, valid under this JSON Schema:\n{text}"
        return {
            "model": self.model, "instructions": system,
            "input": [{"role": role, "content": text} for role, text in (("user", prompt.user), *turns)],
            "max_output_tokens": self.limit, "store": False,  # the endpoint is asked to keep nothing
            **({"text": {"format": shape}} if form.has_schema else {}),
        }  # fmt: skip

    def _reply(self, response: dict[str, Any]) -> Reply:
        contents = [item.get("content") or [] for item in response["output"] if item.get("type") == "message"]
        parts = [part for each in contents for part in ([{"text": each}] if isinstance(each, str) else each)]
        text = self.without_key("".join(str(part.get("text") or "") for part in parts))
        refusal = next((str(part["refusal"]) for part in parts if part.get("refusal")), "")
        reason = (response.get("incomplete_details") or {}).get("reason", "max_output_tokens")
        fault = "" if text.strip() else "the reply is empty"
        if response.get("status") == "incomplete" and reason == "max_output_tokens":
            fault = "the reply was cut short at the limit of output tokens; --max-output raises it"
        elif refusal:
            fault = self.without_key(f"the model refused: {refusal}")
        return Reply(text, _usage(response.get("usage") or {}), fault)


def host_of(url: str) -> str:
    """The host and port of a URL; user names, passwords and paths are left out."""
    return client.host(_address(url))


def _address(url: str) -> URL:
    if (address := client.address(url)) is None:
        hint = "give it as https://HOST/v1"
        raise UsageError("the base URL is no http or https address", hint, "bad-endpoint")
    return address


def _spelled(key: str) -> re.Pattern[str]:
    """What finds a key however it is escaped: as JSON, as a URL, as HTML, and escaped twice."""
    ways = []
    for sign in key:
        code = ord(sign)
        plain = rf"\\{{0,8}}(?:{re.escape(sign)}|(?:u00|x){code:02x})"
        ways.append(rf"(?:{plain}|%{code:02x}|&#0*(?:{code}|x0*{code:x});)")
    return re.compile("".join(ways), re.IGNORECASE)


def _usage(counts: dict[str, Any]) -> Usage | None:
    tokens_in = counts.get("input_tokens", counts.get("prompt_tokens"))
    tokens_out = counts.get("output_tokens", counts.get("completion_tokens"))
    if not (type(tokens_in) is int and type(tokens_out) is int and min(tokens_in, tokens_out) >= 0):
        return None
    return Usage(tokens_in, tokens_out)


def _advice(fault: Fault, model: str) -> tuple[str, bool, bool]:
    """What to do, whether to try again, and whether no other question would fare better."""
    status = fault.status
    if status is None:
        more = ", or give it longer with --timeout" if fault.kind == "model_timeout" else ""
        return f"is the endpoint running, and is --base-url right?{more}", True, False
    if fault.has_no_credit:
        return "the account has no credit left at this endpoint", False, True
    if fault.again:
        return "the endpoint is busy or broken; fewer at once with --concurrency, or try later", True, False
    if status in (401, 403):
        return "is the key right, and may it use this model? it is read from the environment", False, True
    if status in (404, 405, 501):
        name = hostile.line(model, 80)
        hint = f"is --base-url right (it mostly ends in /v1), and does it offer the model {name}?"
        return hint, False, True
    if 300 <= status < 400:
        return "redirects are not followed; give the address it points to with --base-url", False, True
    if status == 413 or faults.is_too_long(fault.said):
        return "the prompt is too long for the model; --budget makes dossiers shorter", False, False
    return "the endpoint does not take this request; what it says stands above", False, False


# ---- A round of questions ----------------------------------------------------------------------

KEPT, ACCEPTED, DISCARDED, FAILED, LEFT = STATUSES = ("kept", "accepted", "discarded", "failed", "left")
_REPEATED = 4000  # characters of a refused reply that the model is shown again
_HOPELESS = 3  # questions that fail before any is answered: then the others are not asked

# the answer with exact quotations, or what is wrong
Verify = Callable[[Question, Answer], "Answer | list[str]"]


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
        self, endpoint: Endpoint, cache: Kept, verify: Verify, purse: Purse, patience: Patience | None = None,
        progress: Callable[[Result], None] | None = None,
    ) -> None:  # fmt: skip
        self.endpoint, self.cache, self.verify, self.purse = endpoint, cache, verify, purse
        self.patience, self.progress = patience or Patience(), progress
        self.stopped: Stopped | None = None
        self.is_kept = True  # False: the cache could not be written
        self._end = asyncio.Event()  # those under way wait no longer
        self._n_answered = self._n_failed = 0

    def ask(self, questions: Sequence[Question], at_once: int = 4) -> list[Result]:
        """The results of all questions, in their order, however many are asked at once.

        An interrupt ends the waiting; what was accepted is kept already.
        """
        return asyncio.run(self._results(questions, at_once))

    async def _results(self, questions: Sequence[Question], at_once: int) -> list[Result]:
        results: dict[int, Result] = {}
        waiting = iter(enumerate(questions))  # in order, so that a cap cuts the tail
        turn = asyncio.Lock()

        async def work(connection: client.Client) -> None:
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

    async def _result(self, connection: client.Client, question: Question) -> Result:
        """Ask, verify, and let the model correct itself once."""
        turns: list[tuple[str, str]] = []
        reasons: list[str] = []
        usage, calls = Usage(), 0
        for attempt in (1, 2):
            if attempt == 2 and not await self.purse.taken(self._most(question, turns)):
                reasons.append("a second try could pass the cap")
                break
            reply, cost, sent = await self._call(connection, question, turns)
            usage, calls = usage + cost, calls + sent
            if isinstance(reply, str):
                status = DISCARDED if reasons else FAILED
                return Result(question, status, None, (*reasons, reply), usage, calls)
            verdict = [reply.fault] if reply.fault else decoded(reply.text, question)
            if isinstance(verdict, Answer):
                # what was escaped in a reply, or hidden, is plain in its answer
                clean = self.endpoint.without_key
                evidence = tuple(replace(place, quote=clean(place.quote)) for place in verdict.evidence)
                answer = replace(_cleaned(verdict, clean), evidence=evidence)
                verdict = await asyncio.to_thread(self.verify, question, answer)
            if isinstance(verdict, Answer):
                self.is_kept &= self.cache.keep(question.key, verdict, usage)
                return Result(question, ACCEPTED, verdict, (), usage, calls)
            reasons = [self.endpoint.without_key(hostile.line(reason, 400)) for reason in verdict]
            shown = hostile.lines(reply.text[:_REPEATED]) or "(empty)"
            turns = [("assistant", shown), ("user", correction(reasons))]
        return Result(question, DISCARDED, None, tuple(reasons), usage, calls)

    def _done(self, result: Result) -> Result:
        self._n_failed += result.status == FAILED
        self._n_answered += result.status != FAILED
        if result.status == FAILED and not self._n_answered and self._n_failed >= _HOPELESS:
            self._stop(Stopped(f"the first {self._n_failed} questions all failed: {result.reasons[-1]}", ""))
        if self.progress is not None:
            self.progress(result)
        return result

    def _stop(self, why: Stopped) -> None:
        self.stopped = self.stopped or why
        if not why.is_cap:
            self._end.set()

    async def _call(
        self, connection: client.Client, question: Question, turns: Turns
    ) -> tuple[Reply | str, Usage, int]:
        """A reply, or why none came, its cost, and the requests it took; the cost of the first is set aside."""
        most, spent = self._most(question, turns), Usage()
        for tried in range(1, self.patience.tries + 1):
            if tried > 1 and not await self.purse.taken(most):
                return "another try could pass the cap", spent, tried - 1
            cost = Usage()
            try:
                reply = await self.endpoint.ask(connection, question.prompt, turns, schema(question))
                cost = believed(reply.usage, most, reply.text)
                return reply, spent + cost, tried
            except Fault as error:
                fault = error
                if fault.status is None:  # the endpoint may have done the work
                    cost = believed(None, most, "")
            finally:
                self.purse.settle(most, cost)
            spent += cost
            if why := await self._waited(fault, tried):
                return why, spent, tried
        raise AssertionError("after the last try nothing is waited for")

    async def _waited(self, fault: Fault, tried: int) -> str:
        """Wait before the next try; or why there is none."""
        hint, is_again, is_final = _advice(fault, self.endpoint.model)
        if is_final:
            self._stop(Stopped(fault.text, hint))
        wait = self.patience.wait(tried, fault.wait) if is_again else None
        if wait is not None:
            try:
                await asyncio.wait_for(self._end.wait(), wait)
            except TimeoutError:
                return ""
        how = f" ({tried} tries)" if tried > 1 else ""
        return f"{fault.text}{how}; {hint}"


# ---- Queries for uncited numbers ---------------------------------------------------------------


class _Proposal(msgspec.Struct):
    id: int
    query: str


def proposals(
    endpoint: Endpoint, columns: Mapping[str, str], runs: Sequence[str], numbers: Sequence[tuple[str, str]],
    patience: Patience | None = None,
) -> dict[int, str]:  # fmt: skip
    """By the place of each number the query that the model proposes for it; whoever asked runs them.

    It is sent the names and types of columns, the runs, and each number with its sentence.
    """
    patience = patience or Patience()
    lines = [f"run: {hostile.line(run, 80)}" for run in runs]
    few = list(columns.items())[:_MOST_COLUMNS]  # our own come first
    lines += [f"column: {hostile.line(name, 120)} {kind}" for name, kind in few]
    for number, (printed, sentence) in enumerate(numbers):
        lines.append(f"number {number}: {hostile.line(printed, 40)} in: {hostile.line(sentence, 400)}")
    prompt = Prompt(_prompts()["queries"], "\n".join([BEGIN, *(MARK + line for line in lines), END]))

    async def reply_to() -> Reply:
        async with endpoint.connected() as connection:
            for tried in range(1, patience.tries + 1):
                try:
                    return await endpoint.ask(connection, prompt, (), _QUERIES)
                except Fault as fault:
                    wait = patience.wait(tried, fault.wait) if _advice(fault, endpoint.model)[1] else None
                    if wait is None:
                        raise
                await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")

    try:
        reply = asyncio.run(reply_to())
        text = reply.text[reply.text.find("{") : reply.text.rfind("}") + 1]
        entries = msgspec.json.decode(text, type=dict[str, list[_Proposal]])["proposals"]
    except Fault as fault:
        why, hint = fault.text, _advice(fault, endpoint.model)[0]
        raise Unreadable(f"the model proposed nothing: {why}", hint, "endpoint-refused") from None
    except (msgspec.DecodeError, RecursionError, KeyError) as error:
        why = reply.fault or "its reply is not the JSON that was asked for"
        raise Unreadable(f"the model proposed nothing: {why}", "is --base-url right?", "endpoint-refused") from error
    return {entry.id: entry.query for entry in entries if 0 <= entry.id < len(numbers)}


# ---- What a round comes to ---------------------------------------------------------------------


def statuses(results: Sequence[Result]) -> dict[str, int]:
    """How many questions ended how."""
    return {status: sum(result.status == status for result in results) for status in STATUSES}


def answers(results: Sequence[Result]) -> list[tuple[str, tuple[str, ...]]]:
    """Each answer with the tasks it was given of, the most frequent first; case does not matter."""
    tasks: dict[str, list[str]] = {}
    answered = [(result.answer.answer, result.question.about) for result in results if result.answer is not None]
    spelled = {words.casefold(): words for words, _ in reversed(answered)}  # as the first of them
    for words, about in answered:
        tasks.setdefault(spelled[words.casefold()], []).append(about)
    counted = [(words, tuple(abouts)) for words, abouts in tasks.items()]
    return sorted(counted, key=lambda entry: (-len(entry[1]), entry[0]))


def agreement(
    run: str, by: str, results: Sequence[Result], proposed: Mapping[str, Cause]
) -> Agreement | None:
    """How far the accepted labels say what the engine proposes; None where there are none."""
    labels = {result.question.about: Cause(result.answer.answer) for result in results if result.answer is not None}
    pair = judgements.agreement(run, judgements.ENGINE, by, proposed, labels)
    return pair if pair.n else None
