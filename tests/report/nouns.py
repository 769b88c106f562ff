"""Read made-up nouns from nouns.yaml, the foreign texts in them as the test wants them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

NOUNS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("nouns.yaml").read_text(encoding="utf-8"))
Word = Callable[[str], str]
Noun = TypeVar("Noun", bound=msgspec.Struct)


def nouns(kind: type[Noun], name: str, word: Word = str, **fields: Any) -> tuple[Noun, ...]:
    """The nouns of this name; `word` makes every foreign text, `fields` are what stands there as $."""

    def filled(value: Any) -> Any:
        if not isinstance(value, str) or value[:1] not in ("~", "$"):
            return value
        return word(value[1:]) if value[0] == "~" else fields[value[1:]]

    rows = ([filled(value) for value in row] for row in NOUNS[name])
    return tuple(msgspec.convert(dict(zip(kind.__struct_fields__, row, strict=False)), kind) for row in rows)
