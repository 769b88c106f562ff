"""Find words that a machine drew at random, whatever stands beside them: keys of any issuer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.sanitize.views import is_encoded_text

Hit = tuple[int, int, str]

_WORD = re.compile(r"[A-Za-z0-9_\-.~]{24,}")
_SPLIT = re.compile(r"[-_.~]")
# An issuer's beginning: a short word or two, as in `acme_live_...`.
_ISSUED = re.compile(
    r"(?P<issuer>[A-Za-z][A-Za-z0-9]{0,11}(?:[_\-.][A-Za-z0-9]{1,8}){0,2}?)[_\-.]"
    r"(?P<rest>[A-Za-z0-9_\-.~]{20,})"
)
# As long as a hash, after the short name of an issuer: ids of models' providers are longer.
_HASHED = re.compile(r"(?P<issuer>[a-z][a-z0-9]{1,5})_(?:[0-9a-f]{40}|[0-9a-f]{64})")
# Beginnings of ids that rollouts are full of, and of hashes: they open nothing.
_PLAIN_IDS = frozenset(
    "call chatcmpl cmpl toolu tool msg message resp response fc rs req request run thread asst "
    "assistant file batch gen evt event item task job step trace span conv conversation chat id uid "
    "uuid guid node img image sha1 sha256 sha384 sha512 md5 hash digest commit blob etag tree ref cache "
    "tmp temp fp ftjob ws order user product doc document video vs cid rollout sample row episode build "
    "release layer model srvtoolu".split()
)
_ELSE = re.compile(
    r"(?i)commit|sha-?\d|digest|checksum|etag|md5|hash|uuid|guid|revision|blob|[_\W]id\W{1,4}$|integrity|"
    r"fingerprint|nonce|\bcid\b|base64|data:|image|cursor|thumb"
)
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+|[0-9a-fA-F\-]+")
_NUMBERS = re.compile(r"[\deEjJ]+")
_SPELT = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_VOWEL = re.compile(r"(?i)[aeiouy]")
_CHANGE = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_DIGITS = re.compile(r"\d+")
# Lines of something encoded, as tools break them.
_LINE = r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{60}|[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{72}|[A-Za-z0-9+/]{76})"
_BREAK = r"(?:\\n|\r?\n)[ \t>]{0,8}"
_LINE_BEFORE = re.compile(rf"{_LINE}{_BREAK}$")
_LINE_AFTER = re.compile(rf"{_LINE}{_BREAK}[A-Za-z0-9+/]{{1,76}}={{0,2}}(?![\w+/])")
_LONG = 200  # letters from which on a run is data rather than a key
_PRODUCT = re.compile(r"(?<![\w\-])[A-Z0-9]{2,6}(?:-[A-Z0-9]{5,11}){4,8}(?![\w\-])")


def drawn_in(text: str, start: int, end: int) -> Iterator[Hit]:
    """Words in a run of characters that look drawn at random by themselves."""
    if end - start > 2 * _LONG or text.find("+", start + 1, end) >= 0 or text[end - 1] == "=":
        return
    if _HEX.fullmatch(text, start, end):
        return
    for hit in _WORD.finditer(text, start, end):
        begin = hit.start() + len(hit[0]) - len(hit[0].lstrip("-_.~"))
        word = hit[0].strip("-_.~")
        if not 24 <= len(word) <= _LONG or _HEX.fullmatch(word):
            continue
        if not (_is_issued(word) or _is_bare(word)) or _ELSE.search(text, max(0, begin - 16), begin):
            continue
        # what an encoded text says is looked at by itself
        if not is_encoded_text(word) and not _is_line(text, start):
            yield begin, begin + len(word), "SECRET"


def product_keys_in(text: str, start: int, end: int) -> Iterator[Hit]:
    """Keys that people type: groups of capitals and digits."""
    for hit in _PRODUCT.finditer(text, start, end):
        mixed = [group for group in hit[0].split("-") if not group.isdigit() and not group.isalpha()]
        if len(mixed) >= 3:
            yield *hit.span(), "SECRET"


def _is_line(text: str, start: int) -> bool:
    """Does a line of something encoded begin here, with others of its length before or after."""
    before = _LINE_BEFORE.search(text, max(0, start - 90), start)
    return before is not None or _LINE_AFTER.match(text, start) is not None


def _is_issued(word: str) -> bool:
    if (hashed := _HASHED.fullmatch(word)) is not None:
        return hashed["issuer"] not in _PLAIN_IDS
    hit = _ISSUED.fullmatch(word)
    if hit is None or _SPLIT.split(hit["issuer"])[0].lower() in _PLAIN_IDS:
        return False
    return is_drawn(hit["rest"], 20)


def _is_bare(word: str) -> bool:
    return len(word) >= 30 and _SPLIT.split(word)[0].lower() not in _PLAIN_IDS and is_drawn(word, 30)


def is_drawn(word: str, least: int) -> bool:
    """Does a word change between small letters, capitals and digits as no name does."""
    parts = [
        part for part in _SPLIT.split(word) if len(part) < 24 or not _HEX.fullmatch(part.removeprefix("0x"))
    ]
    letters = "".join(parts)
    size = len(letters)
    if size < least - 4 or len(parts) - 1 > max(3, len(word) // 8) or max(map(len, parts)) < 6:
        return False
    if _HEX.fullmatch(letters) or _NUMBERS.fullmatch(letters):
        return False
    if any(len(part) >= 20 and _turns(part) for part in parts):
        return True
    # names are joined with dots, and their words in one case; keys are not
    has_cases = letters.lower() != letters and letters.upper() != letters
    return "." not in word and (has_cases or max(map(len, parts)) >= 16) and _turns(letters)


def _turns(letters: str) -> bool:
    """Are small letters, capitals and digits mixed, and few of them in pieces that can be said."""
    size = len(letters)
    groups = _DIGITS.findall(letters)
    digits = sum(map(len, groups))
    changes = len(_CHANGE.findall(letters))
    if letters.lower() != letters and letters.upper() != letters:
        spelt = sum(len(piece) for piece in _SPELT.findall(letters) if _VOWEL.search(piece))
        most = 0.6 if len(groups) == 1 else 0.72  # a name may end with a number
        return digits >= 1 and changes >= 0.3 * size and spelt < most * (size - digits)
    return digits >= 0.07 * size and changes >= 0.14 * size and len(groups) >= 2
