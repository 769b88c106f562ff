"""B30: the model ends with a question, and there is nobody to answer it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="asks_user",
    number="B30",
    rule="The final text ends by asking somebody to provide, confirm or choose something, in a run "
    "in which nobody answers the model.",
    cause=Cause.BEHAVIOUR,
    otherwise="TI where all of three or more repeats ask and none passes: the task may lack what they ask"
    " for",
    procedural=True,
    needs=("steps",),
    kind="prompt",
    remedy="Tell the model that no clarification is to be had and that it must act on its best reading"
    " ({detail}).",
)

_TAIL = 400
_REQUEST = re.compile(
    r"\bplease (?:provide|confirm|specify|clarify|share|supply|tell me|choose|select|give me|send me"
    r"|let me know (?:which|what|how|whether|if you(?:'d| would)))\b"
    r"|\b(?:could|can|would) you (?:please |kindly )?"
    r"(?:provide|confirm|specify|clarify|share|tell me|give me|let me know)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\b(?:which|what|where|when|who|how|do|does|did|is|are|should|shall|could|can|may|have|would)\b"
    r"[^?.!\n]{0,200}\b(?:you|your|i|me|we)\b[^?.!\n]{0,200}\?[\s*_\"')\]]*$",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\banything else\b|\bfeel free\b|\byou need (?:any )?(?:more|further)\b|\bshall i also\b"
    r"|(?:^|[.!?]\s+)(?:would|do) you (?:like|want)(?: me| to (?:know|see|learn|try))\b"
    r"|\b(?:any|have) (?:other |more |further )?questions\b|\bdoes (?:this|that) help\b|\bmake sense\b",
    re.IGNORECASE,
)
_PROVISO = re.compile(
    r"\bif (?:you|your|this|that|there|it)\b[^.!?]{0,120},\s*(?:please|could|can|would)\b", re.IGNORECASE
)
_FEW = 0.05
_MIN_REPEATS = 3


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Final texts that wait for an answer."""
    if facts.share_user > _FEW:
        return
    asked = [(episode, _question(episode)) for episode in task.episodes if not episode.has_user]
    all_ask = len(asked) >= _MIN_REPEATS and all(
        found is not None and found[1] > 1 and not episode.passed for episode, found in asked
    )
    for episode, found in asked:
        if found is not None and episode.final_step is not None:
            at, severity, text = found
            summary = f"The final text asks instead of answering, and nobody is there to reply: {text}"
            cause = Cause.TASK_OR_VERIFIER if all_ask else None
            quote = events.at_step(episode, episode.final_step, at)
            yield hit(episode, summary, severity, quote, detail="no user in the run", cause=cause)


def _question(episode: Episode) -> tuple[int, int, str] | None:
    """Where the closing question stands, how plain it is, and its words."""
    text = episode.final.rstrip()
    start = max(0, len(text) - _TAIL)
    tail = text[start:]
    lines = [line for line in tail.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    found = _REQUEST.search(last) or _QUESTION.search(last)
    if found is None or "```" in last or len(found.group()) < 8:
        return None
    at = start + tail.rfind(last) + found.start()
    words = " ".join(last[found.start() :].split())[:160]
    return at, 1 if _OFFER.search(last) or _PROVISO.search(last) else 2, words
