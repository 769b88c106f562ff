"""B36: the model writes in a script that the task does not use."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from blade import events
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="language_switch",
    number="B36",
    rule="More than 20% of the letters of the final text, or of a reasoning, are of a script that "
    "neither the prompt nor any tool or user uses, and the prompt names no language of that "
    "script.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("steps",),
    kind="prompt",
    remedy="Say in the prompt which language to answer in: the model switched to {detail}.",
)

_SHARE = 0.2
_SAMPLE = 2000  # letters
_MIN_LETTERS = 20
# Scripts that one language mixes count as one.
_FAMILY = {
    "HIRAGANA": "CJK", "KATAKANA": "CJK", "BOPOMOFO": "CJK", "HALFWIDTH": "CJK", "MICRO": "GREEK",
    "FULLWIDTH": "LATIN", "MATHEMATICAL": "LATIN", "DOUBLE-STRUCK": "LATIN", "SCRIPT": "LATIN",
    "BLACK-LETTER": "LATIN", "MODIFIER": "LATIN", "FEMININE": "LATIN", "MASCULINE": "LATIN",
}  # fmt: skip
_LANGUAGES = {
    "CYRILLIC": "russian ukrainian bulgarian serbian belarusian macedonian kazakh mongolian cyrillic",
    "CJK": "chinese mandarin cantonese japanese kanji hanzi hiragana katakana",
    "HANGUL": "korean hangul",
    "ARABIC": "arabic persian farsi urdu pashto",
    "DEVANAGARI": "hindi marathi nepali sanskrit devanagari",
    "HEBREW": "hebrew yiddish",
    "THAI": "thai",
    "GREEK": "greek",
    "LATIN": "english latin french german spanish italian portuguese",
}


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """The final text first, else the last reasoning."""
    for episode in task.episodes:
        for index, text in _texts(episode):
            script, share = _foreign(text)
            if script is None or _is_known(episode, script, text):
                continue
            where = "final text" if index == episode.final_step else "reasoning"
            letters = f"{share:.0%} of the letters of the {where} are {script.title()}"
            summary = f"{letters}, a script the task does not use."
            places = (at for at, letter in enumerate(text) if letter.isalpha() and _script(letter) == script)
            at = next(places, 0)
            severity = 2 if index == episode.final_step else 1
            yield hit(episode, summary, severity, events.at_step(episode, index, at), detail=script.title())
            break


def _texts(episode: Episode) -> Iterator[tuple[int, str]]:
    if episode.final_step is not None and not episode.final.isascii():
        yield episode.final_step, episode.final
    for step in reversed(episode.trace.steps):
        if step.kind == "reasoning" and step.text and not step.text.isascii():
            yield step.index, step.text
            return


def _foreign(text: str) -> tuple[str | None, float]:
    """The commonest script that is not Latin, if it makes up enough; Latin is known to every prompt."""
    if len(text) - len(text.encode("ascii", "ignore")) < _MIN_LETTERS:
        return None, 0.0
    counts = _scripts(text)
    total = sum(counts.values())
    others = [(count, script) for script, count in counts.items() if script != "LATIN"]
    if not others:
        return None, 0.0
    count, script = max(others)
    return (script, count / total) if count >= _MIN_LETTERS and count > _SHARE * total else (None, 0.0)


def _scripts(text: str) -> Counter[str]:
    step = max(1, len(text) // (2 * _SAMPLE))
    letters = [letter for letter in text[::step][: 2 * _SAMPLE] if letter.isalpha()][:_SAMPLE]
    return Counter(map(_script, letters))


@lru_cache(maxsize=20_000)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").split(" ", 1)[0]
    return _FAMILY.get(name, name)


def _is_known(episode: Episode, script: str, text: str) -> bool:
    """Whether the task, a tool or a user brought the script in, or the prompt asks for it."""
    prompt = events.prompt(episode.trace.row)
    told = [prompt, *(step.text for step in episode.trace.steps if step.kind in ("user", "system", "result"))]
    for one in told:
        if not one.isascii() and script in _scripts(one):
            return True
    words = _LANGUAGES.get(script, script.lower()).split()
    asked = re.compile(rf"translat|\b(?:{'|'.join(map(re.escape, words))})\b", re.IGNORECASE)
    return (
        asked.search(prompt[:20_000]) is not None
        or asked.search(str(episode.trace.row.get("target_language", ""))) is not None
    )
