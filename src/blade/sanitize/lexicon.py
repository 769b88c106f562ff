"""Judge a word: does it name a secret or somebody, was it drawn or chosen as one, or does anyone write it."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

from blade.sanitize.rule_table import compiled, words

NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

# ---- Names of secrets ----------------------------------------------------------------------------

SECRET_WORD = compiled("secret_word").pattern
_NAME = re.compile(rf"(?i){SECRET_WORD}")
_TAIL = re.compile(r"(?:[_\-]|\d|(?=[A-Z]))\w{0,8}|")
# Tokens of language models and parsers, and settings about secrets that are none themselves.
_HARMLESS = compiled("harmless")
_QUIET = words("quiet")


def secret_name(name: str) -> bool:
    """Is it the name of something that holds a secret."""
    hit = next(reversed(list(_NAME.finditer(name))), None)
    if hit is None or _HARMLESS.search(name):
        return False
    return _TAIL.fullmatch(name, hit.end()) is not None


def is_hard(name: str) -> bool:
    """Does the name mean a secret and nothing else: a password does, a token may be a word."""
    names = [hit[0].lower() for hit in _NAME.finditer(name)]
    return not names or names[-1] not in _QUIET


# ---- Values of secrets ---------------------------------------------------------------------------

_NO_SECRET = compiled("no_secret")
_SWITCH, _DIGIT, _LETTER = re.compile(r"[a-z][A-Z]"), re.compile(r"\d"), re.compile(r"[^\W\d_]")
_PARTS = re.compile(r"[^\W\d_]+")
_EXPRESSION = re.compile(r"[\-~./]|\w+=|.*[(){}<>$]|.*\.\.")


def is_no_secret(value: str) -> bool:
    """Is it a word that stands where a secret would: `<password>`, `$TOKEN`, `changeme`."""
    return _NO_SECRET.fullmatch(value) is not None


def secret_value(name: str, value: str) -> bool:
    """Can a value under the name of a secret be that secret."""
    if not 4 <= len(value) <= 20_000 or _NO_SECRET.fullmatch(value):
        return False
    if " " in value.strip() and not is_hard(name):
        return False
    if value[0] in "/~" and name.lower().endswith("pwd"):
        return False  # the folder that one works in
    return is_hard(name) or mixes(value, 8)


def mixes(value: str, least: int) -> bool:
    """Does it look drawn at random: long enough, letters and digits or mixed cases, no word or number."""
    if len(value) < least or value.replace(".", "").isdigit():
        return False
    if _DIGIT.search(value):
        return _LETTER.search(value) is not None
    return len(value) >= 12 and len(_SWITCH.findall(value)) >= 2


def is_chosen(value: str) -> bool:
    """Can a person have chosen it as a password: no plain word, no name of a variable, no expression."""
    if not 4 <= len(value) <= 200 or is_no_secret(value) or _EXPRESSION.match(value):
        return False
    if value.replace("_", "").replace("-", "").isalpha() and (value.isupper() or "_" in value):
        return False
    parts = _PARTS.findall(value)
    return bool(parts) and (_DIGIT.search(value) is not None or not all(map(is_plain, parts)))


# ---- Words that a machine drew, whatever stands beside them --------------------------------------

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+|[0-9a-fA-F\-]+")
_NUMBERS = re.compile(r"[\deEjJ]+")
_SPLIT = re.compile(r"[-_.~]")
# An issuer's beginning: a short word or two, as in `acme_live_...`.
_ISSUED = compiled("issued")
# As long as a hash, after the short name of an issuer: ids of models' providers are longer.
_HASHED = re.compile(r"(?P<issuer>[a-z][a-z0-9]{1,5})_(?:[0-9a-f]{40}|[0-9a-f]{64})")
# Beginnings of ids that rollouts are full of, and of hashes: they open nothing.
_PLAIN_IDS = words("plain_ids")
_SPELT = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_VOWEL = re.compile(r"(?i)[aeiouy]")
_CHANGE = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_DIGITS = re.compile(r"\d+")


def is_random(word: str) -> bool:
    """Does a long word look drawn at random, where a word before it speaks of secrets."""
    if _UUID.fullmatch(word) or not mixes(word, 20) or word.count("/") > 2:
        return False
    longest = max(re.split(r"[-_/+=]", word), key=len)
    if len(longest) < 12:
        return False
    bits = entropy(longest)
    return bits >= 2.7 if _HEX.fullmatch(longest) else bits >= 3.2 and mixes(longest, 12)


def entropy(text: str) -> float:
    """Bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def is_key(word: str) -> bool:
    """Does a word look like a key of any issuer by itself."""
    if _HEX.fullmatch(word):
        return False
    if (hashed := _HASHED.fullmatch(word)) is not None:
        return hashed["issuer"] not in _PLAIN_IDS
    if _SPLIT.split(word)[0].lower() in _PLAIN_IDS:
        return False
    hit = _ISSUED.fullmatch(word)
    return (hit is not None and _is_drawn(hit["rest"], 20)) or (len(word) >= 30 and _is_drawn(word, 30))


def _is_drawn(word: str, least: int) -> bool:
    """Does a word change between small letters, capitals and digits as no name does."""
    pieces = _SPLIT.split(word)
    parts = [part for part in pieces if len(part) < 24 or not _HEX.fullmatch(part.removeprefix("0x"))]
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


# ---- Names of somebody, and words of everybody ---------------------------------------------------

# Accounts that any machine has: they tell of nobody.
GENERIC = words("accounts")
# Accounts of services, names of things, and names that examples give.
_SERVICE = compiled("service")
_LEAST = 4  # letters of a name that stands alone
_LONG = 6  # signs of one that has hardly any letters, but digits
_TELLING = 3  # letters from which on a part of a name may tell of someone


@cache
def _plain_words() -> frozenset[str]:
    """Words that anyone writes: English ones, and names of tools."""
    listed = Path(__file__).with_name("words.txt").read_text(encoding="ascii").split()
    return frozenset(listed) | GENERIC


def is_plain(word: str) -> bool:
    """Is it a word that anyone writes, so that it tells of nobody where it stands alone."""
    lowered, words = word.lower(), _plain_words()
    stems = (lowered, lowered.removesuffix("s"), lowered.removesuffix("es"), lowered.removesuffix("ed"))
    return not words.isdisjoint(stems) or lowered.removesuffix("ing") in words


def is_account(name: str) -> bool:
    """Does the name of an account tell of someone."""
    name = name.lower()
    return len(name) > 2 and name not in GENERIC and not is_plain(name) and not _SERVICE.fullmatch(name)


def is_telling(kind: str, value: str) -> bool:
    """Is it a name that can be known again by itself, wherever it stands."""
    parts = _PARTS.findall(value)
    telling = [part for part in parts if len(part) >= _TELLING]
    if kind == "PERSON":
        return len(parts) > 1 and not all(map(is_plain, telling))
    if value.lower() in GENERIC or not parts:
        return False
    if not telling:
        return len(value) >= _LONG
    return sum(map(len, parts)) >= _LEAST and not all(map(is_plain, telling))
