"""Forty and more kinds of things that must not leave, drawn at random in the forms their makers use."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import yaml

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


Make = Callable[[random.Random], Canary]
# as it stands, letters and how many of them, anything else that is drawn
Part = str | tuple[str, int] | Callable[[random.Random], str]
Saying = Callable[[random.Random, str], str]
USED = ("using {} here", "export X={}", "got '{}' back")


def draw(rng: random.Random, letters: str, n: int) -> str:
    return "".join(rng.choice(letters) for _ in range(n))


def word(rng: random.Random, n: int = 7) -> str:
    pairs = [rng.choice("bcdfgklmnprstvz") + rng.choice("aeiou") for _ in range(n)]
    return "".join(pairs)[:n]


def words(n: int) -> Part:
    return lambda rng: word(rng, n)


def number(first: int, end: int) -> Part:
    return lambda rng: str(rng.randrange(first, end))


def one_of(*texts: str) -> Part:
    return lambda rng: rng.choice(texts)


def formed(*parts: Part, text: str | tuple[str, ...] | Saying = USED, name: str = "") -> Make:
    """A secret made of fixed pieces and drawn ones, in a sentence around it or in one of several."""

    def made(rng: random.Random) -> Canary:
        drawn = (draw(rng, *part) if isinstance(part, tuple) else part for part in parts)
        value = "".join(part if isinstance(part, str) else part(rng) for part in drawn)
        if callable(text):
            return Canary(value, text(rng, value), name)
        return Canary(value, (text if isinstance(text, str) else rng.choice(text)).format(value), name)

    return made


def token(prefix: str, letters: str, n: int) -> Make:
    """A secret that anyone knows by its beginning, in a sentence that says nothing else of it."""
    return formed(prefix, (letters, n))


def _named(names: tuple[str, ...], letters: str, n: int) -> Make:
    """A secret that only its name betrays."""

    def made(rng: random.Random) -> Canary:
        name, value = rng.choice(names), draw(rng, letters, n - 2) + "k7"
        text = rng.choice((f'{name} = "{value}"', f"{name.upper()}={value}", f"{name}: {value}"))
        return Canary(value, text, name)

    return made


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


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


def _internal_host(rng: random.Random) -> Canary:
    end = rng.choice(("corp", "internal", "local", "lan", "intranet", "svc.cluster.local", "ec2.internal"))
    value = f"{word(rng)}-{rng.randrange(10, 99)}.{end}"
    return Canary(value, f"connected to {value} in 3 ms", "hostname")


def _ipv4(rng: random.Random) -> Canary:
    tail = f"{rng.randrange(1, 255)}.{rng.randrange(1, 255)}"
    value = rng.choice(
        (f"10.{rng.randrange(255)}.{tail}", f"192.168.{tail}", f"172.{rng.randrange(16, 32)}.{tail}")
    )
    return Canary(value, rng.choice((f"listening on {value}:8000", f"ping {value}", f"host={value},")))


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


_QUERY = ("access_token", "sig", "key", "X-Amz-Signature", "token", "api_key")
_MYSQL = ("mysql", "mysqldump", "mysqladmin")


def _database(rng: random.Random, password: str) -> str:
    scheme = rng.choice(("postgresql", "mysql", "mongodb+srv", "redis", "amqp"))
    return f"{scheme}://svc_{word(rng)}:{password}@db.example.org:5432/main"


KINDS: dict[str, Make] = {
    "aws key id": token("AKIA", UPPER, 16),
    "aws secret": formed(
        (ALNUM + "/+", 38), "k7", text="aws_secret_access_key = {}", name="aws_secret_access_key"
    ),
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
    "slack webhook": formed(
        "T", (UPPER, 8), "/B", (UPPER, 8), "/", (ALNUM, 24),
        text="curl -X POST https://hooks.slack.com/services/{}"
    ),
    "stripe key": token("sk_live_", ALNUM, 24),
    "sendgrid key": formed("SG.", (ALNUM, 22), ".", (ALNUM, 43)),
    "twilio sid": token("AC", HEX, 32),
    "npm token": token("npm_", ALNUM, 36),
    "pypi token": token("pypi-AgEIcHlwaS5vcmc", ALNUM, 100),
    "databricks token": token("dapi", HEX, 32),
    "telegram bot": formed(number(10**8, 10**10), ":", (URLSAFE, 35), text="bot {} started"),
    "discord bot": formed("M", (ALNUM, 23), ".", (URLSAFE, 6), ".", (ALNUM, 27), text="client.run('{}')"),
    "web token": jwt,
    "private key": private_key,
    "azure storage": formed(
        (ALNUM + "+/", 86), "==",
        text="DefaultEndpointsProtocol=https;AccountName=acc;AccountKey={};EndpointSuffix=core.windows.net",
    ),
    "database password": formed((ALNUM, 14), text=_database),
    "basic auth": formed(
        lambda rng: _encoded(f"{word(rng)}:{draw(rng, ALNUM, 12)}"), text="Authorization: Basic {}"
    ),
    "bearer": formed((ALNUM, 32), text="Authorization: Bearer {}"),
    "cookie": formed((ALNUM, 32), text="Set-Cookie: sessionid={}; Path=/; HttpOnly"),
    "password by name": _named(("password", "db_password", "passwd", "smtp_pwd"), ALNUM, 12),
    "token by name": _named(("refresh_token", "access_token", "ci_token", "deploy_token"), ALNUM, 20),
    "api key by name": _named(("api_key", "apiKey", "client_secret", "encryption_key"), ALNUM, 24),
    "random near a word": formed(
        (ALNUM, 38), "k7",
        text=("the secret is {}", "wandb login with key: {}", "deploy token -> {}", "credentials {}"),
    ),
    "hex near a word": formed((HEX, 40), text="wandb: api key {}"),
    "url token": formed(
        (ALNUM, 20), text=lambda rng, key: f"https://files.example.org/a/b?v=2&{rng.choice(_QUERY)}={key}"
    ),
    "e-mail": formed(
        word, ".", word, "@", word, ".", one_of("com", "org", "io", "co.uk", "ai"),
        text=("ask {} about it", "<{}>", "mailto:{}", "to={};"),
    ),
    "user name": formed(
        words(6), number(10, 99), name="username",
        text=("USER={}", "-rw-r--r-- 1 {} staff 4096 Jan 10 10:00 notes.txt",
              "uid=1003({}) gid=1003 groups=1003", 'username: "{}"', "ssh {}@login-node-3"),
    ),
    "home (Linux)": formed(words(8), text="reading /home/{}/exp/run.py now"),
    "home (macOS)": formed(words(8), text="reading /Users/{}/Library/notes.txt now"),
    "home (Windows)": formed(words(8), text="reading C:\\Users\\{}\\Desktop\\a.txt now"),
    "home (cluster)": formed(words(8), text="reading /lustre/fsw/team/users/{}/ckpt now"),
    "internal host": _internal_host,
    "node name": formed(
        words(5), "-gpu-", number(100, 999), name="hostname",
        text=("HOSTNAME={}", "hostname: {}", "SLURMD_NODENAME={}", 'node_name = "{}"'),
    ),
    "private IPv4": _ipv4,
    "private IPv6": formed(
        "fd", (HEX, 2), ":", (HEX, 4), ":", (HEX, 4), "::", (HEX, 3), text="route via {} dev eth0"
    ),
    "network card": formed((HEX, 2), *((":", (HEX, 2)) * 5), text="link/ether {} brd ff:ff:ff:ff:ff:ff"),
    "internal URL": _internal_url,
    "unreleased name": _unreleased,
    "person (listed)": formed(one_of(*PEOPLE), text="reviewed with {} today"),
    "author of a commit": formed(
        lambda rng: f"{word(rng).title()} {word(rng).title()}",
        text=lambda rng, name: f"Author: {name} <{word(rng)}@{word(rng)}.org>",
    ),
}


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


def _hash(rng: random.Random) -> Canary:
    value = rng.choice((
        f"$6${draw(rng, ALNUM, 16)}${draw(rng, ALNUM + './', 86)}", f"$2y$10${draw(rng, ALNUM + './', 53)}",
        f"$apr1${draw(rng, ALNUM, 8)}${draw(rng, ALNUM + './', 22)}",
        f"$argon2id$v=19$m=65536,t=3,p=4${draw(rng, ALNUM, 22)}${draw(rng, ALNUM, 43)}",
    ))  # fmt: skip
    return Canary(value, f"{word(rng)}:{value}:19000:0:99999:7:::")


def _by_other(rng: random.Random) -> Canary:
    service = rng.choice(("mattermost", "netlify", "twitch", "travis", "plaid", "okta"))
    value = draw(rng, LOWER, 28) + "k7"
    return Canary(value, rng.choice((f'{service}_access = "{value}"', f"{service.upper()}={value}")))


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
    "uuid as a key": formed(
        (HEX, 8), *(("-", (HEX, 4)) * 3), "-", (HEX, 12), name="api_key",
        text=("HEROKU_API_KEY={}", 'api_key: "{}"', "SNYK_TOKEN={}"),
    ),
    "npmrc": formed(
        (ALNUM, 34), "k7",
        text=("//registry.example.org/npm/:_authToken={}", "//registry.example.org/npm/:_password={}"),
    ),
    "netrc": formed(
        (ALNUM, 10), "k7", text=lambda rng, key: f"machine api.example.org login {word(rng)} password {key}"
    ),
    "docker login": formed(
        lambda rng: _encoded(f"{word(rng)}:{draw(rng, ALNUM, 14)}"), name="auth",
        text='{{"auths": {{"registry.example.org": {{"auth": "{}"}}}}}}',
    ),
    "pgpass": formed((ALNUM, 10), "k7", text=lambda rng, key: f"db.example.org:5432:main:{word(rng)}:{key}"),
    "mysql -p": formed(
        (ALNUM, 10), "k7",
        text=lambda rng, key: f"{rng.choice(_MYSQL)} -h db.example.org -u {word(rng)} -p{key} main",
    ),
    "curl -u": _curl,
    "service account": _service_account,
    "service account key id": formed((HEX, 40), text='{{"type": "service_account", "private_key_id": "{}"}}'),
    "discord webhook": formed(
        (URLSAFE, 68),
        text=lambda rng, key: f"https://discord.com/api/webhooks/{rng.randrange(10**17, 10**18)}/{key}",
    ),
    "sentry address": formed(
        (HEX, 32),
        text=lambda rng, id: f"https://{id}@o{rng.randrange(10**5)}.ingest.sentry.io/{rng.randrange(10**6)}",
    ),
    "password hash": _hash,
    "kubernetes secret": formed(
        lambda rng: _encoded(draw(rng, ALNUM, 20)),
        text=lambda rng, key: f"kind: Secret\ntype: Opaque\ndata:\n  {word(rng)}: {key}",
    ),
    "aws pair": formed(
        (ALNUM + "/+", 38), "k7", text=lambda rng, key: f"AKIA{draw(rng, UPPER, 16)}{rng.choice(': ,')}{key}"
    ),
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
    "password as a pair": formed((ALNUM, 12), "k7", text='<add key="ClearTextPassword" value="{}" />'),
    "pinecone key": token("pcsk_", ALNUM, 70),
    "tavily key": token("tvly-dev-", ALNUM, 32),
    "sandbox key": token("e2b_", HEX, 40),
    "workspace key": token("dtn_", HEX, 64),
    "neon key": token("napi_", LOWER, 64),
    "resend key": formed("re_", (ALNUM, 8), "_", (ALNUM, 24)),
    "router key": token("sk-or-v1-", HEX, 64),
    "cloudinary": formed((ALNUM, 26), "7", text="cloudinary://123456789012345:{}@acme"),
    "ftp password": formed((ALNUM, 10), "7", text="ftp://maker:{}@files.example.org/x"),
    "redis -a": formed((ALNUM, 12), "7", text="redis-cli -h cache.example.org -a {} ping"),
    "wireguard key": formed((ALNUM + "+/", 42), "7", text="PrivateKey = {}="),
    "one-time seed": formed(
        (string.ascii_uppercase + "234567", 31), "7", text="otpauth://totp/acme?secret={}&issuer=acme"
    ),
}


_UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad"  # letters that no reader sees


def _torn(rng: random.Random, value: str) -> str:
    place = rng.randrange(2, len(value) - 2)
    return value[:place] + rng.choice(_UNSEEN) + value[place:]


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


def _human_password(rng: random.Random) -> Canary:
    value = rng.choice((word(rng, 9), word(rng, 7).title())) + str(rng.randrange(10, 2030))
    text = rng.choice((
        f"DB_PASS={value}", f"export SMTP_PW={value}", f"tool --http-password {value} -v",
        f"CREATE USER svc WITH PASSWORD '{value}'", f"the password is {value}", f"Passwort: {value}",
        f"IDENTIFIED BY '{value}'", f"redis-cli -a {value} ping", f"setx API_KEY {value}",
    ))  # fmt: skip
    return Canary(value, text, rng.choice(("", "DB_PASS", "password")))


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


def _cut_address(rng: random.Random) -> Canary:
    value = rng.choice(
        (f"192.168.{rng.randrange(2, 250)}.", f"10.{rng.randrange(2, 250)}.{rng.randrange(2, 250)}.")
    )
    return Canary(value, f"listening on {value}…")


DISGUISED: dict[str, Make] = {
    "e-mail, torn": formed(
        word, ".", word, "@", word, ".org", text=lambda rng, key: f"ask {_torn(rng, key)} about it"
    ),
    "token, torn": formed(
        one_of("ghp_", "hf_", "glpat-"), (ALNUM, 36), text=lambda rng, key: f"pushed with {_torn(rng, key)}"
    ),
    "token, glued": _glued,
    "token, cut": formed(
        one_of("ghp_", "sk-proj-", "hf_", "xoxb-", "glpat-"), (URLSAFE[:-2], 10), "7",
        text=("pushed with {}… and", "got {}...", "'{}…'"),
    ),
    "address, cut": _cut_address,
    "e-mail, foreign": _foreign_mail,
    "password with marks": _hard_password,
    "password of words": formed(
        words(6), *((" ", words(6)) * 3), text=('password = "{}"', 'passphrase = "{}"', 'PASSWORD = "{}"')
    ),
    "password of a person": _human_password,
    "shared disk": formed(
        word, number(10, 99), text=lambda rng, key: f"copied to \\\\{key}\\{word(rng)}\\plans.txt"
    ),
    "file address": formed(
        words(8),
        text=tuple(f"opened file:///{home}/{{}}/a.txt now" for home in ("home", "C:/Users", "Users"))
    ),
    "home (Windows forms)": _windows,
    "link-local IPv6": _link_local,
    "remote login": _remote,
    "web token in a header": _header,
    "private key, escaped": _escaped_key,
}


def _chosen(rng: random.Random) -> str:
    """A password as a person chooses it: only the words around it betray it."""
    return word(rng, rng.randrange(7, 12)).capitalize() + str(rng.randrange(10, 9999))


_FORMS: dict[str, str] = yaml.safe_load(Path(__file__).with_name("labelled.yaml").read_text(encoding="utf-8"))
LABELLED: dict[str, Make] = {f"labelled, {kind}": formed(_chosen, text=form) for kind, form in _FORMS.items()}


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

HELD_OUT: dict[str, Make] = {
    **{f"red team, {kind}": formed(_chosen, text=form) for kind, form in _RED_TEAM.items()},
    "red team, pin": formed(("123456789", 6), text="the PIN is {}"),
    "harness token": formed("pat.", (URLSAFE, 22), ".", (ALNUM, 24), ".", (ALNUM, 20)),
    "heroku key": token("HRKU-AA", URLSAFE, 58),
    "infracost key": token("ico-", ALNUM, 32),
    "school secret": token("s-s4t2ud-", HEX, 64),
    "grafana key": token("eyJrIjoi", ALNUM, 80),
    "gitlab session": formed((LOWER, 32), text="_gitlab_session={}"),
    "gitlab runner": token("GR1348941", URLSAFE, 20),
    "cloudflare token": formed("cfut_", (ALNUM, 40), (HEX, 8)),
    "packagist token": token("packagist_ort_", HEX, 68),
    "datadog token": token("ddpat_", ALNUM, 40),
    "dogma token": formed("appToken-", (HEX, 8), *(("-", (HEX, 4)) * 3), "-", (HEX, 12)),
    "jfrog key": formed((LOWER, 73), text='jfrog = "{}"'),
    "kraken key": formed((ALNUM + "+/", 86), text="KRAKEN={}"),
    "kucoin key": formed((HEX, 24), text="kucoin: {}"),
    "mailgun signature": formed((HEX, 32), "-", (HEX, 8), "-", (HEX, 8)),
    "license": formed((UPPER, 20), text="LICENSE_KEY={}"),
}
