"""Find secrets by what stands beside them: rules of the table by mark, and readers of what no pattern reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from blade.sanitize.lexicon import (
    GENERIC,
    NAME_CHARS,
    is_account,
    is_chosen,
    is_hard,
    is_no_secret,
    is_random,
    mixes,
    secret_name,
    secret_value,
)
from blade.sanitize.rule_table import compiled, joined, table, words
from blade.sanitize.tables import DASHES

Hit = tuple[int, int, str]  # from, to, kind
Detector = Callable[[str, int], Iterator[Hit]]
# What the groups of a pattern hold; `key` must be the name of a secret, other groups only help the pattern.
KINDS = {"value": "SECRET", "user": "USER", "group": "USER", "host": "HOST", "ip": "IP", "person": "PERSON", "mail": "EMAIL"}


HOST_CHARS = NAME_CHARS.removesuffix("_-") + ".-"
QUOTE = r"\\{0,3}[\"']?"  # `<q>` in a pattern: a quotation mark, or none, escaped or not
_AHEAD = 600  # letters after a mark within which a match that begins before it ends


def start_of(text: str, place: int, reach: int, letters: str) -> int:
    """Where the word that goes on at a place begins, at most so far before it."""
    window = text[max(0, place - reach) : place]
    return place - len(window) + len(window.rstrip(letters))


_TAG = re.compile(r"<(?=[/!A-Za-z]|$)")
_CLOSED = {")": "(", "]": "[", "}": "{", ">": "<"}
_QUOTES = ("'", '"', "`")


def bare(value: str) -> str:
    """A value that no quotation marks surround, without the tag or the bracket that ends what it stands in."""
    value = _TAG.split(value)[0]
    while value and value.count(_CLOSED.get(value[-1], "")) < value.count(value[-1]) and value[-1] in _CLOSED:
        value = value[:-1]
    return value


class Rule(msgspec.Struct, frozen=True):
    """One look where a mark stands, as `rules.yaml` explains it."""

    name: str
    marks: str
    pattern: str | list[str]
    accept: str = ""
    left: str = ""
    reach: int = 0
    begins: str = ""
    after: str = ""
    ends: str = ".!?"
    is_sure: bool = False
    is_user: str = "user"
    example: str = ""


def rules() -> list[Rule]:
    """All rules of the table."""
    return msgspec.convert(table()["rules"], list[Rule])


def detector(rule: Rule, judges: Mapping[str, Callable[[str], object]]) -> Detector:
    """Look as a rule says."""
    pattern = re.compile(joined(rule.pattern).replace("<q>", QUOTE))
    after = re.compile(rule.after) if rule.after else None
    accept, is_user = judges[rule.accept], judges[rule.is_user]
    letters, _, more = rule.left.partition(" ")
    left = {"name": NAME_CHARS, "host": HOST_CHARS}.get(letters, "") + more
    groups = sorted((group for group in pattern.groupindex if group in KINDS), key=lambda name: name != "value")

    def match(text: str, place: int) -> re.Match[str] | None:
        first = max(0, place - rule.reach)
        if left:
            return pattern.match(text, start_of(text, place, rule.reach, left))
        if rule.begins:
            start = max(text.rfind(sign, first, place) for sign in rule.begins)
            return pattern.match(text, start) if start >= 0 else None
        if not rule.reach:
            return pattern.match(text, place)
        hits = pattern.finditer(text, text.rfind("\n", first, place) + 1 or first, place + _AHEAD)
        return next((hit for hit in hits if hit.end() > place), None)

    def look(text: str, place: int) -> Iterator[Hit]:
        hit = match(text, place)
        if hit is None or hit.start() > place:
            return
        if after is not None and not after.search(text[max(0, hit.start() - 120) : hit.start()]):
            return
        key = hit["key"] if "key" in pattern.groupindex else None
        if key is not None and not secret_name(key.lstrip("-+")):
            return
        for group in groups:
            value = hit[group]
            if value is None:
                continue
            kind = KINDS[group]
            if text[hit.start(group) - 1 : hit.start(group)] not in _QUOTES:
                value = bare(value)
            value = value.rstrip(rule.ends if kind == "SECRET" else ".-" if kind in ("USER", "HOST") else "")
            is_private = is_user(value) if kind == "USER" else accept(value)
            if kind == "SECRET" and not (value and is_private and (key is None or secret_value(key, value))):
                return  # whoever it belongs to stands there for an example
            if is_private:
                yield hit.start(group), hit.start(group) + len(value), kind

    return look


def _has_digit(value: str) -> bool:
    return any(sign.isdigit() for sign in value)


_ASKED = words("asked")
_MIXED = re.compile(r"(?=.*[a-z])(?=.*[A-Z])|[!@#$%&*?+]")
# What a value must be to be taken; rules and people's names of the table go by these words.
JUDGES: dict[str, Callable[[str], object]] = {
    "": lambda _: True,
    "account": is_account,
    "chosen": is_chosen,
    "cookie": lambda value: "=" in value and mixes(value.partition("=")[2], 8),
    "given": lambda value: not is_no_secret(value),
    "hash_digit": lambda value: _has_digit(value[4:]),
    "login": lambda value: not is_no_secret(value) and not value.isdigit(),
    "mixed": lambda value: mixes(value, 8),
    "mixed_word": lambda value: not is_no_secret(value) and mixes(value, 8),
    "named": lambda name: name not in GENERIC,
    "sent": lambda value: mixes(value, 8) or (len(value) >= 20 and value.endswith("=")),
    "drawn": is_random,
    "strong": lambda value: is_chosen(value) and _has_digit(value) and len(value) >= 8 and _MIXED.search(value),
    "sent_alone": lambda value: len(value) >= 16 and _has_digit(value),
    "set": lambda value: not is_no_secret(value) and (is_chosen(value) or mixes(value, 8)),
    "digit": _has_digit,
    "told": lambda value: is_chosen(value) and _has_digit(value),
    "unasked": lambda value: is_chosen(value) and value.lower() not in _ASKED,
    "user": lambda name: name.lower() not in GENERIC,
}


# ---- Values after the name of a secret -----------------------------------------------------------

_ASSIGNED = compiled("assigned")
_QUOTED_VALUE = re.compile(r"[^\"'`\\\s\r\n](?:[^\"'`\\\r\n]|\\(?![\"'`nrt\\])){2,400}")
_BARE_VALUE = re.compile(r"[^\s\"'`,;<>(){}\[\]&|\\]{4,400}")
_MARKED_VALUE = compiled("marked_value")
_WRAPPED_VALUE = re.compile(r"(?P<value>[^\"'&;,=\r\n\\]{4,200})(?P<by>[\"'])")  # of an option that is quoted as a whole
_UNCALLED = re.compile(r"[(\[][\w!@#%^&*+\-]{3,60}(?![\w(),.=\]\[])")
_SIGN = compiled("sign")


def assigned_at(text: str, place: int) -> Iterator[Hit]:
    """The value after the name of a secret: `api_key = "..."`, `PASSWORD: ...`."""
    if not _SIGN.match(text, place):
        return
    left = start_of(text, place, 40, NAME_CHARS)
    if text[max(0, left - 4) : left].lower() == "api ":
        left -= 4
    hit = _ASSIGNED.match(text, left, place + 600)
    if hit is None:
        return
    name = text[left : hit.end("tail")]
    if not secret_name(name.lstrip("-+")) or (hit["by"] in ("is", "is:") and not is_hard(name)):
        return
    is_quoted = hit["open"][-1:] in ("'", '"', "`")
    is_row = hit["by"] == "," and not is_quoted and text[max(0, left - 1) : left] in ("", "\n")
    if hit["by"] == "," and not (is_row or (is_quoted and hit["close"])):
        return
    value = (_QUOTED_VALUE if is_quoted else _BARE_VALUE).match(text, hit.end())
    if value is None:
        return
    start, end = value.span()
    if hit["by"] == "," and _IS_KEY.match(text, end):
        return
    is_tight = hit["by"] == "=" and hit.end() == hit.end("by")
    if not is_quoted and is_tight:
        # the value of NAME=value, marks within; unless these begin another setting or a call
        marked = _MARKED_VALUE.match(text, start)
        if marked and mixes(marked[0], 8):
            end = max(end, start + len(marked[0].rstrip(")]};,>|&")))
    around = text[max(0, left - 1) : left]
    if not is_quoted:
        end = start + len(text[start:end].rstrip(".:!?*"))
        if is_tight and around in ("'", '"') and (whole := _WRAPPED_VALUE.match(text, start)) and whole["by"] == around:
            end = whole.end("value")
    if _is_code(text, start, end, hit["by"], hit["open"]) or not secret_value(name, text[start:end]):
        return
    is_alone = _ENDS_LINE.match(text, end) is not None
    if (hit["line"] is not None and not is_alone) or (hit["by"] == "|" and not _is_cell(text, left, end)):
        return
    # a word right behind the sign, as in commands; in code it would be a name, before a comma or a bracket
    is_argument = is_tight and (text[end : end + 1] in ("", " ", "\n", "\r") or around == "&")
    is_argument = is_argument or (around in ("'", '"') and text[end : end + 1] == around) or hit["by"][:1] in ">|—→" or hit["by"] == ":-"
    is_argument = is_argument or is_row or text.startswith("</", end) or hit["line"] is not None
    # below a head such as `[smtp]` a word is a setting, too
    is_argument = is_argument or (is_alone and (hit["by"][0] == ":" or bool(_SECTION.search(text, max(0, left - 400), left))))
    is_word = is_argument and is_hard(name) and is_chosen(text[start:end])
    if is_quoted or mixes(text[start:end], 6) or is_word or _is_setting(text, hit, end):
        yield start, end, "SECRET"


_IS_KEY = re.compile(r"\\{0,3}[\"']\s{0,3}:")
_ENDS_LINE = re.compile(r"[\"'`]{0,3}[ \t]{0,8}(?:#[^\n]{0,200})?(?:\r?\n|$)")
_SECTION = re.compile(r"(?m)^\[[\w .:\"\-]{1,60}\][ \t\r]*$(?!.*^\s*(?:def|class|import|return)\b)", re.DOTALL)


def _is_cell(text: str, start: int, end: int) -> bool:
    """Is a value the cell beside its name in a row, and not a head of the column beside it."""
    line = text.rfind("\n", max(0, start - 200), start) + 1
    below = text.find("\n", end) + 1
    is_head = below and DASHES.match(text, below) and text[line:below].count("|") > 3
    return not text[line:start].strip(" \t|*`\"'") and not is_head


def _is_code(text: str, start: int, end: int, by: str, opened: str) -> bool:
    """Is the value an expression rather than a value: a call, an attribute, an index."""
    after = text[end : end + 1]
    is_call = after in ("(", "[") and not _UNCALLED.match(text, end)
    return not opened and (is_call or (by == "=" and after == "." and text[start].isalpha()))


def _is_setting(text: str, hit: re.Match[str], end: int) -> bool:
    """Does an unquoted word stand as in a file of settings: at the end of its line, the name at its start."""
    line = text[max(0, hit.start() - 48) : hit.start()].rpartition("\n")[2]
    is_first = " " not in line.strip(" \t+-#*_;")
    is_given = hit["by"] == ":" or (hit["by"] == "=" and text[hit.end() - 1 : hit.end()] != " ")
    return is_first and is_given and text[end : end + 1] in ("", "\n", "\r", " ", "\\")


# ---- Passwords in commands, sentences and tables -------------------------------------------------

_SAID = compiled("password_sentence")
_CHANGING = re.compile(r"(?i)\b(?:(?:re)?set|chang|updat|rotat|switch)(?:e|es|ed|ing|ting|s)?\b[^\n.]{0,40}$")
_ADJECTIVE = ("ed", "ing", "able", "ible", "ive", "ly", "en", "ous", "ful", "less")
_DATA = re.compile(r"(?m)^[ \t+>\-]{0,24}(?:data|stringData):[ \t]{0,4}\r?$")
_PAIR = compiled("pair")
_LIST = compiled("list")
_ITEM = re.compile(r"(?<=[\s\"'\[,])[^\s\"',\[\]\-][^\s\"',\[\]]{3,199}(?=[\s\"'\],]|$)")


def said_at(text: str, place: int) -> Iterator[Hit]:
    """A password in a sentence: quoted, with a digit, or the sentence's last word."""
    hit = _SAID.match(text, place)
    if hit is None or not is_chosen(value := hit["value"].rstrip(".!?")):
        return
    if hit["verb"] and not _CHANGING.search(text[max(0, place - 60) : place]):
        return
    end = hit.start("value") + len(value)
    is_adjective = value.endswith(_ADJECTIVE) and not (hit["changed"] or hit["verb"])
    is_last = not hit["rest"].strip() and "-" not in value and not is_adjective
    if is_last and not (_has_digit(value) or hit["open"]):
        ends = text[hit.end("value") : hit.end("value") + 2].strip(" ")
        is_last = not ends or ends[0] in "\r\n" or value != hit["value"]
    if _has_digit(value) or hit["open"] or is_last:
        yield hit.start("value"), end, "SECRET"


def kept_secret_at(text: str, start: int) -> Iterator[Hit]:
    """The values of a Kubernetes secret, which its kind alone gives away."""
    if not text[max(0, start - 12) : start].rstrip(" \"'").endswith("kind:"):
        return
    for head in _DATA.finditer(text, max(0, start - 4000), start + 4000):
        place = head.end() + 1
        while (pair := _PAIR.match(text, place)) is not None:
            yield *pair.span("value"), "SECRET"
            place = pair.end()


def listed_at(text: str, place: int) -> Iterator[Hit]:
    """The members of a list of passwords, as YAML writes it."""
    hit = _LIST.match(text, start_of(text, place, 24, NAME_CHARS))
    for item in _ITEM.finditer(text, *hit.span("items")) if hit else ():
        if is_chosen(item[0]):
            yield *item.span(), "SECRET"


LINED = (assigned_at, kept_secret_at, listed_at)
READERS: dict[Detector, str] = {  # with the marks at which each looks
    assigned_at: "secret token key auth credential cookie session sessid sign passphrase passcode passw pwd "
    "_pass dbpass userpass rootpass mypass sqlpass smtppass _pw dbpw",
    said_at: "passphrase passcode passw",
    kept_secret_at: "secret",
    listed_at: "secret passw passphrase key",
}
