r"""Judge a multiple-choice answer by its letter.

The row says how the letter is to be given: `template_metadata.output_regex` first, else `grading_mode`.
NeMo Gym's three modes keep their meaning; `any_form` is ours and takes the last of the ways in which people
declare an answer. An answer that names two options, or none, is no answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from string import ascii_uppercase
from typing import Any

from blade.answers import last_box
from blade_eval import replies, task_row
from blade_eval.environment import Attempt, Environment, Row
from blade_eval.expressions import Expressions

PATTERNS = Expressions("mcqa")

Options = dict[str, str]  # letter to text

# Signs that may surround a letter in a box or after `Answer:` without changing it.
PADDING = " \t\n*_`\"'“”‘’$()[]{}<>.,;:!"

JOINING = frozenset("/&+,;|")

LONGEST = 4000  # characters more than four times an option's, of what can be one
SHOWN = 400  # characters of a declaration, or of a last line, in which a letter is looked for
# What a sentence about a letter may begin with: a sign, or one of these words before it.
OPENING = ".!?:;,。"


def environment(settings: Mapping[str, Any]) -> Environment:
    """Multiple choice; `grading_mode` of the settings holds for rows that name none."""
    usual = str(settings.get("grading_mode") or "strict_single_letter_boxed")

    async def verify(attempt: Attempt) -> Row:
        options = options_of(attempt.row)
        expected = letter_of(task_row.needed(attempt.row, "expected_answer"), options)
        letter = await extracted(attempt.row, replies.answer(attempt.response), options, usual)
        return {"reward": float(letter == expected), "expected_answer": expected, "extracted_answer": letter}

    return Environment("mcqa", verify, answer=lambda row: row.get("extracted_answer"))


def options_of(row: Row) -> Options:
    """The options by letter; they stand as `[{"A": text}, …]`, `{"A": text}` or a list of texts."""
    entries = task_row.needed(row, "options")
    entries = [entries] if isinstance(entries, dict) else entries if isinstance(entries, list) else []
    if entries and all(isinstance(entry, str) for entry in entries):
        entries = [dict(zip(ascii_uppercase, entries, strict=False))]
    tables = [entry for entry in entries if isinstance(entry, dict)]
    options = {str(letter).strip().upper(): str(text) for table in tables for letter, text in table.items()}
    if not options or max(map(len, options)) != 1 or "" in options:
        raise task_row.faulty("the options have no letters")
    return options


def letter_of(expected: Any, options: Options) -> str:
    """The expected answer as a letter; a row that gives the option's text means its letter."""
    text = str(expected).strip()
    if text.upper() in options:
        return text.upper()
    named = by_text(text, options)
    if named is None:
        raise task_row.faulty(f"the expected answer {text[:40]!r} is none of the options")
    return named


async def extracted(row: Row, text: str, options: Options, usual: str) -> str | None:
    """The letter that the text declares; the row's own expression goes before its mode."""
    own = task_row.pattern(row)
    if own is not None and compiles(own):
        match = await task_row.last_match(own, text)
        return None if match is None else declared(match, options)
    mode = str(task_row.field(row, "grading_mode") or usual)
    if mode not in MODES:
        raise task_row.faulty(f"the grading mode {mode!r} is none of {', '.join(sorted(MODES))}")
    return MODES[mode](text, options)


def compiles(expression: str) -> bool:
    """Whether it is an expression at all; one that is not is passed over, as NeMo Gym does."""
    try:
        re.compile(expression)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def strict_boxed(text: str, options: Options) -> str | None:
    """The capital letter of the last box, perhaps labelled and followed by its text."""
    box = last_box(text)
    return labelled(replies.unwrapped(box[1]), options, capital=True) if box else None


def lenient_boxed(text: str, options: Options) -> str | None:
    """The letter of the last box, else the one option whose text it holds."""
    box = last_box(text)
    return strict_boxed(text, options) or by_text(replies.unwrapped(box[1]), options) if box else None


def answer_colon(text: str, options: Options) -> str | None:
    """The letter or the option's text after the last `Answer:`, alone on the rest of its line."""
    hits = deque(re.finditer(r"answer[*_]*\s*:[*_]*[ \t]*([^\n]*)", text, re.IGNORECASE), maxlen=1)
    if not hits:
        return None
    what = hits[0][1]
    letter = replies.unwrapped(what).strip(PADDING).upper()
    return letter if letter in options else by_text(what, options)


def any_form(text: str, options: Options) -> str | None:
    """The last declaration, in a box or in words; without one, the letter that stands alone at the end."""
    text = text.strip()
    box = last_box(text)
    places = [] if box is None else [box]
    worded = (m for m in PATTERNS.declared.finditer(text) if not PATTERNS.negated.match(m["what"]))
    places += [(m.end(), m["what"]) for m in deque(worded, maxlen=1)]
    spoken = list(named(text, options))
    if spoken and spoken[-1] > max(places, default=(0, "")):
        # A sentence on the way is no conclusion where the last line gives another.
        is_last = "\n" not in text[spoken[-1][0] :]
        return (None if is_last else concluded(text, options)) or declared(spoken[-1][1], options)
    if places:
        return declared(max(places)[1], options)
    return concluded(text, options) if text else None


@lru_cache(maxsize=4096)
def spelled_out(letter: str, own: str) -> re.Pattern[str]:
    """A letter with its own text behind it, and that it is right."""
    return re.compile(
        rf"(?<!\w){re.escape(letter)}[)\].:,*_\s-]{{1,6}}(?i:{re.escape(own)}[)*_\"'”.]{{0,4}}{PATTERNS.text('right')})"
    )


def named(text: str, options: Options) -> Iterator[tuple[int, str]]:
    """Where a sentence says of a letter that it is right, and that letter with what follows."""
    hits = [(match, match.start()) for match in PATTERNS.subject.finditer(text) if opens(text, match.start())]
    for match in PATTERNS.needed.finditer(text):
        if PATTERNS.must.search(text[max(0, match.start() - 40) : match.start()]):
            hits.append((match, match.start("letter")))
    folded = text.casefold()
    for letter, own in options.items():
        if own.casefold() in folded:  # an expression costs more to compile than all else here
            hits += [(match, match.start()) for match in spelled_out(letter, own).finditer(text)]
    for match, start in sorted(hits, key=lambda pair: pair[0].end()):
        before = text[max(0, start - SHOWN) : start]
        sentence = PATTERNS.sentence_ends.split(before)[-1]
        clause = re.split(r"[,;:]", sentence)[-1]
        if not PATTERNS.unsaid.search(clause) and not PATTERNS.supposed.search(sentence):
            follows = text[match.end() : match.end() + SHOWN].split("\n")[0]
            yield match.end(), f"{text[start]}. {follows}"


def opens(text: str, place: int) -> bool:
    """Whether a letter there begins a sentence or a clause, or stands after a word that leads to one."""
    before = text[max(0, place - SHOWN) : place]
    head = PATTERNS.padded.sub("", before)
    if not head or "\n" in before[len(head) :] or head[-1] in OPENING:
        return True
    return PATTERNS.leading.search(head[-12:]) is not None


def concluded(text: str, options: Options) -> str | None:
    """The option that the last line gives without declaring it: `B`, `(B)`, `B) Square`, `so it is B`."""
    line = text.splitlines()[-1].strip()
    end = line[-SHOWN:]
    marked = {letter for letter in PATTERNS.marked.findall(end) if letter in options}
    if len(marked) > 1:
        return None
    if not line.strip(PADDING)[1:] or PATTERNS.headed.match(line):
        return declared(line, options)
    at_end = PATTERNS.concluded.search(end)
    if at_end and at_end[1] in options and not marked - {at_end[1]}:
        return at_end[1]
    return marked.pop() if marked else by_text(line, options)


MODES: dict[str, Callable[[str, Options], str | None]] = {
    "strict_single_letter_boxed": strict_boxed, "lenient_boxed": lenient_boxed,
    "lenient_answer_colon": answer_colon, "any_form": any_form,
}


def declared(what: str, options: Options) -> str | None:
    """The option that a declaration names, by its text or by its letter; two are none."""
    inner = last_box(what)
    what = replies.unwrapped(inner[1] if inner else what)
    return by_text(what, options) or labelled(what, options)


def labelled(text: str, options: Options, capital: bool = False) -> str | None:
    """The letter at the head of a text; with two letters it is ambiguous, and a word is no letter."""
    match = PATTERNS.labelled.match(text[:SHOWN])
    if match is None:
        return None
    letter, rest = match[1], match["rest"]
    own = letter.upper()
    if own not in options or (capital and letter.islower()):
        return None
    if not rest.strip(PADDING):
        return own
    # what follows the letter without the letter's own option, whose text may name other letters
    bare, option = rest.lstrip(PADDING + "-–—"), options[own]
    beyond = bare[len(option) :] if option and bare.casefold().startswith(option.casefold()) else rest
    if contradicted(rest, own, options) or PATTERNS.retracted.match(beyond) or hedged(beyond, own, options):
        return None
    another = PATTERNS.another.match(beyond)
    if another and another[3].upper() in options.keys() - {own} and (another["word"] or JOINING & set(another["gap"])):
        return None
    if rest[0].isspace():
        # What follows after a mere space makes a sentence: only a reason keeps the letter a letter.
        if letter.islower() or not (PATTERNS.reason.match(rest) or plain(rest) == plain(options[own]) != ""):
            return None
    elif rest[0] in "'’" or (letter.islower() and rest[0] not in "):"):
        return None
    return own


def contradicted(rest: str, letter: str, options: Options) -> bool:
    """Whether the text of another option stands behind a letter: `A. Rome`, where Rome is B."""
    bare = PATTERNS.lead_in.sub("", PATTERNS.spacing.sub(" ", rest).lstrip(PADDING + "-–—=\\"))
    own = options[letter].strip()
    if own and bare.casefold().startswith(own.casefold()):
        return False
    clause = PATTERNS.clause_ends.split(bare, maxsplit=1)[0]
    named = {by_text(part, options) for part in (bare, clause, PATTERNS.affirmed.split(clause, maxsplit=1)[0])}
    return bool(named - {None, letter})


def hedged(rest: str, letter: str, options: Options) -> bool:
    """Whether what follows a letter, to the end of its sentence, holds another one possible."""
    sentence = PATTERNS.sentence_ends.split(rest.lstrip(PADDING + "?。！？"), maxsplit=1)[0]
    return any(other in options and other != letter for other in PATTERNS.hedged.findall(sentence))


def by_text(text: str, options: Options) -> str | None:
    """The one option whose text this is."""
    if len(text) > LONGEST + 4 * max(map(len, options.values())):
        return None
    wanted = plain(text)
    named = [letter for letter, option in options.items() if plain(option) == wanted]
    return named[0] if wanted and len(named) == 1 else None


@lru_cache(maxsize=4096)  # an option comes with every repeat of its task
def plain(text: str) -> str:
    """A text for comparison: one form of every sign, no case, one space, no marks around it."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(text.split()).strip(PADDING)
