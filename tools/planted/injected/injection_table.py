"""List every injection with what is true of a run that holds it, and write such runs; the INJECTIONS table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from tools.planted.injected import injected_acts, injected_ends
from tools.planted.injected.injected_desk import DESK
from tools.planted.injected.quiz_scene import (
    QUIZ,
    Domain,
    Injected,
    Injection,
    Key,
    Mark,
    Scene,
    Truth,
    row_of,
)
from tools.planted.injected.shell import SHELL
from tools.planted.planted_faults import lines
from tools.planted.planted_rows import Item

GOLD = frozenset({"gold"})  # the rows carry the expected actions
LIBRARY = frozenset({"library"})  # the questions come with a search tool
PAGED = frozenset({"paged"})  # lists have a second page
USER = frozenset({"user"})  # a simulated user answers
HOPELESS = frozenset({"hopeless"})  # no task is ever solved

# A twin stands behind its fault. `_always` is a fault in every repeat of a task: what the model does not
# know, where the plain one is what it does not know every time; both share one twin. What is only long
# has no rule of its own and is left out.
INJECTIONS: dict[str, Injection] = {
    "infra_error": Injection("infra_error", "B01", "desk", ("IR",), injected_ends.infra_error),
    "infra_error_twin": Injection("infra_error", "B01", "desk", (), injected_ends.infra_recovered),
    "harness_defect": Injection(
        "harness_defect", "B02", "desk", ("TI",), injected_acts.harness_defect, least=3, pick="tasks", options=GOLD
    ),
    "harness_defect_twin": Injection(
        "harness_defect", "B02", "desk", (), injected_acts.harness_busy, least=3, pick="tasks", options=GOLD
    ),
    "timeout": Injection("timeout", "B03", "shell", ("BI",), injected_ends.timeout),
    "timeout_twin": Injection("timeout", "B03", "shell", (), injected_ends.timeout_recovered),
    "timeout_verifier": Injection(
        "timeout", "B03", "shell", ("IR",), injected_ends.timeout_verifier, throughout=("TI", "IR")
    ),
    "timeout_verifier_twin": Injection("timeout", "B03", "shell", (), injected_ends.slow_verifier),
    "truncated": Injection("truncated", "B04", "quiz", ("TI", "IR"), injected_ends.truncated, throughout=("IR", "TI")),
    "truncated_twin": Injection("truncated", "B04", "quiz", (), injected_ends.nearly_full),
    "context_overflow": Injection("context_overflow", "B05", "shell", ("TI", "IR"), injected_ends.context_overflow),
    "context_overflow_twin": Injection("context_overflow", "B05", "shell", (), injected_ends.reads_of_limits),
    "turn_limit": Injection("turn_limit", "B06", "desk", ("BI", "TI", "IR"), injected_ends.turn_limit),
    "turn_limit_twin": Injection("turn_limit", "B06", "desk", (), injected_ends.just_in_time),
    "dangling_call": Injection("dangling_call", "B07", "desk", ("IR", "TI"), injected_ends.dangling_call),
    "dangling_call_twin": Injection("dangling_call", "B07", "desk", (), injected_ends.parallel_calls),
    "unknown_tool": Injection("unknown_tool", "B08", "desk", ("BI",), injected_acts.unknown_tool, throughout=("BI", "KG")),
    "unknown_tool_twin": Injection("unknown_tool", "B08", "desk", (), injected_acts.rare_tool),
    "unknown_tool_always": Injection(
        "unknown_tool", "B08", "desk", ("BI", "KG"), injected_acts.unknown_tool, pick="tasks"
    ),
    "malformed_args": Injection("malformed_args", "B09", "desk", ("BI",), injected_acts.malformed_args),
    "malformed_args_twin": Injection("malformed_args", "B09", "desk", (), injected_acts.spaced_args),
    "schema_invalid": Injection("schema_invalid", "B10", "desk", ("BI", "KG"), injected_acts.schema_invalid, pick="tasks"),
    "schema_invalid_twin": Injection("schema_invalid", "B10", "desk", (), injected_acts.optional_args, pick="tasks"),
    "ungrounded_arg": Injection(
        "ungrounded_arg", "B11", "desk", ("BI", "UK"), injected_acts.ungrounded_arg, throughout=("BI", "KG", "UK")
    ),
    "ungrounded_arg_twin": Injection("ungrounded_arg", "B11", "desk", (), injected_acts.named_in_prose),
    "ungrounded_arg_always": Injection(
        "ungrounded_arg", "B11", "desk", ("BI", "KG"), injected_acts.ungrounded_arg_always, pick="tasks", options=GOLD
    ),
    "repeat_identical": Injection("repeat_identical", "B12", "desk", ("BI",), injected_acts.repeat_identical),
    "repeat_identical_twin": Injection("repeat_identical", "B12", "desk", (), injected_acts.asked_twice),
    "polling_twin": Injection("repeat_identical", "B12", "desk", (), injected_acts.polling),
    # A tool that refuses every call of a run is a defect of the harness by the letter of its rule.
    "repeat_failing": Injection(
        "repeat_failing", "B13", "desk", ("BI",), injected_acts.repeat_failing, throughout=("BI", "TI")
    ),
    "repeat_failing_twin": Injection("repeat_failing", "B13", "desk", (), injected_acts.failing_twice),
    "cycle": Injection("cycle", "B14", "desk", ("BI",), injected_acts.cycle),
    "cycle_twin": Injection("cycle", "B14", "desk", (), injected_acts.one_more_round),
    "low_novelty": Injection("low_novelty", "B15", "desk", ("BI",), injected_acts.low_novelty),
    "low_novelty_twin": Injection("low_novelty", "B15", "desk", (), injected_acts.many_lookups),
    "reread": Injection("reread", "B16", "shell", ("BI",), injected_acts.reread),
    "reread_twin": Injection("reread", "B16", "shell", (), injected_acts.read_after_edit),
    "ignored_error": Injection(
        "ignored_error", "B17", "desk", ("BI",), injected_acts.ignored_error, throughout=("BI", "TI"), options=GOLD
    ),
    "ignored_error_twin": Injection("ignored_error", "B17", "desk", (), injected_acts.error_recovered, options=GOLD),
    "tool_never_used": Injection(
        "tool_never_used", "B18", "quiz", ("BI",), injected_acts.tool_never_used, passers=2, options=LIBRARY
    ),
    "tool_never_used_twin": Injection(
        "tool_never_used", "B18", "quiz", (), injected_acts.used_once, passers=2, options=LIBRARY
    ),
    "missing_required_tool": Injection(
        "missing_required_tool",
        "B19",
        "desk",
        ("UK", "BI"),
        injected_acts.missing_required_tool,
        passers=2,
        options=GOLD,
    ),
    "missing_required_tool_twin": Injection(
        "missing_required_tool", "B19", "desk", (), injected_acts.optional_left_out, passers=2, options=GOLD
    ),
    "missing_required_tool_always": Injection(
        "missing_required_tool",
        "B19",
        "desk",
        ("BI", "KG"),
        injected_acts.missing_required_tool,
        pick="tasks",
        options=GOLD,
    ),
    "wrong_arg_field": Injection(
        "wrong_arg_field", "B20", "desk", ("BI", "UK"), injected_acts.wrong_arg_field, throughout=("BI", "UK", "KG"), options=GOLD
    ),
    "wrong_arg_field_twin": Injection("wrong_arg_field", "B20", "desk", (), injected_acts.other_words, options=GOLD),
    "wrong_arg_field_always": Injection(
        "wrong_arg_field", "B20", "desk", ("BI", "KG"), injected_acts.wrong_arg_field_always, pick="tasks", options=GOLD
    ),
    "extra_side_effect": Injection(
        "extra_side_effect", "B21", "desk", ("BI",), injected_acts.extra_side_effect, options=GOLD
    ),
    "extra_side_effect_twin": Injection(
        "extra_side_effect", "B21", "desk", (), injected_acts.extra_read, options=GOLD
    ),
    "order_violation": Injection(
        "order_violation", "B22", "desk", ("BI",), injected_acts.order_violation, passers=5, repeats=8
    ),
    "order_violation_twin": Injection(
        "order_violation", "B22", "desk", (), injected_acts.reads_in_other_order, passers=5, repeats=8
    ),
    "ignored_pagination": Injection(
        "ignored_pagination",
        "B23",
        "desk",
        ("BI",),
        injected_acts.ignored_pagination,
        throughout=("BI", "KG"),
        options=PAGED,
    ),
    "ignored_pagination_twin": Injection("ignored_pagination", "B23", "desk", (), injected_acts.pages_followed),
    "no_verification": Injection(
        "no_verification", "B24", "shell", ("BI",), injected_ends.no_verification, passers=2
    ),
    "no_verification_twin": Injection("no_verification", "B24", "shell", (), injected_ends.all_tests, passers=2),
    "edit_after_last_test": Injection(
        "edit_after_last_test", "B25", "shell", ("BI",), injected_ends.edit_after_last_test
    ),
    "edit_after_last_test_twin": Injection(
        "edit_after_last_test", "B25", "shell", (), injected_ends.tidied_and_tested
    ),
    "finish_on_red": Injection("finish_on_red", "B26", "shell", ("BI",), injected_ends.finish_on_red),
    "finish_on_red_twin": Injection("finish_on_red", "B26", "shell", (), injected_ends.red_then_green),
    "self_check_pass_verifier_fail": Injection(
        "self_check_pass_verifier_fail",
        "B27",
        "shell",
        ("KG",),
        injected_ends.self_check_pass_verifier_fail,
        pick="tasks",
    ),
    "self_check_pass_verifier_fail_twin": Injection(
        "self_check_pass_verifier_fail", "B27", "shell", (), injected_ends.zero_failed, pick="tasks"
    ),
    "premature_stop": Injection(
        "premature_stop", "B28", "desk", ("BI",), injected_ends.premature_stop, passers=2, options=GOLD
    ),
    "premature_stop_twin": Injection(
        "premature_stop", "B28", "desk", (), injected_ends.short_way, passers=2, options=GOLD
    ),
    "gave_up": Injection("gave_up", "B29", "quiz", ("BI",), injected_ends.gave_up, options=LIBRARY),
    "gave_up_twin": Injection("gave_up", "B29", "quiz", (), injected_ends.found_later, options=LIBRARY),
    "asks_user": Injection("asks_user", "B30", "desk", ("BI",), injected_ends.asks_user, throughout=("BI", "TI")),
    "asks_user_twin": Injection("asks_user", "B30", "desk", (), injected_ends.asks_someone, options=USER),
    "refusal": Injection("refusal", "B31", "quiz", ("BI",), injected_ends.refusal, throughout=("BI", "TI")),
    "refusal_twin": Injection("refusal", "B31", "quiz", (), injected_ends.speaks_of_refusal),
    "empty_output": Injection("empty_output", "B32", "quiz", ("BI", "IR"), injected_ends.empty_output),
    "empty_output_twin": Injection("empty_output", "B32", "quiz", (), injected_ends.empty_then_full),
    "format_mismatch": Injection("format_mismatch", "B33", "quiz", ("BI",), injected_ends.format_mismatch),
    "format_mismatch_twin": Injection("format_mismatch", "B33", "quiz", (), injected_ends.odd_format),
    "format_mismatch_gold": Injection(
        "format_mismatch", "B33", "quiz", ("TI", "BI"), injected_ends.format_mismatch_gold
    ),
    "right_then_wrong": Injection("right_then_wrong", "B34", "quiz", ("UK",), injected_ends.right_then_wrong),
    "right_then_wrong_twin": Injection("right_then_wrong", "B34", "quiz", (), injected_ends.wrong_then_right),
    "degenerate_text": Injection("degenerate_text", "B35", "quiz", ("BI",), injected_ends.degenerate_text),
    "degenerate_text_twin": Injection("degenerate_text", "B35", "quiz", (), injected_ends.long_table),
    "language_switch": Injection("language_switch", "B36", "quiz", ("BI",), injected_ends.language_switch),
    "language_switch_twin": Injection("language_switch", "B36", "quiz", (), injected_ends.foreign_word),
    "reward_hack": Injection("reward_hack", "B37", "shell", ("TI", "BI"), injected_ends.reward_hack),
    "reward_hack_twin": Injection("reward_hack", "B37", "shell", (), injected_ends.edits_latest_prices),
    "unconfirmed_write": Injection(
        "unconfirmed_write", "B38", "desk", ("BI",), injected_acts.unconfirmed_write, options=USER
    ),
    "unconfirmed_write_twin": Injection(
        "unconfirmed_write", "B38", "desk", (), injected_acts.confirmed_before, options=USER
    ),
    "contradiction_say_do": Injection(
        "contradiction_say_do", "B40", "desk", ("BI",), injected_acts.contradiction_say_do, options=GOLD
    ),
    "contradiction_say_do_twin": Injection(
        "contradiction_say_do", "B40", "desk", (), injected_acts.announced_and_done, options=GOLD
    ),
    "empty_run": Injection("empty_run", "", "desk", ("IR",), injected_ends.empty_run, pick="run"),
    "empty_run_twin": Injection("empty_run", "", "desk", (), injected_ends.no_usage, pick="run"),
    "broken_verifier": Injection("broken_verifier", "", "quiz", ("TI",), injected_ends.broken_verifier, pick="run"),
    "broken_verifier_twin": Injection(
        "broken_verifier", "", "quiz", (), injected_ends.hopeless, pick="run", options=HOPELESS
    ),
    "gold_rejected": Injection("gold_rejected", "", "quiz", ("TI",), injected_ends.gold_rejected, pick="tasks"),
    "gold_rejected_twin": Injection("gold_rejected", "", "quiz", (), injected_ends.gold_seen_through, pick="tasks"),
    "nondeterministic_verifier": Injection(
        "nondeterministic_verifier", "", "quiz", ("TI",), injected_ends.nondeterministic_verifier, pick="tasks"
    ),
    "nondeterministic_verifier_twin": Injection(
        "nondeterministic_verifier", "", "quiz", (), injected_ends.same_answer_other_dress, pick="tasks"
    ),
    "wrong_tasks": Injection("wrong_tasks", "", "quiz", ("DA",), injected_ends.wrong_tasks),
    "wrong_tasks_twin": Injection("wrong_tasks", "", "quiz", (), injected_ends.other_opening),
    "provider_outage": Injection("provider_outage", "", "desk", ("IR",), injected_ends.provider_outage, pick="block"),
    "provider_outage_twin": Injection(
        "provider_outage", "", "desk", (), injected_ends.outage_recovered, pick="block"
    ),
    "agent_never_started": Injection("agent_never_started", "", "quiz", ("IR",), injected_ends.agent_never_started),
    "agent_never_started_twin": Injection("agent_never_started", "", "quiz", (), injected_ends.terse),
    "format_rejected": Injection("format_rejected", "", "quiz", ("TI",), injected_ends.format_rejected, pick="run"),
    "format_rejected_twin": Injection("format_rejected", "", "quiz", (), injected_ends.format_accepted, pick="run"),
    "turn_limit_run": Injection("turn_limit_run", "", "desk", ("IR", "TI"), injected_ends.turn_limit_run, pick="run"),
    "turn_limit_run_twin": Injection("turn_limit_run", "", "desk", (), injected_ends.cap_reached, pick="run"),
}


DOMAINS: dict[str, Domain] = {"desk": DESK, "shell": SHELL, "quiz": QUIZ}
# How the tasks of a run go, in turn: most are solved, some now and then, few never.
LUCK = ("always", "always", "sometimes", "always", "always", "never_same", "always", "sometimes", "always",
        "always", "never_varied", "always")  # fmt: skip
COMMON = 0.1  # above this share a fault is one of the whole run
NEARBY = 6  # tasks in flight together: rows are written in the order in which they end
WRONG = "wrong_content"


def write_injected(
    folder: Path, *, fault: str, prevalence: float, seed: int, n_tasks: int = 40, repeats: int = 4
) -> Injected:
    """Write `rollouts.jsonl`; `prevalence` is the share of rows that get the fault, 1 for all of them.

    Every draw of a rollout comes from a stream of its own: the rows without the fault are the same as
    in the run of its twin, where both play the same domain.
    """
    injection = INJECTIONS[fault]
    wide = injection.pick == "run" or prevalence >= 1
    repeats = max(repeats, injection.repeats)
    run = play(injection, seed, n_tasks, repeats, solve_all=prevalence >= 1 and injection.pick != "run")
    rng = Random(f"choose/{seed}/{injection.behaviour}")
    order = sorted(run, key=lambda key: key[0] + NEARBY * rng.random())
    before = {key: (scene.tools(), len(scene.calls())) for key, scene in run.items()}
    marks: dict[Key, Mark] = {}
    for key in choose(injection, run, order, rng, 1.0 if wide else prevalence):
        scene = run[key]
        scene.rng = Random(f"inject/{seed}/{fault}/{key}")
        mark = injection.inject(scene)
        if mark is not None:
            marks[key] = Mark(mark.step, mark.steps, (*mark.also, *lacking(scene, *before[key])))
    rows = {key: row_of(run[key]) for key in order}
    for place, row in enumerate(rows.values()):
        row["response"]["created_at"] += 7.0 * place
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rollouts.jsonl"
    path.write_bytes(lines(rows.values()))
    causes = (
        injection.throughout if injection.throughout and (wide or prevalence > COMMON) else injection.causes
    )
    return Injected(
        path=path,
        fault=fault,
        twin=injection.twin,
        prevalence=1.0 if wide else prevalence,
        truths=tuple(
            truth(key, mark, injection.behaviour, causes) for key, mark in sorted(marks.items()) if causes
        ),
        background=background(injection, run, rows, marks if causes else {}),
        touched=tuple((str(index), repeat) for index, repeat in sorted(marks)),
    )


def truth(key: Key, mark: Mark, behaviour: str, causes: tuple[str, ...]) -> Truth:
    also = tuple(name for name in dict.fromkeys(mark.also) if name != behaviour)
    return Truth(str(key[0]), key[1], behaviour, causes, mark.step, tuple(sorted(set(mark.steps))), also)


def play(injection: Injection, seed: int, n_tasks: int, repeats: int, *, solve_all: bool) -> dict[Key, Scene]:
    """Every rollout without the fault, some of them wrong for their content."""
    domain = DOMAINS[injection.domain]
    run: dict[Key, Scene] = {}
    for index in range(n_tasks):
        task = domain.task(index, injection.options)
        luck = "never_varied" if "hopeless" in injection.options else LUCK[index % len(LUCK)]
        for repeat in range(repeats):
            rng = Random(f"{seed}/{injection.domain}/{index}/{repeat}")
            solved = luck == "always" or (luck == "sometimes" and rng.random() < 0.5) or solve_all
            variant = index if luck == "never_same" else index + repeat
            scene = Scene(domain, task, (index, repeat), injection.options, rng, run, solved, variant)
            run[index, repeat] = scene
            if solved:
                domain.solve(scene)
            else:
                domain.miss(scene, variant)
    return run


def choose(
    injection: Injection, run: dict[Key, Scene], order: list[Key], rng: Random, prevalence: float
) -> list[Key]:
    """The rows to change: seeded, spread over the tasks, and only where the rollout passes."""
    wanted = max(1, round(prevalence * len(run)))
    if injection.pick == "run":
        return order
    if injection.pick == "block":
        wanted = max(4, wanted)
        start = rng.randrange(max(1, len(order) - wanted))
        return order[start : start + wanted]
    solved = Counter(key[0] for key, scene in run.items() if scene.solved)
    repeats = Counter(key[0] for key in run)
    if injection.pick == "tasks":
        free = [index for index in repeats if solved[index] == repeats[index]]
        rng.shuffle(free)
        tasks = set(free[: max(injection.least, round(wanted / max(repeats.values())))])
        return [key for key in run if key[0] in tasks]
    # All rows of a run leave no passers, except where the fault is only seen against them.
    rest = injection.passers if prevalence < 1 or injection.passers > 1 else 0
    return spread([key for key in run if run[key].solved], solved, rest, rng)[:wanted]


def spread(keys: list[Key], solved: Counter[int], rest: int, rng: Random) -> list[Key]:
    """In random order, first one row of each task, then the second; the last `kept` of a task stay."""
    rng.shuffle(keys)
    rank: Counter[int] = Counter()
    ranked = []
    for key in keys:
        if rank[key[0]] < solved[key[0]] - rest:
            ranked.append((rank[key[0]], key))
        rank[key[0]] += 1
    ranked.sort(key=lambda entry: entry[0])
    return [key for _, key in ranked]


def lacking(scene: Scene, tools: set[str], n_calls: int) -> list[str]:
    """What a rollout shows as well because it came to an end before its time."""
    results = ["missing_required_tool"] if tools - scene.tools() else []
    if 2 * len(scene.calls()) <= n_calls:
        results += ["premature_stop"] if n_calls else []
    if tools and not scene.calls():
        results.append("tool_never_used")
    return results


def background(
    injection: Injection, run: dict[Key, Scene], rows: dict[Key, Item], taken: dict[Key, Mark]
) -> tuple[Truth, ...]:
    """The rollouts that were wrong before anything was injected, and why."""
    passes = Counter(key[0] for key, row in rows.items() if row["reward"] >= 1)
    everywhere = injection.pick == "run" and not injection.twin
    shared = {name: None for mark in taken.values() for name in mark.also} if everywhere else {}
    results = []
    for key, scene in sorted(run.items()):
        if scene.solved or key in taken:
            continue
        peers = [other for other in run.values() if other.key[0] == key[0]]
        variants = {other.variant % 4 for other in peers if not other.solved}
        if passes[key[0]]:
            causes: tuple[str, ...] = ("UK",)
        elif any(other.solved for other in peers) or len(variants) > 1:
            causes = ("UK", "KG")  # nothing passes as the rows stand, and the content varies
        else:
            causes = ("KG",)
        if everywhere:
            causes = tuple(dict.fromkeys((*causes, *injection.causes)))  # the fault covers these rows too
        results.append(truth(key, Mark(also=(*scene.domain.also, *shared)), WRONG, causes))
    return tuple(results)
