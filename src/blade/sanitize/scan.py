"""Scan a text for private spans: by marks that most texts lack, then by the form of its long words."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence

from blade.sanitize import identities, secret_rules, tables
from blade.sanitize.echoes import lowered, sites
from blade.sanitize.escapes import View, commands_in, is_encoded_text, unprefixed
from blade.sanitize.lexicon import GENERIC, is_chosen, is_key, is_random, secret_name, secret_value
from blade.sanitize.policy import PLACEHOLDER, Policy, name_pattern
from blade.sanitize.rule_table import compiled, joined, table, words
from blade.sanitize.secret_rules import Detector, Hit
from blade.sanitize.tables import Tables, lists_in

# Where two spans meet, the surer kind wins; then the longer one.
_RANK = {"NAME": 0, "SECRET": 1, "URL": 2, "EMAIL": 3, "IP": 4, "HOST": 5, "USER": 6, "PERSON": 7, "MAC": 8}
_ACCOUNT = re.compile(r"(?=.*\d)[a-z][a-z0-9]{2,20}(?:[._\-][a-z0-9]{1,20})?")
# Under `pass`, which may as well be a count or a verdict: a word and digits.
_CHOSEN = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9!@#$%&*+?\-]{8,40}")
_AROUND = 400  # letters around a change of a line within which it can uncover something
TYPED = "(typed)"  # the name of what is typed into a field for a password
_QUOTE = re.compile("[\"'\n]")
_SENT = re.compile(r"(?i)(?:bearer|basic|token)\s+(?P<value>\S{6,200})")

_RULES = [(rule, secret_rules.detector(rule, secret_rules.JUDGES | identities.JUDGES)) for rule in secret_rules.rules()]
# What begins or betrays a private thing, in lower case and within one word -> who looks there.
MARKS: dict[str, tuple[Detector, ...]] = {}
for _look, _marks in (
    *identities.READERS.items(), *secret_rules.READERS.items(), *((look, rule.marks) for rule, look in _RULES)
):  # fmt: skip
    for _mark in _marks.split():
        MARKS[_mark] = (*MARKS.get(_mark, ()), _look)
_TABLES = {"insert", "replace", *tables.MARKS}
for _mark in _TABLES:
    MARKS.setdefault(_mark, ())
_BREAKS = re.compile(r"(?<!\[\^)(?<!\[\^.)\\n")  # of lines, in a pattern, not in letters that are none of it
# Those who look beyond a line, and so see more where the lines have no prefixes.
_LINED = {*secret_rules.LINED, *(look for rule, look in _RULES if _BREAKS.search(rule.after + joined(rule.pattern)))}
LINED = {mark: lined for mark, looks in MARKS.items() if (lined := tuple(look for look in looks if look in _LINED))}
# What is private by its form or by what is written beside it, and so replaced even where a model, a tool
# or a task is named; a word that merely looks drawn at random is not.
SURE = {*identities.SURE, secret_rules.assigned_at, *(look for rule, look in _RULES if rule.is_sure)}
(_SWITCHED,) = MARKS.pop("su")  # no mark of one word: too many words hold its two letters


class Scanner:
    """What one policy looks for, and the key of the placeholders; it keeps nothing of what it saw."""

    def __init__(self, policy: Policy | None = None, key: bytes = b"") -> None:
        policy = policy or Policy()
        self.key = re.compile(re.escape(key.decode("utf-8", "surrogateescape"))) if key else None
        self.names = name_pattern(policy.names)
        self.hosts = name_pattern(policy.hosts)
        self.users = name_pattern(policy.users)
        self.allow = frozenset(policy.allow)

    def spans(self, text: str, name: str = "", *, is_id: bool = False) -> list[Hit]:
        """Everything private in `text`, in order, without overlaps; `name` is the key it stands under."""
        if len(text) < 4:
            return []
        hits: list[Hit] = []
        if name and not is_id:
            hits += _under_name(text, name)
        words = ((self.key, "SECRET"), (self.names, "NAME"), (self.hosts, "HOST"), (self.users, "USER"))
        hits += [(*hit.span(), kind) for pattern, kind in words if pattern for hit in pattern.finditer(text)]
        marks, long_words = SIEVE.marks(text)
        if long_words:
            hits += long_words_in(text, is_id)
        if "…" in text or "..." in text:
            hits += cut_in(text)
        if "\n" in text:
            hits += torn_in(text)
        hits += _marked(text, marks, is_id)
        if (marks or "su -" in text) and not is_id:
            hits += _cells(text, marks) + _listed(text, marks)
            if (unprefixed_ := unprefixed(text)) is not None:
                lines, is_glued = unprefixed_
                view = View(lines.text)
                left = marks if is_glued else {mark: LINED[mark] for mark in marks if mark in LINED}
                more = _marked(view.text, left, changes=lines.starts[1:]) + _cells(view.text, marks)
                hits += [(lines.place(view.place(start)), lines.end(view.end(end)), kind) for start, end, kind in more]
        return self._merged(text, hits) if hits else []

    def listed(self, raw: str) -> list[Hit]:
        """What is private only as a member of a list: an argument of a command, a cell of a row."""
        return self._merged(raw, hits) if (hits := _listed(raw, _TABLES)) else []

    def _merged(self, text: str, hits: list[Hit]) -> list[Hit]:
        taken = [hit.span() for hit in PLACEHOLDER.finditer(text)] if "[" in text else []
        remaining: list[Hit] = []
        order = sorted(set(hits), key=lambda hit: (_RANK.get(hit[2], 9), hit[0] - hit[1], hit[0]))
        for begin, end, kind in order:
            start = begin + _in_escape(text, begin)
            if start >= end or text[start:end] in self.allow or _meets(start, end, taken):
                continue
            insort(taken, (start, end))
            remaining.append((start, end, kind))
        return sorted(remaining)


def _marked(
    text: str, marks: Mapping[str, tuple[Detector, ...]], is_id: bool = False, changes: Sequence[int] | None = None
) -> list[Hit]:
    """What those find who look where marks stand, everywhere or around the changes of a reading."""
    hits: list[Hit] = []
    if "su -" in text and not is_id:
        hits += [hit for place in sites(text, "su -") for hit in _SWITCHED(text, place)]
    small = lowered(text) if marks else ""
    for mark, detectors in marks.items():
        places = [place for place in sites(small, mark) if changes is None or _is_near(place, changes)]
        for detect in detectors:
            if is_id and detect not in SURE:
                continue
            done = 0
            for place in places:
                if place < done:
                    continue  # what lies inside a hit needs no second look
                for hit in detect(text, place):
                    hits.append(hit)
                    done = max(done, hit[1])
    return hits


def _is_near(place: int, changes: Sequence[int]) -> bool:
    index = bisect_left(changes, place + _AROUND)
    return index > 0 and changes[index - 1] >= place - _AROUND


def _cells(text: str, marks: Iterable[str]) -> list[Hit]:
    return [] if _TABLES.isdisjoint(marks) else [(*cell, "SECRET") for cell in Tables(text).hits]


def _listed(text: str, marks: Iterable[str]) -> list[Hit]:
    hits: list[Hit] = [] if _TABLES.isdisjoint(marks) else [(*cell, "SECRET") for cell in lists_in(text)]
    for first, command in commands_in(text):
        for start, end, kind in _marked(command.text, SIEVE.marks(command.text)[0]):
            start, end = first + command.place(start), first + command.end(end)
            if not _QUOTE.search(text, start, end):  # it lies within one argument
                hits.append((start, end, kind))
    return hits


def _meets(start: int, end: int, taken: list[tuple[int, int]]) -> bool:
    place = bisect_left(taken, (start, end))
    return (place < len(taken) and taken[place][0] < end) or (place > 0 and taken[place - 1][1] > start)


def _in_escape(text: str, start: int) -> bool:
    """Does a span begin with the letter of an escape, such as the n of a line break in JSON."""
    if start == 0 or text[start - 1] != "\\" or text[start] not in "nrtbfu":
        return False
    if text[max(0, start - 9) : start - 1].lower().endswith(("users", "settings")):
        return False
    before = text[max(0, start - 16) : start]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _under_name(text: str, name: str) -> list[Hit]:
    """The whole value, where its key says that it is private."""
    if secret_name(name) and secret_value(name, text):
        scheme = re.match(r"(?i)(?:bearer|basic|token)\s+", text)
        return [(scheme.end() if scheme else 0, len(text), "SECRET")]
    if name == TYPED and is_chosen(text) and _is_word(text):
        return [(0, len(text), "SECRET")]
    if name.lower() in ("pass", "pw") and _CHOSEN.fullmatch(text):
        return [(0, len(text), "SECRET")]
    sent = _SENT.fullmatch(text) if name.lower().endswith("authorization") else None
    if sent is not None and is_chosen(sent["value"]):
        return [(*sent.span("value"), "SECRET")]
    if name in identities.USER_KEYS and _is_word(text) and text.lower() not in GENERIC:
        return [(0, len(text), "USER")]
    if name in ("user", "owner") and _is_word(text) and _ACCOUNT.fullmatch(text) and text not in GENERIC:
        return [(0, len(text), "USER")]
    # under the bare key `host` a single word must look like a machine's
    is_machine = name != "host" or any(char.isdigit() or char in ".-" for char in text)
    if name in identities.HOST_KEYS and _is_word(text) and is_machine and identities.is_private_host(text):
        return [(0, len(text), "HOST")]
    return []


def _is_word(text: str) -> bool:
    return 2 < len(text) <= 100 and not any(char.isspace() for char in text) and not text.isdigit()


# ---- The sieve -------------------------------------------------------------------------------------

_LEAST_RUN = 20
_LONG_WORD = 17  # letters from which on a word may be a secret by itself
_KEPT_LETTERS, _KEPT_WORDS = 48, 200_000


def _may_be_secret(word: str) -> bool:
    """Can a long word be a secret or the address of a network card: no word of small letters is."""
    if len(word) < _LEAST_RUN:
        return word.count(":") >= 5
    return not (word.isalpha() and word.islower())


class Sieve:
    """Words seen before, and the marks in them: rollouts say the same words over and over."""

    def __init__(self) -> None:
        self._words: dict[str, tuple[str, ...]] = {}

    def marks(self, text: str) -> tuple[Mapping[str, tuple[Detector, ...]], list[str]]:
        """The marks of a text with who looks there, and its long words."""
        known = self._words
        hits: set[str] = set()
        long_words: list[str] = []
        new: list[str] = []
        for word in set(text.split()):
            content = known.get(word)
            if content is None:
                new.append(word)
            elif content:
                hits.update(content)
            if len(word) >= _LONG_WORD and _may_be_secret(word):
                long_words.append(word)
        if new:
            hits.update(self._learned(new))
        return {mark: MARKS[mark] for mark in sorted(hits)}, sorted(long_words)

    def _learned(self, words: list[str]) -> list[str]:
        """The marks in new words: those of all of them first, as few marks are in any."""
        lowered = "\n".join(words).lower()
        marks = [mark for mark in MARKS if mark in lowered]
        for word in words:
            # hashes and their like come once
            is_short = len(word) < _LEAST_RUN or (len(word) <= _KEPT_LETTERS and word.isalpha())
            if is_short and len(self._words) < _KEPT_WORDS:
                small = word.lower()
                self._words[word] = tuple([mark for mark in marks if mark in small])
        return marks


# What a word holds is the same for every policy, so all that look share what they learned.
SIEVE = Sieve()


# ---- Long words ----------------------------------------------------------------------------------

# Each form begins a word and is bounded, so that a long text costs one look a character. Every kind of secret is
# told as SECRET: the kind of a leak helps a finder.
_FORMS = joined("|".join(table()["forms"]))
# The same, where a letter before does not hide them: their beginnings are no part of any word.
_GLUED = re.compile("|".join(table()["glued"]))
# Beginnings of tokens that no word has.
_HEADS = "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- hf_ nvapi- AIza AKIA npm_ pypi- sk-proj- sk-ant- xox".split()
_CUT = compiled("cut")
_TORN = compiled("torn")
_ELLIPSIS = re.compile(r"[….](?:(?<=…)|\.{2,})")
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_APP_TOKEN = re.compile(r"(?<!\d)\d{15,16}\\?\|[A-Za-z0-9_\-]{27,40}(?![A-Za-z0-9_\-])")
_FORM = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{_FORMS})")
RUN = re.compile(r"[A-Za-z0-9_\-+/=.]{20,}")  # where a secret, or something encoded, can stand
_HAS_DIGIT = re.compile(r"\d")
_PART = re.compile(r"[-_./]")
# Beginnings that words have too: what follows must look drawn at random.
_LOOSE = tuple(words("loose"))
_TURN = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_GLUE = 320  # letters of a run within which a glued secret begins and ends
_MIXED = re.compile(r"[a-z][A-Z][a-z]?[A-Z]")
_NUMBERED = compiled("numbered")
# Runs that no issuer made: paths and joined words, and hashes, which only what stands beside them betrays.
_WORDS = re.compile(r"[a-z_/.+=\-]+")
_HASH = re.compile(r"[0-9a-f\-]+")
# Words near which a word drawn at random is likely a secret, and words that say what else it is.
_CONTEXT = compiled("near_secret")
_HASHED = re.compile(r"(?i)commit|sha-?\d|digest|checksum|etag|md5|hash|uuid|call_id|revision|blob|_id\b")
_DATA = compiled("not_near_secret")
_ENTROPIC = re.compile(r"[A-Za-z0-9+/_\-]{20,}={0,2}")
_LOOKBACK = 48
_WORD = re.compile(r"[A-Za-z0-9_\-.~]{24,}")
_LONG = 200  # letters from which on a run is data rather than a key
# Lines of something encoded, as tools break them.
_LINE = r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{60}|[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{72}|[A-Za-z0-9+/]{76})"
_BREAK = r"(?:\\n|\r?\n)[ \t>]{0,8}"
_LINE_BEFORE = re.compile(rf"{_LINE}{_BREAK}$")
_LINE_AFTER = re.compile(rf"{_LINE}{_BREAK}[A-Za-z0-9+/]{{1,76}}={{0,2}}(?![\w+/])")
_PRODUCT = re.compile(r"(?<![\w\-])[A-Z0-9]{2,6}(?:-[A-Z0-9]{5,11}){4,8}(?![\w\-])")
_MAC = re.compile(r"\b[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}\b")
_MAC_TAIL = re.compile(r":[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}:")


def long_words_in(text: str, is_id: bool) -> Iterator[Hit]:
    """Secrets in the long words of a text: by their form, or by how random they look near a telling word."""
    for run in RUN.finditer(text):
        start, stop = run.span()
        if text[start - 1 : start] in (":", "|") and (numbered := _numbered(text, start, stop)):
            yield *numbered, "SECRET"
        if _WORDS.fullmatch(text, start, stop):
            continue
        is_hash = _HASH.fullmatch(text, start, stop) is not None
        if not is_hash:
            yield from ((*span, "SECRET") for span in forms_in(text, start, stop))
        if not is_id:
            yield from _entropic_in(text, start, stop)
        if not (is_id or is_hash):
            yield from _keys_in(text, start, stop)
            yield from _product_keys_in(text, start, stop)
    for tail in _MAC_TAIL.finditer(text) if text.count(":") >= 5 else ():
        card = _MAC.search(text, max(0, tail.start() - 8), tail.end() + 24)
        if card is not None and len(set(card[0].split(":"))) > 2:
            yield *card.span(), "MAC"


def forms_in(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where a run of characters holds a secret of a known form."""
    for hit in _FORM.finditer(text, start, end):
        if _is_drawn(hit[0]):
            yield hit.span()
            if hit[0].startswith(("AKIA", "ASIA")):  # the secret that belongs to it stands near
                for pair in _AWS_SECRET.finditer(text, max(0, hit.start() - 120), hit.end() + 120):
                    if _HAS_DIGIT.search(pair[0]) and pair[0].lower() != pair[0] != pair[0].upper():
                        yield pair.span()
    for hit in _GLUED.finditer(text, start, min(end, start + _GLUE)):
        if _is_drawn(hit[0]):
            yield hit.span()


def cut_in(text: str) -> Iterator[Hit]:
    """Secrets that an ellipsis cuts short: what is left of them is known by its beginning."""
    for cut in _ELLIPSIS.finditer(text):
        before = text[cut.start() - 1 : cut.start()]
        if not (before.isalnum() or before in ("_", "-", "[")):
            continue
        hit = _CUT.search(text, max(0, cut.start() - 80), cut.end())
        rest = hit["rest"] if hit else ""
        if hit and _HAS_DIGIT.search(rest) and len(_TURN.findall(rest)) >= 2:
            yield *hit.span(), "SECRET"


def torn_in(text: str) -> Iterator[Hit]:
    """Secrets that a line break tears: neither half has their form, both together do."""
    if not any(head in text for head in _HEADS):
        return
    for hit in _TORN.finditer(text):
        whole = hit["head"] + hit["rest"]
        form = _FORM.match(whole)
        is_drawn = _HAS_DIGIT.search(hit["rest"]) and not hit["rest"].isdigit()
        if form and is_drawn and not _FORM.match(hit["head"]) and _is_drawn(form[0]):
            yield hit.start(), hit.end() - (len(whole) - form.end()), "SECRET"


def _is_drawn(word: str) -> bool:
    """Is it drawn by a machine, rather than written as words: `sk-learn-preprocessing-pipeline-v2`."""
    if not word.startswith(_LOOSE):
        return len(set(word)) >= 8 and (_HAS_DIGIT.search(word) is not None or word.lower() != word)
    return any(
        (len(part) >= 10 and _HAS_DIGIT.search(part) and not part.isdigit())
        or (len(part) >= 16 and _MIXED.search(part))
        for part in _PART.split(word)
    )


def _numbered(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The token of a bot or an application, whose number stands before the run."""
    pattern = _NUMBERED if text[start - 1] == ":" else _APP_TOKEN
    hit = pattern.search(text, max(0, start - 48), min(len(text), end + 1))
    return hit.span() if hit else None


def _entropic_in(text: str, start: int, end: int) -> Iterator[Hit]:
    """Words that look drawn at random, near a word that speaks of secrets."""
    for hit in _ENTROPIC.finditer(text, start, end):
        near = text[max(0, hit.start() - _LOOKBACK) : hit.start()].rpartition("\n")[2]
        if _CONTEXT.search(near) and not _HASHED.search(near[-16:]) and is_random(hit[0]):
            yield *hit.span(), "SECRET"


def _keys_in(text: str, start: int, end: int) -> Iterator[Hit]:
    """Words in a run of characters that look drawn at random by themselves."""
    if end - start > 2 * _LONG or text.find("+", start + 1, end) >= 0 or text[end - 1] == "=":
        return
    for hit in _WORD.finditer(text, start, end):
        begin = hit.start() + len(hit[0]) - len(hit[0].lstrip("-_.~"))
        word = hit[0].strip("-_.~")
        if not 24 <= len(word) <= _LONG or not is_key(word) or _DATA.search(text, max(0, begin - 16), begin):
            continue
        # what an encoded text says is looked at by itself
        if not is_encoded_text(word) and not _is_line(text, start):
            yield begin, begin + len(word), "SECRET"


def _product_keys_in(text: str, start: int, end: int) -> Iterator[Hit]:
    for hit in _PRODUCT.finditer(text, start, end) if text.count("-", start, end) >= 4 else ():
        mixed = [group for group in hit[0].split("-") if not group.isdigit() and not group.isalpha()]
        if len(mixed) >= 3:
            yield *hit.span(), "SECRET"


def _is_line(text: str, start: int) -> bool:
    """Does a line of something encoded begin here, with others of its length before or after."""
    before = _LINE_BEFORE.search(text, max(0, start - 90), start)
    return before is not None or _LINE_AFTER.match(text, start) is not None

