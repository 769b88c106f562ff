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
        text = rng.choice((f'{name} = "{value}"', f"{name.upper()}={value}", f"{name}: {value}"))
        return Canary(value, text, name)

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
    text = (
        f"DefaultEndpointsProtocol=https;AccountName=acc;AccountKey={value};EndpointSuffix=core.windows.net"
    )
    return Canary(value, text)


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
    text = rng.choice((
        f"USER={value}", f"-rw-r--r-- 1 {value} staff 4096 Jan 10 10:00 notes.txt",
        f"uid=1003({value}) gid=1003 groups=1003", f'username: "{value}"', f"ssh {value}@login-node-3",
    ))  # fmt: skip
    return Canary(value, text, "username")


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
    text = (f"HOSTNAME={value}", f"hostname: {value}", f"SLURMD_NODENAME={value}", f'node_name = "{value}"')
    return Canary(value, rng.choice(text), "hostname")


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


Make = Callable[[random.Random], Canary]


def formed(*parts: str | tuple[str, int]) -> Make:
    """A secret made of fixed pieces and drawn ones."""

    def made(rng: random.Random) -> Canary:
        value = "".join(part if isinstance(part, str) else draw(rng, *part) for part in parts)
        return Canary(value, rng.choice((f"using {value} here", f"export X={value}", f"got '{value}' back")))

    return made


def _by_service(rng: random.Random) -> Canary:
    """The name of the service says what it is, and nothing says that it is a key."""
    service = rng.choice(
        ("algolia", "datadog", "cohere", "meraki", "cloudflare", "fastly", "airtable", "asana")
    )
    value = draw(rng, LOWER, 30) + "k7"
    text = rng.choice(
        (f'{service}_api = "{value}"', f"{service.upper()}_ACCESS={value}", f"{service}: {value}")
    )
    return Canary(value, text)


def _uuid_key(rng: random.Random) -> Canary:
    value = "-".join(draw(rng, HEX, n) for n in (8, 4, 4, 4, 12))
    text = rng.choice((f"HEROKU_API_KEY={value}", f'api_key: "{value}"', f"SNYK_TOKEN={value}"))
    return Canary(value, text, "api_key")


def _npmrc(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 34) + "k7"
    return Canary(value, f"//registry.example.org/npm/:_{rng.choice(('authToken', 'password'))}={value}")


def _netrc(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 10) + "k7"
    return Canary(value, f"machine api.example.org login {word(rng)} password {value}")


def _docker(rng: random.Random) -> Canary:
    value = base64.b64encode(f"{word(rng)}:{draw(rng, ALNUM, 14)}".encode()).decode()
    return Canary(value, json.dumps({"auths": {"registry.example.org": {"auth": value}}}), "auth")


def _pgpass(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 10) + "k7"
    return Canary(value, f"db.example.org:5432:main:{word(rng)}:{value}")


def _mysql(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 10) + "k7"
    tool = rng.choice(("mysql", "mysqldump", "mysqladmin"))
    return Canary(value, f"{tool} -h db.example.org -u {word(rng)} -p{value} main")


def _curl(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 8) + rng.choice("!#%") + "k7"
    flag = rng.choice(("-u ", "--user ", "--user=", "-u"))
    quote = rng.choice(("", "'", '"'))
    return Canary(value, f"curl {flag}{quote}{word(rng)}:{value}{quote} https://api.example.org/v1")


def _service_account(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM + "+/", 64)
    key = f"-----BEGIN PRIVATE KEY-----\n{value}\n{draw(rng, ALNUM, 40)}==\n-----END PRIVATE KEY-----\n"
    content = {"type": "service_account", "private_key_id": draw(rng, HEX, 40), "private_key": key}
    return Canary(value, json.dumps(content))


def _key_id(rng: random.Random) -> Canary:
    value = draw(rng, HEX, 40)
    return Canary(value, json.dumps({"type": "service_account", "private_key_id": value}))


def _discord_hook(rng: random.Random) -> Canary:
    value = draw(rng, URLSAFE, 68)
    return Canary(value, f"https://discord.com/api/webhooks/{rng.randrange(10**17, 10**18)}/{value}")


def _sentry(rng: random.Random) -> Canary:
    value = draw(rng, HEX, 32)
    return Canary(value, f"https://{value}@o{rng.randrange(10**5)}.ingest.sentry.io/{rng.randrange(10**6)}")


def _hash(rng: random.Random) -> Canary:
    value = rng.choice((
        f"$6${draw(rng, ALNUM, 16)}${draw(rng, ALNUM + './', 86)}", f"$2y$10${draw(rng, ALNUM + './', 53)}",
        f"$apr1${draw(rng, ALNUM, 8)}${draw(rng, ALNUM + './', 22)}",
        f"$argon2id$v=19$m=65536,t=3,p=4${draw(rng, ALNUM, 22)}${draw(rng, ALNUM, 43)}",
    ))  # fmt: skip
    return Canary(value, f"{word(rng)}:{value}:19000:0:99999:7:::")


def _kubernetes(rng: random.Random) -> Canary:
    value = base64.b64encode(draw(rng, ALNUM, 20).encode()).decode()
    return Canary(value, f"kind: Secret\ntype: Opaque\ndata:\n  {word(rng)}: {value}")


def _pair(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM + "/+", 38) + "k7"
    return Canary(value, f"AKIA{draw(rng, UPPER, 16)}{rng.choice((':', ' ', ','))}{value}")


def _by_other(rng: random.Random) -> Canary:
    service = rng.choice(("mattermost", "netlify", "twitch", "travis", "plaid", "okta"))
    value = draw(rng, LOWER, 28) + "k7"
    return Canary(value, rng.choice((f'{service}_access = "{value}"', f"{service.upper()}={value}")))


def _attributes(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 12) + "k7"
    return Canary(value, f'<add key="ClearTextPassword" value="{value}" />')


def _address(form: str, letters: str, n: int) -> Make:
    """A secret that its place in an address or a line gives away."""

    def made(rng: random.Random) -> Canary:
        value = draw(rng, letters, n) + "7"
        return Canary(value, form.format(value))

    return made


PUBLIC: dict[str, Make] = {
    "1password key": formed(
        "A3-", (UPPER, 6), "-", (UPPER, 6), "-", (UPPER, 5), "-", (UPPER, 5), "-", (UPPER, 5), "-", (UPPER, 5)
    ),
    "adobe secret": token("p8e-", ALNUM, 32),
    "alibaba key id": token("LTAI", ALNUM, 20),
    "azure client secret": formed((ALNUM, 3), "8Q~", (ALNUM + "_~.-", 30), "k7"),
    "clickhouse key": token("4b1d", ALNUM, 38),
    "clojars token": token("CLOJARS_", LOWER, 60),
    "cloudflare origin key": formed("v1.0-", (HEX, 24), "-", (HEX, 146)),
    "dynatrace token": formed("dt0c01.", (UPPER, 24), ".", (UPPER, 64)),
    "duffel token": token("duffel_live_", URLSAFE, 43),
    "easypost key": token("EZAK", ALNUM, 54),
    "flutterwave key": formed("FLWSECK_TEST-", (HEX, 32), "-X"),
    "fly token": token("fo1_", URLSAFE, 43),
    "frame.io token": token("fio-u-", URLSAFE, 64),
    "dropbox token": token("sl.", URLSAFE, 135),
    "facebook app token": formed((string.digits, 16), "|", (URLSAFE, 27)),
    "network token": formed("dnkey-", (URLSAFE, 26), "-", (URLSAFE, 52)),
    "authress key": formed("sc_", (LOWER, 14), ".", (LOWER, 5), ".acc_", (LOWER, 20), ".", (URLSAFE, 60)),
    "key by service": _by_service,
    "uuid as a key": _uuid_key,
    "npmrc": _npmrc,
    "netrc": _netrc,
    "docker login": _docker,
    "pgpass": _pgpass,
    "mysql -p": _mysql,
    "curl -u": _curl,
    "service account": _service_account,
    "service account key id": _key_id,
    "discord webhook": _discord_hook,
    "sentry address": _sentry,
    "password hash": _hash,
    "kubernetes secret": _kubernetes,
    "aws pair": _pair,
    "lob key": token("live_", HEX, 35),
    "maxmind key": formed((ALNUM, 6), "_", (ALNUM, 29), "_mmk"),
    "octopus key": token("API-", UPPER, 26),
    "openshift token": token("sha256~", URLSAFE, 43),
    "planetscale token": token("pscale_tkn_", URLSAFE, 43),
    "prefect token": token("pnu_", ALNUM, 36),
    "readme token": token("rdme_", LOWER, 70),
    "scalingo token": token("tk-us-", URLSAFE, 48),
    "sendinblue key": formed("xkeysib-", (HEX, 64), "-", (ALNUM, 16)),
    "settlemint token": token("sm_pat_", ALNUM, 16),
    "shippo token": token("shippo_live_", HEX, 40),
    "sourcegraph token": token("sgp_", HEX, 40),
    "typeform token": token("tfp_", URLSAFE, 59),
    "yandex key": token("AQVN", URLSAFE, 35),
    "okta token": token("00", URLSAFE, 40),
    "plaid token": formed("access-sandbox-", (HEX, 8), *(("-", (HEX, 4)) * 3), "-", (HEX, 12)),
    "twitter token": formed((string.digits, 18), "-", (ALNUM, 30)),
    "new relic key": token("NRII-", LOWER, 32),
    "key by other service": _by_other,
    "password as a pair": _attributes,
    "pinecone key": token("pcsk_", ALNUM, 70),
    "tavily key": token("tvly-dev-", ALNUM, 32),
    "sandbox key": token("e2b_", HEX, 40),
    "workspace key": token("dtn_", HEX, 64),
    "neon key": token("napi_", LOWER, 64),
    "resend key": formed("re_", (ALNUM, 8), "_", (ALNUM, 24)),
    "router key": token("sk-or-v1-", HEX, 64),
    "cloudinary": _address("cloudinary://123456789012345:{}@acme", ALNUM, 26),
    "ftp password": _address("ftp://maker:{}@files.example.org/x", ALNUM, 10),
    "redis -a": _address("redis-cli -h cache.example.org -a {} ping", ALNUM, 12),
    "wireguard key": _address("PrivateKey = {}=", ALNUM + "+/", 42),
    "one-time seed": _address(
        "otpauth://totp/acme?secret={}&issuer=acme", string.ascii_uppercase + "234567", 31
    ),
}


_UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad"  # letters that no reader sees


def _torn(rng: random.Random, value: str) -> str:
    place = rng.randrange(2, len(value) - 2)
    return value[:place] + rng.choice(_UNSEEN) + value[place:]


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
    text = rng.choice((f'{name} = "{value}"', f"{name}='{value}'", f'"{name}": "{value}"', f"{name}={value}"))
    return Canary(value[-6:], text)


def _phrase(rng: random.Random) -> Canary:
    value = " ".join(word(rng, 6) for _ in range(4))
    return Canary(value, f'{rng.choice(("password", "passphrase", "PASSWORD"))} = "{value}"')


def _human_password(rng: random.Random) -> Canary:
    value = rng.choice((word(rng, 9), word(rng, 7).title())) + str(rng.randrange(10, 2030))
    text = rng.choice((
        f"DB_PASS={value}", f"export SMTP_PW={value}", f"tool --http-password {value} -v",
        f"CREATE USER svc WITH PASSWORD '{value}'", f"the password is {value}", f"Passwort: {value}",
        f"IDENTIFIED BY '{value}'", f"redis-cli -a {value} ping", f"setx API_KEY {value}",
    ))  # fmt: skip
    return Canary(value, text, rng.choice(("", "DB_PASS", "password")))


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
    text = rng.choice((f"inet6 {value}/64 scope link", f"ping6 {value}%eth0", f"http://[{value}]:8080/x"))
    return Canary(value, text)


def _remote(rng: random.Random) -> Canary:
    value = word(rng, 6) + str(rng.randrange(10, 99))
    host = rng.choice((f"{word(rng)}.example.org", f"{word(rng)}-3", "203.0.113.9"))
    text = rng.choice((
        f"ssh {value}@{host}", f"ssh -p 2222 -i key.pem {value}@{host} ls", f"scp a.txt {value}@{host}:/tmp/",
        f"rsync -av out/ {value}@{host}:out/", f"git clone ssh://{value}@{host}/repo.git",
        f"ssh -l {value} {host}",
    ))  # fmt: skip
    return Canary(value, text)


def _header(rng: random.Random) -> Canary:
    value = jwt(rng).value
    text = rng.choice(
        (f"x-access-token: {value}", f"curl -H 'Authorization: JWT {value}'", f"Cookie: jwt={value}")
    )
    return Canary(value, text)


def _escaped_key(rng: random.Random) -> Canary:
    built = private_key(rng)
    return Canary(built.value, built.said.replace("\n", rng.choice(("\\n", "\\\\n", "\\r\\n"))))


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


def _service_key(form: str, letters: str, n: int) -> Callable[[random.Random], Canary]:
    """A secret that only the name of its service betrays."""

    def made(rng: random.Random) -> Canary:
        value = draw(rng, letters, n)
        return Canary(value, form.format(value))

    return made


def _chosen_in(form: str) -> Callable[[random.Random], Canary]:
    """A password that a person chose, which only the words around it betray."""

    def made(rng: random.Random) -> Canary:
        value = word(rng, rng.randrange(7, 12)).capitalize() + str(rng.randrange(10, 9999))
        return Canary(value, form.format(value))

    return made


# What a red team carried past the rules at 0ae1a9e, before any was written for it.
_RED_TEAM = {
    "ansible": "ansible_become_pass: {}",
    "html input": "<input type=password value={}>",
    "sql insert": "INSERT INTO users (name, password) VALUES ('bo', '{}')",
    "terraform": 'variable "db_password" {{ default = "{}" }}',
    "curl": "curl -su bo:{} https://example.org/x",
    "keystore": "keytool -list -storepass {}",
    "literal": "kubectl create secret generic s --from-literal=password={}",
    "powershell": 'ConvertTo-SecureString "{}" -AsPlainText -Force',
    "sudo": "echo {} | sudo -S ls",
    "openssl": "openssl enc -aes-256-cbc -k {} -in a",
    "changed": "the password was changed to {}",
    "wifi": "WIFI:T:WPA;S:office;P:{};;",
    "login pair": "login: admin / {}",
    "ssh key": "ssh-keygen -t rsa -N {} -f k",
    "windows user": "net user bo {} /add",
    "redis": "requirepass {}",
    "router": "username bo privilege 15 password 0 {}",
}

HELD_OUT: dict[str, Callable[[random.Random], Canary]] = {
    **{f"red team, {kind}": _chosen_in(form) for kind, form in _RED_TEAM.items()},
    "red team, pin": lambda rng: Canary(value := draw(rng, "123456789", 6), f"the PIN is {value}"),
    "harness token": formed("pat.", (URLSAFE, 22), ".", (ALNUM, 24), ".", (ALNUM, 20)),
    "heroku key": token("HRKU-AA", URLSAFE, 58),
    "infracost key": token("ico-", ALNUM, 32),
    "school secret": token("s-s4t2ud-", HEX, 64),
    "grafana key": token("eyJrIjoi", ALNUM, 80),
    "gitlab session": _service_key("_gitlab_session={}", LOWER, 32),
    "gitlab runner": token("GR1348941", URLSAFE, 20),
    "cloudflare token": formed("cfut_", (ALNUM, 40), (HEX, 8)),
    "packagist token": token("packagist_ort_", HEX, 68),
    "datadog token": token("ddpat_", ALNUM, 40),
    "dogma token": formed("appToken-", (HEX, 8), *(("-", (HEX, 4)) * 3), "-", (HEX, 12)),
    "jfrog key": _service_key('jfrog = "{}"', LOWER, 73),
    "kraken key": _service_key("KRAKEN={}", ALNUM + "+/", 86),
    "kucoin key": _service_key("kucoin: {}", HEX, 24),
    "mailgun signature": formed((HEX, 32), "-", (HEX, 8), "-", (HEX, 8)),
    "license": _service_key("LICENSE_KEY={}", UPPER, 20),
}
