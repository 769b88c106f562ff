"""Count what is spent on questions, in tokens and money, and stop before a cap is passed."""

from __future__ import annotations

import asyncio

import msgspec

EXPECTED_OUT = 350  # tokens of an answer, where nobody counted them
_MILLION = 1_000_000
_LONGEST = 10  # no tokenizer makes less than a tenth of the tokens that we estimate


class Usage(msgspec.Struct, frozen=True):
    """Tokens in and out, and how many of them were estimated: the endpoint did not say, or too few."""

    tokens_in: int = 0
    tokens_out: int = 0
    estimated: int = 0

    @property
    def total(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.estimated + other.estimated,
        )


def believed(counted: Usage | None, most: Usage, text: str) -> Usage:
    """What a call is charged with: what the endpoint says, unless it says nothing or less than can be.

    A cap must bind at an endpoint that counts nothing, too: there the greater of both counts.
    """
    is_likely = counted is not None and counted.tokens_in * _LONGEST >= most.tokens_in
    if counted is not None and is_likely and (counted.tokens_out or not text):
        return counted
    tokens_in, tokens_out = most.tokens_in, min(most.tokens_out, max(EXPECTED_OUT, len(text) // 4))
    if counted is not None:
        tokens_in, tokens_out = max(counted.tokens_in, tokens_in), max(counted.tokens_out, tokens_out)
    return Usage(tokens_in, tokens_out, tokens_in + tokens_out)


class Price(msgspec.Struct, frozen=True):
    """Dollars for a million tokens."""

    per_in: float
    per_out: float

    def of(self, usage: Usage) -> float:
        return (usage.tokens_in * self.per_in + usage.tokens_out * self.per_out) / _MILLION


class Cap(msgspec.Struct, frozen=True):
    """The most that may be spent; None: no limit."""

    cost: float | None = None
    tokens: int | None = None


class Purse:
    """What was spent, what is being spent, and whether one more call fits."""

    def __init__(self, cap: Cap, price: Price | None = None) -> None:
        self.cap, self.price = cap, price
        self.spent = Usage()
        self._out = Usage()  # by calls under way, at most
        self._calls = 0
        self._settled = asyncio.Event()

    def take(self, most: Usage) -> bool:
        """Set aside the most that a call can cost; False if that would pass the cap."""
        if not self._fits(self._out + most):
            return False
        self._out, self._calls = self._out + most, self._calls + 1
        return True

    async def taken(self, most: Usage) -> bool:
        """The same once calls under way are over, where they decide: mostly they cost less than set aside."""
        while not self.take(most):
            if not self._calls:
                return False
            self._settled.clear()
            await self._settled.wait()
        return True

    def settle(self, most: Usage, cost: Usage) -> None:
        """A call for which `most` was set aside did cost this."""
        left = Usage(-most.tokens_in, -most.tokens_out, -most.estimated)
        self._out, self._calls = self._out + left, self._calls - 1
        self.spent += cost
        self._settled.set()

    def _fits(self, more: Usage) -> bool:
        usage = self.spent + more
        if self.cap.tokens is not None and usage.total > self.cap.tokens:
            return False
        return self.cap.cost is None or self.price is None or self.price.of(usage) <= self.cap.cost
