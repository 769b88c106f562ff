"""Take out what must not leave the house: secrets, people, hosts, homes, names."""

from __future__ import annotations

from blade.sanitize.cleaner import Cleaner
from blade.sanitize.files import clean_files, folder, leaks_in_file
from blade.sanitize.keys import PLACEHOLDER, Key, known_key, own_key, read_key
from blade.sanitize.leaking import Leak, leaks
from blade.sanitize.matching import is_redacted, matches
from blade.sanitize.nouns import leaks_of, redacted
from blade.sanitize.policy import Policy, joined, policy_near, policy_of, read_policy
from blade.sanitize.removed import Place, Removed, as_json

__all__ = [
    "PLACEHOLDER",
    "Cleaner",
    "Key",
    "Leak",
    "Place",
    "Policy",
    "Removed",
    "as_json",
    "clean_files",
    "folder",
    "is_redacted",
    "joined",
    "known_key",
    "leaks",
    "leaks_in_file",
    "leaks_of",
    "matches",
    "own_key",
    "policy_near",
    "policy_of",
    "read_key",
    "read_policy",
    "redacted",
]
