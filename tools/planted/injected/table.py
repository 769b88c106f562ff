"""The INJECTIONS table: every fault that can be injected, each with what only looks like it."""

from __future__ import annotations

from tools.planted.injected import acts, calls, checks, finals, limits, loops, whole
from tools.planted.injected.truth import Injection

GOLD = frozenset({"gold"})  # the rows carry the expected actions
LIBRARY = frozenset({"library"})  # the questions come with a search tool
PAGED = frozenset({"paged"})  # lists have a second page
USER = frozenset({"user"})  # a simulated user answers
HOPELESS = frozenset({"hopeless"})  # no task is ever solved

# A twin stands behind its fault. `_always` is a fault in every repeat of a task: what the model does not
# know, where the plain one is what it does not know every time; both share one twin. What is only long
# has no rule of its own and is left out.
INJECTIONS: dict[str, Injection] = {
    "infra_error": Injection("infra_error", "B01", "desk", ("IR",), limits.infra_error),
    "infra_error_twin": Injection("infra_error", "B01", "desk", (), limits.infra_recovered),
    "harness_defect": Injection(
        "harness_defect", "B02", "desk", ("TI",), calls.harness_defect, least=3, pick="tasks", options=GOLD
    ),
    "harness_defect_twin": Injection(
        "harness_defect", "B02", "desk", (), calls.harness_busy, least=3, pick="tasks", options=GOLD
    ),
    "timeout": Injection("timeout", "B03", "shell", ("BI",), limits.timeout),
    "timeout_twin": Injection("timeout", "B03", "shell", (), limits.timeout_recovered),
    "timeout_verifier": Injection(
        "timeout", "B03", "shell", ("IR",), limits.timeout_verifier, throughout=("TI", "IR")
    ),
    "timeout_verifier_twin": Injection("timeout", "B03", "shell", (), limits.slow_verifier),
    "truncated": Injection("truncated", "B04", "quiz", ("TI", "IR"), limits.truncated, throughout=("IR", "TI")),
    "truncated_twin": Injection("truncated", "B04", "quiz", (), limits.nearly_full),
    "context_overflow": Injection("context_overflow", "B05", "shell", ("TI", "IR"), limits.context_overflow),
    "context_overflow_twin": Injection("context_overflow", "B05", "shell", (), limits.reads_of_limits),
    "turn_limit": Injection("turn_limit", "B06", "desk", ("BI", "TI", "IR"), limits.turn_limit),
    "turn_limit_twin": Injection("turn_limit", "B06", "desk", (), limits.just_in_time),
    "dangling_call": Injection("dangling_call", "B07", "desk", ("IR", "TI"), limits.dangling_call),
    "dangling_call_twin": Injection("dangling_call", "B07", "desk", (), limits.parallel_calls),
    "unknown_tool": Injection("unknown_tool", "B08", "desk", ("BI",), calls.unknown_tool, throughout=("BI", "KG")),
    "unknown_tool_twin": Injection("unknown_tool", "B08", "desk", (), calls.rare_tool),
    "unknown_tool_always": Injection(
        "unknown_tool", "B08", "desk", ("BI", "KG"), calls.unknown_tool, pick="tasks"
    ),
    "malformed_args": Injection("malformed_args", "B09", "desk", ("BI",), calls.malformed_args),
    "malformed_args_twin": Injection("malformed_args", "B09", "desk", (), calls.spaced_args),
    "schema_invalid": Injection("schema_invalid", "B10", "desk", ("BI", "KG"), calls.schema_invalid, pick="tasks"),
    "schema_invalid_twin": Injection("schema_invalid", "B10", "desk", (), calls.optional_args, pick="tasks"),
    "ungrounded_arg": Injection(
        "ungrounded_arg", "B11", "desk", ("BI", "UK"), calls.ungrounded_arg, throughout=("BI", "KG", "UK")
    ),
    "ungrounded_arg_twin": Injection("ungrounded_arg", "B11", "desk", (), calls.named_in_prose),
    "ungrounded_arg_always": Injection(
        "ungrounded_arg", "B11", "desk", ("BI", "KG"), calls.ungrounded_arg_always, pick="tasks", options=GOLD
    ),
    "repeat_identical": Injection("repeat_identical", "B12", "desk", ("BI",), loops.repeat_identical),
    "repeat_identical_twin": Injection("repeat_identical", "B12", "desk", (), loops.asked_twice),
    "polling_twin": Injection("repeat_identical", "B12", "desk", (), loops.polling),
    # A tool that refuses every call of a run is a defect of the harness by the letter of its rule.
    "repeat_failing": Injection(
        "repeat_failing", "B13", "desk", ("BI",), loops.repeat_failing, throughout=("BI", "TI")
    ),
    "repeat_failing_twin": Injection("repeat_failing", "B13", "desk", (), loops.failing_twice),
    "cycle": Injection("cycle", "B14", "desk", ("BI",), loops.cycle),
    "cycle_twin": Injection("cycle", "B14", "desk", (), loops.one_more_round),
    "low_novelty": Injection("low_novelty", "B15", "desk", ("BI",), loops.low_novelty),
    "low_novelty_twin": Injection("low_novelty", "B15", "desk", (), loops.many_lookups),
    "reread": Injection("reread", "B16", "shell", ("BI",), loops.reread),
    "reread_twin": Injection("reread", "B16", "shell", (), loops.read_after_edit),
    "ignored_error": Injection(
        "ignored_error", "B17", "desk", ("BI",), calls.ignored_error, throughout=("BI", "TI"), options=GOLD
    ),
    "ignored_error_twin": Injection("ignored_error", "B17", "desk", (), calls.error_recovered, options=GOLD),
    "tool_never_used": Injection(
        "tool_never_used", "B18", "quiz", ("BI",), acts.tool_never_used, passers=2, options=LIBRARY
    ),
    "tool_never_used_twin": Injection(
        "tool_never_used", "B18", "quiz", (), acts.used_once, passers=2, options=LIBRARY
    ),
    "missing_required_tool": Injection(
        "missing_required_tool",
        "B19",
        "desk",
        ("UK", "BI"),
        acts.missing_required_tool,
        passers=2,
        options=GOLD,
    ),
    "missing_required_tool_twin": Injection(
        "missing_required_tool", "B19", "desk", (), acts.optional_left_out, passers=2, options=GOLD
    ),
    "missing_required_tool_always": Injection(
        "missing_required_tool",
        "B19",
        "desk",
        ("BI", "KG"),
        acts.missing_required_tool,
        pick="tasks",
        options=GOLD,
    ),
    "wrong_arg_field": Injection(
        "wrong_arg_field", "B20", "desk", ("BI", "UK"), acts.wrong_arg_field, throughout=("BI", "UK", "KG"), options=GOLD
    ),
    "wrong_arg_field_twin": Injection("wrong_arg_field", "B20", "desk", (), acts.other_words, options=GOLD),
    "wrong_arg_field_always": Injection(
        "wrong_arg_field", "B20", "desk", ("BI", "KG"), acts.wrong_arg_field_always, pick="tasks", options=GOLD
    ),
    "extra_side_effect": Injection(
        "extra_side_effect", "B21", "desk", ("BI",), acts.extra_side_effect, options=GOLD
    ),
    "extra_side_effect_twin": Injection(
        "extra_side_effect", "B21", "desk", (), acts.extra_read, options=GOLD
    ),
    "order_violation": Injection(
        "order_violation", "B22", "desk", ("BI",), acts.order_violation, passers=5, repeats=8
    ),
    "order_violation_twin": Injection(
        "order_violation", "B22", "desk", (), acts.reads_in_other_order, passers=5, repeats=8
    ),
    "ignored_pagination": Injection(
        "ignored_pagination",
        "B23",
        "desk",
        ("BI",),
        acts.ignored_pagination,
        throughout=("BI", "KG"),
        options=PAGED,
    ),
    "ignored_pagination_twin": Injection("ignored_pagination", "B23", "desk", (), acts.pages_followed),
    "no_verification": Injection(
        "no_verification", "B24", "shell", ("BI",), checks.no_verification, passers=2
    ),
    "no_verification_twin": Injection("no_verification", "B24", "shell", (), checks.all_tests, passers=2),
    "edit_after_last_test": Injection(
        "edit_after_last_test", "B25", "shell", ("BI",), checks.edit_after_last_test
    ),
    "edit_after_last_test_twin": Injection(
        "edit_after_last_test", "B25", "shell", (), checks.tidied_and_tested
    ),
    "finish_on_red": Injection("finish_on_red", "B26", "shell", ("BI",), checks.finish_on_red),
    "finish_on_red_twin": Injection("finish_on_red", "B26", "shell", (), checks.red_then_green),
    "self_check_pass_verifier_fail": Injection(
        "self_check_pass_verifier_fail",
        "B27",
        "shell",
        ("KG",),
        checks.self_check_pass_verifier_fail,
        pick="tasks",
    ),
    "self_check_pass_verifier_fail_twin": Injection(
        "self_check_pass_verifier_fail", "B27", "shell", (), checks.zero_failed, pick="tasks"
    ),
    "premature_stop": Injection(
        "premature_stop", "B28", "desk", ("BI",), finals.premature_stop, passers=2, options=GOLD
    ),
    "premature_stop_twin": Injection(
        "premature_stop", "B28", "desk", (), finals.short_way, passers=2, options=GOLD
    ),
    "gave_up": Injection("gave_up", "B29", "quiz", ("BI",), finals.gave_up, options=LIBRARY),
    "gave_up_twin": Injection("gave_up", "B29", "quiz", (), finals.found_later, options=LIBRARY),
    "asks_user": Injection("asks_user", "B30", "desk", ("BI",), finals.asks_user, throughout=("BI", "TI")),
    "asks_user_twin": Injection("asks_user", "B30", "desk", (), finals.asks_someone, options=USER),
    "refusal": Injection("refusal", "B31", "quiz", ("BI",), finals.refusal, throughout=("BI", "TI")),
    "refusal_twin": Injection("refusal", "B31", "quiz", (), finals.speaks_of_refusal),
    "empty_output": Injection("empty_output", "B32", "quiz", ("BI", "IR"), finals.empty_output),
    "empty_output_twin": Injection("empty_output", "B32", "quiz", (), finals.empty_then_full),
    "format_mismatch": Injection("format_mismatch", "B33", "quiz", ("BI",), finals.format_mismatch),
    "format_mismatch_twin": Injection("format_mismatch", "B33", "quiz", (), finals.odd_format),
    "format_mismatch_gold": Injection(
        "format_mismatch", "B33", "quiz", ("TI", "BI"), finals.format_mismatch_gold
    ),
    "right_then_wrong": Injection("right_then_wrong", "B34", "quiz", ("UK",), finals.right_then_wrong),
    "right_then_wrong_twin": Injection("right_then_wrong", "B34", "quiz", (), finals.wrong_then_right),
    "degenerate_text": Injection("degenerate_text", "B35", "quiz", ("BI",), finals.degenerate_text),
    "degenerate_text_twin": Injection("degenerate_text", "B35", "quiz", (), finals.long_table),
    "language_switch": Injection("language_switch", "B36", "quiz", ("BI",), finals.language_switch),
    "language_switch_twin": Injection("language_switch", "B36", "quiz", (), finals.foreign_word),
    "reward_hack": Injection("reward_hack", "B37", "shell", ("TI", "BI"), checks.reward_hack),
    "reward_hack_twin": Injection("reward_hack", "B37", "shell", (), checks.edits_latest_prices),
    "unconfirmed_write": Injection(
        "unconfirmed_write", "B38", "desk", ("BI",), acts.unconfirmed_write, options=USER
    ),
    "unconfirmed_write_twin": Injection(
        "unconfirmed_write", "B38", "desk", (), acts.confirmed_before, options=USER
    ),
    "contradiction_say_do": Injection(
        "contradiction_say_do", "B40", "desk", ("BI",), acts.contradiction_say_do, options=GOLD
    ),
    "contradiction_say_do_twin": Injection(
        "contradiction_say_do", "B40", "desk", (), acts.announced_and_done, options=GOLD
    ),
    "empty_run": Injection("empty_run", "", "desk", ("IR",), whole.empty_run, pick="run"),
    "empty_run_twin": Injection("empty_run", "", "desk", (), whole.no_usage, pick="run"),
    "broken_verifier": Injection("broken_verifier", "", "quiz", ("TI",), whole.broken_verifier, pick="run"),
    "broken_verifier_twin": Injection(
        "broken_verifier", "", "quiz", (), whole.hopeless, pick="run", options=HOPELESS
    ),
    "gold_rejected": Injection("gold_rejected", "", "quiz", ("TI",), whole.gold_rejected, pick="tasks"),
    "gold_rejected_twin": Injection("gold_rejected", "", "quiz", (), whole.gold_seen_through, pick="tasks"),
    "nondeterministic_verifier": Injection(
        "nondeterministic_verifier", "", "quiz", ("TI",), whole.nondeterministic_verifier, pick="tasks"
    ),
    "nondeterministic_verifier_twin": Injection(
        "nondeterministic_verifier", "", "quiz", (), whole.same_answer_other_dress, pick="tasks"
    ),
    "wrong_tasks": Injection("wrong_tasks", "", "quiz", ("DA",), whole.wrong_tasks),
    "wrong_tasks_twin": Injection("wrong_tasks", "", "quiz", (), whole.other_opening),
    "provider_outage": Injection("provider_outage", "", "desk", ("IR",), whole.provider_outage, pick="block"),
    "provider_outage_twin": Injection(
        "provider_outage", "", "desk", (), whole.outage_recovered, pick="block"
    ),
    "agent_never_started": Injection("agent_never_started", "", "quiz", ("IR",), whole.agent_never_started),
    "agent_never_started_twin": Injection("agent_never_started", "", "quiz", (), whole.terse),
    "format_rejected": Injection("format_rejected", "", "quiz", ("TI",), whole.format_rejected, pick="run"),
    "format_rejected_twin": Injection("format_rejected", "", "quiz", (), whole.format_accepted, pick="run"),
    "turn_limit_run": Injection("turn_limit_run", "", "desk", ("IR", "TI"), whole.turn_limit_run, pick="run"),
    "turn_limit_run_twin": Injection("turn_limit_run", "", "desk", (), whole.cap_reached, pick="run"),
}
