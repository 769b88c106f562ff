"""Write report.schema.json: the JSON schema of report.json, made of the nouns and of the tables of report_json.py.

The comment behind a field, in `model` or in the tables, is its description. `make golden` writes the file; `--check`
only says whether it is up to date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from blade import model
from blade.report import report_json

ROOT = Path(__file__).resolve().parent.parent / "src" / "blade"
FILE = ROOT / "report" / "report.schema.json"
SOURCES = (*sorted((ROOT / "model").glob("*.py")), ROOT / "report" / "report_json.py", ROOT / "report" / "blocks.py")
_NOUN = re.compile(r"class (\w+)|    (?:model\.)?([A-Z]\w+): \{")
_FIELD = re.compile(r' +"?(\w+)"?: .*?  # (.+)')
_ABOVE = re.compile(r" +# (.+)")

# What no type says: noun -> schema that is added to that of its fields.
RULES: dict[str, dict[str, Any]] = {
    "Evidence": {
        "oneOf": [
            {"properties": {name: {"type": kind} for name, kind in zip(("step", "field", "quote"), kinds, strict=True)}}
            for kinds in (("integer", "null", "string"), ("null", "string", "string"), ("null", "null", "null"))
        ]
    },
    "Quote": {"oneOf": [{"required": ["step"]}, {"required": ["field"]}]},
}
FINITE = {("Term", "value"), ("Claim", "value")}  # numbers that are never null


def comments() -> Iterator[tuple[tuple[str, str], str]]:
    """The comment behind each field of each noun."""
    for path in SOURCES:
        noun = before = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if head := _NOUN.match(line):
                noun = head[1] or head[2]
            elif field := _FIELD.match(line):
                yield (noun, field[1]), field[2].replace("None:", "null:")
            elif (above := _ABOVE.match(before)) and (field := re.match(r' +"?(\w+)"?: ', line)):
                yield (noun, field[1]), above[1]
            before = line


def nullable(part: Any) -> Any:
    """A schema in which every measured number may be null: JSON has no nan."""
    if isinstance(part, list):
        return [nullable(entry) for entry in part]
    if not isinstance(part, dict):
        return part
    narrowed = {key: nullable(value) for key, value in part.items()}
    return {**narrowed, "type": ["number", "null"]} if part.get("type") == "number" else narrowed


def definition(noun: type[msgspec.Struct], texts: dict[tuple[str, str], str], open_: dict[str, Any]) -> dict[str, Any]:
    """The schema of one noun; what it refers to is put into `open_`."""
    members, required = {}, []
    for name, kind in report_json.types(noun).items():
        (schema,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
        open_ |= parts
        is_finite = (noun.__name__, name) in FINITE
        members[name] = schema if is_finite else nullable(schema)
        if (about := texts.get((noun.__name__, name))) is not None:
            members[name] = {**members[name], "description": about}
        required += [] if "UnsetType" in str(kind) else [name]
    about = {"description": (noun.__doc__ or "").split("\n")[0]} if noun.__doc__ else {}
    schema = {"type": "object", **about, "properties": members, "required": required, "additionalProperties": False}
    return schema | RULES.get(noun.__name__, {})


def document() -> dict[str, Any]:
    """The whole schema: the report, and every noun and list of words that it refers to."""
    known = {**vars(model), **vars(report_json)}
    texts, waiting, defined = dict(comments()), dict[str, Any](), dict[str, Any]()
    report = definition(model.Report, texts, waiting)
    while waiting:
        name, schema = waiting.popitem()
        if name not in defined:
            is_noun = schema.get("type") == "object"
            defined[name] = definition(known[name], texts, waiting) if is_noun else {"enum": schema["enum"]}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:blade:report:2",
        "title": f"BLADE report, wire format {report_json.SCHEMA}",
    }
    return {**head, **report, "$defs": dict(sorted(defined.items()))}


def main() -> int:
    text = json.dumps(document(), ensure_ascii=False, indent=1) + "\n"
    if "--check" not in sys.argv:
        FILE.write_text(text, encoding="utf-8")
    return int(FILE.read_text(encoding="utf-8") != text)


if __name__ == "__main__":
    sys.exit(main())
