"""Turn a seed into invented office text of a wished length."""

from __future__ import annotations

from random import Random

WHO = (
    "The clerk", "Our depot", "The customer", "A courier", "The night shift", "The warehouse",
    "The help desk", "The second team", "A returning buyer", "The billing office", "The packing line",
    "The supplier",
)  # fmt: skip
DOES = (
    "asks for", "has confirmed", "still waits for", "cannot find", "has corrected", "wants to cancel",
    "reports", "has opened", "must approve", "has written down", "doubts", "repeats",
)  # fmt: skip
WHAT = (
    "the delivery note", "a second invoice", "the address change", "a partial refund",
    "the missing parcel", "an express upgrade", "the return label", "the price match", "a damaged lamp",
    "the order total", "the pickup window", "a gift receipt", "the warranty card", "the spare cable",
)  # fmt: skip
WHEN = (
    "before noon", "since Tuesday", "after the weekend", "within two days", "for the third time",
    "at closing time", "this quarter", "without a reference", "as the policy allows",
    "in the old system", "on the same ticket",
)  # fmt: skip
ABROAD = (
    "die Rückgabe läuft über das Lager in Köln",
    "le reçu n’a pas été envoyé à temps",
    "注文は昨日発送されました",
    "el número de pedido está equivocado",
    "zwrot środków trwa trzy dni – proszę czekać",
    "заказ уже отправлен",
    "a encomenda não chegou ☂",
)


def sentences(rng: Random, count: int) -> list[str]:
    """Draw `count` plain English sentences; some carry numbers, quotes or a list mark."""
    drawn = []
    for who, does, what, when in zip(
        rng.choices(WHO, k=count),
        rng.choices(DOES, k=count),
        rng.choices(WHAT, k=count),
        rng.choices(WHEN, k=count),
        strict=True,
    ):
        shape = rng.random()
        if shape < 0.12:
            drawn.append(f"{who} {does} {what} (ref {rng.randrange(10_000, 99_999)}) {when}.")
        elif shape < 0.2:
            drawn.append(f'{who} {does} {what} and says "please settle this {when}".')
        elif shape < 0.28:
            drawn.append(f"\n- {who} {does} {what} {when};")
        else:
            drawn.append(f"{who} {does} {what} {when}.")
    return drawn


def talk(rng: Random, count: int) -> str:
    """`count` whole sentences in one paragraph."""
    return " ".join(sentence.strip("\n- ;").rstrip(".") + "." for sentence in sentences(rng, count))


def prose(rng: Random, size: int, *, abroad: bool = False) -> str:
    """About `size` characters of text in paragraphs; with `abroad` some of it is not ASCII."""
    drawn = sentences(rng, max(1, size // 50 + 2))
    if abroad:
        for at in range(0, len(drawn), 5):
            drawn[at] = rng.choice(ABROAD) + "."
    paragraphs = [" ".join(drawn[at : at + 6]) for at in range(0, len(drawn), 6)]
    return "\n\n".join(paragraphs)[: max(1, size)].rstrip()
