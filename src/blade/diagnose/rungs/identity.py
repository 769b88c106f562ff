"""Ask whether rows are grouped as they were run: does a task index hold one prompt, and a prompt one index.

Fires on any run whose indices were assigned by file position or by shard, so that repeats of a prompt lie under several
indices; stays silent where every row has a prompt of its own, as with simulated users.
"""

from __future__ import annotations

import numpy as np

from blade.diagnose.population import Findings, Ints, Population, Trust

REGULAR = 0.9  # share of rows in prompts of the commonest size
CROSSED = 0.5  # share of indices that hold several prompts


def by_content(people: Population) -> Ints | None:
    """The tasks of the rows by prompt and gold, where rows are proved to be grouped wrongly; else None."""
    has_prompt = people.where(lambda row: row.prompt)
    if people.n < 6 or has_prompt.mean() < 0.9:
        return None
    known: dict[tuple[int, int], int] = {}
    content = np.array(
        [known.setdefault((row.prompt, row.gold), len(known)) for row in people.rows], np.int64
    )
    sizes = np.bincount(content)
    usual = int(np.bincount(sizes).argmax())
    if usual < 2 or len(sizes) < 3 or (sizes[content] == usual).mean() < REGULAR:
        return None
    if not people.has_repeats:
        return content if (people.size == 1).mean() >= REGULAR else None
    tasks = np.unique(people.task)
    spread = np.bincount(np.unique(np.stack([content, people.task]), axis=1)[0], minlength=len(sizes))
    crossed = [len(np.unique(content[people.task == task])) > 1 for task in tasks]
    is_spread = (spread > 1).mean() >= CROSSED
    return content if np.mean(crossed) >= CROSSED and is_spread else None


def ask(people: Population) -> tuple[Findings, Ints | None]:
    """What is wrong with the grouping, and the tasks by content to go on with."""
    content = by_content(people)
    if content is None:
        return Findings(), None
    n_prompts, n_index = len(np.unique(content)), people.n_tasks(~people.none)
    usual = int(np.bincount(np.bincount(content)).argmax())
    if people.has_repeats:
        several = [len(np.unique(content[people.task == task])) for task in np.unique(people.task)]
        most = max(several)
        mixed = sum(count > 1 for count in several)
        text = (
            f"The task index does not identify a task: {mixed} of {n_index} indices mix up to {most} different prompts. "
            f"By prompt there are {n_prompts} tasks with {usual} rollouts each. Per-task rates, pass@k and flaky tasks by "
            "index are meaningless; the causes below are found by prompt."
        )
    else:
        text = (
            f"Every row has its own task index, but the prompts repeat: {n_prompts} different prompts, {usual} rollouts "
            "each. These are repeats that were numbered as tasks; the causes below are found by prompt."
        )
    fix = "Number tasks by prompt before computing pass@k or per-task rates."
    return Findings(trust=[Trust("alarm", "DA", text, ~people.none, fix)]), content
