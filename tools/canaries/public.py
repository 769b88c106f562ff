"""Kinds of secrets in the forms that public rules of secret scanners and manuals of tools describe."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

from tools.canaries.kinds import ALNUM, HEX, LOWER, UPPER, URLSAFE, Canary, draw, token, word

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
    said = rng.choice(
        (f'{service}_api = "{value}"', f"{service.upper()}_ACCESS={value}", f"{service}: {value}")
    )
    return Canary(value, said)


def _uuid_key(rng: random.Random) -> Canary:
    value = "-".join(draw(rng, HEX, n) for n in (8, 4, 4, 4, 12))
    said = rng.choice((f"HEROKU_API_KEY={value}", f'api_key: "{value}"', f"SNYK_TOKEN={value}"))
    return Canary(value, said, "api_key")


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
    held = {"type": "service_account", "private_key_id": draw(rng, HEX, 40), "private_key": key}
    return Canary(value, json.dumps(held))


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
