"""Turn a predicate into a sentence with its counts, and into a form for a program."""

from __future__ import annotations

from blade import hostile
from blade.discover import grammar
from blade.discover.choose import SOMETIMES, Predicate
from blade.discover.kinds import CHANGES

# Feature -> what rollouts that show it do, and what those that lack it do.
_WORDS = {
    "calls": ("call `{}`", "never call `{}`"),
    "gold_found": ("get the expected answer from a tool", "never get the expected answer from any tool"),
    "gold_ids_touched": (
        "give every expected id to some call",
        "never give one or more of the expected ids to any call",
    ),
    "misses_gold_write": (
        "leave out, or only fail at, an expected call that changes something",
        "make every expected call that changes something",
    ),
    "abstention": (
        "say in their final text that they cannot answer or that their sources do not tell",
        "do not say in their final text that they cannot answer or that their sources do not tell",
    ),
    "writes": ("change something with `{}`", "never change anything with `{}`"),
    "checks": ("check with `{}`", "never check with `{}`"),
    "runs": ("run `{}`", "never run `{}`"),
    "first_call": ("begin with `{}`", "do not begin with `{}`"),
    "last_call": ("end their calls with `{}`", "do not end their calls with `{}`"),
    "call_failed": ("have a failed call of `{}`", "have no failed call of `{}`"),
    "last_call_failed": ("end on a failed call", "do not end on a failed call"),
    "repeats": ("repeat a call of `{}` unchanged", "never repeat a call of `{}` unchanged"),
    "arguments_no_json": ("give `{}` arguments that are no JSON", "give `{}` only JSON arguments"),
    "ends": ("end with an item of kind {}", "do not end with an item of kind {}"),
    "no_message": ("say nothing at all", "say something"),
    "cut_off": ("are cut off by {}", "are not cut off by {}"),
    "final_empty": ("say nothing after their last call", "say something after their last call"),
    "final_has": ("have a final text with a {}", "have a final text without a {}"),
    "final_is": ("answer with nothing but {}", "do not answer with nothing but {}"),
    "answer only": (
        "have a final text that is the answer alone, without reasoning",
        "have a final text that is more than the answer alone",
    ),
    "final_script": ("have a final text in {} script", "have no final text in {} script"),
    "says": ("use the word “{}” in their final text", "do not use the word “{}” in their final text"),
    "opens_with": ("open their final text with “{}”", "do not open their final text with “{}”"),
    "closes_with": ("close their final text with “{}”", "do not close their final text with “{}”"),
    "output_says": ("get the result “{}”", "never get the result “{}”"),
    "judge_says": ("have “{}” in the judge's text", "do not have “{}” in the judge's text"),
}
_COUNTS = {
    "n_calls": "tool calls",
    "n_tools": "different tools",
    "n_writes": "calls that change something",
    "n_failed": "failed calls",
    "n_repeated": "calls repeated unchanged",
    "n_user_turns": "turns of the user",
    "final_chars": "characters of final text",
}

_CONDITIONS = {
    SOMETIMES: " of tasks that both pass and fail",
    CHANGES: " whose task expects a call that changes something",
    "final_given": " with a final text",
    "gold_answer": " that call a tool and whose task names the answer it expects",
    "gold_ids": " whose task expects calls with certain ids",
}


def sentence(one: Predicate) -> str:
    """Counts and pass rates of both sides, in words."""
    total = one.n_with + one.n_without
    others = "those that do" if does(one).startswith("never ") else "the others"
    return (
        f"Of the {total:,} completed rollouts{where(one.condition)}, {one.n_with:,} {does(one)}: "
        f"{share(one.c_with, one.n_with)} of them pass, "
        f"against {share(one.c_without, one.n_without)} of {others}."
    )


def share(count: int, of: int) -> str:
    """A percentage; 0% and 100% only where they are exact."""
    percent = round(100 * count / of)
    if percent == 0 and count:
        return "<1%"
    return ">99%" if percent == 100 and count < of else f"{percent}%"


def does(one: Predicate) -> str:
    """What the rollouts that show a predicate do."""
    name, inner, cut, _ = grammar.split(one.feature)
    told = hostile.line(inner, 90)
    if cut is not None:
        return _counted(name, told, cut, one.absent)
    if name == "arg":
        return _argument(told, one.absent)
    if name == "field":
        return _field(told, one.absent)
    yes, no = _WORDS.get(
        grammar.kind(one.feature),
        (f"show `{hostile.line(one.feature, 90)}`", f"lack `{hostile.line(one.feature, 90)}`"),
    )
    return (no if one.absent else yes).format(told)


def _counted(name: str, inner: str, cut: str, absent: bool) -> str:
    amount = f"{float(cut):,.0f}" if float(cut) == int(float(cut)) else cut
    bound = f"fewer than {amount}" if absent else f"{amount} or more"
    if float(cut) == 1:
        bound = "no" if absent else "one or more"
    if name == "calls":
        return f"make {bound} calls of `{inner}`"
    if name == "length":
        tool, _, key = inner.rpartition(".")
        return f"give {bound} entries as `{key}` to `{tool}`"
    if name == "field":
        return f"have `{inner}` {'below' if absent else 'at or above'} {amount}"
    return f"have {bound} {_COUNTS.get(name, name)}"


def _argument(inner: str, absent: bool) -> str:
    place, _, value = inner.partition("=")
    tool, _, key = place.rpartition(".")
    if value:
        return f"{'never give' if absent else 'give'} `{tool}` the `{key}` “{value}”"
    return f"{'never give' if absent else 'give'} `{tool}` a `{key}`"


def _field(inner: str, absent: bool) -> str:
    if inner.endswith(" is given"):
        return f"{'lack' if absent else 'have'} the field `{inner.removesuffix(' is given')}`"
    name, _, value = inner.partition("=")
    return f"have `{name}` {'other than' if absent else '='} {value}"


def where(condition: str) -> str:
    """The rollouts that are compared, in words."""
    return "".join(_where(part) for part in condition.split(" & ") if part)


def _where(condition: str) -> str:
    if condition in _CONDITIONS:
        return _CONDITIONS[condition]
    name, inner, _, _ = grammar.split(condition)
    told = hostile.line(inner, 160)
    if name == "gold_has" and told.startswith("*"):
        return f" whose task expects a call with “{told.strip('*')}” in its name"
    if name == "gold_has":
        return " whose task expects " + " or ".join(f"`{tool}`" for tool in told.split("|"))
    if name == "gold_lacks":
        return f" whose task expects no `{told}`"
    if name == "calls":
        return f" that call `{told}`"
    field, _, value = condition.partition("=")
    return f" of tasks with `{hostile.line(field, 60)}` = {hostile.line(value, 80)}"


def predicate(one: Predicate) -> str:
    """The predicate for a program."""
    told = f"not {one.feature}" if one.absent else one.feature
    if one.absent and one.feature.startswith("calls("):
        told = f"never_{one.feature}"
    return f"{told} within {one.condition}" if one.condition else told
