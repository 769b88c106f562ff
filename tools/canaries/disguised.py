"""Kinds of private values in disguise: torn, glued, cut, with odd letters, in forms easy to miss."""

from __future__ import annotations

import random
from collections.abc import Callable

from tools.canaries.kinds import ALNUM, HEX, URLSAFE, Canary, draw, jwt, private_key, word

_UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad"  # letters that no reader sees


def _torn(rng: random.Random, value: str) -> str:
    at = rng.randrange(2, len(value) - 2)
    return value[:at] + rng.choice(_UNSEEN) + value[at:]


def _torn_mail(rng: random.Random) -> Canary:
    value = f"{word(rng)}.{word(rng)}@{word(rng)}.org"
    return Canary(value, f"ask {_torn(rng, value)} about it")


def _torn_token(rng: random.Random) -> Canary:
    value = rng.choice(("ghp_", "hf_", "glpat-")) + draw(rng, ALNUM, 36)
    return Canary(value, f"pushed with {_torn(rng, value)}")


def _glued(rng: random.Random) -> Canary:
    value = rng.choice(("AKIA" + draw(rng, ALNUM.upper()[26:], 16), "ghp_" + draw(rng, ALNUM, 36)))
    return Canary(value, f"{rng.choice(('key', 'x', 'my_', 'TOKEN_', 'a1'))}{value}")


def _foreign_mail(rng: random.Random) -> Canary:
    value = rng.choice((
        f"{word(rng)}ü@{word(rng)}.de", f"{word(rng)}@{word(rng)}ö{word(rng, 3)}.ch",
        f"иван{word(rng, 3)}@почта.рф",
        f"{word(rng)}@例え.jp", f"{word(rng)}é.{word(rng)}@{word(rng)}.fr", f"o'{word(rng)}@{word(rng)}.ie",
    ))  # fmt: skip
    return Canary(value, rng.choice((f"ask {value} about it", f"<{value}>", f"mail={value}")))


def _hard_password(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 5) + rng.choice("&;|<>(){}[],") + draw(rng, ALNUM, 5) + "k7"
    name = rng.choice(("password", "DB_PASSWORD", "client_secret"))
    said = rng.choice((f'{name} = "{value}"', f"{name}='{value}'", f'"{name}": "{value}"', f"{name}={value}"))
    return Canary(value[-6:], said)


def _phrase(rng: random.Random) -> Canary:
    value = " ".join(word(rng, 6) for _ in range(4))
    return Canary(value, f'{rng.choice(("password", "passphrase", "PASSWORD"))} = "{value}"')


def _human_password(rng: random.Random) -> Canary:
    value = rng.choice((word(rng, 9), word(rng, 7).title())) + str(rng.randrange(10, 2030))
    said = rng.choice((
        f"DB_PASS={value}", f"export SMTP_PW={value}", f"tool --http-password {value} -v",
        f"CREATE USER svc WITH PASSWORD '{value}'", f"the password is {value}", f"Passwort: {value}",
        f"IDENTIFIED BY '{value}'", f"redis-cli -a {value} ping", f"setx API_KEY {value}",
    ))  # fmt: skip
    return Canary(value, said, rng.choice(("", "DB_PASS", "password")))


def _share(rng: random.Random) -> Canary:
    value = word(rng) + str(rng.randrange(10, 99))
    return Canary(value, f"copied to \\\\{value}\\{word(rng)}\\plans.txt")


def _file_url(rng: random.Random) -> Canary:
    value = word(rng, 8)
    form = rng.choice(("file:///home/{}/a.txt", "file:///C:/Users/{}/a.txt", "file:///Users/{}/a.txt"))
    return Canary(value, f"opened {form.format(value)} now")


def _windows(rng: random.Random) -> Canary:
    value = rng.choice((word(rng, 8), f"{word(rng, 5).title()}.{word(rng, 6).title()}"))
    form = rng.choice(
        ("C:\\Users\\{}\\x", "c:/users/{}/x", "D:\\\\Users\\\\{}\\\\x", "%SystemDrive%\\Users\\{}\\x")
    )
    return Canary(value, f"in {form.format(value)} now")


def _link_local(rng: random.Random) -> Canary:
    tail = ":".join(draw(rng, HEX, 4) for _ in range(4))
    value = rng.choice(
        (f"fe80::{tail}", f"fd00::{draw(rng, HEX, 4)}", f"fd00::{draw(rng, HEX, 2)}", f"fc00:{tail}::1")
    )
    said = rng.choice((f"inet6 {value}/64 scope link", f"ping6 {value}%eth0", f"http://[{value}]:8080/x"))
    return Canary(value, said)


def _remote(rng: random.Random) -> Canary:
    value = word(rng, 6) + str(rng.randrange(10, 99))
    host = rng.choice((f"{word(rng)}.example.org", f"{word(rng)}-3", "203.0.113.9"))
    said = rng.choice((
        f"ssh {value}@{host}", f"ssh -p 2222 -i key.pem {value}@{host} ls", f"scp a.txt {value}@{host}:/tmp/",
        f"rsync -av out/ {value}@{host}:out/", f"git clone ssh://{value}@{host}/repo.git",
        f"ssh -l {value} {host}",
    ))  # fmt: skip
    return Canary(value, said)


def _header(rng: random.Random) -> Canary:
    value = jwt(rng).value
    said = rng.choice(
        (f"x-access-token: {value}", f"curl -H 'Authorization: JWT {value}'", f"Cookie: jwt={value}")
    )
    return Canary(value, said)


def _escaped_key(rng: random.Random) -> Canary:
    made = private_key(rng)
    return Canary(made.value, made.said.replace("\n", rng.choice(("\\n", "\\\\n", "\\r\\n"))))


def _cut_token(rng: random.Random) -> Canary:
    value = rng.choice(("ghp_", "sk-proj-", "hf_", "xoxb-", "glpat-")) + draw(rng, URLSAFE[:-2], 10) + "7"
    return Canary(value, rng.choice((f"pushed with {value}… and", f"got {value}...", f"'{value}…'")))


def _cut_address(rng: random.Random) -> Canary:
    value = rng.choice(
        (f"192.168.{rng.randrange(2, 250)}.", f"10.{rng.randrange(2, 250)}.{rng.randrange(2, 250)}.")
    )
    return Canary(value, f"listening on {value}…")


DISGUISED: dict[str, Callable[[random.Random], Canary]] = {
    "e-mail, torn": _torn_mail,
    "token, torn": _torn_token,
    "token, glued": _glued,
    "token, cut": _cut_token,
    "address, cut": _cut_address,
    "e-mail, foreign": _foreign_mail,
    "password with marks": _hard_password,
    "password of words": _phrase,
    "password of a person": _human_password,
    "shared disk": _share,
    "file address": _file_url,
    "home (Windows forms)": _windows,
    "link-local IPv6": _link_local,
    "remote login": _remote,
    "web token in a header": _header,
    "private key, escaped": _escaped_key,
}
