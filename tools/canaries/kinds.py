"""Forty and more kinds of things that must not leave, drawn at random in the forms their makers use."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from typing import NamedTuple

UNRELEASED = ("Quillmark Arena", "bryozoan-bench")
PEOPLE = ("Ottoline Fairweather", "Bartosz Zielonka")

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"


class Canary(NamedTuple):
    """A private value, and how a file or a tool would say it."""

    value: str  # what must not survive
    said: str  # on one line, with what usually stands beside it
    name: str = ""  # the key it usually stands under


def draw(rng: random.Random, letters: str, n: int) -> str:
    return "".join(rng.choice(letters) for _ in range(n))


def token(prefix: str, letters: str, n: int) -> Callable[[random.Random], Canary]:
    """A secret that anyone knows by its beginning, in a sentence that says nothing else of it."""

    def made(rng: random.Random) -> Canary:
        value = prefix + draw(rng, letters, n)
        return Canary(value, rng.choice((f"using {value} here", f"export X={value}", f"got '{value}' back")))

    return made


def _named(names: tuple[str, ...], letters: str, n: int) -> Callable[[random.Random], Canary]:
    """A secret that only its name betrays."""

    def made(rng: random.Random) -> Canary:
        name, value = rng.choice(names), draw(rng, letters, n - 2) + "k7"
        said = rng.choice((f'{name} = "{value}"', f"{name.upper()}={value}", f"{name}: {value}"))
        return Canary(value, said, name)

    return made


def word(rng: random.Random, n: int = 7) -> str:
    pairs = [rng.choice("bcdfgklmnprstvz") + rng.choice("aeiou") for _ in range(n)]
    return "".join(pairs)[:n]


def _aws_secret(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM + "/+", 38) + "k7"
    return Canary(value, f"aws_secret_access_key = {value}", "aws_secret_access_key")


def _slack_webhook(rng: random.Random) -> Canary:
    value = f"T{draw(rng, UPPER, 8)}/B{draw(rng, UPPER, 8)}/{draw(rng, ALNUM, 24)}"
    return Canary(value, f"curl -X POST https://hooks.slack.com/services/{value}")


def _telegram(rng: random.Random) -> Canary:
    value = f"{rng.randrange(10**8, 10**10)}:{draw(rng, URLSAFE, 35)}"
    return Canary(value, f"bot {value} started")


def _discord(rng: random.Random) -> Canary:
    value = f"M{draw(rng, ALNUM, 23)}.{draw(rng, URLSAFE, 6)}.{draw(rng, ALNUM, 27)}"
    return Canary(value, f"client.run('{value}')")


def jwt(rng: random.Random) -> Canary:
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": draw(rng, string.digits, 8), "iat": 1516239022})
    ]
    value = ".".join([*parts, draw(rng, URLSAFE, 43)])
    return Canary(value, f"received {value} from the gateway")


def private_key(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM + "+/", 64)
    kind = rng.choice(("RSA ", "EC ", "OPENSSH ", ""))
    more = draw(rng, ALNUM + "+/", 64)
    return Canary(
        value, f"-----BEGIN {kind}PRIVATE KEY-----\n{value}\n{more}\n-----END {kind}PRIVATE KEY-----"
    )


def _azure(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM + "+/", 86) + "=="
    said = (
        f"DefaultEndpointsProtocol=https;AccountName=acc;AccountKey={value};EndpointSuffix=core.windows.net"
    )
    return Canary(value, said)


def _database(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 14)
    scheme = rng.choice(("postgresql", "mysql", "mongodb+srv", "redis", "amqp"))
    return Canary(value, f"{scheme}://svc_{word(rng)}:{value}@db.example.org:5432/main")


def _basic(rng: random.Random) -> Canary:
    value = base64.b64encode(f"{word(rng)}:{draw(rng, ALNUM, 12)}".encode()).decode()
    return Canary(value, f"Authorization: Basic {value}")


def _bearer(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 32)
    return Canary(value, f"Authorization: Bearer {value}")


def _cookie(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 32)
    return Canary(value, f"Set-Cookie: sessionid={value}; Path=/; HttpOnly")


def _entropy(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 38) + "k7"
    word = rng.choice(("the secret is", "wandb login with key:", "deploy token ->", "credentials"))
    return Canary(value, f"{word} {value}")


def _hex_entropy(rng: random.Random) -> Canary:
    value = draw(rng, HEX, 40)
    return Canary(value, f"wandb: api key {value}")


def _mail(rng: random.Random) -> Canary:
    value = f"{word(rng)}.{word(rng)}@{word(rng)}.{rng.choice(('com', 'org', 'io', 'co.uk', 'ai'))}"
    return Canary(
        value, rng.choice((f"ask {value} about it", f"<{value}>", f"mailto:{value}", f"to={value};"))
    )


def _user(rng: random.Random) -> Canary:
    value = f"{word(rng, 6)}{rng.randrange(10, 99)}"
    said = rng.choice((
        f"USER={value}", f"-rw-r--r-- 1 {value} staff 4096 Jan 10 10:00 notes.txt",
        f"uid=1003({value}) gid=1003 groups=1003", f'username: "{value}"', f"ssh {value}@login-node-3",
    ))  # fmt: skip
    return Canary(value, said, "username")


def _home(form: str) -> Callable[[random.Random], Canary]:
    def made(rng: random.Random) -> Canary:
        value = word(rng, 8)
        return Canary(value, f"reading {form.format(value)} now")

    return made


def _internal_host(rng: random.Random) -> Canary:
    end = rng.choice(("corp", "internal", "local", "lan", "intranet", "svc.cluster.local", "ec2.internal"))
    value = f"{word(rng)}-{rng.randrange(10, 99)}.{end}"
    return Canary(value, f"connected to {value} in 3 ms", "hostname")


def _node(rng: random.Random) -> Canary:
    value = f"{word(rng, 5)}-gpu-{rng.randrange(100, 999)}"
    said = (f"HOSTNAME={value}", f"hostname: {value}", f"SLURMD_NODENAME={value}", f'node_name = "{value}"')
    return Canary(value, rng.choice(said), "hostname")


def _ipv4(rng: random.Random) -> Canary:
    tail = f"{rng.randrange(1, 255)}.{rng.randrange(1, 255)}"
    value = rng.choice(
        (f"10.{rng.randrange(255)}.{tail}", f"192.168.{tail}", f"172.{rng.randrange(16, 32)}.{tail}")
    )
    return Canary(value, rng.choice((f"listening on {value}:8000", f"ping {value}", f"host={value},")))


def _ipv6(rng: random.Random) -> Canary:
    value = f"fd{draw(rng, HEX, 2)}:{draw(rng, HEX, 4)}:{draw(rng, HEX, 4)}::{draw(rng, HEX, 3)}"
    return Canary(value, f"route via {value} dev eth0")


def _mac(rng: random.Random) -> Canary:
    value = ":".join(draw(rng, HEX, 2) for _ in range(6))
    return Canary(value, f"link/ether {value} brd ff:ff:ff:ff:ff:ff")


def _internal_url(rng: random.Random) -> Canary:
    host = rng.choice(
        (f"{word(rng)}.corp", f"{word(rng)}.internal", f"10.1.{rng.randrange(9)}.7:8080", word(rng))
    )
    value = f"{host}/{word(rng)}/{word(rng)}"
    return Canary(value, f"GET http://{value} 200")


def _unreleased(rng: random.Random) -> Canary:
    value = rng.choice(UNRELEASED)
    value = rng.choice((value, value.lower(), value.upper()))
    return Canary(value, f"scores on {value} are not public")


def _person(rng: random.Random) -> Canary:
    value = rng.choice(PEOPLE)
    return Canary(value, f"reviewed with {value} today")


def _author(rng: random.Random) -> Canary:
    value = f"{word(rng).title()} {word(rng).title()}"
    return Canary(value, f"Author: {value} <{word(rng)}@{word(rng)}.org>")


def _url_token(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 20)
    name = rng.choice(("access_token", "sig", "key", "X-Amz-Signature", "token", "api_key"))
    return Canary(value, f"https://files.example.org/a/b?v=2&{name}={value}")


KINDS: dict[str, Callable[[random.Random], Canary]] = {
    "aws key id": token("AKIA", UPPER, 16),
    "aws secret": _aws_secret,
    "github token": token("ghp_", ALNUM, 36),
    "github fine-grained": token("github_pat_", ALNUM, 60),
    "gitlab token": token("glpat-", URLSAFE, 20),
    "openai key": token("sk-proj-", ALNUM, 48),
    "anthropic key": token("sk-ant-api03-", ALNUM, 80),
    "hugging face token": token("hf_", ALNUM, 34),
    "nvidia key": token("nvapi-", ALNUM, 64),
    "google api key": token("AIza", ALNUM, 35),
    "google oauth secret": token("GOCSPX-", ALNUM, 28),
    "slack token": token("xoxb-", string.digits + "abcdef", 40),
    "slack webhook": _slack_webhook,
    "stripe key": token("sk_live_", ALNUM, 24),
    "sendgrid key": lambda rng: token("SG." + draw(rng, ALNUM, 22) + ".", ALNUM, 43)(rng),
    "twilio sid": token("AC", HEX, 32),
    "npm token": token("npm_", ALNUM, 36),
    "pypi token": token("pypi-AgEIcHlwaS5vcmc", ALNUM, 100),
    "databricks token": token("dapi", HEX, 32),
    "telegram bot": _telegram,
    "discord bot": _discord,
    "web token": jwt,
    "private key": private_key,
    "azure storage": _azure,
    "database password": _database,
    "basic auth": _basic,
    "bearer": _bearer,
    "cookie": _cookie,
    "password by name": _named(("password", "db_password", "passwd", "smtp_pwd"), ALNUM, 12),
    "token by name": _named(("refresh_token", "access_token", "ci_token", "deploy_token"), ALNUM, 20),
    "api key by name": _named(("api_key", "apiKey", "client_secret", "encryption_key"), ALNUM, 24),
    "random near a word": _entropy,
    "hex near a word": _hex_entropy,
    "url token": _url_token,
    "e-mail": _mail,
    "user name": _user,
    "home (Linux)": _home("/home/{}/exp/run.py"),
    "home (macOS)": _home("/Users/{}/Library/notes.txt"),
    "home (Windows)": _home("C:\\Users\\{}\\Desktop\\a.txt"),
    "home (cluster)": _home("/lustre/fsw/team/users/{}/ckpt"),
    "internal host": _internal_host,
    "node name": _node,
    "private IPv4": _ipv4,
    "private IPv6": _ipv6,
    "network card": _mac,
    "internal URL": _internal_url,
    "unreleased name": _unreleased,
    "person (listed)": _person,
    "author of a commit": _author,
}
