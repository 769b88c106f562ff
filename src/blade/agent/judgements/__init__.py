"""Turn what people and agents say of failed tasks into judgements: verified, kept, weighed."""

from __future__ import annotations

from blade.agent.judgements.agreement import agreements
from blade.agent.judgements.kept import append, held, read, withdrawal
from blade.agent.judgements.standing import standing
from blade.agent.judgements.verified import KEYS, Seen, again, verified

__all__ = [
    "KEYS", "Seen", "again", "agreements", "append", "held", "read", "standing", "verified", "withdrawal",
]  # fmt: skip
