"""The gate: reading a policy, judging by it, and saying so in a pull request."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from blade import model, stats
from blade.compare import gate_policy as room
from blade.compare.gate import judge, markdown
from blade.compare.gate_policy import Policy, policy, read_policy
from blade.errors import BladeError
from blade.model import Comparison, Derived, Gate, Power, Setting, Side
from tests.case_tables import cases, tables
from tests.compare.builders import drawn, side, versus
from tests.conftest import Blade, Said
from tests.report.behaving import write_behaving, write_mixed

TODAY = date(2026, 7, 1)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def asks(*metrics: dict[str, Any], **more: Any) -> Policy:
    return policy({"metric": list(metrics)} | more, "policy.toml")


SCORE = {"name": "score", "max_drop": 0.02}


def judged(a: Side, b: Side, by: Policy, **more: Any) -> Gate:
    full = {each.run: (each.judged.rows.size, int(each.expected.sum())) for each in (a, b)}
    return judge(by, [versus(a, b, **more)], full, TODAY, {a.run: a, b.run: b})


def verdict(gate: Gate, metric: str = "score") -> str:
    (found,) = [check.verdict for check in gate.checks if check.metric == metric]
    return found


def text(gate: Gate, metric: str = "score") -> str:
    (found,) = [check.text for check in gate.checks if check.metric == metric]
    return found


def change(estimate: float, half: float, half90: float | None = None, p: float = 0.5) -> Comparison:
    """A comparison of a hundred tasks with a change as told."""
    half90 = half * 0.84 if half90 is None else half90
    keys = tuple(str(i) for i in range(100))
    told = model.Tested("new tasks", "paired t", p, estimate, estimate - half, estimate + half, estimate - half90, estimate + half90)
    return Comparison(
        "a", "b", "pass_at_1", 0.5, 0.5 + estimate, estimate, estimate, 0.5, 0.5 + estimate, model.Alignment("key", keys),
        None, None, 0.03, None, (told,),
    )  # fmt: skip


def of(comparison: Comparison, by: Policy, **more: Any) -> Gate:
    return judge(by, [comparison], {"a": (400, 400), "b": (400, 400)} | more, TODAY)


@pytest.mark.parametrize("question", ["new tasks", "these tasks"])
def test_a_fall_from_always_to_one_in_five_fails(question: str) -> None:
    a, b = side("a", {str(i): "11111" for i in range(100)}), side("b", {str(i): "00100" for i in range(100)})
    gate = judged(a, b, asks(SCORE, question=question))
    assert (gate.verdict, verdict(gate)) == ("FAIL", "FAIL")
    assert "100% → 20.0%: −80.0 points" in text(gate)


# ---- The four verdicts of a metric ----------------------------------------------------------------


@pytest.mark.parametrize("case", tables(__file__, "gate_cases.yaml"), ids=lambda case: case["about"])
def test_what_a_gate_says_of_a_change(case: dict[str, Any]) -> None:
    estimate, half, p = case.get("change", (0, 0.01, 0.5))
    told = replace(change(estimate, half, case.get("half90"), p), **{key: case[key] for key in ("common_baseline", "score_name") if key in case})
    if "derived" in case:
        name, k, before, after, half, unit = case["derived"]
        by = after - before
        told = replace(told, derived=(Derived(name, k, before, after, by, by - half, by + half, 100, "task bootstrap", unit),))
    metric = {"name": "score", **case.get("metric", SCORE)}
    waivers = [waiver(metric["name"], case["waiver"])] if "waiver" in case else []
    gate = of(told, asks(metric, waiver=waivers, **case.get("policy", {})), **case.get("rows", {}))
    assert (verdict(gate, metric["name"]), gate.verdict) == (case["verdict"], case.get("gate", case["verdict"]))
    assert case.get("says", "") in text(gate, metric["name"])
    assert case.get("coverage", "") in text(gate, "coverage")
    assert case.get("waived", "") in gate.checks[-1].waived
    assert case.get("note", "") in " ".join(gate.notes)


def test_what_was_visible_what_would_resolve_it_and_the_interval_that_stands_in() -> None:
    def spread(omega2: float, sigma2: float) -> Power:
        return Power(0.05, 0.14, 0.1, omega2, sigma2, sigma2, None, 0.03, None, None)

    told = replace(change(0, 0.098), power=spread(0.0001, 0.12))
    found = text(of(told, asks(SCORE)))
    assert "a drop of more than 2.0 points is neither shown nor ruled out" in found
    assert "changes from 14.0 points on are seen in 80 of 100 such comparisons" in found  # 2.80 x 0.05
    assert "it takes about 3,900 tasks or 38 repeats of each run" in found  # 100 x (2.486 x 0.05 / 0.02)^2
    different = text(of(replace(told, power=spread(0.1, 0.12)), asks(SCORE)))
    assert different.endswith("it takes about 3,900 tasks")  # tasks change differently: repeats cannot help
    these = replace(told, tests=(replace(told.tests[0], question="these tasks"),), power=spread(0.1, 0.12))
    assert "38 repeats" in text(of(these, asks(SCORE, question="these tasks")))
    whole = change(0, 0.015)
    bare = replace(whole, tests=(replace(whole.tests[0], low90=None, high90=None),))
    assert "(one-sided 95% bound −1.3 points)" in text(of(whole, asks(SCORE)))
    assert "(end of the 95% interval −1.5 points)" in text(of(bare, asks(SCORE)))


def test_identical_rows_pass_and_are_told() -> None:
    a = side("a", {str(i): "10" for i in range(30)})
    gate = judged(a, replace(a, run="b"), asks({"name": "score", "max_drop": 0}), identical=True)
    assert gate.verdict == "PASS"
    assert any("nothing was evaluated anew" in note for note in gate.notes)


# ---- Other metrics --------------------------------------------------------------------------------


def test_a_k_that_the_comparison_does_not_tell_is_computed_from_the_rows() -> None:
    rates = np.linspace(0, 1, 60)
    a, b = drawn("k a", rates, 5), drawn("k b", rates * 0.6, 5)
    gate = judged(a, b, asks({"name": "pass^3", "max_drop": 0.02}))
    assert verdict(gate, "pass^3") == "FAIL"
    c_a = np.bincount(a.judged.task[a.judged.passed], minlength=60)
    assert gate.checks[-1].baseline == pytest.approx(stats.pass_hat_k(np.full(60, 5), c_a, 3).mean())
    assert "no task has 6 repeats" in text(judged(a, b, asks({"name": "pass@6", "max_drop": 0.02})), "pass@6")


def test_a_slice_is_judged_on_its_own_tasks() -> None:
    kinds = {str(i): "hard" if i < 60 else "easy" for i in range(200)}
    rates = np.linspace(0.4, 0.9, 200)
    worse = np.where(np.arange(200) < 60, rates - 0.3, rates)
    a, b = (drawn(name, each, 6, "gate", slices={"category": kinds}) for name, each in (("slice a", rates), ("slice b", worse)))
    gate = judged(a, b, asks({"name": "score", "slice": "category=hard", "max_drop": 0.05}, {"name": "score", "slice": "category=easy", "max_drop": 0.05}))
    assert [verdict(gate, f"score where category={kind}") for kind in ("hard", "easy")] == ["FAIL", "PASS"]
    assert gate.checks[-2].n == 60
    odd = judged(a, b, asks({"name": "score", "slice": "category=odd", "max_drop": 0.05}, {"name": "score", "slice": "level=1", "max_drop": 0.05}))
    assert "no common task has category=odd" in text(odd, "score where category=odd")
    assert "it can be category" in text(odd, "score where level=1")
    assert odd.verdict == "INCONCLUSIVE"


@pytest.mark.parametrize("question", ["new tasks", "these tasks"])
def test_outcomes_and_losses_come_from_the_rows(question: str) -> None:
    rows = {str(i): "1111" for i in range(50)}
    hit = {str(i): "1100" for i in range(50)}
    places = [(str(i), repeat) for i in range(50) for repeat in (2, 3)]
    broken = dict.fromkeys(places, ("infrastructure", "timed out"))
    a = side("a", rows, flags={"timed out": []}, table=[("infrastructure", "timed out")])
    b = side("b", hit, flags={"timed out": places}, modes=broken, table=[("infrastructure", "timed out")])
    names = ("timed_out", "infrastructure_losses", "model_losses")
    by = asks(*({"name": name, "max_rise": 0.05} for name in names), question=question)
    gate = judged(a, b, by)
    assert [verdict(gate, name) for name in names] == ["FAIL", "FAIL", "PASS"]
    assert gate.checks[-2].change == pytest.approx(0.5)


def test_other_questions_other_answers() -> None:
    """Fourteen tasks fall, six rise, none by chance: worse on these tasks, which says little about new ones."""
    always, half = "1" * 8, "10" * 4
    a = side("a", {str(i): always if i < 14 or i >= 20 else half for i in range(60)})
    b = side("b", {str(i): half if i < 14 else always for i in range(60)})
    assert judged(a, b, asks(SCORE)).verdict == "INCONCLUSIVE"
    assert judged(a, b, asks(SCORE, question="these tasks")).verdict == "FAIL"


# ---- The whole ------------------------------------------------------------------------------------


def test_tasks_that_vanished_fail_the_gate() -> None:
    a = drawn("whole", np.linspace(0.3, 0.9, 100), 4)
    b = side("part", {str(i): "1111" for i in range(90)})
    gate = judged(a, b, asks(SCORE))
    assert (gate.verdict, verdict(gate), verdict(gate, "common tasks")) == ("FAIL", "PASS", "FAIL")
    assert "90 of the baseline's 100 tasks (90.0%)" in text(gate, "common tasks")
    assert judged(a, b, asks(SCORE, required_common=0.9)).verdict == "PASS"
    keys = [str(i) for i in range(100)]
    modified = versus(a, replace(a, run="b"), alignment=model.Alignment("key", tuple(keys[20:]), modified=tuple(keys[:20])))
    assert judge(asks(SCORE), [modified], {"whole": (4, 4), "b": (4, 4)}, TODAY).verdict == "FAIL"


def test_too_few_tasks_decide_nothing() -> None:
    a, b = side("a", {str(i): "1" * 8 for i in range(10)}), side("b", {str(i): "1" * 8 for i in range(10)})
    gate = judged(a, b, asks({"name": "score", "max_drop": 0.4}))
    assert (gate.verdict, verdict(gate), verdict(gate, "common tasks")) == ("INCONCLUSIVE", "PASS", "INCONCLUSIVE")
    assert judged(a, b, asks({"name": "score", "max_drop": 0.4}, min_tasks=10)).verdict == "PASS"
    # ten tasks that happen not to change do not rule out that one in five would
    assert judged(a, b, asks({"name": "score", "max_drop": 0.2}, min_tasks=10)).verdict == "INCONCLUSIVE"


def test_a_refused_comparison_fails_and_no_waiver_helps() -> None:
    a, b = side("a", {"1": "1"}), side("b", {"2": "1"})
    gate = judged(a, b, asks(SCORE, waiver=[waiver("score"), waiver("coverage")]))
    assert gate.verdict == "FAIL"
    assert [check.text for check in gate.checks] == ["the runs cannot be compared: the runs have no task in common (1 against 2)"]
    assert judge(asks(SCORE), [], {}, TODAY).verdict == "FAIL"


def test_what_can_move_the_score_by_itself_is_told() -> None:
    limit = Setting("max_output_tokens", "4096", "2048", "limit", mechanical=True)
    gate = of(replace(change(0, 0.01), config_diff=(limit, replace(limit, key="seed", mechanical=False))), asks(SCORE))
    assert gate.notes == ("b differs from the baseline in what can move the score by itself: max_output_tokens.",)


def waiver(metric: str, expires: date = date(2026, 12, 31), **more: Any) -> dict[str, Any]:
    return {"metric": metric, "reason": "known change of the data set", "expires": expires} | more


# ---- Reading a policy -----------------------------------------------------------------------------


def test_the_example_of_the_docs_is_a_policy_and_every_key_is_explained_there(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "gate.md").read_text(encoding="utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    found = read_policy(written(tmp_path, example))
    assert [limit.label for limit in found.metrics] == ["score", "score where category=hard", "pass^4", "count where calls('search') = 0", "output_tokens", "timed_out"]
    assert [limit.tier for limit in found.metrics] == ["critical", *["supporting"] * 4, "advisory"]
    assert found.waivers[0].expires == date(2026, 12, 31)
    names = {*room._KEYS, *room._METRIC_KEYS, *room._WAIVER_KEYS, *room.GAINS, *room.COSTS} - set(room.NEEDS_K)
    assert not [name for name in sorted(names) if f"`{name}`" not in page and f"`[[{name}]]`" not in page]


@pytest.mark.parametrize("fault", tables(__file__, "policy_faults.yaml"), ids=lambda fault: fault["message"])
def test_a_fault_in_a_policy_says_what_to_write(tmp_path: Path, fault: dict[str, str]) -> None:
    with pytest.raises(BladeError) as caught:
        read_policy(written(tmp_path, fault["source"].replace("BASE", '[[metric]]\nname = "score"\nmax_drop = 0.02\n')))
    assert (caught.value.slug, caught.value.exit_code) == ("bad-policy", 4)
    assert [part for part in (fault["message"], "policy.toml") if part not in caught.value.message] == []
    assert fault["hint"] in caught.value.hint != ""


def test_a_limit_in_percent_is_not_taken_for_one_in_fractions() -> None:
    with pytest.raises(BladeError) as caught:
        of(change(-0.5, 0.01), asks({"name": "score", "max_drop": 2}))
    assert caught.value.slug == "bad-policy"
    points = replace(change(-1.5, 1.0), score_name="mean_reward")
    assert verdict(of(points, asks({"name": "score", "max_drop": 3}))) == "PASS"


def test_a_policy_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name, slug, code in (("none.toml", "no-such-path", 3), (".", "unreadable-file", 4), ("binary.toml", "unreadable-file", 4)):
        with pytest.raises(BladeError) as caught:
            read_policy(tmp_path / name)
        assert (caught.value.slug, caught.value.exit_code) == (slug, code)


def test_the_summary_holds_verdict_checks_waivers_notes_and_the_command() -> None:
    by = asks(SCORE, {"name": "score", "slice": "x=1", "max_drop": 0.1}, waiver=[waiver("score", slice="x=1")])
    found = markdown(of(change(-0.1, 0.01, p=0.0001), by), "blade compare a b --gate policy.toml")
    assert found.startswith("## Gate: FAIL\n\nA critical check failed. `b` against `a`, on new tasks.\n")
    assert "| Metric | Tier | Verdict | Why |\n| --- | --- | --- | --- |" in found
    assert "| score | critical | **FAIL** | 50.0% → 40.0%: −10.0 points [−11.0, −9.0 points] over 100 tasks;" in found
    assert "INCONCLUSIVE waived until 2026-12-31: known change of the data set" in found
    assert found.rstrip().endswith("```sh\nblade compare a b --gate policy.toml\n```")


def test_hostile_names_and_reasons_stay_text() -> None:
    bad = "x](http://evil) <script>alert(1)</script>\n| a | b |\n## no \x1b[31m`` @team"
    comparison = replace(change(-0.1, 0.01, p=0.0001), candidate=bad, baseline=bad)
    by = asks(SCORE, waiver=[{"metric": "score", "reason": bad, "expires": date(2027, 1, 1)}])
    found = markdown(judge(by, [comparison], {bad: (1, 1)}, TODAY))
    # What stands outside code spans is escaped; the table has its columns and no more.
    assert "\x1b" not in found
    assert "\n## no" not in found
    rows = [line for line in found.splitlines() if line.startswith("|")]
    assert len(rows) == 5
    assert "- score of x\\](http\\://evil) \\<script\\>" in found


def gated(blade: Blade, folder: Path, *metrics: str, write: object = write_behaving, more: tuple[object, ...] = ()) -> Said:
    before, after = write(folder / "runs", 0)  # type: ignore[operator]
    policy = folder / "gate.toml"
    policy.write_text("\n".join(f"[[metric]]\n{metric}\n" for metric in metrics), encoding="utf-8")
    return blade("compare", f"a={before}", f"b={after}", "--gate", policy, *more)


@pytest.mark.parametrize(("query", "why"), cases(__file__, "wrong queries"))
def test_a_query_that_cannot_be_asked_is_a_usage_error(blade: Blade, tmp_path: Path, query: str, why: str) -> None:
    said = gated(blade, tmp_path, f'query = """{query}"""\nmax_drop = 0.05')
    assert (said.code, said.out) == (2, ""), said.err
    for part in (f"gate.toml cannot be used: metric {query!r}: ", why, "blade fields RUN", "docs/errors.md#bad-query"):
        assert part in said.err
    assert "fault of BLADE" not in said.err


@pytest.mark.parametrize("query", ["count where calls('serach') > 0", "count where calls('serach') = 0"])
def test_a_tool_that_no_rollout_calls_is_told_even_where_it_passes(blade: Blade, tmp_path: Path, query: str) -> None:
    said = gated(blade, tmp_path, f'query = "{query}"\nmax_rise = 0.3', more=("-o", tmp_path / "out"))
    assert said.code == 0
    told = " ".join(said.out.split())
    for part in ("Gate PASS: 3 checks, 0 not passed", f"PASS {query}:", "no rollout calls 'serach'; there are look, run_2"):
        assert part in told
    assert ("no rollout of either run meets the condition" in told) == ("> 0" in query)
    for name in ("gate.md", "compare.md"):
        assert "no rollout calls" in (tmp_path / "out" / name).read_text(encoding="utf-8")


def test_a_condition_that_no_rollout_meets_is_told(blade: Blade, tmp_path: Path) -> None:
    unmet = "no rollout of either run meets the condition"
    told = " ".join(gated(blade, tmp_path / "a", 'query = "rate where turns > 999"\nmax_drop = 0.05').out.split())
    assert f"INCONCLUSIVE rate where turns > 999: not measured: {unmet}" in told
    assert unmet in gated(blade, tmp_path / "b", 'query = "count where timed_out"\nmax_rise = 0.3').out.replace("\n             ", " ")
    for query in ("count where level = 'hard'", "count where calls('look') = 0"):
        said = gated(blade, tmp_path / query.replace(" ", "_"), f'query = "{query}"\nmax_rise = 0.3')
        assert (unmet in " ".join(said.out.split())) == (query == "count where calls('look') = 0")


def test_a_gate_judges_runs_of_different_scores_as_the_comparison_does(blade: Blade, tmp_path: Path) -> None:
    said = gated(blade, tmp_path, 'query = "pass_at_1"\nmax_drop = 0.05', 'name = "score"\nmax_drop = 0.05', write=write_mixed)
    assert said.code == 1
    told = " ".join(said.out.split())
    first, second = (told.partition(f"FAIL {name}: ")[2].split(" [")[0] for name in ("pass_at_1", "score"))
    assert first == second == "67.8% → 23.3%: −44.4 points"
