"""Turn a text into the spans that must not leave the house, each with its kind."""

from __future__ import annotations

import re
from bisect import bisect_left, insort

import msgspec

from blade.sanitize import accounts, chosen, drawn, formats, named, places
from blade.sanitize.keys import PLACEHOLDER
from blade.sanitize.policy import Policy, name_pattern
from blade.sanitize.sieve import SIEVE, SURE

# Where two spans meet, the surer kind wins; then the longer one.
_RANK = {"NAME": 0, "SECRET": 1, "URL": 2, "EMAIL": 3, "IP": 4, "HOST": 5, "USER": 6, "PERSON": 7, "MAC": 8}


_ACCOUNT = re.compile(r"(?=.*\d)[a-z][a-z0-9]{2,20}(?:[._\-][a-z0-9]{1,20})?")
# Runs that no issuer made: paths and joined words, and hashes, which only what stands beside them betrays.
_SAID = re.compile(r"[a-z_/.+=\-]+")
_HASH = re.compile(r"[0-9a-f\-]+")
# Under `pass`, which may as well be a count or a verdict: a word and digits.
_CHOSEN = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9!@#$%&*+?\-]{8,40}")
_SENT = re.compile(r"(?i)(?:bearer|basic|token)\s+(?P<value>\S{6,200})")


class Span(msgspec.Struct, frozen=True):
    start: int
    end: int
    kind: str


class Scanner:
    """What one policy looks for; it keeps nothing of what it saw."""

    def __init__(self, policy: Policy | None = None) -> None:
        policy = policy or Policy()
        self.names = name_pattern(policy.names)
        self.hosts = name_pattern(policy.hosts)
        self.users = name_pattern(policy.users)
        self.allow = frozenset(policy.allow)

    def spans(self, text: str, name: str = "", *, is_id: bool = False) -> list[Span]:
        """Everything private in `text`, in order, without overlaps; `name` is the key it stands under."""
        if len(text) < 4:
            return []
        found: list[places.Hit] = []
        if name and not is_id:
            found += _under_name(text, name)
        found += self._configured(text)
        marks, long_words = SIEVE.marks(text)
        if long_words:
            found += _runs(text, is_id)
        if "…" in text or "..." in text:
            found += formats.cut_in(text)
        if "\n" in text:
            found += formats.torn_in(text)
        if "su -" in text and not is_id:
            found += accounts.switched_in(text)
        if marks:
            lowered = _lowered(text)
            for mark, detectors in marks.items():
                sites = _sites(lowered, mark)
                for detect in detectors:
                    if is_id and detect not in SURE:
                        continue
                    done = 0
                    for at in sites:
                        if at < done:
                            continue  # what lies inside a hit needs no second look
                        for hit in detect(text, at):
                            found.append(hit)
                            done = max(done, hit[1])
        return self._merged(text, found) if found else []

    def _configured(self, text: str) -> list[places.Hit]:
        told = ((self.names, "NAME"), (self.hosts, "HOST"), (self.users, "USER"))
        return [(*hit.span(), kind) for pattern, kind in told if pattern for hit in pattern.finditer(text)]

    def _merged(self, text: str, found: list[places.Hit]) -> list[Span]:
        taken = [hit.span() for hit in PLACEHOLDER.finditer(text)] if "[" in text else []
        kept: list[Span] = []
        order = sorted(set(found), key=lambda hit: (_RANK.get(hit[2], 9), hit[0] - hit[1], hit[0]))
        for begin, end, kind in order:
            start = begin + _in_escape(text, begin)
            if start >= end or text[start:end] in self.allow or _meets(start, end, taken):
                continue
            insort(taken, (start, end))
            kept.append(Span(start, end, kind))
        return sorted(kept, key=lambda span: span.start)


def _sites(text: str, mark: str) -> list[int]:
    """Where a mark stands."""
    sites = []
    at = text.find(mark)
    while at >= 0:
        sites.append(at)
        at = text.find(mark, at + len(mark))
    return sites


def _meets(start: int, end: int, taken: list[tuple[int, int]]) -> bool:
    """Does a span overlap one of these, which are in order and do not overlap."""
    at = bisect_left(taken, (start, end))
    return (at < len(taken) and taken[at][0] < end) or (at > 0 and taken[at - 1][1] > start)


def _in_escape(text: str, start: int) -> bool:
    """Does a span begin with the letter of an escape, such as the n of a line break in JSON."""
    if start == 0 or text[start - 1] != "\\" or text[start] not in "nrtbfu":
        return False
    if text[max(0, start - 9) : start - 1].lower().endswith(("users", "settings")):
        return False
    before = text[max(0, start - 16) : start]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _under_name(text: str, name: str) -> list[places.Hit]:
    """The whole value, where its key says that it is private."""
    if named.secret_name(name) and named.secret_value(name, text):
        scheme = re.match(r"(?i)(?:bearer|basic|token)\s+", text)
        return [(scheme.end() if scheme else 0, len(text), "SECRET")]
    if name.lower() in ("pass", "pw") and _CHOSEN.fullmatch(text):
        return [(0, len(text), "SECRET")]
    sent = _SENT.fullmatch(text) if name.lower().endswith("authorization") else None
    if sent is not None and chosen.is_chosen(sent["value"]):
        return [(*sent.span("value"), "SECRET")]
    if name in places.USER_KEYS and _is_word(text) and text.lower() not in places.GENERIC:
        return [(0, len(text), "USER")]
    if (
        name in ("user", "owner")
        and _is_word(text)
        and _ACCOUNT.fullmatch(text)
        and text not in places.GENERIC
    ):
        return [(0, len(text), "USER")]
    if name in places.HOST_KEYS and _is_word(text) and _is_host(name, text):
        return [(0, len(text), "HOST")]
    return []


def _is_host(name: str, text: str) -> bool:
    """Is it a private host; under the bare key `host` a single word must look like a machine's."""
    is_machine = name != "host" or any(char.isdigit() or char in ".-" for char in text)
    return is_machine and places.is_private_host(text)


def _is_word(text: str) -> bool:
    return 2 < len(text) <= 100 and not any(char.isspace() for char in text) and not text.isdigit()


def _runs(text: str, is_id: bool) -> list[places.Hit]:
    """What long words hold: secrets by their form, or by how random they look near a telling word."""
    found: list[places.Hit] = []
    for run in formats.RUN.finditer(text):
        start, stop = run.span()
        if text[start - 1 : start] in (":", "|") and (numbered := formats.numbered_near(text, start, stop)):
            found.append((*numbered, "SECRET"))
        if _SAID.fullmatch(text, start, stop):
            continue
        if _HASH.fullmatch(text, start, stop):
            found += named.entropic_in(text, start, stop) if not is_id else ()
            continue
        found += [(*span, "SECRET") for span in formats.forms_in(text, start, stop)]
        if not is_id:
            found += named.entropic_in(text, start, stop)
            found += drawn.drawn_in(text, start, stop)
            if text.count("-", start, stop) >= 4:
                found += drawn.product_keys_in(text, start, stop)
    if text.count(":") >= 5:
        found += places.cards_in(text)
    return found


def _lowered(text: str) -> str:
    """`text` in lower case, letter by letter: every place stays where it is."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(char.lower()[:1] for char in text)
