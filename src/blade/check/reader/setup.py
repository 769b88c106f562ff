"""Turn what is said of how a run was made into claims: model, benchmark, temperature, repeats."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader.ground import Reading
from blade.check.reader.lines import Line
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT
from blade.model import Assertion

_NAME = r"(?P<name>`[^`]{2,80}`|[A-Za-z][\w.:/-]*\w)"
_IS = r"\s*(?:\*\*)?\s*(?::|=|\bis\b|\bwas\b)\s*(?:called\s+|named\s+|the\s+)?"
_MODEL = re.compile(
    rf"\b(?:the\s+)?(?:model|policy model|agent model)(?:\s+(?:name|under test|evaluated|used|tested|"
    rf"id|in this run))?{_IS}{_NAME}",
    re.IGNORECASE,
)
_BENCHMARK = re.compile(
    rf"\b(?:the\s+)?(?:benchmark|environment|dataset)(?:\s+(?:name|used|here))?{_IS}{_NAME}", re.IGNORECASE
)
_ON = re.compile(rf"\b(?:the|this)\s+{_NAME}\s+benchmark\b", re.IGNORECASE)
_WARM = re.compile(
    r"\btemperature(?:\s+(?:setting|was|is|of|at|set|to|used|"
    r"used was))*\s*(?:[:=]\s*)?(?P<value>\d(?:\.\d+)?)(?![\w.%]*\d)",
    re.IGNORECASE,
)
_TRIED = shaped(
    r"\b(?:each|every)\s+(?:of\s+the\s+<Q>\s+)?(?:<N>)\s+(?:was|is|were|has been|got|gets|had|has)\s+"
    r"(?:attempted|run|tried|repeated|sampled|rolled out|executed|evaluated)\s+(?:(?P<q><Q>)\s+times|"
    r"(?P<word>once|twice))"
)
_EACH = re.compile(
    r"(?P<n>\b(?:a single|one|two|three|four|five|six|seven|eight|nine|ten|"
    r"\d{1,4}(?:\.\d+)?))[ -](?:independent\s+)?"
    r"(?:repeats?|attempts?|rollouts?|trials?|samples?|tries|try|repetitions?)"
    r"(?:\s+(?:were\s+|was\s+)?(?:made\s+|taken\s+|drawn\s+)?(?:per|for each|for every|on each|"
    r"/)\s?(?:task|problem|question|instance)"
    r"|\s+each\b(?=\s*(?:$|[.,;:)(]|and\b)))",
    re.IGNORECASE,
)
_SINGLE = re.compile(
    r"\bwith\s+a\s+single\s+(?:attempt|rollout|repeat|trial|try|sample)(?=\s*(?:$|[.,;]|each|per))",
    re.IGNORECASE,
)
_BOTH_HAVE = shaped(
    r"\b(?:both|each|the two)\s+(?:of the\s+)?(?:runs?|models?|agents?)\s+(?:has|have|had|covers?|"
    r"covered|contains?|span|"
    r"spans|comprises?|uses?|used|includes?|attempts?|attempted|ran|"
    r"share)\s+(?:on\s+)?(?:the same\s+)?(?P<q><Q>)\s+(?P<n><N>)"
    r"(?=\s*(?:$|[.,;:)(]|and\b|with\b|each\b|in total\b))"
)
_NUMBERS = {
    "a single": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "once": 1,
    "twice": 2,
}


class Setup:
    """What one sentence says of how runs were made."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence, self.ground = line, line.sentence, line.ground

    def read(self) -> Iterator[Assertion]:
        if not any(self.sentence.of(kind) for kind in "TALDC"):
            yield from self._names()
            yield from self._repeats()
            yield from self._both()

    def _names(self) -> Iterator[Assertion]:
        told = self.line.runs()
        if len(told.runs) != 1 or told.doubt:
            return
        run = self.ground.runs[told.runs[0]].run
        for pattern, known, what in (
            (_MODEL, (run.model, run.name, run.agent), "model"),
            (_BENCHMARK, (self._benchmark(run.name),), "benchmark"),
            (_ON, (self._benchmark(run.name),), "benchmark"),
        ):
            for hit in pattern.finditer(self.sentence.text):
                name = hit["name"].strip("`").rstrip(".")
                is_name = hit["name"].startswith("`") or re.search(r"[\d_/]", name)
                is_name = is_name or (known[0] is not None and bool(_tokens(name) & _tokens(known[0])))
                if known[0] is None or not is_name:
                    continue
                holds = any(one is not None and _alike(name, one) for one in known)
                yield self.line.claim(
                    "name",
                    (hit.start("name"), hit["name"]),
                    holds,
                    f"the {what} of {run.name} is {known[0]}",
                    subject=what,
                    run=run.name,
                    value=name,
                )
        warm = run.settings.get("temperature")
        for hit in _WARM.finditer(self.sentence.text):
            try:
                value = float(str(warm))
            except ValueError:
                continue
            yield self.line.claim(
                "name",
                (hit.start("value"), hit["value"]),
                abs(float(hit["value"]) - value) < 1e-9,
                f"the temperature of {run.name} is {warm}",
                subject="temperature",
                run=run.name,
                value=hit["value"],
            )

    def _benchmark(self, run: str) -> str | None:
        told = self.ground.report.benchmark.get(run)
        return told.name if told is not None else None

    # --- repeats -------------------------------------------------------------------------------------

    def _repeats(self) -> Iterator[Assertion]:
        text = self.sentence.text
        for hit in _TRIED.finditer(self.line.shape):
            amount = self.line.mention(hit, "q")
            said = amount.text if amount is not None else hit["word"]
            value = (
                amount.amount.value
                if amount is not None and amount.amount is not None
                else _NUMBERS.get(said.lower())
            )
            span = (
                (amount.start, said)
                if amount is not None
                else (self.sentence.places[hit.start("word")], said)
            )
            if value is not None:
                yield self._tried(float(value), span)
        for plain in [*_EACH.finditer(text), *_SINGLE.finditer(text)]:
            said = plain["n"] if plain.re is _EACH else "a single"
            value = _NUMBERS.get(said.lower())
            yield self._tried(float(value if value is not None else said), (plain.start(), plain[0]))

    def _tried(self, value: float, span: tuple[int, str]) -> Assertion:
        told = self.line.runs().runs
        known: set[float] = set()
        for name in told:
            run = self.ground.runs[name]
            sizes = [float(task.n) for task in run.tasks.values()] or [0.0]
            known |= {float(run.run.coverage.repeats), *sizes, round(sum(sizes) / len(sizes), 1)}
            known |= {float(len(task.repeats)) for task in run.tasks.values()}
        words = ", ".join(
            f"{self.ground.runs[one].run.coverage.repeats} repeats a task in {one}" for one in told
        )
        return self.line.claim("count", span, value in known, words, subject="repeats", value=span[1])

    def _both(self) -> Iterator[Assertion]:
        """`both runs cover 115 tasks`: each of them does."""
        if len(self.ground.runs) < 2 or self.sentence.of("S"):
            return
        for hit in _BOTH_HAVE.finditer(self.line.shape):
            amount, unit = self.sentence.at[hit.start("q")], self.sentence.at[hit.start("n")].names[0]
            quantity = amount.amount
            if quantity is None or quantity.kind != COUNT:
                continue
            each = {run: self.ground.counts(run, unit, ()) for run in self.ground.runs}
            fits = all(any(quantity.fits(one.value) for one in readings) for readings in each.values())
            shared: list[Reading] = [one for readings in each.values() for one in readings[:1]]
            yield self.line.claim(
                "count",
                (amount.start, amount.text),
                fits,
                "; ".join(one.words for one in shared),
                subject=f"n_{unit}",
                value=amount.text,
            )


def _tokens(name: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", name.lower()))


def _alike(name: str, known: str) -> bool:
    one, other = (re.sub(r"[\W_]", "", each).lower() for each in (name, known))
    return bool(one) and (one in other or other in one)
