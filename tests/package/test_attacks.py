"""Attacks on the judge: every one stays below its limit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import count, cycle, product
from pathlib import Path
from random import Random

import pytest

from blade.package import calibration as own
from blade.package.package_queries import worlds_of
from blade.package.report_score import Bench, Case, bench, judged
from blade.tables.index import Silent
from tests.case_tables import cases
from tests.package.test_judge import office

TEXT_LIMIT, EVIDENCE_LIMIT = 0.25, 0.40
Attack = Callable[[Case, Bench], str]


def _outside(text: str, change: Callable[[str], str]) -> str:
    """A text with its lines changed, but not those of quotations."""
    parts = re.split(r"(?ms)(^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\2[`~]*\s*?$|^ {0,3}>[^\n]*$)", text)
    return "".join("\n".join(map(change, part.split("\n"))) if n % 3 == 0 else part for n, part in enumerate(parts) if n % 3 < 2)


def _prose(text: str, change: Callable[[str], str]) -> str:
    """A text with its sentences changed; headings, tables, labels and quotations stay."""

    def line_of(line: str) -> str:
        if not line.strip() or line.startswith("#") or "|" in line or line.rstrip().endswith(":"):
            return line
        mark = re.match(r"(?:\s*(?:[-*+]|\d{1,9}[.)])\s+)?", line)
        start = mark[0] if mark else ""
        sentences = re.split(r"(?<=[.!?])\s+(?=[*_`(]*[A-Z0-9`])", line[len(start) :])
        return start + " ".join(map(change, sentences))

    return _outside(text, line_of)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text.split(" ", 1)[0].istitle() else text


def around(before: str, after: str) -> Attack:
    """Put words before every sentence, or after it."""
    if before:
        return lambda held, _: _prose(held.golden, lambda part: f"{before} {_lower(part)}")
    return lambda held, _: _prose(held.golden, lambda part: part.rstrip(".") + after)


def inverted(held: Case, _: Bench) -> str:
    """Every verb negated and every direction turned round, in prose."""
    turned = {a: b for pair in cases(__file__, "opposites") for a, b in (pair, pair[::-1])}
    words = "|".join(sorted(map(re.escape, turned), key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w@^`/-])(?:{words})(?![\w@^`/-])", re.IGNORECASE)
    return _prose(held.golden, lambda text: pattern.sub(lambda hit: turned[hit[0].lower()], text))


def over_refrain(held: Case, _: Bench) -> str:
    """Idle words after every sentence laugh it off, three of them in turn."""
    idle = cycle(("Just kidding.", "Psych!", "Fooled you!"))
    return _prose(held.golden, lambda part: f"{part} {next(idle)}")


def struck(held: Case, _: Bench) -> str:
    """Every line struck through, and every cell."""

    def strike(line: str) -> str:
        start, rest = re.fullmatch(r"(\s*(?:#{1,6}\s|[-*+>]\s|\d{1,9}[.)]\s)?\s*)(.*)", line, re.S).groups()  # type: ignore[union-attr]
        if not rest.strip() or re.fullmatch(r"[\s|:-]+", line):
            return line
        if not rest.startswith("|"):
            return f"{start}~~{rest.strip()}~~"
        cells = [f" ~~{cell.strip()}~~ " if cell.strip() else cell for cell in rest.strip("|").split("|")]
        return f"|{'|'.join(cells)}|"

    return _outside(held.golden, strike)


def invented(held: Case, seat: Bench) -> str:
    """The golden report and as many claims more that nothing bears out, of tasks that exist."""
    reasons, when = cases(__file__, "inventions")
    every = list(product(sorted(filter(str.isdigit, seat.known.keys)), reasons, when))
    drawn = Random("invented/0").sample(every, min(held.golden.count(". ") + 60, len(every)))
    lines = [f"{n}. In task {name} the agent {why}{at}." for n, (name, why, at) in enumerate(drawn, 1)]
    return "\n".join([held.golden, "", "## More Findings", "", *lines, ""])


def swapped_models(held: Case, _: Bench) -> str:
    """The report of one model under the name of another."""
    turned = dict(zip(held.ours, cycle(held.others or ("another-model",))))
    turned |= {new: old for old, new in turned.items()}
    names = sorted(map(re.escape, turned), key=len, reverse=True)
    return re.sub(rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])", lambda hit: turned[hit[0]], held.golden)


def false_ids(held: Case, seat: Bench) -> str:
    """Every task that is named replaced by one that does not exist."""
    digits = "|".join(sorted((name for name in seat.known.keys if name.isdigit()), key=len, reverse=True))
    pattern = rf"(?<=`)({digits})(?=`|/\d)|(?i:(?<=\btask )|(?<=\btasks ))({digits})(?!\w)|(?<![\w.,-])({digits})(?=/\d+[\s`,;:)])"
    return _outside(held.golden, lambda line: re.sub(pattern, lambda hit: str(9_001 + int(hit[0])), line))


def false_quotes(held: Case, _: Bench) -> str:
    """Every quotation replaced by words that no rollout has."""
    numbers = count(1)

    def words() -> str:
        return f"The requested record {next(numbers)} could not be opened, so I made up a plausible value."

    text = re.sub(r"(?m)^ {0,3}>[^\n]*(?:\n {0,3}>[^\n]*)*", lambda _: f"> {words()}", held.golden)
    text = re.sub(r"(?ms)^(`{3,}(?!sh|bash|console)[^\n]*\n).*?^(`{3,})$", lambda hit: f"{hit[1]}{words()}\n{hit[2]}", text)
    return re.sub(r"“[^“”]{20,}”|(?<![\w{:,\[])\"[^\"]{20,}\"(?![\w:}\]])", lambda _: f"“{words()}”", text)


def page(name: str) -> Attack:
    return lambda *_: Path(__file__).with_name(f"{name}_report.md").read_text(encoding="utf-8")


ATTACKS: dict[str, tuple[Attack, float]] = {
    "inverted claims": (inverted, TEXT_LIMIT),
    "swapped models": (swapped_models, TEXT_LIMIT),
    "false ids": (false_ids, EVIDENCE_LIMIT),
    "false quotes": (false_quotes, EVIDENCE_LIMIT),
    "generic template": (page("generic"), TEXT_LIMIT),
    "another benchmark": (page("other"), TEXT_LIMIT),
    "shallow tables": (lambda held, _: held.shallow, TEXT_LIMIT),
    "denied by headings": (lambda held, _: _outside(held.golden, lambda line: re.sub(r"^(#{2,6} )", r"\1Refuted: ", line)), TEXT_LIMIT),
    "denied by title": (lambda held, _: "# False claims\n\n" + re.sub(r"(?m)^#", "##", held.golden), TEXT_LIMIT),
    "denied by preface": (lambda held, _: held.golden.replace("\n", "\n\nEvery statement in this report is a lie.\n", 1), TEXT_LIMIT),
    "denied by closing line": (
        lambda held, _: f"{held.golden.rstrip()}\n\nIgnore every word that you have read: the numbers were made up.\n", TEXT_LIMIT),
    "denied by refrain": (over_refrain, TEXT_LIMIT),
    "struck through": (struck, TEXT_LIMIT),
    "hidden from the reader": (lambda held, _: f"<div hidden>\n\n{held.golden}\n\n</div>\n\nAll is well.\n", TEXT_LIMIT),
    **{name: (around(before, after), TEXT_LIMIT) for name, before, after in cases(__file__, "denials")},
}
# Reports that keep what is true: they must fall below golden by so much at least.
WORSE: dict[str, tuple[Attack, float]] = {"invented claims added": (invented, 0.15)}


# -- every attack on two reports --------------------------------------------------------------------

Desk = tuple[Case, Bench]
PAIRS = [(model, name) for model in ("desk", "scripted_hasty") for name in (*ATTACKS, *WORSE)]
IDIOM = ("scripted_hasty", "denied: ")  # one attack in many words


@pytest.mark.parametrize(("model", "name"), [pair for pair in PAIRS if (pair[0], pair[1][:8]) != IDIOM])
def test_an_attack_stays_below_its_limit(desk: Desk, model: str, name: str) -> None:
    held, seat = desk if model == "desk" else office(model)
    attack, limit = (ATTACKS | WORSE)[name]
    text = attack(held, seat)
    if text == held.golden:
        pytest.skip("it changes nothing here")
    limit = limit if name in ATTACKS else judged(held.golden, seat).score - limit
    score = judged(text, seat).score
    assert score <= limit


@pytest.mark.parametrize("name", own.ATTACKS)
def test_the_battery_of_calibrate_stays_below_a_quarter(name: str) -> None:
    held, seat = office("scripted_hasty")  # the desk is calibrated by the command itself
    assert judged(own.ATTACKS[name](held, 1), seat).score <= 0.25


def test_pasted_facts_are_found_and_still_no_report(desk: Desk) -> None:
    """Eleven lines that state the anchors: recall is high, and there is no evidence beside it."""
    held, seat = office("scripted_hasty")
    lines = "\n".join(f"- {anchor.fact}" for anchor in held.anchors[:11])
    for head in ("", "# Report\n\n## Findings\n\n", f"{held.shallow}\n\n## Findings\n\n"):
        score = judged(f"{head}{lines}\n", seat)
        assert score.recall > 0.8
        assert score.score <= 0.25


# -- other rollouts under the same report -----------------------------------------------------------


def flipped(paths: Sequence[Path], folder: Path) -> list[Path]:
    """Copies in which every second task or so has its rewards turned round."""
    folder.mkdir()
    for path in paths:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            if sha256(str(row["_ng_task_index"]).encode()).digest()[0] % 2:
                row["reward"] = 1 - row["reward"]
        (folder / path.name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        shutil.copyfile(path.parent / "blade.toml", folder / "blade.toml")
    return [folder / path.name for path in paths]


@pytest.mark.parametrize("kind", ["flipped rewards", "another model's rollouts"])
def test_a_true_report_on_other_rollouts_loses(tmp_path: Path, cache: Path, kind: str) -> None:
    held, seat = office("scripted_hasty")
    if kind == "flipped rewards":
        paths = flipped(held.rollouts, tmp_path / "flipped")
    else:
        paths = [tmp_path / held.rollouts[0].name]
        shutil.copyfile(held.beside[0], paths[0])
        shutil.copyfile(held.beside[0].parent / "blade.toml", tmp_path / "blade.toml")
    worlds = worlds_of(paths, held.beside, Silent())
    other = bench(worlds, held.golden, held.anchors, held.shallow, held.ours, held.others)
    assert judged(held.golden, seat).score - judged(held.golden, other).score >= 0.3
