"""Read a dossier by its frame alone: what is ours, what is quoted, and which steps it shows with which words."""

from __future__ import annotations

import re

from blade.agent.dossier.budget import BAR, RULE
from blade.agent.dossier.case import PROMPT

HEADINGS = (
    "# dossier of one task", "## task", "## outcomes", "## proposal of the engine", "## beside a passing rollout",
    "## rollout in focus", "## verifier and row",
)  # fmt: skip
# Every way in which a line of ours begins; what a rollout says comes after a bar.
OURS = re.compile(
    r"(?:run|task|name|field|first \w+ turn|last of \d+ turns|system prompt|\d+ tools"
    r"|expected (?:answer|calls?\b.*)|expected, field"
    r"|it occurs word for word in (?:no result|results \[[\d\], \[]*\]); the model (?:never says it|says it at \[[\d\], \[]*\])"
    r"|\d+ more expected calls not listed|no call is expected: the list is empty"
    r"|no repeat of this task was scored|\d+ repeats?: .*|repeat \d+ .*|\d+ more repeats, counted above"
    r"|no cause: .*|judged.*|undetermined: .*|causes: .*|cause: .*|what happened|where: .*"
    r"|failure group g\d+|in the whole run: .*|group in words|group example|consequence|for|against"
    r"|(?:for|against): \d+ more in report\.json|(?:alarm|warning) on the whole run(?:, [A-Z]{2})?, [\d,]+ rows?"
    r"|(?:in focus|passing) repeat \d+(?:, \d+ calls?|: no calls)|passing \[\d+\] message, its last words"
    r"|first different call, (?:in focus|passing)(?:: none, it makes no further call| \[\d+\] call[ ,\w]*)"
    r"|\[\d+\]\*? \w+[ ,\w]*"
    r"|\(steps? \d+(?:-\d+)? left out: --steps \d+:\d+\)|reward .*|other fields|\d+ more fields)"
)


def ours(text: str) -> list[str]:
    """What stands before the bar of each line, without lines that are quoted from end to end."""
    heads = [line.partition(BAR)[0].rstrip() for line in text.splitlines() if not line.startswith(PROMPT)]
    return [head for head in heads if head]


def strangers(text: str) -> list[str]:
    """Lines of ours that no part of a dossier writes: what a rollout would have to forge."""
    return [
        head
        for head in ours(text)
        if head != RULE and not head.startswith(HEADINGS) and not OURS.fullmatch(head)
    ]


def commands(text: str) -> list[str]:
    return [line.removeprefix(PROMPT) for line in text.splitlines() if line.startswith(PROMPT)]


def focus(text: str) -> int | None:
    found = re.search(r"^## rollout in focus: repeat (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def shown(text: str, repeat: int, step: int) -> str | None:
    """The words a dossier shows of a step, on one line; None if it shows none."""
    lines, found = text.splitlines(), []
    of_focus = rf"|\[{step}\]" if focus(text) == repeat else ""
    head = re.compile(rf"(?:repeat {repeat} .*\[{step}\]{of_focus})")
    for at, line in enumerate(lines):
        before, _, said = line.partition(BAR)
        if head.match(before):
            words = [said]
            for more in lines[at + 1 :]:
                if not more.startswith(BAR):
                    break
                words.append(more[1:])
            found.append(" ".join(" ".join(words).split()))
    return max(found, key=len, default=None)
