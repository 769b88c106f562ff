"""Judge stored rollouts again with the verifier as it is now, and say what changed."""

from __future__ import annotations

from blade_eval.reverify.changes import Changes
from blade_eval.reverify.rejudging import Done, Wish, reverified

__all__ = ["Changes", "Done", "Wish", "reverified"]
