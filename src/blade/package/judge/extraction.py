"""Draft anchor facts: from the citations of a golden report first, then from contrasts that the rows show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from blade.errors import BladeError
from blade.model.checked import SUPPORTED, Finding
from blade.package.judge.anchors import MIN_FACT, OKAY, VITAL, Anchor, Meaning, meaning, rows_queries
from blade.package.judge.statements import Tasks, passages, tasks_of, visible
from blade.package.shallow import shallow
from blade.package.worlds import Worlds
from blade.query.citations import PLACE
from blade.query.comments import escape_comment
from blade.query.measures import measure_of
from blade.tables.database import literal

MAX_FACT = 320  # characters
SHORT = 8  # words below which a sentence says too little alone
MAX_TASKS = 12  # beyond which a fact is about no particular tasks
MAX_LOOKED = 20_000  # rollouts up to which contrasts are looked for
MIN_ROWS, MIN_GAP = 3, 0.3  # of a contrast: rollouts on either side, difference of their pass rates


def drafted(golden: str, worlds: Worlds, most: int) -> list[Anchor]:
    """Facts that the golden report cites, each with its query; filled up by wording and from the rows."""
    text = visible(golden)
    findings, around = worlds.checked(text), _around(text, worlds)
    chosen = _chosen(_anchors(_cited(findings, around, shallow(golden, "")), worlds), most)
    strong = [anchor for anchor in chosen if not anchor.weak]
    if len(strong) < most:
        strong += _worded(text, tasks_of(worlds.home), most - len(strong), strong)
    if len(strong) < most:
        strong += _chosen(_anchors(_contrasts(worlds), worlds), most - len(strong), strong)
    weak = [anchor for anchor in chosen if anchor.weak]
    return _numbered([*strong, *weak][:most])


def drafted_by_wording(golden: str, most: int) -> list[Anchor]:
    """Sentences that name a task and a number: all that a report alone can give."""
    return _numbered(_worded(visible(golden), Tasks(), most))


def _numbered(anchors: Sequence[Anchor]) -> list[Anchor]:
    return [msgspec.structs.replace(anchor, id=f"B{n}") for n, anchor in enumerate(anchors, 1)]


def _worded(text: str, known: Tasks, most: int, before: Sequence[Anchor] = ()) -> list[Anchor]:
    """Facts without a query: sentences and rows with a number and tasks that no fact before them is about."""
    anchors: dict[frozenset[str], Anchor] = {}
    have = {frozenset(anchor.tasks) for anchor in before}
    for statement in (each for passage in passages(text, known) for each in passage.statements):
        is_fact = statement.kind != "heading" and len(statement.text) >= MIN_FACT and statement.figures
        if is_fact and 0 < len(statement.tasks) <= MAX_TASKS and statement.tasks not in have:
            tasks = tuple(sorted(statement.tasks, key=lambda task: (len(task), task)))
            anchors.setdefault(statement.tasks, Anchor("", statement.text[:MAX_FACT], tasks=tasks))
    return list(anchors.values())[:most]


class Draft(msgspec.Struct, frozen=True):
    """A sentence, the query behind its number, and the tasks that it names."""

    fact: str
    query: str
    named: tuple[str, ...] = ()
    is_thin: bool = False  # the shallow baseline of the report has it too


# -- from the report --------------------------------------------------------------------------------


def _cited(findings: Iterable[Finding], around: Mapping[int, str], baseline: str) -> Iterator[Draft]:
    """The numbers that the report cites."""
    for finding in findings:
        query = finding.query or ""
        if finding.kind == "citation" and finding.verdict == SUPPORTED and not PLACE.fullmatch(query):
            yield Draft(_fact(finding, around), query, finding.tasks, escape_comment(query) in baseline)


def _around(text: str, worlds: Worlds) -> dict[int, str]:
    """The paragraph or list item around each line, without its quotations."""
    paragraphs: dict[int, str] = {}
    for passage in passages(text, tasks_of(worlds.home)):
        said = " ".join(statement.text for statement in passage.statements if "“" not in statement.text)
        paragraphs |= dict.fromkeys(passage.lines, said)
    return paragraphs


def _fact(finding: Finding, around: Mapping[int, str]) -> str:
    """The sentence, with the rest of its paragraph where it says too little alone."""
    is_whole = " | " in finding.text or len(finding.text.split()) >= SHORT
    text = finding.text if is_whole else around.get(finding.line, finding.text)
    text = " ".join((text if finding.text in text else finding.text).split())
    return text if len(text) <= MAX_FACT else text[:MAX_FACT].rpartition(" ")[0] + " …"


def _anchors(drafts: Iterable[Draft], worlds: Worlds) -> list[Anchor]:
    """Facts with the answers of their queries; those that give no single number are left out."""
    wanted = [
        draft
        for draft in dict.fromkeys(drafts)
        if not draft.query.startswith("engine.")
        and not worlds.is_of_others(draft.query)
        and len(draft.fact) >= MIN_FACT
    ]
    queries = [draft.query for draft in wanted]
    worlds.prefetch([*queries, *rows_queries(queries, worlds)])
    anchors = (_anchor(draft, worlds) for draft in wanted)
    return [anchor for anchor in anchors if anchor is not None]


def _anchor(draft: Draft, worlds: Worlds) -> Anchor | None:
    anchor = Anchor("", draft.fact, draft.query)
    meant = meaning(anchor, worlds)
    if isinstance(meant, str):
        return None
    tasks, is_weak = _tasks(draft, meant), draft.is_thin or worlds.is_aggregate(draft.query)
    return msgspec.structs.replace(
        anchor, value=meant.value, tasks=() if is_weak else tasks, weak=is_weak,
        weight=VITAL if tasks and not is_weak else OKAY,
        difficulty="low" if is_weak else "high" if tasks else "medium", mean_score=2.5 if is_weak else 3.5,
    )  # fmt: skip


def _tasks(draft: Draft, meant: Meaning) -> tuple[str, ...]:
    """The tasks that a number is about: those of its query, of the rows it counts, or of its sentence."""
    parts = re.findall(r"\btask\s*(?:=|in)\s*('[^']*'|\([^()]*\))", draft.query)
    literal = [task for part in parts for task in re.findall(r"'([^']*)'", part)]
    counted = [rollout.rpartition("/")[0] for rollout in meant.rollouts or ()]
    for tasks in (literal, counted, [name.partition("/")[0] for name in draft.named]):
        distinct = sorted(set(tasks), key=lambda task: (len(task), task))
        if 0 < len(distinct) <= MAX_TASKS:
            return tuple(distinct)
    return ()


def _chosen(candidates: Sequence[Anchor], most: int, before: Sequence[Anchor] = ()) -> list[Anchor]:
    """The most telling facts: about tasks before totals, one for each set of tasks before a second."""
    kept: dict[tuple[object, ...], Anchor] = {}
    have = {_same(anchor) for anchor in before}
    for anchor in sorted(candidates, key=_rank):
        if _same(anchor) not in have:
            kept.setdefault(_same(anchor), anchor)
    seen: Counter[tuple[str, ...]] = Counter(anchor.tasks for anchor in before)
    turns: list[tuple[bool, int, int, Anchor]] = []
    for anchor in kept.values():
        turns.append((anchor.weak or not anchor.tasks, seen[anchor.tasks], len(turns), anchor))
        seen[anchor.tasks] += 1
    return [anchor for *_, anchor in sorted(turns, key=lambda turn: turn[:3])[:most]]


def _rank(anchor: Anchor) -> tuple[bool, bool, bool]:
    """What is about tasks first, and short queries before SQL: a reader understands them."""
    return anchor.weak, not anchor.tasks, measure_of(anchor.query or "") is None


def _same(anchor: Anchor) -> tuple[object, ...]:
    """What two facts share that ask for the same: the value about the same tasks."""
    return (anchor.value, anchor.tasks) if anchor.tasks else (anchor.value, anchor.query)


# -- from the rows ----------------------------------------------------------------------------------


def _contrasts(worlds: Worlds) -> Iterator[Draft]:
    """What the tables show: pass rates with and without a tool, tasks that never pass, checks, last tools."""
    if worlds.own("select count(*) from rollouts")[0][0] > MAX_LOOKED:
        return
    for contrasts in (_tools, _never, _checks, _ends):
        with suppress(BladeError):  # rows that have no such column
            yield from (Draft(fact, query) for fact, query in contrasts(worlds))


def _tools(worlds: Worlds) -> Iterator[tuple[str, str]]:
    """Tools without which the same tasks pass much less often, or more."""
    used = (
        "select r.task, r.repeat, r.passed, list(distinct c.tool) from rollouts r left join calls c "
        'on c.run = r.run and c."row" = r."row" where r.passed is not null group by all'
    )
    rows = worlds.own(used)
    for tool in sorted({tool for *_, tools in rows for tool in tools if tool}):
        sides: dict[str, dict[bool, list[bool]]] = {}
        for task, _, passed, tools in rows:
            sides.setdefault(task, {True: [], False: []})[tool in tools].append(passed)
        both = {task: side for task, side in sides.items() if side[True] and side[False]}
        having, lacking = ([flag for side in both.values() for flag in side[key]] for key in (True, False))
        if min(len(having), len(lacking)) < MIN_ROWS or not 0 < len(both) <= MAX_TASKS:
            continue
        high, low = sum(having) / len(having), sum(lacking) / len(lacking)
        if abs(high - low) >= MIN_GAP:
            tasks = sorted(both, key=lambda task: (len(task), task))
            rates = (
                f"{low:.1%} of the rollouts without `{tool}` pass, against {high:.1%} of those that call it"
            )
            query = f"rate where calls({literal(tool)}) = 0 and task in ({', '.join(map(literal, tasks))})"
            yield f"On tasks {', '.join(tasks)} {rates}.", query


def _never(worlds: Worlds) -> Iterator[tuple[str, str]]:
    rows = worlds.own("select task from tasks where bucket = 'never' order by length(task), task")
    if 0 < len(rows) <= MAX_TASKS:
        tasks = [str(row[0]) for row in rows]
        noun = "task never passes" if len(rows) == 1 else "tasks never pass"
        yield (
            f"{len(rows)} {noun}: {', '.join(tasks)}.",
            f"rate where task in ({', '.join(map(literal, tasks))})",
        )


def _checks(worlds: Worlds) -> Iterator[tuple[str, str]]:
    query = (
        "select name, count(distinct \"row\") n from checks where status = 'failed' and name is not null "
        "group by 1 order by n desc, 1 limit 5"
    )
    for name, n in worlds.own(query):
        yield f"{n} rollouts fail the check `{name}`.", f"count where check_failed({literal(name)})"


def _ends(worlds: Worlds) -> Iterator[tuple[str, str]]:
    query = (
        "select last_tool, count(*) n from rollouts where not passed and last_tool is not null "
        "group by 1 having n >= 3 order by n desc, 1 limit 5"
    )
    for tool, n in worlds.own(query):
        fact = f"{n} failing rollouts end with a call of `{tool}`."
        yield fact, f"count where not passed and last_tool = {literal(tool)}"
