"""Replace what must not be shared: secrets, people, hosts, homes, names."""

from __future__ import annotations

from blade.sanitize.cleaner import Cleaner
from blade.sanitize.files import Export, Removed, as_json, clean_files, folder, folder_pairs, leak_lines
from blade.sanitize.policy import Key, Policy, known_key, own_key, policy_near, read_key, read_policy
from blade.sanitize.redaction import Redactor, redacted

__all__ = [
    "Cleaner", "Export", "Key", "Policy", "Redactor", "Removed", "as_json", "clean_files", "folder",
    "folder_pairs", "known_key", "leak_lines", "own_key", "policy_near", "read_key", "read_policy", "redacted",
]  # fmt: skip
