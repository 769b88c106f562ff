"""Kinds that were drawn up after the rules were written, from the same public sources: the honest measure."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

from canaries.kinds import ALNUM, HEX, LOWER, UPPER, URLSAFE, Canary, draw, token
from canaries.public import formed


def _by_name(rng: random.Random) -> Canary:
    service = rng.choice(("mattermost", "netlify", "twitch", "travis", "plaid", "okta"))
    value = draw(rng, LOWER, 28) + "k7"
    return Canary(value, rng.choice((f'{service}_access = "{value}"', f"{service.upper()}={value}")))


def _config_pair(rng: random.Random) -> Canary:
    value = draw(rng, ALNUM, 12) + "k7"
    return Canary(value, f'<add key="ClearTextPassword" value="{value}" />')


HELD_OUT: dict[str, Callable[[random.Random], Canary]] = {
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
    "key by other service": _by_name,
    "password as a pair": _config_pair,
}
