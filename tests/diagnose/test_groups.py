"""Groups: they sum to what is lost, quote their own rows, and can be asked for by their query."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import Blade
from tests.diagnose import diagnosed
from tests.diagnose.builders import desk, desk_acts, desk_row, quiz, quiz_row
from tests.diagnose.diagnosed import Diagnose, Diagnosed
from tests.diagnose.rows import Act, Row, grid, key_of, keys_of, make_row, struck


def mishaps() -> Iterator[Row]:
    """A desk with a crash, a cut, an omission, and failures without a reason, in tasks of two to five repeats."""
    for task in range(24):
        for repeat in range(2 + task % 4):
            place = task * 5 + repeat
            acts = desk_acts(task, repeat, place)
            bare = [act for act in acts if act[0] != "check_address"]
            yield (
                make_row(task, repeat, 0.0, (), fault="error: the desk was closed", stop_reason="none") if place % 7 == 1
                else desk_row(task, repeat, 0.0, acts[:-1], stop_reason="turn limit") if place % 9 == 4
                else desk_row(task, repeat, 0.0, bare, stop_reason="done") if place % 5 == 2
                else desk_row(task, repeat, float(place % 8 > 0), stop_reason="done")
            )  # fmt: skip


def wrong_answers() -> list[Row]:
    """A quiz with tasks that never pass, tasks that pass sometimes, and right answers that score 0."""
    rows = quiz(20, 4, rate=0.6)
    for task in (2, 9, 15):
        for repeat in range(4):
            rows[task, repeat] = quiz_row(task, repeat, 0.0, str(task * 13 + 50), str(task * 13 + 41))
    for task, repeat in ((1, 0), (7, 3)):
        rows[task, repeat] = quiz_row(task, repeat, 0.0, f"{task * 13 + 41}.00", str(task * 13 + 41))
    return list(rows.values())


def calls() -> Iterator[Row]:
    """A desk with expected calls: wrong arguments, missing and undue calls."""
    for place, (task, repeat) in enumerate(grid(20, 3)):
        due: list[Act] = [] if task % 4 == 0 else [("redirect_parcel", {"number": task, "to": f"row {task}"}, "Moved.")]
        wrong: list[Act] = [("redirect_parcel", {"number": task, "to": f"row {task + 60 + repeat}"}, "Moved.")]
        fails = (place * 7) % 10 < 4
        made = due if not fails else wrong if place % 2 or not due else []
        look: Act = ("find_parcel", {"number": task + repeat}, f"Parcel {task}.")
        end = f"That was errand {task}." + " Goodbye." * (place % 4)
        yield desk_row(task, repeat, float(not fails), [look, *made, end], due=due)


def partial() -> Iterator[Row]:
    """Rewards between 0 and 1: a failing row may lose part of a point only."""
    for place, (key, row) in enumerate(desk(16, 4, 0.5).items()):
        share = 1.0 if row["reward"] else (0.0, 0.25, 0.5, 0.75)[place % 4]
        code = None if share == 1.0 else ("weight", "label", "stamp")[place % 3]
        yield {**desk_row(*key, share), **({"missing": code} if code else {})}


RUNS: dict[str, Callable[[], list[Row]]] = {"mishaps": mishaps, "answers": wrong_answers, "calls": calls, "partial": partial}


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Diagnosed]:
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(folder / "cache"))
        yield diagnosed.diagnose(folder, RUNS[request.param]())


# ---- Sums ----------------------------------------------------------------------------------------


def test_points_sum_to_what_is_lost(run: Diagnosed) -> None:
    points = [group.points for group in run.groups]
    assert points == sorted(points, reverse=True)
    assert sum(points) + run.report.unexplained[0].points == pytest.approx(1 - run.score, abs=1e-9)
    assert sum(loss.lost for loss in run.report.losses) == pytest.approx(1 - run.score, abs=1e-9)
    parts = [run.keys(part) for part in (*run.groups, *run.report.unexplained)]
    assert parts[0]
    assert sum(map(len, parts)) == len(set().union(*parts))  # no row is in two groups
    assert set().union(*parts) == run.failing


def test_points_are_those_of_the_rows(run: Diagnosed) -> None:
    """A task counts once, whatever its number of repeats; a row loses what it lacks to full reward."""
    reward = {key_of(row): row["reward"] for row in run.rows}
    size = Counter(task for task, _ in reward)
    is_rate = run.report.runs[0].score_name == "pass_at_1"
    for part in (*run.groups, *run.report.unexplained):
        lost = sum((1.0 if is_rate else 1 - reward[key]) / size[key[0]] / len(size) for key in run.keys(part))
        assert part.points == pytest.approx(lost, abs=1e-9)


@pytest.mark.parametrize("n_wrong", [10, 5])
def test_group_without_a_known_cause_is_in_its_place_too(diagnose: Diagnose, n_wrong: int) -> None:
    """Seven rollouts never ran; with one try each, wrong answers do not tell their cause."""
    golds = [(task, task * 13 + 41) for task in range(40)]
    rows = [
        make_row(task, 0, 0.0, (), fault="error: the desk was closed", expected_answer=str(gold)) if task >= 33
        else quiz_row(task, 0, float(task >= n_wrong), str(gold + 5 * (task < n_wrong)), str(gold)) for task, gold in golds
    ]  # fmt: skip
    found = [(group.label.value, group.rows) for group in diagnose(rows).groups]
    assert found == sorted([("undetermined", n_wrong), ("IR", 7)], key=lambda pair: -pair[1])


# ---- Queries, examples, quotations ---------------------------------------------------------------


def test_query_gives_the_rows(run: Diagnosed) -> None:
    for part in (*run.groups, *run.report.unexplained, *(entry for entry in run.trust if entry.query)):
        assert run.ground.ask(part.query).columns == ("run", "task", "repeat", "row")  # type: ignore[union-attr]
    for group in run.groups:
        keys = run.keys(group)
        assert (len(keys), len({task for task, _ in keys})) == (group.rows, group.tasks)
        examples = {tuple(map(int, example.split("/"))) for example in group.examples}
        assert examples
        assert examples <= keys


def test_query_command_gives_the_rows(diagnose: Diagnose, blade: Blade) -> None:
    run = diagnose(mishaps())
    assert len(run.groups) >= 3
    said = blade("query", "--json", "--limit", "0", run.path, run.groups[0].query)
    assert said.code == 0, said.err
    answer = json.loads(said.out)
    rows = answer if isinstance(answer, list) else answer["rows"]
    assert {(int(row["task"]), int(row["repeat"])) for row in rows} == run.keys(run.groups[0])


def texts_of(row: Row) -> list[str]:
    """Every text of a row that may be quoted: of its items, and its fields."""
    texts = []
    for item in row["response"]["output"]:
        texts += [item.get("arguments", ""), item.get("output", ""), item.get("name", "")]
        texts += [part["text"] for part in item.get("content", ())]
    fields = {name: value for name, value in row.items() if name not in ("response", "responses_create_params")}
    texts += [value if isinstance(value, str) else json.dumps(value, separators=(",", ":")) for value in fields.values()]
    return texts


def test_quote_is_a_part_of_one_of_the_groups_own_rows(run: Diagnosed) -> None:
    for group in run.groups:
        quote = group.quote
        assert quote is not None, group.name
        assert quote.quote
        key = int(quote.task), quote.repeat
        assert key in run.keys(group)
        row = next(row for row in run.rows if keys_of([row]) == {key})
        source = row if quote.step is None else {"response": {"output": [row["response"]["output"][quote.step]]}}  # one item, one step
        assert any(quote.quote in text for text in texts_of(source)), (group.name, quote)


# ---- Pure beats large ----------------------------------------------------------------------------


@struck
def pure_and_large() -> Iterator[tuple[Row, bool]]:
    """24 rows without `weigh_parcel` never pass; 60 without `greet_visitor`, those among them, pass at a third."""
    for place, (task, repeat) in enumerate(grid(24, 5)):
        is_pure = place % 5 == task % 5
        is_large = is_pure or (place * 3 + task) % 10 < 4
        acts = desk_acts(task, repeat, place)
        greet: list[Act] = [] if is_large else [("greet_visitor", {"name": task}, "Good day.")]
        weigh: list[Act] = [] if is_pure else [("weigh_parcel", {"number": task}, f"{place} ounces.")]
        reward = 0.0 if is_pure else float((place * 7) % 10 < (6 if is_large else 8))
        yield desk_row(task, repeat, reward, [*greet, *weigh, *acts]), is_pure


def test_pure_beats_large(diagnose: Diagnose) -> None:
    rows, pure = pure_and_large()
    run = diagnose(rows)
    group = run.shows(pure, "behaviour BI", "weigh_parcel")
    assert (run.groups[0].id, group.passed_rows) == (group.id, 0)


# ---- Fixes ---------------------------------------------------------------------------------------


def choosing() -> Iterator[Row]:
    """Even tasks fail without the express desk, odd ones fail with it."""
    for place, (task, repeat) in enumerate(grid(24, 6)):
        is_wrong = (place * 7 + task) % 5 < 2
        express: list[Act] = [("express_desk", {"number": task}, "Taken.")] if (task % 2 == 0) != is_wrong else []
        acts = desk_acts(task, repeat, place)
        yield desk_row(task, repeat, float(not is_wrong), [*acts[:1], *express, *acts[1:]])


def test_no_fix_contradicts_another(diagnose: Diagnose) -> None:
    """Some tasks need the express desk and some must not use it: one finding about choosing, not call more and call less."""
    for rows in (choosing(), mishaps(), calls()):
        names = {group.name for group in diagnose(rows).groups}
        tools = ("express_desk", "check_address", "redirect_parcel")
        assert not [tool for tool in tools if {f"never calls `{tool}`", f"calls `{tool}`"} <= names]


def test_every_group_has_one_fix_and_a_reason(run: Diagnosed) -> None:
    assert all(text.strip() for group in run.groups for text in (group.fix, group.why_label, group.text))
    assert [advice.rank for advice in run.report.recommendations] == list(range(1, len(run.report.recommendations) + 1))


# ---- A task speaks of its own rows ---------------------------------------------------------------


def test_task_speaks_of_its_own_rows(run: Diagnosed) -> None:
    size = Counter(row["_ng_task_index"] for row in run.rows)
    by_id = {group.id: group for group in run.groups}
    assert {int(entry.task) for entry in run.report.attributions} == {task for task, _ in run.failing}
    for entry in run.report.attributions:
        task, rest = int(entry.task), run.keys(by_id[entry.group] if entry.group else run.report.unexplained[0])
        assert (task, entry.repeat) in rest
        labels = {by_id[entry.group].label.value} if entry.group else {"undetermined"}
        if entry.group and by_id[entry.group].rung == "knowledge":
            labels = {"KG", "UK", "undetermined"}  # wrong answers: each task has its own
        assert entry.cause.value in labels
        counts = [int(number) for number in re.findall(r"^(\d+) of its (\d+)", entry.mechanism) for number in number]
        assert counts == [sum(key[0] == task for key in rest), size[task]], entry.mechanism
        assert {quote.task for quote in entry.evidence} <= {entry.task}
        row = next(row for row in run.rows if keys_of([row]) == {(task, entry.repeat)})
        assert entry.step is None or 0 <= entry.step < len(row["response"]["output"])
