"""Find passwords in commands and in files of logins: mysql -p, netrc, pgpass, shadow, Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from blade.sanitize.chosen import is_chosen
from blade.sanitize.formats import azure_at, login_token_at
from blade.sanitize.named import NAME_CHARS, is_no_secret, secret_name, secret_value
from blade.sanitize.places import GENERIC, share_at

Hit = tuple[int, int, str]

# A tool, and the option after which it takes a password; none of them is a port.
_TOOL = re.compile(
    r"(?<![\w.\-])(?:(?:mysql|mariadb)\w{0,10}(?=\s)(?P<a>[^\n|;]{0,300}?\s-p)"
    r"|sshpass(?P<b>\s+-p\s{0,2})|mongo\w{0,8}(?=\s)(?P<c>[^\n|;]{0,300}?\s-p\s)"
    r"|redis-cli(?P<d>[^\n|;]{0,200}?\s-a\s)"
    r"|(?:docker|podman|helm|az)\s(?P<e>[^\n|;]{0,40}login\s[^\n|;]{0,200}?\s-p\s)"
    r"|smbclient(?P<f>[^\n|;]{0,200}?\s-U\s?\S{1,64}?%)|ldap\w{2,10}(?=\s)(?P<g>[^\n|;]{0,300}?\s-w\s)"
    r"|sqlcmd(?P<h>[^\n|;]{0,300}?\s-P\s?)|htpasswd(?P<i>\s+-\w*b\w*\s+\S+\s+\S+\s)"
    r"|openssl(?P<j>[^\n|;]{0,300}?\spass:)"
    r"|(?:zip|7z)(?P<k>[^\n|;]{0,100}?\s-[pP]\s?)|unzip(?P<l>[^\n|;]{0,100}?\s-P\s?))"
    r"[\"']?(?P<value>[^\s\"'`$<>|;\\]{4,200})"
)
_NETRC = re.compile(r"login\s{1,8}(?P<user>\S{1,100})\s{1,8}password\s{1,8}(?P<value>[^\s\"'\\]{4,200})")
_PGPASS = re.compile(
    r"(?<![^\s\"'>=+])[\w.*\-]{1,100}:(?:5432|5433|6432|\*):[\w*\-]{1,63}:(?P<user>[\w*.\-]{1,63}):"
    r"(?P<value>[^\s\"'\\:]{4,200})"
)
_LOGIN_NAME = re.compile(
    r"(?:ssh|sftp)\s(?:[^\n|;]{0,120}?\s)?-l\s{0,2}(?P<user>[A-Za-z_][\w.\-]{1,31})(?=\s)"
)
_HASH = re.compile(
    r"\$(?:[1567y]|gy|2[abxy]?|apr1|argon2i?d?|scrypt|pbkdf2[\w\-]{0,10}|P|H)\$"
    r"(?:[\w=,.\-/]{1,64}\$){0,3}[A-Za-z0-9./+]{20,128}={0,2}"
)
_BESIDE = re.compile(
    r"(?P<tail>[\w\-]{0,24})\\{0,7}[\"']?,?\s{0,16}-?\s{0,4}\\{0,7}[\"']?value\\{0,7}[\"']?\s{0,3}[=:]\s{0,3}"
    r"\\{0,7}[\"']?(?P<value>[^\s\"'<>\\,;]{4,400})"
)
_DATA = re.compile(r"(?m)^[ \t+>\-]{0,24}(?:data|stringData):[ \t]{0,4}\r?$")
_PAIR = re.compile(
    r"(?P<pad>[ \t+>\-]{0,24})[\w.\-]{1,100}:[ \t]{1,4}[\"']?(?P<value>[^\s\"']{4,4000})[^\n]{0,200}(?:\n|$)"
)


def paired_at(text: str, at: int) -> Iterator[Hit]:
    """The value beside the name of a secret, where each has its own key: `name="PASSWORD" value="..."`."""
    hit = _BESIDE.match(text, at)
    if hit is None:
        return
    before = text[max(0, at - 40) : at]
    name = before[len(before.rstrip(NAME_CHARS)) :] + hit["tail"]
    if secret_name(name) and secret_value(name, hit["value"]):
        yield *hit.span("value"), "SECRET"


def command_at(text: str, at: int) -> Iterator[Hit]:
    """The password that a tool is given on its command line."""
    hit = _TOOL.match(text, at)
    if hit is None or is_no_secret(hit["value"]) or hit["value"].isdigit():
        return
    # other tools have options that begin as this one does, such as -print
    is_login = hit[0].startswith("sshpass") or (hit["a"] or "").find(" -u") >= 0
    # the other tools have no such option but for a password
    is_sure = not (hit["a"] or hit["k"]) and is_chosen(hit["value"])
    if is_login or is_sure or secret_value("token", hit["value"]):
        yield *hit.span("value"), "SECRET"


def netrc_at(text: str, at: int) -> Iterator[Hit]:
    """The user and the password of a machine, as .netrc tells them."""
    hit = _NETRC.match(text, at)
    if hit is not None and not is_no_secret(hit["value"]):
        yield *hit.span("value"), "SECRET"
        if hit["user"].lower() not in GENERIC:
            yield *hit.span("user"), "USER"


def pgpass_at(text: str, at: int) -> Iterator[Hit]:
    """The password of a database, as .pgpass tells it."""
    before = text[max(0, at - 100) : at]
    word = max(map(before.rfind, " \n\t\"'>=+")) + 1
    hit = _PGPASS.match(text, at - len(before) + word)
    if hit is not None and not is_no_secret(hit["value"]):
        yield *hit.span("value"), "SECRET"


def login_name_at(text: str, at: int) -> Iterator[Hit]:
    """The user whom `ssh -l` names."""
    hit = _LOGIN_NAME.match(text, at)
    if hit is not None and hit["user"] not in GENERIC:
        yield *hit.span("user"), "USER"


def hash_at(text: str, at: int) -> Iterator[Hit]:
    """A hashed password, as system files keep it."""
    hit = _HASH.match(text, at)
    if hit is not None and any(sign.isdigit() for sign in hit[0][4:]):
        yield *hit.span(), "SECRET"


def kept_secret_at(text: str, at: int) -> Iterator[Hit]:
    """The values of a Kubernetes secret, which its kind alone gives away."""
    if not text[max(0, at - 12) : at].rstrip(" \"'").endswith("kind:"):
        return
    for head in _DATA.finditer(text, max(0, at - 4000), at + 4000):
        place = head.end() + 1
        while (pair := _PAIR.match(text, place)) is not None:
            yield *pair.span("value"), "SECRET"
            place = pair.end()


MARKS: dict[str, tuple[Callable[[str, int], Iterator[Hit]], ...]] = {
    **dict.fromkeys(
        (
            "mysql",
            "mariadb",
            "sshpass",
            "mongo",
            "redis-cli",
            "docker",
            "podman",
            "helm",
            "smbclient",
            "ldap",
        ),
        (command_at,),
    ),
    **dict.fromkeys(("sqlcmd", "htpasswd", "openssl", "unzip", "zip", "7z"), (command_at,)),
    **dict.fromkeys((":5432:", ":5433:", ":6432:", ":*:"), (pgpass_at,)),
    **dict.fromkeys(("$1$", "$2", "$5$", "$6$", "$7$", "$y$", "$gy$", "$p$", "$h$"), (hash_at,)),
    **dict.fromkeys(("$apr1$", "$argon2", "$scrypt$", "$pbkdf2"), (hash_at,)),
    **dict.fromkeys(("ssh", "sftp"), (login_name_at,)),
    "login": (netrc_at,),
    "secret": (kept_secret_at, paired_at),
    "\\\\": (share_at,),
    "q~": (azure_at,),
    "sha256~": (login_token_at,),
    **dict.fromkeys(("passw", "pwd", "token", "key", "credential"), (paired_at,)),
}
