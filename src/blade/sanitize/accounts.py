"""Find users where commands name them: sudo -u, su, chown, useradd, whoami; and on scratch disks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from blade.sanitize.people import is_plain
from blade.sanitize.places import GENERIC

Hit = tuple[int, int, str]
_NAME = r"[A-Za-z_][\w.\-]{1,31}"
_ENDS = r"(?=[\s;&|\"'`)\\]|$)"
_SUDO = re.compile(
    rf"sudo\s+(?:-[A-Zbehiknsv]{{1,5}}\s+){{0,3}}(?:-[a-zA-Z]{{0,3}}u\s?|--user[= ])(?P<name>{_NAME}){_ENDS}"
)
_SU = re.compile(rf"(?<![\w\-./])su (?:-l?|--login) (?P<name>{_NAME}){_ENDS}")
_CHOWN = re.compile(
    rf"chown\s+(?:-\S+\s+){{0,3}}(?P<name>{_NAME})(?:[:](?P<group>{_NAME})?(?=\s)|(?=\s+[\w.\-]*[/.~]))"
)
_ADDED = re.compile(
    r"(?:useradd|adduser|usermod|userdel|deluser)\s+"
    r"(?:(?:-[a-zA-Z]{0,2}[sdgGucekpb]|--(?:shell|home|home-dir|gid|groups|uid|comment|gecos|ingroup))[ =]"
    r"(?:\"[^\"\n]{0,60}\"|'[^'\n]{0,60}'|\S{1,60})\s+|-[\w\-]{1,24}\s+){0,8}"
    rf"(?P<name>{_NAME}){_ENDS}"
)
_WHOAMI = re.compile(rf"whoami[ \t]{{0,4}}\r?\n(?P<name>{_NAME})[ \t]{{0,4}}(?=\r?\n|$)")
_ASKED = re.compile(r"(?:^|\n)(?:[^\n]{0,60}[$#>%+] ?)?$")
_SCRATCH = re.compile(r"/scratch\d?/(?P<name>[a-z][\w.\-]{1,31})(?=/)")
# Accounts of services, names of things, and names that examples give: they tell of nobody.
_OPEN = re.compile(
    r"(?i).*(?:user|group|test|admin|example|daemon|foo|owner|name|data|model|ckpt|cache|tmp"
    r"|conda|bench|imagenet|llama|qwen).*|(?:res|alex)net\d*|coco\d*|bert|bar|demo\d*|systemd.*|_.*|[ug]id|www.*|elasticsearch|kafka|zookeeper"
    r"|prometheus|grafana|rabbitmq|tomcat\d*|apache\d*|httpd|hdfs|hive|yarn|vagrant|deploy(?:er)?|mongodb?"
    r"|memcached?|sshd|messagebus|gitlab|backup|postfix|dovecot|bind|ntp|chrony|solr|cassandra|jupyter"
    r"|slurm|munge|ceph|nfsnobody|alice|bob"
)


def is_account(name: str) -> bool:
    """Does the name of an account tell of someone."""
    name = name.rstrip(".-")
    return len(name) > 2 and name.lower() not in GENERIC and not is_plain(name) and not _OPEN.fullmatch(name)


def _named(hit: re.Match[str] | None) -> Iterator[Hit]:
    for group in hit.groupdict() if hit else ():
        if hit is not None and hit[group] and is_account(hit[group]):
            yield hit.start(group), hit.start(group) + len(hit[group].rstrip(".-")), "USER"


def sudo_at(text: str, at: int) -> Iterator[Hit]:
    """The user as whom a command runs."""
    yield from _named(_SUDO.match(text, at))


def chown_at(text: str, at: int) -> Iterator[Hit]:
    """The user and the group that a file is given to."""
    yield from _named(_CHOWN.match(text, at))


def added_at(text: str, at: int) -> Iterator[Hit]:
    """The user who is added, changed or deleted."""
    yield from _named(_ADDED.match(text, at))


def whoami_at(text: str, at: int) -> Iterator[Hit]:
    """The user whom `whoami` answers with, on the line after the command."""
    if _ASKED.search(text[max(0, at - 80) : at]):
        yield from _named(_WHOAMI.match(text, at))


def scratch_at(text: str, at: int) -> Iterator[Hit]:
    """The user whose folder on a scratch disk it is."""
    if not text[at - 1 : at].isalnum() or at == 0:
        yield from _named(_SCRATCH.match(text, at))


def switched_in(text: str) -> Iterator[Hit]:
    """Users whom `su` turns into; no mark, as too many words hold its two letters."""
    for hit in _SU.finditer(text):
        yield from _named(hit)


MARKS: dict[str, tuple[Callable[[str, int], Iterator[Hit]], ...]] = {
    "sudo": (sudo_at,),
    "chown": (chown_at,),
    **dict.fromkeys(("useradd", "adduser", "usermod", "userdel", "deluser"), (added_at,)),
    "whoami": (whoami_at,),
    "/scratch": (scratch_at,),
}
