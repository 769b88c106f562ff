"""Ask what the owner of the benchmark says: values of verifier fields whose meaning `blade.toml` declares."""

from __future__ import annotations

from collections.abc import Sequence

from blade.diagnose.population import Findings, Group, Mask, Population, count
from blade.model import Code


def ask(people: Population, left: Mask, codes: Sequence[Code]) -> Findings:
    found = Findings()
    for code in codes:
        if code.cause == "passed":
            continue
        rows = people.where(lambda row: row.fields.get(code.field) == code.equals) & left  # noqa: B023
        if rows.any():
            left = left & ~rows
            found.groups.append(_group(code, rows, int(rows.sum())))
    return found


def _group(code: Code, rows: Mask, n: int) -> Group:
    field, value = code.field, str(code.equals)
    return Group(
        rung="declared", label=code.cause, name=code.mode, rows=rows, matched=rows, confidence="proved", deciding=(field,),
        text=f"{count(n, 'failure')}: {code.mode} (`{field}` is `{value[:100]}`, which `blade.toml` explains so).",
        fix=f"Repair what `{field}` = `{value[:60]}` stands for: {code.mode}.",
        why="`blade.toml` declares what this value means", place=lambda row: (field, value),
        holds=lambda row: row.fields.get(field) == code.equals,
    )  # fmt: skip
