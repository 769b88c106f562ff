"""Find passwords that people choose: words that only a statement, an option or a column gives away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from blade.sanitize.named import NAME_CHARS, is_no_secret, secret_name
from blade.sanitize.people import is_plain
from blade.sanitize.places import GENERIC

Hit = tuple[int, int, str]
_PARTS = re.compile(r"[^\W\d_]+")
_EXPRESSION = re.compile(r"[\-~./]|\w+=|.*[(){}<>$]|.*\.\.")
_ADJECTIVE = ("ed", "ing", "able", "ible", "ive", "ly", "en", "ous", "ful", "less")
_SQL = re.compile(r"(?i:password)\s{1,3}(?:=\s?)?\\{0,3}'(?P<value>[^'\s\\]{4,200})\\{0,3}'")
_ROLE = re.compile(r"(?i)\b(?:create|alter|set|with|encrypted)\b[^\n;]{0,80}$")
_IDENTIFIED = re.compile(
    r"(?i)identified\s+(?:with\s+\S{1,40}\s+)?(?:by|as)\s+(?:password\s+)?\\{0,3}[\"'](?P<value>[^\"'\s\\]{4,200})"
)
_FED = re.compile(
    r"(?P<user>[\w.\-]{1,32}):(?P<value>[^\s\"'|:$]{4,100}?)(?:\\+n)?\\{0,3}[\"']?\s{0,3}\|\s{0,3}"
    r"(?:sudo\s+(?:-\S+\s+)?)?\S{0,20}$"
)
_GIVEN = re.compile(
    r"chpasswd\s{0,3}(?:-\w\s+)?<<<\s{0,3}\\{0,3}[\"']?(?P<user>[\w.\-]{1,32}):(?P<value>[^\s\"'|:$\\]{4,100})"
)
_OPTION = re.compile(
    r"(?<![\w\-])--?(?:[a-z]{1,16}-){0,2}(?:password|passwd|passphrase|pass|pw|api-?key|access-?key|secret-?key"
    r"|token|secret)(?: {1,2}|=)\\{0,3}[\"']?(?P<value>[^\s\"'`,;|\\\]]{4,200})"
)
_SETX = re.compile(r"(?i:setx)\s+[\"']?(?P<name>\w{2,60})[\"']?\s+[\"']?(?P<value>[^\s\"'%$]{4,200})")
_SAID = re.compile(
    r"(?i:password|passphrase|passwd|passcode)\s(?i:is|was)(?: now)?:?\s\\{0,3}(?P<open>[\"'`*]{0,2})"
    r"(?P<value>[^\s\"'`*,;\\]{4,100})(?P<rest>[^\n]?)"
)
_FOREIGN = re.compile(
    r"(?i)(?:passwort|kennwort|contrase(?:ñ|n)a|mot de passe|senha|密码|密碼|口令|пароль"
    r"|パスワード|비밀번호|password)"
    r"[\"'*]{0,2}\s{0,2}(?P<by>ist\s|[:=]|：)\s{0,2}[\"'`*]{0,2}(?P<value>[!-~]{4,100})"
)
_ASKED = frozenset(
    "erforderlich falsch fehlt vergessen pflichtfeld obligatorio requerida requerido incorrecta "
    "incorrecto obligatoire requis incorrecte invalide errada ausente".split()
)
_SHORT = re.compile(r"(?i:pass|pw)\s?[:=]\s?[\"'`]?(?P<value>[A-Za-z0-9!@#%&*+?\-]{6,40})(?![\w./:(])")
_LOGIN = re.compile(r"(?i)\b(?:user(?:name)?|login|account|e?mail)\b[^\n]{0,60}$")
_SENT = re.compile(
    r"(?i)authorization\\{0,3}[\"']?\]?\s{0,2}[:=,]\s{0,2}\\{0,3}[\"']?(?:bearer|basic|token)\s{1,2}"
    r"(?P<value>[\w\-.~+/=]{6,200})(?=\\{0,3}[\"']|\s{0,8}(?:$|\r|\n))"
)
_COLUMN = re.compile(r"(?i)[*`\"']*(?:initial |user |db |login )?(?:passwords?|passwd|pwd|passwort)[*`\"']*")
_RULE = re.compile(r"\|?[\s:|\-]*-[\s:|\-]*")
_HEADS = re.compile(r"\"?[\w\-]{1,40}\"?(?:(?P<by>[,;\t]) ?\"?[\w\-]{1,40}\"?)+")
_ROWS = 500  # of a table that are looked at


def is_chosen(value: str) -> bool:
    """Can a person have chosen it as a password: no plain word, no name of a variable, no expression."""
    if not 4 <= len(value) <= 200 or is_no_secret(value) or _EXPRESSION.match(value):
        return False
    if value.replace("_", "").replace("-", "").isalpha() and (value.isupper() or "_" in value):
        return False
    parts = _PARTS.findall(value)
    has_digit = any(sign.isdigit() for sign in value)
    return bool(parts) and (has_digit or not all(map(is_plain, parts)))


def _secret(hit: re.Match[str] | None) -> Iterator[Hit]:
    value = hit["value"].rstrip(".!?") if hit else ""
    if hit is not None and is_chosen(value):
        yield hit.start("value"), hit.start("value") + len(value), "SECRET"


def statement_at(text: str, at: int) -> Iterator[Hit]:
    """The password of a user of a database, as SQL sets it."""
    before = text[max(0, at - 100) : at]
    hit = _SQL.match(text, at)
    if hit is not None and _ROLE.search(before) and not is_no_secret(hit["value"]):
        yield *hit.span("value"), "SECRET"


def identified_at(text: str, at: int) -> Iterator[Hit]:
    """The same, as other databases write it."""
    yield from _secret(_IDENTIFIED.match(text, at))


def fed_at(text: str, at: int) -> Iterator[Hit]:
    """The user and the password that chpasswd reads."""
    start = max(0, at - 200)
    line = text.rfind("\n", start, at) + 1 or start
    hit = _GIVEN.match(text, at) or _FED.search(text[line:at])
    if hit is None or is_no_secret(hit["value"]):
        return
    moved = 0 if hit.string is text else line
    yield hit.start("value") + moved, hit.end("value") + moved, "SECRET"
    if hit["user"].lower() not in GENERIC:
        yield hit.start("user") + moved, hit.end("user") + moved, "USER"


def option_at(text: str, at: int) -> Iterator[Hit]:
    """What an option such as --http-password is given."""
    before = text[max(0, at - 40) : at]
    yield from _secret(_OPTION.match(text, at - len(before) + len(before.rstrip(NAME_CHARS))))


def setx_at(text: str, at: int) -> Iterator[Hit]:
    """What Windows keeps under the name of a secret."""
    hit = _SETX.match(text, at)
    if hit is not None and secret_name(hit["name"]):
        yield from _secret(hit)


def said_at(text: str, at: int) -> Iterator[Hit]:
    """A password told in a sentence: quoted, with a digit, or the sentence's last word."""
    hit = _SAID.match(text, at)
    if hit is None or not is_chosen(value := hit["value"].rstrip(".!?")):
        return
    if any(sign.isdigit() for sign in value) or hit["open"]:
        yield from _secret(hit)
    elif not hit["rest"].strip() and "-" not in value and not value.endswith(_ADJECTIVE):
        ends = text[hit.end("value") : hit.end("value") + 2].strip(" ")
        if not ends or ends[0] in "\r\n" or value != hit["value"]:
            yield from _secret(hit)


def foreign_at(text: str, at: int) -> Iterator[Hit]:
    """A password under its name in another language."""
    hit = _FOREIGN.match(text, at)
    if hit is None or (hit[0].lower().startswith("password") and hit["by"] != "："):
        return
    value = hit["value"].rstrip(".,;!?\"'`*")
    if is_chosen(value) and value.lower() not in _ASKED:
        yield hit.start("value"), hit.start("value") + len(value), "SECRET"


def short_at(text: str, at: int) -> Iterator[Hit]:
    """A password after `pass:`, which may mean much else, where a login stands before it."""
    if text[at - 1 : at].isalnum() or not _LOGIN.search(text[max(0, at - 100) : at]):
        return
    hit = _SHORT.match(text, at)
    if hit is not None and any(sign.isdigit() for sign in hit["value"]):
        yield from _secret(hit)


def sent_at(text: str, at: int) -> Iterator[Hit]:
    """What a header of authorization carries, if it is a word."""
    yield from _secret(_SENT.match(text, at))


def column_at(text: str, at: int) -> Iterator[Hit]:
    """The passwords in the column of a table of that name."""
    start = text.rfind("\n", max(0, at - 400), at) + 1
    if not start and at > 400:
        return
    end = text.find("\n", at, at + 400)
    head = text[start:end].rstrip("\r") if end >= 0 else ""
    heads = _HEADS.fullmatch(head)
    by = "|" if head.count("|") else heads["by"] if heads else ""
    names = head.split(by) if by else []
    places = [n for n, name in enumerate(names) if _COLUMN.fullmatch(name.strip())]
    above = text[max(0, start - 400) : start].rstrip("\r\n").rpartition("\n")[2]
    if len(names) < 2 or not places or above.count(by) == head.count(by):
        return  # what stands below a row of as many cells is no head
    yield from _cells(text, end + 1, by, len(names), places)


def _cells(text: str, start: int, by: str, width: int, places: list[int]) -> Iterator[Hit]:
    """The cells of some columns that can be passwords, line by line, until the table ends."""
    for row in range(_ROWS):
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        cells = line.split(by)
        is_rule = by == "|" and row == 0
        if len(cells) != width or is_rule != (_RULE.fullmatch(line.strip()) is not None):
            return
        for n in places:
            value = cells[n].strip(" \r`\"'*")
            at = start + sum(len(cell) + 1 for cell in cells[:n]) + cells[n].find(value)
            if not is_rule and not any(map(str.isspace, value)) and is_chosen(value):
                yield at, at + len(value), "SECRET"
        if end < 0:
            return
        start = end + 1


MARKS: dict[str, tuple[Callable[[str, int], Iterator[Hit]], ...]] = {
    "passw": (statement_at, option_at, said_at, foreign_at, column_at),
    "pwd": (column_at,),
    **dict.fromkeys(("--pass", "-pass", "key", "token", "secret", "-pw"), (option_at,)),
    **dict.fromkeys(("passphrase", "passcode"), (said_at,)),
    **dict.fromkeys(("kennwort", "contrase", "senha", "密码", "密碼", "口令", "пароль"), (foreign_at,)),
    **dict.fromkeys(("パスワード", "비밀번호"), (foreign_at,)),
    "mot": (foreign_at,),
    "identified": (identified_at,),
    "chpasswd": (fed_at,),
    "setx": (setx_at,),
    **dict.fromkeys(("pass:", "pass=", "pw:", "pw="), (short_at,)),
    "authorization": (sent_at,),
}
