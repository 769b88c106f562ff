"""Names into a random generator that draws the same on every machine."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def seeded_rng(*parts: str) -> np.random.Generator:
    """A generator seeded by `parts`: their order counts, and ("ab", "c") is not ("a", "bc")."""
    digest = blake2b(digest_size=16)
    for part in parts:
        # Lone surrogates occur in task ids read from broken JSON.
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return np.random.default_rng(int.from_bytes(digest.digest(), "big"))
