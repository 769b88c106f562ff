"""`blade detectors`: the rule book, and how right each rule is where the truth is known."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import click

from blade.errors import UsageError


@click.command(short_help="The rule book: what each detector looks for, and how right it is.")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def detectors(name: str | None, as_json: bool) -> None:
    """List the detectors, or print one: its rule, its likely cause, its precision and its base rate.

    NAME is a detector such as repeat_identical, or its number such as B12.
    """
    from blade.detect import DETECTORS, NOT_BUILT

    card = _card()
    told = {key: _told(module.RULE, card) for key, module in DETECTORS.items()}
    if name is None:
        if as_json:
            click.echo(json.dumps({"detectors": list(told.values()), "not_built": NOT_BUILT}, indent=2))
            return
        for one in told.values():
            click.echo(f"{one['number']}  {one['name']:<30} {one['cause']:<3} {one['rule'].split('. ')[0]}")
        for number, why in NOT_BUILT.items():
            click.echo(f"{number}  not built: {why}")
        return
    chosen = next((one for key, one in told.items() if name.lower() in (key, one["number"].lower())), None)
    if chosen is None:
        from difflib import get_close_matches

        near = get_close_matches(name, told, 3, 0.4)
        hint = f"did you mean {', '.join(near)}?" if near else "`blade detectors` lists them"
        raise UsageError(f"there is no detector {name}", hint, "no-such-detector")
    click.echo(json.dumps(chosen, indent=2) if as_json else _text(chosen))


def _card() -> dict[str, Any]:
    from blade.pipeline.card import card

    found: dict[str, Any] = (card() or {}).get("detectors", {})
    return found


def _told(rule: Any, card: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": rule.name,
        "number": rule.number,
        "rule": rule.rule,
        "cause": rule.cause.value,
        "otherwise": rule.otherwise,
        "procedural": rule.procedural,
        "needs": list(rule.needs),
        "kind": rule.kind,
        "remedy": rule.remedy,
        "accuracy": card.get(rule.name),
    }


def _text(one: dict[str, Any]) -> str:
    label = one["cause"] + (f"; {one['otherwise']}" if one["otherwise"] else "")
    told = [
        ("Rule", one["rule"]),
        ("Label", label),
        ("Needs", ", ".join(one["needs"]) or "nothing but the row"),
        ("Remedy", f"{one['kind']}: {one['remedy']}"),
        *_accuracy(one["accuracy"]),
    ]
    lines = [f"{one['name']} ({one['number']})", ""]
    for name, text in told:
        lines += textwrap.wrap(text, 100, initial_indent=f"{name:<10}", subsequent_indent=" " * 10)
    return "\n".join(lines)


def _accuracy(card: dict[str, Any] | None) -> list[tuple[str, str]]:
    """How right the rule is: on planted faults, and how often it fires on public runs."""
    if card is None:
        return [("Accuracy", "not measured")]
    hits, right = card["n_fired"], card["n_right"]
    precision = (
        f"{right / hits:.0%} ({right:,} of {hits:,} rollouts it fires on)" if hits else "it never fired"
    )
    recall = f"{card['n_recalled']:,} of {card['n_planted']:,}" if card["n_planted"] else "no"
    passes = f"{card['in_pass']:,} of {card['of_pass']:,}" if card["of_pass"] else "no"
    told = [
        ("Precision", f"{precision} on planted faults"),
        ("Recall", f"{recall} planted faults found"),
        ("Base rate", f"fires on {passes} passing rollouts of the planted runs"),
    ]
    for name, natural in sorted(card.get("natural", {}).items()):
        fails, passes = (f"{natural[f'in_{w}']:,} of {natural[f'of_{w}']:,}" for w in ("fail", "pass"))
        told.append(("Public", f"{name}: fires on {fails} failing and {passes} passing"))
    return told
