"""Take out what must not leave the house: secrets, people, hosts, homes, names."""

from __future__ import annotations

from blade.sanitize.cleaner import Cleaner
from blade.sanitize.files import Export, clean_files, folder, folder_pairs
from blade.sanitize.keys import PLACEHOLDER, Key, known_key, own_key, read_key
from blade.sanitize.matching import is_redacted, matches
from blade.sanitize.nouns import leaks_of, redacted
from blade.sanitize.policy import Policy, policy_near, read_policy
from blade.sanitize.removed import Place, Removed, as_json, leak_lines

__all__ = [
    "PLACEHOLDER",
    "Cleaner",
    "Export",
    "Key",
    "Place",
    "Policy",
    "Removed",
    "as_json",
    "clean_files",
    "folder",
    "folder_pairs",
    "is_redacted",
    "known_key",
    "leak_lines",
    "leaks_of",
    "matches",
    "own_key",
    "policy_near",
    "read_key",
    "read_policy",
    "redacted",
]
