"""Kinds from the same public sources for which no rule was mended: they tell how far the rules carry.

They do not count for the limit. Whoever mends a rule for one of them moves it to `public` and draws another.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tools.canaries.kinds import ALNUM, HEX, LOWER, UPPER, URLSAFE, Canary, draw, token
from tools.canaries.public import formed


def _named(form: str, letters: str, n: int) -> Callable[[random.Random], Canary]:
    """A secret that only the name of its service betrays."""

    def made(rng: random.Random) -> Canary:
        value = draw(rng, letters, n)
        return Canary(value, form.format(value))

    return made


HELD_OUT: dict[str, Callable[[random.Random], Canary]] = {
    "harness token": formed("pat.", (URLSAFE, 22), ".", (ALNUM, 24), ".", (ALNUM, 20)),
    "heroku key": token("HRKU-AA", URLSAFE, 58),
    "infracost key": token("ico-", ALNUM, 32),
    "school secret": token("s-s4t2ud-", HEX, 64),
    "grafana key": token("eyJrIjoi", ALNUM, 80),
    "gitlab session": _named("_gitlab_session={}", LOWER, 32),
    "gitlab runner": token("GR1348941", URLSAFE, 20),
    "cloudflare token": formed("cfut_", (ALNUM, 40), (HEX, 8)),
    "packagist token": token("packagist_ort_", HEX, 68),
    "datadog token": token("ddpat_", ALNUM, 40),
    "dogma token": formed("appToken-", (HEX, 8), *(("-", (HEX, 4)) * 3), "-", (HEX, 12)),
    "jfrog key": _named('jfrog = "{}"', LOWER, 73),
    "kraken key": _named("KRAKEN={}", ALNUM + "+/", 86),
    "kucoin key": _named("kucoin: {}", HEX, 24),
    "mailgun signature": formed((HEX, 32), "-", (HEX, 8), "-", (HEX, 8)),
    "license": _named("LICENSE_KEY={}", UPPER, 20),
}
