"""Find who and where: e-mail addresses, people, users, hosts, private addresses, homes on a disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from blade.sanitize.lexicon import GENERIC
from blade.sanitize.rule_table import compiled, words
from blade.sanitize.secret_rules import HOST_CHARS, Detector, Hit, start_of

_LOCAL = HOST_CHARS + "_%+'"
_SCHEME_CHARS = HOST_CHARS + "+"
_DOMAIN = compiled("domain")
_FOREIGN_DOMAIN = re.compile(r"(?:[^\W_](?:[^\W_]|-){0,62}\.){1,8}[^\W\d_]{2,24}(?![^\W_]|-)")
_CUT_DOMAIN = re.compile(r"[A-Za-z0-9.\-]{0,60}…")
_AT_HOST = compiled("at_host")
_PROMPT = re.compile(r"[:]\s?[~/]|\s[~/][^\]\n]{0,80}\][$#]")
_PUBLIC_KEY = re.compile(r"\bAAAA[A-Za-z0-9+/=]{20,1200} $")
_REMOTE = compiled("remote")
_PERSON = re.compile(r"(?:[A-Z][\w'’.\-]{0,30}[ ]){1,3}[A-Z][\w'’.\-]{1,30}[ ]?(?:\\?<|&lt;)$")
_HOME = compiled("home")
_V4 = compiled("v4")
_V6 = re.compile(r"(?i)(?<![\w:])(?:fe80|f[cd][0-9a-f]{2})(?::[0-9a-f]{0,4}){2,7}(?:%\w{1,10})?(?![\w:])")
_DASHED = re.compile(r"\bip-(?:10|172|192)(?:-\d{1,3}){3}\b")
_PRIVATE_ENDS = tuple(".internal .corp .local .lan .intra .intranet .localdomain .home.arpa .private".split())
_PRIVATE_HOST = compiled("private_host")
_MIDDLE = compiled("middle")
_CODE_HOST = compiled("code_host")
_URL = compiled("url")
_OPEN_HOSTS = words("open_hosts")
_FILES = frozenset("py js ts md json txt png jpg tgz".split())  # endings of files, and of no domain
_NO_USER = frozenset("pass majority recall precision hit top".split())  # pass@1: a measure
_NO_PORT = frozenset("file data javascript vscode chrome about blob package".split())
_USER_NAME = compiled("user_name")
_HOST_NAME = compiled("host_name")
_GIVEN = re.compile(r"\w{0,24}\\{0,3}[\"'`]?\]?\s{0,2}[=:]")
USER_KEYS = words("user_keys")
HOST_KEYS = words("host_keys")
_NO_NAME = words("no_name")


def is_private_host(host: str) -> bool:
    """Does a host belong to a network that is not everybody's."""
    host = host.strip("[]").lower()
    if host in _OPEN_HOSTS:
        return False
    if _V4.fullmatch(host) or _V6.fullmatch(host) or _DASHED.match(host):
        return True
    if "." not in host:
        return bool(host) and not host.isdigit() and ":" not in host
    return host.endswith(_PRIVATE_ENDS) or bool(_MIDDLE.search(host))


def mail_at(text: str, place: int) -> Iterator[Hit]:
    """An e-mail address, the person named before it, or a user at a host."""
    start = start_of(text, place, 64, _LOCAL)
    # letters without capitals, as in Chinese, are the sentence around it
    while start > max(0, place - 64) and ((sign := text[start - 1]) in _LOCAL or sign.lower() != sign.upper()):
        start -= 1
    local = text[start:place].lstrip("+-.%'")
    if local:
        yield from _mail(text, place, local)


def _mail(text: str, place: int, local: str) -> Iterator[Hit]:
    start = place - len(local)
    domain = _DOMAIN.match(text, place + 1) or _FOREIGN_DOMAIN.match(text, place + 1)
    if domain is not None:
        if local.lower() == "git" and not is_private_host(domain[0]):
            return
        if domain[0].rpartition(".")[2].lower() in _FILES:
            return
        yield start, domain.end(), "EMAIL"
        person = _PERSON.search(text, max(0, start - 110), start) if text[start - 1 : start] in "<;" else None
        if start and person is not None:
            name = person[0].rstrip("\\<&lt; ").strip()
            yield person.start(), person.start() + len(name), "PERSON"
        return
    cut = _CUT_DOMAIN.match(text, place + 1)
    if cut is not None:
        yield start, cut.end() - 1, "EMAIL"
        return
    host = _AT_HOST.match(text, place + 1)
    if host is None or local.isdigit() or local.lower() in _NO_USER:
        return
    line = text[max(0, start - 120) : start].rpartition("\n")[2]
    before = text[max(0, start - 1300) : start]
    is_key = "AAAA" in before and _PUBLIC_KEY.search(before)
    if _PROMPT.match(text, host.end()) or _REMOTE.search(line) or is_key:
        if local.lower() not in GENERIC:
            yield start, place, "USER"
        if host[0].lower() not in _OPEN_HOSTS:
            yield host.start(), host.end(), "HOST"


def home_at(text: str, place: int) -> Iterator[Hit]:
    """The user in the path of a home."""
    for hit in _HOME.finditer(text, max(0, place - 24), place + 110):
        group = hit.lastgroup or "name"
        name = hit[group].rstrip(".-")
        if name and name.lower() not in GENERIC and not _is_route(text, hit, group):
            yield hit.start(group), hit.start(group) + len(name), "USER"


def _is_route(text: str, hit: re.Match[str], group: str) -> bool:
    """Is it the path of an address rather than of a disk, as in https://example.org/home/news."""
    before = text[max(0, hit.start() - 120) : hit.start()]
    word = before.split()[-1] if group == "name" and before and not before[-1].isspace() else ""
    return "://" in word and "file://" not in word


def host_at(text: str, place: int) -> Iterator[Hit]:
    """A host that no public name server knows, by how its name ends."""
    start = start_of(text, place, 250, HOST_CHARS)
    hit = _PRIVATE_HOST.match(text, start) or _PRIVATE_HOST.search(text, start, place + 16)
    if hit is not None and not _CODE_HOST.match(hit[0]):
        yield *hit.span(), "HOST"


def url_at(text: str, place: int) -> Iterator[Hit]:
    """An internal address whole; of another one the user and the password before the host."""
    start = start_of(text, place, 24, _SCHEME_CHARS)
    hit = _URL.match(text, place + 3)
    if start == place or text[start:place].lower() in _NO_PORT or hit is None or not hit["host"]:
        return
    whole = text[start : hit.end()].rstrip(".,;:!?)]}'*_|")
    if is_private_host(hit["host"]) and not hit["host"].isupper():
        yield start, start + len(whole), "URL"
    elif hit["user"] and not hit["user"].startswith("["):
        user, _, password = hit["user"][:-1].partition(":")
        if password:
            yield hit.start("user") + len(user) + 1, hit.end("user") - 1, "SECRET"
        if user.lower() not in GENERIC:
            yield hit.start("user"), hit.start("user") + len(user), "USER" if password else "SECRET"


def named_at(text: str, place: int) -> Iterator[Hit]:
    """A user or a host where an environment or settings name it."""
    if not _GIVEN.match(text, place):
        return
    start = start_of(text, place, 12, _SCHEME_CHARS + "_")
    for pattern, kind in ((_USER_NAME, "USER"), (_HOST_NAME, "HOST")):
        hit = pattern.search(text, start, place + 140)
        if hit is None or hit.start() > place or not _is_named(hit):
            continue
        name = hit["name"].rstrip(".-,")
        if kind == "USER" or name.lower() not in _OPEN_HOSTS:
            yield hit.start("name"), hit.start("name") + len(name), kind


def _is_named(hit: re.Match[str]) -> bool:
    """Is what follows `username =` or `hostname:` a name, rather than code or prose."""
    name = hit["name"].rstrip(".-").lower()
    if name in GENERIC or name in _NO_NAME or len(name) < 3:
        return False
    if hit["quote"]:
        return True
    is_equal, is_tight = hit["by"].strip() == "=", " " not in hit["by"]
    if hit["after"] in ("(", "[") or ("." in name.strip(".") and is_equal and not is_tight):
        return False
    # unquoted: as in an environment (USER=x) or, with a sign of being no plain word, in settings
    return (is_equal and is_tight) or any(char.isdigit() or char in "-." for char in name)


JUDGES: dict[str, Callable[[str], object]] = {
    "greeted": lambda name: name not in GENERIC and re.search(r"[\d._\-]", name),
    "internal": _MIDDLE.search,
    # no word of LaTeX, which has no number or dash
    "machine": lambda host: host.lower() not in _OPEN_HOSTS and re.search(r"[\d.\-]", host),
    "private_v4": lambda address: all(int(part) < 256 for part in address.strip(".").split(".")),
}
READERS: dict[Detector, str] = {  # with the marks at which each looks
    mail_at: "@",
    url_at: "://",
    home_at: "/users/ /home/ users\\ :/users settings\\",
    host_at: ".internal .corp .local .lan .intra .home.arpa .private",
    named_at: "user name login run_as _by nodelist fqdn host _addr",
}
SURE = (mail_at, url_at, home_at, host_at)
