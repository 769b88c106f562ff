"""Extract the evidence of every row: fields, checks, line templates, acts, how it ends, what it answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, NamedTuple

import msgspec
from xxhash import xxh3_64_intdigest

from blade import events
from blade.answers import candidates, words
from blade.diagnose.fields import MAX_LINE, OWN, SHORT, cut_call, flatten, template
from blade.formats import check_records
from blade.formats.rollout_steps import text_of
from blade.model import Episode, Gold, Step, TaskTraces

MAX_ACTS = 60  # of one rollout, from both ends
FINAL = 1200  # characters kept of how the final text ends
MAX_SHAPE = 60  # characters of an argument that has a shape
FORM = 120  # characters of an answer that has a form
MAX_ERROR = 400  # characters of an error line
MAX_NAMES = 12  # arguments of a call
NAMED, NAMING, MAX_NAMED = 1500, 12, 40  # characters of a prompt and calls in which names are looked for, and how many are kept
PASSAGE, AGAIN = 50, 6  # characters of a passage, and how often it is said, from which a text repeats itself
LEAST_DIGEST = 120  # characters of a rollout that is not equal to another by chance
MAX_SOUGHT = 120  # characters of a lookup that found nothing
MAX_FREE = 600  # characters of a free answer that is compared by its words
LEAST_GOLD = 4  # characters of a gold that says something where it is found in a text
LEAST_VALUE = 3  # characters of an argument that is traced to its source
MAX_RESULT = 20_000  # characters of a result that arguments are looked for in
FORM_LINES, MAX_LABELS = 12, 200  # lines from which a text may be a form, and that are kept of it


class Source(NamedTuple):
    """Where the value of an argument comes from."""

    name: str  # of the argument
    tool: str  # whose result showed the value first; empty: no result did
    key: int  # of the call that showed it
    value: int  # hash
    shape: str  # letters and digits masked: two values of one shape are of one kind
    is_given: bool  # the request itself states it


class Act(NamedTuple):
    """One call, or one message that stands for a call where tools are spoken in text."""

    tool: str
    key: int  # equal for equal tool and arguments
    failed: bool
    error: str  # the line of the result that says what went wrong; empty without error
    template: str  # the same with volatile values masked
    step: int
    is_answered: bool
    names: tuple[str, ...] = ()  # of the arguments that the call gives
    verb: str = ""  # first word of a command that is the only text argument: SELECT, ls
    sources: tuple[Source, ...] = ()  # of its text arguments, where the row expects calls
    listed: int = 0  # entries that the result lists, where it counts them
    total: int = 0  # and how many it says there are
    reply: int = 0  # hash of what was answered, where tools are spoken
    is_empty: bool = False  # the result says that nothing was found
    shapes: tuple[tuple[str, str], ...] = ()  # short text arguments: name, value with letters and digits masked
    sought: str = ""  # what was looked up, where nothing was found

    @property
    def is_partial(self) -> bool:
        """Whether the result lists fewer entries than it counts."""
        return self.listed < self.total


class RowEvidence(msgspec.Struct):
    """What one row holds, in the form that questions are asked of."""

    position: int  # in `Rollouts`
    prompt: int = 0  # hash of what the user asks; 0 where the request holds no user message
    gold: int = 0  # hash of everything the row expects
    fields: dict[str, Any] = {}  # dotted path -> short scalar
    lines: dict[str, tuple[str, ...]] = {}  # dotted path of a long text -> templates of its first and last lines
    tails: dict[str, str] = {}  # dotted path of a long text -> its last lines as they are
    checks: dict[str, bool] = {}  # name -> passed
    acts: tuple[Act, ...] = ()
    is_spoken: bool = False  # the acts are messages that another party answers
    n_acts: int = 0
    n_failed: int = 0  # of all acts
    most_made: int = 0  # times of the call that is made most often
    most_met: int = 0  # times of the error that is met most often
    n_turns: int = 0  # times that the model had its turn, be it with a message, with calls or with both
    has_output: bool = True
    has_response: bool = True  # the row has a place for the trace, be it empty
    transcript: str = ""  # a field that looks like the trace, where the row has no such place
    end: str = "none"  # kind of the last step; "none" without steps
    is_pending: bool = False  # the last step is a call that nothing answers
    reply: str = ""  # how the last thing begins that somebody answered the model
    final: str = ""  # how the final text ends
    final_step: int | None = None
    final_length: int = 0
    own_words: frozenset[str] = frozenset()  # of the first sentence of a short single answer, those that the prompt does not give
    labels: bytes = b""  # hashes of how the lines of a long single answer begin, in order: a form that is filled in
    next_label: bytes = b""  # how the line of the prompt begins that follows the last one of such a form, as a hash; empty without one
    is_open: bool = False  # the final text stops within a fence, a box or a line of the prompt
    is_repeating: bool = False  # the final text says the same again and again at its end
    digest: int = 0  # hash of everything the model said and did; 0 where that is little
    asked: tuple[str, ...] = ()  # names and numbers of the prompt
    named: tuple[str, ...] = ()  # the same of what the model does and says
    forms: tuple[str, ...] = ()  # forms of an answer that the request asks for: box, tag
    blank: tuple[str, ...] = ()  # tags of the prompt that hold nothing
    filled: tuple[str, ...] = ()  # tags of the prompt that hold something
    missing: str = ""  # a path that a log says is missing, and that the request does not give
    denied: str = ""  # a name that the request writes as code, and that an error says there is not
    cut_call: str = ""  # where the row records that a model it asked, such as a judge, was cut off; empty without such a place
    check_errors: dict[str, str] = {}  # failed check -> the error that it met itself
    answers: dict[str, str] = {}  # where it stands -> what is answered
    expected: tuple[tuple[str, str], ...] | None = None  # calls that the row expects: tool, canonical arguments
    expected_at: str = ""  # where the calls are that it expects, where no field is named so
    choice: str = ""  # what the prompt puts beside the letter that is answered; empty without letters
    barred: str = ""  # error of an expected call that was made exactly so and never succeeded; empty without one
    made: tuple[tuple[str, str], ...] = ()  # calls made without error: tool, canonical arguments
    gold_text: str = ""  # short gold value by name, for runs without passes
    says_gold: bool = False  # the final text holds the gold word for word, and the request does not
    gold_at: int = -1  # characters before the gold in the final text, whatever the request holds; -1 where it is not said
    longest: tuple[int, int] = (0, 0)  # characters and hash of the longest result that a tool gave
    saw_gold: bool | None = None  # some result holds the gold word for word; None where the row has no result or no such gold
    marks: tuple[str, ...] = ()  # what the final text is set with: headings, tables, lists, code, links
    form: str = ""  # what a short answer is made of: a number, a number and words, words, nothing; empty for a long one
    tools: tuple[str, ...] = ()  # that the row declares
    flags: dict[str, tuple[bool, ...]] = {}  # path of a list that says yes or no once for each act -> what it says
    told: tuple[str, ...] = ()  # the line that each act was answered with, where there are such lists


def observe(task: TaskTraces) -> list[RowEvidence]:
    """The evidence of each rollout of one task."""
    tools = {tool for episode in task.episodes for tool in (*episode.tools, *(call.tool for call in episode.calls))}
    return [_row(episode, task.given, tools) for episode in task.episodes]


def _hash(text: str) -> int:
    return xxh3_64_intdigest(text.encode("utf-8", "replace"))


def _row(episode: Episode, actual: Mapping[str, Any], tools: set[str]) -> RowEvidence:
    steps = episode.trace.steps
    row = {**actual, **episode.trace.row} if actual else episode.trace.row
    flat = flatten(row)
    prompt, request = _asked(row, steps)
    known = prompt.casefold()
    # the last thing that the model said, whatever came after it
    messages = ((step.text, step.index) for step in reversed(steps) if step.kind == "message" and step.text.strip())
    final, final_step = next(messages, ("", None))
    gold, own = events.gold(row), _expected(row)
    answer = gold.answer or ""
    due, due_at = _expected_calls(row, gold, tools)
    answers = candidates(final, _submitted(episode))
    for path in list(flat.lines):
        head = (events.field_text(row, path) or "").strip()[:MAX_LINE]
        if head and head in request:  # it describes the task, and says nothing of what became of it
            del flat.lines[path], flat.tails[path]
    acts, is_spoken = _acts(episode, steps, request if due is not None else None)
    flags = _flags(flat.scalars, len(acts))
    results = [step.text for step in steps if step.kind == "result"]
    longest = max(results, key=len, default="")
    is_single = len(acts) <= 1
    whole, unit = "\n".join(step.text for step in steps if step.kind != "user"), final[-PASSAGE - 10 : -10]
    own_steps = [step.kind in ("message", "call") for step in steps]
    answers_of_others = (step.text for step in reversed(steps) if step.kind in ("user", "result"))
    first_sentence = _SENTENCE.split(final.strip(), maxsplit=1)[0] if is_single and len(final) <= MAX_FREE else ""
    labels = _labels(final) if is_single else b""
    return RowEvidence(
        position=episode.position, prompt=_hash(prompt) if prompt else 0, gold=_hash(repr(own)) if own else 0,
        fields=flat.fields, lines=flat.lines, tails=flat.tails, checks=flat.checks,
        acts=tuple(acts if len(acts) <= MAX_ACTS else [*acts[: MAX_ACTS // 2], *acts[-MAX_ACTS // 2 :]]),
        is_spoken=is_spoken, n_acts=len(acts), n_failed=sum(act.failed for act in acts),
        most_made=max(Counter((act.tool, act.key) for act in acts).values(), default=0), most_met=most_met(acts),
        # what the model says and calls before the next answer is one turn
        n_turns=sum(mine and not before for before, mine in zip([False, *own_steps], own_steps, strict=False)),
        # a thought is not handed over, nor is what others say
        has_output=any(step.kind == "call" or step.text.strip() for step in steps if step.kind not in ("user", "system", "reasoning")),
        has_response="response" in row or bool(steps), transcript="" if "response" in row or steps else _transcript(flat.scalars),
        end=steps[-1].kind if steps else "none", is_pending=bool(steps) and steps[-1].kind == "call" and not steps[-1].answered,
        reply=" ".join(_lines(next(answers_of_others, "")[:2000])[:2])[:MAX_LINE],
        final=final[-FINAL:], final_step=final_step, final_length=len(final),
        own_words=frozenset(word for word in words(first_sentence) if word not in known),
        labels=labels, next_label=_next_label(labels, prompt) if labels else b"",
        is_open=_is_open(final, prompt), is_repeating=len(unit) == PASSAGE and final[-4000:].count(unit) >= AGAIN,
        digest=_hash(whole) if len(whole) >= LEAST_DIGEST else 0,
        asked=_names(prompt[:NAMED]),
        named=_names(" ".join([*(call.raw[:SHORT] for call in episode.calls[:NAMING]), final[-FINAL:]])),
        forms=(("box",) if "boxed" in request else ()) + (("tag",) if _TAG_ASKED.search(request) else ()),
        blank=tuple(islice(dict.fromkeys(_BLANK.findall(prompt)), MAX_NAMES)),
        filled=tuple(islice(dict.fromkeys(_FILLED.findall(prompt)), MAX_NAMES)),
        missing=_missing(row, flat.lines, request), denied=_denied(flat.fields, acts, prompt), cut_call=cut_call(row),
        check_errors=_check_errors(row), answers=answers, choice=_choice(prompt, answers),
        expected=due, expected_at=due_at, barred=_barred(episode, due or ()),
        made=_calls([(call.tool, call.arguments) for call in episode.calls if not call.failed]),
        gold_text=answer[:SHORT], says_gold=answer.strip().casefold() not in known and _place_of(final, answer) >= 0,
        gold_at=_place_of(final, answer), saw_gold=_saw(results, answer, prompt),
        longest=(len(longest), _hash(longest)) if longest else (0, 0),
        marks=_marks(final), form=_form(final), tools=tuple(episode.tools),
        flags=flags, told=_told(episode, steps, acts) if flags else (),
    )  # fmt: skip


def most_met(acts: Iterable[Act]) -> int:
    """How often the error is met that is met most often."""
    return max(Counter(act.template for act in acts if act.template).values(), default=0)


def _transcript(scalars: list[tuple[str, Any]]) -> str:
    """The field that looks like a trace: a list of messages, else the longest text that is named like one."""
    for path, value in scalars:
        if isinstance(value, list) and value and all(isinstance(item, dict) and "role" in item for item in value):
            return path
    texts = [(len(value), path) for path, value in scalars if isinstance(value, str) and _TRACE.search(path.lower())]
    return max(texts, default=(0, ""))[1]


_TRACE = re.compile("completion|output|transcript|trajectory|conversation|response|generation")


# ---- Acts ----------------------------------------------------------------------------------------


def _acts(episode: Episode, steps: Sequence[Step], request: str | None) -> tuple[list[Act], bool]:
    """The calls of a rollout, else what is spoken; with the request, arguments are traced to where they come from."""
    if not episode.calls:
        return list(_spoken(steps)), True
    acts: list[Act] = []
    shown: list[tuple[str, int, str]] = []  # tool, key and text of the results so far
    for call in episode.calls:
        key, is_read = _hash(call.key), request is not None and len(acts) < MAX_ACTS
        error = _error_line(call.output) if call.failed else ""
        is_answered = call.result_step is not None
        is_empty = not call.failed and is_answered and call.does != events.WRITE and _is_empty(call.output)
        listed, total = _listed(call.output) if not call.failed else (0, 0)
        acts.append(Act(
            call.tool, key, call.failed, error, template(error), call.step, is_answered,
            names=tuple(call.arguments)[:MAX_NAMES] if isinstance(call.arguments, dict) else (), verb=_verb(call.arguments),
            sources=_sources(call.arguments, shown, request or "") if is_read else (), listed=listed, total=total,
            is_empty=is_empty, shapes=tuple(_shapes(call.arguments)), sought=call.raw[:MAX_SOUGHT] if is_empty else "",
        ))  # fmt: skip
        if is_read and not call.failed:
            shown.append((call.tool, key, call.output[:MAX_RESULT]))
    return acts, False


def _flags(scalars: Sequence[tuple[str, Any]], n: int) -> dict[str, tuple[bool, ...]]:
    """Lists at the top of a row or one level below that hold one truth, or one 0 or 1, for each of its acts."""
    # acts that are cut stand beside the wrong entries
    is_whole = 0 < n <= MAX_ACTS
    lists = ((path, value) for path, value in scalars if is_whole and isinstance(value, list) and len(value) == n and path.count(".") <= 1)
    return {path: tuple(map(bool, value)) for path, value in lists if set(map(type, value)) in ({bool}, {int}) and set(value) <= {0, 1}}


def _told(episode: Episode, steps: Sequence[Step], acts: Sequence[Act]) -> tuple[str, ...]:
    """The line of each answer that would say what went wrong; empty where an act was answered with nothing."""
    after = {step.index: answer.text for step, answer in pairwise(steps) if answer.kind == "user"}
    answers = [call.output for call in episode.calls] or [after.get(act.step, "") for act in acts]
    return tuple(_error_line(text)[:MAX_LINE] for text in answers)


# Few general words for a result without content; what follows from it is asked of passing and failing rows alike.
_NOTHING = re.compile(
    r"\A\W*\Z|\A\s*(?:null|none|\[\]|\{\})\s*\Z|\"(?:total|count|num_\w+|n_\w+|hits|matches)\"\s*:\s*0\s*[,}\n]"
    r"|\b(?:no|0|zero) (?:\w+ )?(?:results?|matches|records?|entries|rows|hits|items|documents?|data)\b", re.IGNORECASE,
)  # fmt: skip


def _is_empty(output: str) -> bool:
    """Whether a result says that nothing was found."""
    return _NOTHING.search(output[:600]) is not None


def _shapes(arguments: Any) -> Iterator[tuple[str, str]]:
    """The short texts among the arguments, also of an object among them, each as its shape."""
    if isinstance(arguments, dict):
        objects = [(name, value) for name, value in arguments.items() if isinstance(value, dict)]
        inner = ((f"{name}.{key}", value) for name, members in objects for key, value in members.items())
        for name, value in islice((*arguments.items(), *inner), MAX_NAMES):
            if isinstance(value, str) and 0 < len(value) <= MAX_SHAPE:
                yield name, shape(value)


def _sources(arguments: Any, shown: Sequence[tuple[str, int, str]], request: str) -> tuple[Source, ...]:
    """Where each short text among the arguments was shown first."""
    if not isinstance(arguments, dict):
        return ()
    result = []
    for name, value in list(arguments.items())[:MAX_NAMES]:
        if isinstance(value, str) and LEAST_VALUE <= len(value) <= SHORT:
            tool, key = next(((tool, key) for tool, key, text in shown if value in text), ("", 0))
            result.append(Source(name, tool, key, _hash(value), shape(value), value in request))
    return tuple(result)


_LETTERS, _DIGITS, _WORDS = re.compile(r"[^\W\d_]+"), re.compile(r"\d+"), re.compile(r"a(?: a)+")


@lru_cache(maxsize=20_000)
def shape(value: str) -> str:
    """A short value with its letters and digits masked, words in a row as one: `a.a@a.a`, `9-9-9`, `#a9`, `a…`."""
    return _WORDS.sub("a…", _LETTERS.sub("a", _DIGITS.sub("9", value)))[:40]


def _asked(row: Mapping[str, Any], steps: Sequence[Step]) -> tuple[str, str]:
    """What the user asks, all user messages of the request; and everything that the model was told, also within the rollout."""
    params = row.get("responses_create_params")
    params = params if isinstance(params, dict) else {}
    content = params.get("input")
    whole, items = (content, []) if isinstance(content, str) else ("", content if isinstance(content, list) else [])
    texts = [(item.get("role"), text_of(item.get("content"))) for item in items if isinstance(item, dict) and item.get("role") is not None]
    prompt = whole or "\n".join(text for role, text in texts if role == "user")
    answers = [step.text for step in steps if step.kind == "user"]
    return prompt, "\n".join([str(params.get("instructions") or ""), whole, *(text for _, text in texts), *answers])


def _listed(output: str) -> tuple[int, int]:
    """How many entries a result lists, and how many there are as it counts them or as a pointer to the rest shows."""
    content = events.parsed(output) if output.lstrip().startswith("{") and len(output) <= MAX_RESULT else None
    if not isinstance(content, dict):
        return 0, 0
    lists = [value for value in content.values() if isinstance(value, list)]
    counts = [value for name, value in content.items() if isinstance(value, int) and not isinstance(value, bool) and _TOTAL.search(name)]
    if len(lists) != 1 or not lists[0]:
        return 0, 0
    n = len(lists[0])
    has_more = any(value and isinstance(value, str | int) and _NEXT.search(name) for name, value in content.items())
    return n, max([*counts, n + 1 if has_more else n])


_TOTAL = re.compile(r"total|count|size|hits|matches|results|^n$|num", re.IGNORECASE)  # names of how many entries there are
_NEXT = re.compile(r"next|after|cursor|more|continu", re.IGNORECASE)  # names of what leads to the rest of a list


def _saw(results: Sequence[str], gold: str, prompt: str) -> bool | None:
    """Whether some result holds the gold, which the prompt does not give away."""
    words = gold.strip().casefold()
    if not results or not LEAST_GOLD <= len(words) <= SHORT or words in prompt.casefold():
        return None
    return any(words in text.casefold() for text in results)


_MARKS = {  # what a text is set with -> signs without which it is not, and its pattern
    "a heading (#)": ("# ", re.compile(r"^#{1,6} ", re.MULTILINE)),
    "a table": ("|", re.compile(r"^\|.*\|\s*$", re.MULTILINE)),
    "a list": (" ", re.compile(r"^[ \t]*(?:[-*•]|\d+[.)]) ", re.MULTILINE)),
    "a code block": ("```", re.compile(r"^```", re.MULTILINE)),
    "a link": ("http", re.compile(r"https?://")),
}
_LANGUAGE = re.compile(r"^```(\w{1,20})", re.MULTILINE)


def _marks(final: str) -> tuple[str, ...]:
    """What a text is set with, a code block with its language."""
    result = [name for name, (signs, pattern) in _MARKS.items() if signs in final and pattern.search(final)]
    languages = dict.fromkeys(_LANGUAGE.findall(final)) if "```" in final else ()
    return (*result, *(f"a `{name}` code block" for name in languages))


_SUBMITTED = re.compile(r"\A\w+\((.*)\)\W*\Z", re.DOTALL)


def _form(final: str) -> str:
    """What the last line of an answer is made of, a call around it apart."""
    line = final.strip().rpartition("\n")[2].strip()
    hit = _SUBMITTED.match(line)
    text = hit[1] if hit is not None else line
    if not line or len(text) > FORM:
        return ""
    digits, letters = any(sign.isdigit() for sign in text), any(sign.isalpha() for sign in text)
    return "a number with words" if digits and letters else "a bare number" if digits else "words" if letters else "nothing"


def _verb(arguments: Any) -> str:
    """The first word of a command, where the only argument is a text."""
    if not isinstance(arguments, dict) or len(arguments) != 1:
        return ""
    text = next(iter(arguments.values()))
    word = text.split(None, 1)[0] if isinstance(text, str) and text.strip() else ""
    return word.upper() if word.isalpha() and len(word) <= 12 else ""


def _spoken(steps: Sequence[Step]) -> Iterator[Act]:
    """Messages that another party answers: a tool that is called in text."""
    for step, after in pairwise([*steps, None]):
        text = step.text.strip() if step is not None and step.kind == "message" else ""
        if step is None or not text or (after is not None and after.kind != "user"):
            continue
        failed = after is not None and events.reads_as_error(after.text, events.WRITE)
        error = _said_first(after.text) if after is not None and failed else ""
        is_empty = after is not None and not failed and _is_empty(after.text)
        # the object that is handed over stands between the first and the last brace
        start, end = text.find("{"), text.rfind("}")
        body = events.parsed(text[start : end + 1]) if 0 <= start <= end <= start + MAX_RESULT else None
        yield Act(
            text.split(None, 1)[0].partition("(")[0][:40] or "message", _hash(text), failed, error[:MAX_LINE], template(error),
            step.index, after is not None, reply=_hash(after.text) if after is not None else 0, is_empty=is_empty,
            shapes=tuple(_shapes(body)), sought=text[:MAX_SOUGHT] if is_empty else "",
        )  # fmt: skip


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if line]


def _said_first(text: str) -> str:
    """The first line of a text; where that is a heading (`Errors:`), with the line below it."""
    lines = _lines(text[:2000])
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])


def _error_line(output: str) -> str:
    """The line of a result that says what went wrong: the last of a traceback, else the first."""
    result = _lines(output[-4000:])
    is_traceback = result and (result[0].startswith("Traceback") or "Traceback (most recent" in output[:200])
    return (result[-1] if is_traceback else _said_first(output) if result else "")[:MAX_ERROR]


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n")


# ---- Ends and answers ----------------------------------------------------------------------------


def _is_open(final: str, prompt: str) -> bool:
    """Whether a text stops in the middle: an open fence, an open box, or a part of a line of the prompt."""
    text = final.rstrip()
    box, last = text.rfind("\\boxed{"), text.rpartition("\n")[2].strip()
    if text.count("```") % 2 or (box >= 0 and text.count("{", box) > text.count("}", box)):
        return True
    lines = prompt.splitlines() if len(last) >= 4 and "\n" in text else []
    return any(line != last and line.startswith(last) for line in map(str.strip, lines))


_WORD = re.compile(r"\w[\w-]+\w")
_DIGIT = re.compile(r"\d")


@lru_cache(maxsize=64)  # the repeats of a task have one prompt
def _names(text: str) -> tuple[str, ...]:
    """Words that name something: capitalised ones, and those with digits."""
    words = (
        word for word in dict.fromkeys(_WORD.findall(text)) if word[0].isupper() or (not word.isalpha() and _DIGIT.search(word))
    )
    return tuple(islice(words, MAX_NAMED))


_BLANK = re.compile(r"<(\w{2,40})(?: [^<>]*)?>\s*</\1>")
_FILLED = re.compile(r"<(\w{2,40})(?: [^<>]*)?>\s*[^<\s]")
_TAG_ASKED = re.compile(r"</?\w{2,40}>")


_ABSENT = re.compile(
    r"(?:no such file(?: or directory)?|FileNotFoundError|not found|does not exist|cannot open)\W{0,4}[^/\n]{0,40}?(/[\w./-]{3,120})",
    re.IGNORECASE,
)


def _missing(row: Mapping[str, Any], lines: Mapping[str, Any], request: str) -> str:
    """The path that the end of a log says is missing, unless the request gives it."""
    ends = ((events.field_text(row, path) or "")[-1000:] for path in lines)
    hits = next((hits for end in ends if "/" in end and (hits := _ABSENT.findall(end))), [""])
    name = str(hits[-1]).rstrip(".")
    return "" if name in request else name


# What a store or an interface says of a name that it does not hold; files, commands and names of a program the model makes itself.
_UNKNOWN = re.compile(
    r"\b(?:no such|unknown|unrecogni[sz]ed) (?P<kind>\w+)\W{1,3}(?:\w+\.)*(?P<after>[A-Za-z_]\w{2,60})"
    r"|\b(?P<sort>\w+) [\"'`]?(?:\w+\.)*(?P<before>[A-Za-z_]\w{2,60})[\"'`]? does not exist\b", re.IGNORECASE,
)  # fmt: skip
_MADE = frozenset("file files directory path folder command option argument variable module host".split())


def _denied(fields: Mapping[str, Any], acts: Sequence[Act], prompt: str) -> str:
    """The name that an error of a row says there is not, where the prompt states it as code does: in a list, with a type, in quotes."""
    texts = [value for value in fields.values() if isinstance(value, str)] + [act.error for act in acts if act.failed]
    for hit in (hit for text in texts for hit in _UNKNOWN.finditer(text)):
        name = re.escape(hit["after"] or hit["before"])
        is_made = (hit["kind"] or hit["sort"]).lower() in _MADE
        if not is_made and re.search(rf"[(,\[{{\"'`|]\s*{name}(?: [A-Z]{{3,}}|\s*[,:)\]}}\"'`|=])", prompt):
            return hit["after"] or hit["before"]
    return ""


def _check_errors(row: Mapping[str, Any]) -> dict[str, str]:
    """Failed checks that report an exception of their own instead of what is wrong with the work."""
    result = {}
    for key, value in row.items():
        if key not in OWN and isinstance(value, list):
            for record in value[: check_records.MAX_CHECKS]:
                hit = check_records.status_in(record) if isinstance(record, dict) else None
                name = check_records.name_of(record, hit[0]) if hit is not None and hit[1] == check_records.FAILED else None
                texts = [text for text in record.values() if isinstance(text, str)] if name else []
                if name and (error := next((text for text in texts if _EXCEPTION.search(text)), "")):
                    result[f"{key}: {name}"] = template(error)
    return result


_EXCEPTION = re.compile(r"\b(?:[A-Z]\w*(?:Error|Exception)\b|Traceback )")


def _place_of(final: str, gold: str) -> int:
    """Where a text first holds the gold as words of its own; -1 where it does not."""
    words, text = gold.strip().casefold(), final.casefold()
    if not LEAST_GOLD <= len(words) <= SHORT or words not in text:
        return -1
    hit = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text)
    return hit.start() if hit is not None else -1


def _labels(text: str) -> bytes:
    """Hashes of the beginnings of the lines of a text of many lines, up to a colon or a bar."""
    lines = _lines(text)
    return b"".join(map(_label, lines[-MAX_LABELS:])) if len(lines) >= FORM_LINES else b""


def _label(line: str) -> bytes:
    """The hash of how a line begins, up to a colon or a bar; empty where that says nothing."""
    head = re.split(r"[:|=]", line, maxsplit=1)[0].strip()[:60]
    return _hash(head).to_bytes(8, "little") if len(head) >= 5 and any(map(str.isalpha, head)) else b""


def _next_label(labels: bytes, prompt: str) -> bytes:
    """How the line begins that comes in the prompt after the one that the form ends with."""
    actual = [label for label in map(_label, map(str.strip, prompt.splitlines())) if label]
    return next((after for label, after in pairwise(actual) if label == labels[-8:]), b"")


def _submitted(episode: Episode) -> str:
    """The arguments of the last call, or the only one of them."""
    if not episode.calls:
        return ""
    arguments = episode.calls[-1].arguments
    values = list(arguments.values()) if isinstance(arguments, dict) else []
    return str(values[0]) if len(values) == 1 and isinstance(values[0], str | int | float) else episode.calls[-1].raw


_GOLD_WORDS = frozenset("expected gold golden truth reference target solution label answer".split())
_NO_GOLD = frozenset("extracted model predicted reward score func correct".split())


def _expected(row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Every field that is named like a gold, at the top of the row or one level below."""
    return [(name, content) for _, name, content in _near_top(row) if _is_gold(name)]


@lru_cache(maxsize=10_000)
def _is_gold(name: str) -> bool:
    words = set(name.lower().replace("-", "_").split("_"))
    return bool(words & _GOLD_WORDS) and not words & _NO_GOLD


def _near_top(row: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The fields at the top of a row and one level below: path, name and content."""
    for key, value in row.items():
        if key not in OWN:
            yield key, key, value
            for name, content in value.items() if isinstance(value, dict) else ():
                yield f"{key}.{name}", name, content


def _expected_calls(row: Mapping[str, Any], gold: Gold, tools: set[str]) -> tuple[tuple[tuple[str, str], ...] | None, str]:
    """The calls that a row expects, be it none, and where they are; None where it does not say.

    A field that is named so, else any list of records that all name a tool of the task and its arguments.
    """
    if gold.actions_field or any(isinstance(row.get(name), list) for name in events.ACTIONS):
        return _calls(gold.actions), ""
    for path, _, content in _near_top(row):
        calls = [_as_call(entry, tools) for entry in content] if isinstance(content, list) else []
        if calls and all(calls):
            return _calls([call for call in calls if call is not None]), path
    return None, ""


_CHOICES = re.compile(r"^\s*\(?([A-J])[).:]\s+(\S.*?)\s*$", re.MULTILINE)


def _choice(prompt: str, answers: Mapping[str, str]) -> str:
    """The text that stands beside the answered letter in a prompt that lists options."""
    options: dict[str, str] = dict(_CHOICES.findall(prompt)) if "A" in prompt else {}
    hits = (_LETTER.match(answers.get(place, "").strip()) for place in ("box", "tag", "announced", "line"))
    letter = next((hit[1] for hit in hits if hit is not None), "") if len(options) >= 2 and "A" in options else ""
    return options.get(letter, "")[:SHORT]


_LETTER = re.compile(r"[(*`\s]*([A-J])(?:[).:*`]|\s|$)")


def _barred(episode: Episode, due: Sequence[tuple[str, str]]) -> str:
    """The error of a call that is expected exactly as it was made, and that never succeeds in this rollout."""
    errors: dict[tuple[str, str], str] = {}
    worked = set()
    for call in episode.calls:
        calls = call.tool, events.canonical(call.arguments)
        if call.failed:
            errors.setdefault(calls, f"{call.tool}: {template(_error_line(call.output))}")
        else:
            worked.add(calls)
    return next((errors[call] for call in due if call in errors and call not in worked), "")


def _as_call(entry: Any, tools: set[str]) -> tuple[str, Any] | None:
    """A record that names a tool of the task, with its arguments: an object of their own, else all that stands beside the name."""
    source = entry.get("function", entry) if isinstance(entry, dict) else None
    if not isinstance(source, dict):
        return None
    key = next((key for key, value in source.items() if isinstance(value, str) and value in tools), None)
    beside = {name: value for name, value in source.items() if name != key}
    if key is None or not beside:
        return None
    inner = [value for name, value in beside.items() if name in events.ARGUMENTS]
    inner = inner or [value for value in beside.values() if isinstance(value, dict)]
    arguments = inner[0] if len(inner) == 1 else beside
    return source[key], events.parsed(arguments) if isinstance(arguments, str) else arguments


def _calls(actions: Sequence[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((tool, events.canonical(arguments)) for tool, arguments in actions)


def nothing_of(position: int) -> RowEvidence:
    """A row that could not be read: it holds nothing that a question could be asked of, not even an empty output."""
    return RowEvidence(position)
