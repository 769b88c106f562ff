"""Find secrets by what stands beside them: a name such as api_key, or an odd word near `token`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

_WORD = (
    r"passwords?|passwd|passphrase|passcode|pwd|client[_\-]?secret|secret|token|"
    r"api[_\- ]?keys?|(?:access|private|secret|signing|encryption|account|license|master|shared|service"
    r"|ssh|deploy|"
    r"admin|webhook|wandb|storage|subscription|auth|session|hmac|jwt|app|client|root)[_\-]?keys?"
    r"(?:[_\-]?id)?|"
    r"credentials?|authorization|auth|cookie|session[_\-]?id|sessionid|signature|x-amz-credential|"
    r"(?<![a-z0-9])(?:db|database|sql|mysql|pg|postgres|mongo|redis|smtp|imap|ftp|mail|email|user|admin"
    r"|root|sudo|ssh|http|proxy|login|account)[_\-]?(?:pass|pw)(?![a-z0-9_\-])"
    r"|(?-i:(?<=[A-Z0-9]_)(?:PASS|PW)(?![A-Za-z0-9_\-]))"
)
_ASSIGNED = re.compile(
    rf"[A-Za-z0-9_\-]{{0,48}}?(?i:(?P<word>{_WORD}))(?P<tail>[A-Za-z0-9_]{{0,24}})"
    r"(?P<close>\\{0,3}[\"'`]?\]?\*{0,2})[ \t]{0,3}(?P<by>=>|:=|=(?!=)|:(?!:)|\bis\b:?"
    r"|,(?=[ ]?\\{0,3}[\"'])|>(?=[^<>\s]{3,200}</))[ \t]{0,3}"
    r"(?P<open>\\{0,3}(?:[rbuf]?[\"'`])?)"
)
_QUOTED_VALUE = re.compile(r"[^\"'`\\\s\r\n](?:[^\"'`\\\r\n]|\\(?![\"'`nrt\\])){2,400}")
_BARE_VALUE = re.compile(r"[^\s\"'`,;<>(){}\[\]&|\\]{4,400}")
_MARKED_VALUE = re.compile(
    r"[A-Za-z0-9](?:[^\s\"'`=\\.(]|\((?=[\w!@#%^&*+\-]{3,60}(?![\w(),.=]))){4,100}(?![=\w.(])"
)
_UNCALLED = re.compile(r"[(\[][\w!@#%^&*+\-]{3,60}(?![\w(),.=\]\[])")
_HEADER = re.compile(
    r"(?i)\b(?:(?:proxy-)?authorization|bearer|basic|x-api-key|x-auth-token|x-[a-z\-]{2,30}-(?:token"
    r"|key)|api-key)"
    r"\\{0,3}[\"']?[ ]{0,2}[:=]?[ ]{0,2}\\{0,3}[\"']?(?:(?:bearer|basic|token|digest|negotiate|apikey)[ "
    r"]{1,2})?"
    r"(?P<value>[A-Za-z0-9_\-.~+/=:]{8,4000})"
)
_SCHEME = re.compile(r"(?i)\b(?:bearer|basic)[ ]{1,2}(?P<value>[A-Za-z0-9_\-.~+/=]{12,4000})")
_COOKIE = re.compile(
    r"(?i)\b(?:set-)?cookie\\{0,3}[\"']?[ ]{0,2}[:=][ ]{0,2}\\{0,3}[\"']?(?P<value>[^\r\n\"'\\]{8,2000})"
)
_FLAG = re.compile(r"(?<!\S)(?:--?(?:password|passwd|token|secret|api-?key))[ =](?P<value>[^\s\"']{6,200})")
_LOGIN = re.compile(
    r"(?<!\S)(?:-u|--user)[ =]{0,3}\\{0,7}[\"']?[^\s:\"'$\\]{1,64}:(?P<value>[^\s\"':/$\\]{4,200})(?![:/])"
)
_PAIR = re.compile(r"auth\s?=\s?\(\s?[\"'][^\"'\n]{1,64}[\"'],\s?[\"'](?P<value>[^\"'\n]{4,200})[\"']")
_QUERY = re.compile(
    r"(?i)[?&;](?:amp;)?(?:access_token|auth|key|sig|signature|code|token|apikey|api_key|secret|password"
    r"|pwd|state|"
    r"sas|sv|se|x-amz-(?:signature|credential|security-token)|x-goog-signature|session|sid|jwt|ticket)="
    r"(?P<value>[^&\s\"'<>#\\)\]]{6,4000})"
)
NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
# Tokens of language models and parsers, and settings about secrets that are none themselves.
_HARMLESS = re.compile(
    r"(?i)(?:^|[_\-])(?:tokens|tokeni[sz]er|tokeni[sz]ed|(?:eos|bos|pad|unk|sep|cls|mask|stop|start|end"
    r"|special|next|"
    r"prev|previous|page|image|audio|first|last|new|cur|current|num|n|max|min|per|sub|think|eot|each"
    r"|this|max_new)_?"
    r"token(?:_?ids?)?|token_?(?:ids?|type|count|len|length|index|limit|budget|usage|url|uri|name|s)|"
    r"auth_?(?:type|method|mode|url|uri|enabled|required|or|ors|ority|entic\w{0,12}|orization_?(?:type"
    r"|url|code_url))|"
    r"(?:password|secret|api_?key|credentials?|cookie|session|signature)_?(?:type|method|length|len|min"
    r"|max|policy|"
    r"required|enabled|name|field|file|path|env|hash_?type|version|url|reset|count|s|label|hint"
    r"|placeholder|expir\w{0,8})"
    r"|s?(?:reset|forgot|change|invalid|wrong|missing|no|has|need|needs|bad)_?(?:password|token|api_?key"
    r"|credentials?)|"
    r"function_?signature|method_?signature|type_?signature|call_?signature)$|^signature$"
)
_NO_SECRET = re.compile(
    r"(?i)(?:none|null|nil|true|false|undefined|str|string|int|bytes|bool|float|optional.*|any|self.*|os\..*|"
    r"process\..*|env\..*|config.*|settings.*|args.*|request.*|getenv.*|input|required|invalid|expired"
    r"|missing|"
    r"x{3,}.*|\*{2,}.*|\.{3,}.*|…+.*|<.*|\$.*|%.*|\{.*|\[[A-Z]{2,12}:[0-9a-f]{8}.*|your[_\- ].*|my[_\- "
    r"].*|redacted|"
    r"changeme|change_me|example|placeholder|dummy|secret|password|token|api_key|credentials?|basic|bearer|"
    r"n/a|empty|unset|not[_ ].*|\d{1,5}|and|or|the|is|in|of|to|for|with|are|was|must|should|can|not)"
)
# Words near which a word drawn at random is likely a secret, and words that say what else it is.
_CONTEXT = re.compile(
    r"(?i)secret|token(?!s|iz)|api[_\- ]?key|apikey|credential|passw|passphrase|bearer|private[_\- ]key|"
    r"access[_\- ]?key|signing[_\- ]?key|auth[_\- ]|authoriz|\bauth\b|\bkey\b[^\w]{1,4}$|wandb|webhook"
    r"|[_\-]key\b"
)
_ELSE = re.compile(r"(?i)commit|sha-?\d|digest|checksum|etag|md5|hash|uuid|call_id|revision|blob|_id\b")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ENTROPIC = re.compile(r"[A-Za-z0-9+/_\-]{20,}={0,2}")
_SWITCH = re.compile(r"[a-z][A-Z]")
_DIGIT, _LETTER, _HEX = re.compile(r"\d"), re.compile(r"[^\W\d_]"), re.compile(r"[0-9a-fA-F]+")
_LOOKBACK = 48
_SIGN = re.compile(r"[A-Za-z0-9_\-]{0,40}(?: ?key\w{0,3})?\\{0,3}[\"'`]?\]?\*{0,2}[ \t]{0,3}(?:=|:|is\b|,|>)")
Hit = tuple[int, int, str]
_QUIET = frozenset("pass pw token auth authorization session cookie signature credential credentials".split())


def secret_name(name: str) -> bool:
    """Is it the name of something that holds a secret."""
    found = next(reversed(list(_NAME.finditer(name))), None)
    if found is None or _HARMLESS.search(name):
        return False
    return _TAIL.fullmatch(name, found.end()) is not None


_NAME = re.compile(rf"(?i){_WORD}")
_TAIL = re.compile(r"(?:[_\-]|\d|(?=[A-Z]))\w{0,8}|")


def secret_value(name: str, value: str) -> bool:
    """Can a value under the name of a secret be that secret."""
    if not 4 <= len(value) <= 20_000 or _NO_SECRET.fullmatch(value):
        return False
    if " " in value.strip() and not _is_hard(name):
        return False
    if value[0] in "/~" and name.lower().endswith("pwd"):
        return False  # the folder that one works in
    return _is_hard(name) or _drawn(value, 8)


def is_no_secret(value: str) -> bool:
    """Is it a word that stands where a secret would: `<password>`, `$TOKEN`, `changeme`."""
    return _NO_SECRET.fullmatch(value) is not None


def _is_hard(name: str) -> bool:
    """Does the name mean a secret and nothing else: a password does, a token may be a word."""
    last = ""
    for hit in _NAME.finditer(name):
        last = hit[0].lower()
    return last not in _QUIET


def _drawn(value: str, least: int) -> bool:
    """Does it look drawn at random: long enough, letters and digits or mixed cases, no word or number."""
    if len(value) < least or value.replace(".", "").isdigit():
        return False
    if _DIGIT.search(value):
        return _LETTER.search(value) is not None
    return len(value) >= 12 and len(_SWITCH.findall(value)) >= 2


def assigned_at(text: str, at: int) -> Iterator[Hit]:
    """The value after the name of a secret: `api_key = "..."`, `PASSWORD: ...`."""
    if not _SIGN.match(text, at):
        return
    before = text[max(0, at - 40) : at]
    left = max(0, at - 40) + len(before.rstrip(NAME_CHARS))
    if text[max(0, left - 4) : left].lower() == "api ":
        left -= 4
    hit = _ASSIGNED.match(text, left, at + 600)
    if hit is None:
        return
    name = text[left : hit.end("tail")]
    if not secret_name(name.lstrip("-+")) or (hit["by"] in ("is", "is:") and not _is_hard(name)):
        return
    is_quoted = hit["open"][-1:] in ("'", '"', "`")
    if hit["by"] == "," and not (is_quoted and hit["close"]):
        return
    value = (_QUOTED_VALUE if is_quoted else _BARE_VALUE).match(text, hit.end())
    if value is None:
        return
    start, end = value.span()
    if not is_quoted and hit["by"] == "=" and hit.end() == hit.end("by"):
        end = max(end, _whole_setting(text, start))
    if not is_quoted:
        end = start + len(text[start:end].rstrip(".:!?*"))
    if _is_code(text, start, end, hit["by"], hit["open"]) or not secret_value(name, text[start:end]):
        return
    if is_quoted or _drawn(text[start:end], 6) or _is_setting(text, hit, end):
        yield start, end, "SECRET"


def _whole_setting(text: str, start: int) -> int:
    """Where the value of NAME=value ends, marks within; unless these begin another setting or a call."""
    hit = _MARKED_VALUE.match(text, start)
    return start + len(hit[0].rstrip(")]};,>|&")) if hit and _drawn(hit[0], 8) else 0


def _is_code(text: str, start: int, end: int, by: str, opened: str) -> bool:
    """Is the value an expression rather than a value: a call, an attribute, an index."""
    after = text[end : end + 1]
    return not opened and (
        (after in ("(", "[") and not _UNCALLED.match(text, end))
        or (by == "=" and after == "." and text[start].isalpha())
    )


def _is_setting(text: str, hit: re.Match[str], end: int) -> bool:
    """Does an unquoted word stand as in a file of settings: at the end of its line, the name at its start."""
    line = text[max(0, hit.start() - _LOOKBACK) : hit.start()].rpartition("\n")[2]
    head = line.strip(" \t+-#*_").split(" ")
    alone = len(head) == 1 and hit["by"] in ("=", ":") and text[hit.end() - 1 : hit.end()] != " "
    return (
        (alone or hit["by"] == ":") and len(head) == 1 and text[end : end + 1] in ("", "\n", "\r", " ", "\\")
    )


def header_at(text: str, at: int) -> Iterator[Hit]:
    """The value that a header carries."""
    before = text[max(0, at - 32) : at]
    left = at - len(before) + len(before.rstrip(NAME_CHARS))
    for hit in (_HEADER.match(text, left), _SCHEME.match(text, at)):
        if hit and (_drawn(hit["value"], 8) or _is_padded(hit["value"])):
            yield *hit.span("value"), "SECRET"


def _is_padded(value: str) -> bool:
    return len(value) >= 20 and value.endswith("=")


def cookie_at(text: str, at: int) -> Iterator[Hit]:
    """What a cookie holds."""
    hit = _COOKIE.match(text, at)
    if hit and "=" in hit["value"] and _drawn(hit["value"].partition("=")[2], 8):
        yield *hit.span("value"), "SECRET"


def login_at(text: str, at: int) -> Iterator[Hit]:
    """The password of a login: `curl -u user:password`, `auth=("user", "password")`."""
    for pattern, place in ((_LOGIN, at - (text[at - 1 : at] == "-")), (_PAIR, at)):
        hit = pattern.match(text, place)
        if hit and not _NO_SECRET.fullmatch(hit["value"]) and not hit["value"].isdigit():
            yield *hit.span("value"), "SECRET"


def flag_at(text: str, at: int) -> Iterator[Hit]:
    """The value of an option of a command."""
    hit = _FLAG.match(text, at)
    if hit and not _NO_SECRET.fullmatch(hit["value"]) and _drawn(hit["value"], 8):
        yield *hit.span("value"), "SECRET"


def query_at(text: str, at: int) -> Iterator[Hit]:
    """The value in the query of an address."""
    begin = max(0, at - 28)
    left = max(text.rfind(mark, begin, at) for mark in "?&;")
    hit = _QUERY.match(text, left) if left >= 0 else None
    if hit and _drawn(hit["value"], 8):
        yield *hit.span("value"), "SECRET"


def entropic_in(text: str, start: int, end: int) -> Iterator[Hit]:
    """Words that look drawn at random, near a word that speaks of secrets."""
    for hit in _ENTROPIC.finditer(text, start, end):
        near = text[max(0, hit.start() - _LOOKBACK) : hit.start()].rpartition("\n")[2]
        if not _CONTEXT.search(near) or _ELSE.search(near[-16:]) or not _is_random(hit[0]):
            continue
        yield *hit.span(), "SECRET"


def _is_random(word: str) -> bool:
    if _UUID.fullmatch(word) or not _drawn(word, 20) or word.count("/") > 2:
        return False
    longest = max(re.split(r"[-_/+=]", word), key=len)
    if len(longest) < 12:
        return False
    bits = entropy(longest)
    return bits >= 2.7 if _HEX.fullmatch(longest) else bits >= 3.2 and _drawn(longest, 12)


def entropy(text: str) -> float:
    """Bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
