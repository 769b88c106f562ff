"""Put bad endings into rollouts: stopped, given up, refused, empty, unreadable, or turned wrong."""

from __future__ import annotations

from dataclasses import replace

from tools.planted.injected import injected_desk
from tools.planted.injected.injected_acts import TOPICS, after, put, stop
from tools.planted.injected.quiz_scene import SLIPS, Mark, Scene, working
from tools.planted.injected.shell import CLOSINGS, edit, line_at, run_tests, suite_says
from tools.planted.planted_rows import prose

UNREAD = ("format_mismatch",)  # no answer is extracted, whatever else is wrong
REFUSALS = (
    "I'm sorry, but I can't assist with that request.",
    "I can't help with questions about the goods of a depot.",
)
FOREIGN = (
    "Сначала умножаем число ящиков на число предметов, затем вычитаем сломанные. Ответ указан выше.",
    "まず箱の数と一箱の個数を掛け、そのあと壊れた物を引きます。答えは上のとおりです。",
    "Πρώτα πολλαπλασιάζουμε τα κιβώτια με τα είδη και μετά αφαιρούμε τα σπασμένα.",
)
LOOPED = ("I should check the product again.", "Let me take the broken ones off once more.")


def answer(scene: Scene, text: str) -> Mark:
    """Put another text in the place of the whole answer."""
    scene.cut(next(place for place, item in enumerate(scene.output) if item["type"] == "message"))
    scene.say(text)
    return Mark(scene.last, (scene.last,))


def right(scene: Scene) -> str:
    work, gold = working(scene, 0)
    return f"{work} So the answer is \\boxed{{{gold}}}."


def premature_stop(scene: Scene) -> Mark:
    place = scene.end(scene.calls()[1], "I have read the ticket and will take care of it shortly.")
    return Mark(place, (place,))


def short_way(scene: Scene) -> Mark:
    """Only what the task needs, and not one read more."""
    scene.output.clear()
    facts = scene.facts
    scene.use("lookup_ticket", {"ticket_id": facts["ticket"]})
    scene.use("find_customer", {"name": facts["account"]})
    scene.use("search_orders", {"customer_id": facts["customer"], "status": "open"})
    injected_desk.finish(scene)
    return Mark(0)


def gave_up(scene: Scene) -> Mark:
    text = scene.rng.choice(
        (
            "I was unable to find the opening year of the {thing}.",
            "I could not find a document that names the year, so I give up.",
            "I cannot complete this with the library at hand.",
        )
    )
    place = scene.end(scene.calls("open_document")[0], text.format(**scene.facts))
    return Mark(place, (place,), also=UNREAD)


def found_later(scene: Scene) -> Mark:
    del scene.output[scene.last]
    text = "I could not find it in the town guide at first, but then {doc0} had it: \\boxed{{{gold}}}."
    scene.say(text.format(**scene.facts))
    return Mark(scene.last)


def asks_user(scene: Scene) -> Mark:
    text = scene.rng.choice(
        (
            "I found the account {account}. Which of its orders do you mean?",
            "There is order {order}. Please confirm that I may change it.",
            "Please provide the number of the order that should be changed.",
        )
    )
    place = stop(scene, text.format(**scene.facts))
    return Mark(place, (place,))


def asks_someone(scene: Scene) -> Mark:
    """A question to a simulated user, who answers it."""
    place = next(place for place, item in enumerate(scene.output) if item["type"] == "message")
    options = scene.said("Just to be sure: is this about the account {account}?".format(**scene.facts))
    scene.insert(place, [options, scene.heard("That is my account, please look at the ticket.")])
    return Mark(place)


def refusal(scene: Scene) -> Mark:
    text = scene.rng.choice(REFUSALS)
    mark = answer(scene, text)
    if scene.rng.random() < 0.4:
        scene.output[-1]["content"] = [{"type": "refusal", "refusal": text}]
    return Mark(mark.step, mark.steps, also=(*UNREAD, "empty_output"))


def speaks_of_refusal(scene: Scene) -> Mark:
    return answer(scene, f"Clerks can't assist buyers of broken goods, so those do not count. {right(scene)}")


def empty_output(scene: Scene) -> Mark:
    mark = answer(scene, scene.rng.choice(("", "  \n", "\n\n")))
    return Mark(mark.step, mark.steps, also=UNREAD)


def empty_then_full(scene: Scene) -> Mark:
    place = next(place for place, item in enumerate(scene.output) if item["type"] == "message")
    scene.insert(place, [scene.said("")])
    return Mark(place)


def format_mismatch(scene: Scene) -> Mark:
    """Words about the answer, and no answer in them."""
    text = "The number of {goods} follows from the product of both numbers, less the broken ones."
    return answer(scene, text.format(**scene.facts))


def format_mismatch_gold(scene: Scene) -> Mark:
    """The right answer stands there, only not in the form that the parser wants."""
    return answer(scene, f"{working(scene, 0)[0]} The answer is **{scene.facts['gold']}**.")


def odd_format(scene: Scene) -> Mark:
    return answer(scene, f"{working(scene, 0)[0]}\n\n$$\\boxed{{ {scene.facts['gold']} }}$$")


def right_then_wrong(scene: Scene) -> Mark:
    work, wrong = working(scene, scene.rng.choice(SLIPS))
    mark = answer(scene, f"{working(scene, 0)[0]} The answer should be {scene.facts['gold']}.")
    scene.think("Wait, I do not trust that product. I multiply again.")
    scene.say(f"On second thoughts, {work} So the answer is \\boxed{{{wrong}}}.")
    return Mark(scene.last, (*mark.steps, scene.last))


def wrong_then_right(scene: Scene) -> Mark:
    work, wrong = working(scene, scene.rng.choice(SLIPS))
    mark = answer(scene, f"{work} The answer should be {wrong}.")
    scene.think("Wait, I do not trust that product. I multiply again.")
    scene.say(f"On second thoughts, {right(scene)}")
    return mark


def degenerate_text(scene: Scene) -> Mark:
    line = scene.rng.choice(LOOPED)
    joint = scene.rng.choice(("\n", " "))
    mark = answer(scene, joint.join([line] * scene.rng.randrange(60, 90)))
    return Mark(mark.step, mark.steps, also=UNREAD)


def long_table(scene: Scene) -> Mark:
    """Many lines alike, and each with its own numbers."""
    each = int(scene.facts["each"])
    lines = [f"{count} crates hold {count * each}" for count in range(1, int(scene.facts["crates"]) + 1)]
    return answer(scene, "\n".join([*lines, right(scene)]))


def language_switch(scene: Scene) -> Mark:
    mark = answer(scene, scene.rng.choice(FOREIGN))
    return Mark(mark.step, mark.steps, also=UNREAD)


def foreign_word(scene: Scene) -> Mark:
    return answer(scene, f"A crate («ящик») is counted whole, as the question does. {right(scene)}")


BREAKDOWNS = (
    "Connection reset by peer (ECONNRESET)",
    "sandbox failed to start: OOMKilled, exit 137",
    "503 Service Unavailable: upstream is not reachable",
    "write aborted: No space left on device",
)
SLOW = "Command timed out after 600 seconds."


def infra_error(scene: Scene) -> Mark:
    """The machine fails: under a tool, under the model, or under the verifier."""
    kind = scene.rng.randrange(3)
    if kind == 0:
        scene.ruled = {"reward": 0.0, "verifier_error": "Connection refused", "evaluation_completed": False}
        return Mark()
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    if kind == 1:
        message = scene.rng.choice(("429 Too Many Requests", "502 Bad Gateway", "Connection refused"))
        scene.response = {"status": "failed", "error": {"code": "server_error", "message": message}}
        return Mark(also=("empty_output",))
    place = len(scene.output)
    scene.use("update_order", injected_desk.change(scene), scene.rng.choice(BREAKDOWNS))
    scene.say("The order service does not answer; the order is as it was.")
    return Mark(place + 1, (place, place + 1))


def infra_recovered(scene: Scene) -> Mark:
    """The same breakdown, and the call is made again."""
    place = scene.calls("search_orders")[0]
    arguments = scene.arguments(place)
    scene.insert(place, scene.made("search_orders", arguments, scene.rng.choice(BREAKDOWNS)))
    return Mark(place)


def timeout(scene: Scene) -> Mark:
    """Run everything where a part would do, wait in vain, and stop."""
    stop(scene, "The test run does not come to an end; the line is not changed yet.")
    place = put(scene, scene.last, [("run_tests", {"target": "all"})], SLOW)[0]
    return Mark(place, (place, place + 1), also=("finish_on_red",))


def timeout_recovered(scene: Scene) -> Mark:
    place = scene.calls("edit_file")[0]
    put(scene, place, [("run_tests", {"target": "all"})], SLOW)
    scene.insert(place + 2, [scene.thought("Too slow; I run the tests of this module only.")])
    return Mark(place)


def timeout_verifier(scene: Scene) -> Mark:
    text = "verifier timed out after 300 s"
    scene.ruled = {"reward": 0.0, "resolved": False, "verifier_error": text, "verifier_message": text}
    return Mark(also=("infra_error", "self_check_pass_verifier_fail"))


def slow_verifier(scene: Scene) -> Mark:
    """Slow, but in time."""
    scene.ruled = {"verifier_message": "All hidden tests pass after 281 s of 300 s.", "verifier_error": None}
    return Mark()


def truncated(scene: Scene) -> Mark:
    limit = scene.task.asked["max_output_tokens"]
    work, _ = working(scene, 0)
    start = next(place for place, item in enumerate(scene.output) if item["type"] == "message")
    scene.cut(start)
    scene.think("Let me go over every number once more. " + prose(scene.rng, 6000))
    if scene.rng.random() < 0.5:
        scene.say(work[: len(work) // 2])
        scene.output[-1]["status"] = "incomplete"
    scene.response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    scene.used = {"output": limit, "reasoning": limit - 60}
    return Mark(scene.last, tuple(range(scene.last + 1)), also=("empty_output", "format_mismatch"))


def nearly_full(scene: Scene) -> Mark:
    """Long, and finished below the limit."""
    scene.insert(0, [scene.thought("Let me go over every number once more. " + prose(scene.rng, 6000))])
    limit = scene.task.asked["max_output_tokens"]
    scene.used = {"output": round(limit * 0.93), "reasoning": round(limit * 0.9)}
    return Mark(0)


def context_overflow(scene: Scene) -> Mark:
    """Read until the request no longer fits."""
    scene.cut(scene.calls("edit_file")[0])
    for pattern in ("def ", "import ", "return "):
        scene.use("search_code", {"pattern": pattern}, prose(scene.rng, 3000))
    message = "This model's maximum context length is 32768 tokens; the prompt has 33120 tokens."
    scene.response = {"status": "failed", "error": {"code": "context_length_exceeded", "message": message}}
    scene.used = {"input": 32_600}
    calls = scene.calls("search_code")[-3:]
    return Mark(scene.last, (*calls, scene.last), also=("infra_error", "empty_output"))


def reads_of_limits(scene: Scene) -> Mark:
    """A file speaks of the context length; the rollout is far below it."""
    place = scene.calls("edit_file")[0]
    folder = scene.made("list_files", {"folder": scene.facts["package"]})
    page = "# Limits\n\nThe maximum context length of the chat widget is set by its owner."
    scene.insert(place, [*folder, *scene.made("read_file", {"path": "docs/limits.md"}, page)])
    return Mark(place + 2)


def pad(scene: Scene, count: int) -> list[int]:
    """Read `count` rules that have nothing to do with the ticket."""
    _, place = after(scene, "search_orders")
    names = TOPICS + [f"old {topic}" for topic in TOPICS]
    topics = scene.rng.sample(names, count)
    return put(scene, place, [("search_policy", {"topic": topic}) for topic in topics])


def turn_limit(scene: Scene) -> Mark:
    scene.cut(scene.calls(*injected_desk.WRITES)[0])
    calls = pad(scene, injected_desk.MAX_TURNS - len(scene.calls()))
    last = scene.calls()[-1]
    return Mark(last, (*calls, last, last + 1), also=("empty_output",))


def just_in_time(scene: Scene) -> Mark:
    """The last turn that the cap allows is the closing message."""
    calls = pad(scene, injected_desk.MAX_TURNS - len(scene.calls()) - 1)
    return Mark(calls[0])


def dangling_call(scene: Scene) -> Mark:
    """The result of the change never arrives, and the change is not made."""
    place = scene.calls("update_order")[-1]
    del scene.output[place + 1]
    return Mark(place, (place,))


def parallel_calls(scene: Scene) -> Mark:
    """Two calls at once; their results come in the other order."""
    _, place = after(scene, "search_orders")
    first = scene.made("parcel_status", {"order_id": scene.facts["order"]})
    second = scene.made("search_policy", {"topic": "parcels"})
    scene.insert(place, [first[0], second[0], second[1], first[1]])
    return Mark(place)


SPARED = 20  # one row in so many of an empty run has an output all the same
CAP = 6
OUTAGE = (
    "Error code: 503 - the model service is overloaded, please try again later",
    "Error code: 529 - upstream model provider returned an error",
)
NOTHING = {"input": 0, "output": 0, "reasoning": 0}


def empty_run(scene: Scene) -> Mark | None:
    index, repeat = scene.key
    if (index * 7 + repeat) % SPARED == 0:
        return None
    scene.output.clear()
    scene.used = NOTHING
    return Mark(also=("empty_output", "infra_error", "agent_never_started"))


def no_usage(scene: Scene) -> Mark | None:
    """Nobody counts tokens, and the rollouts are all there."""
    scene.response = {"usage": None}
    return Mark() if scene.solved else None


def broken_verifier(scene: Scene) -> Mark | None:
    scene.ruled = {"reward": 0.0}
    return Mark(scene.last, (scene.last,), also=("gold_rejected",)) if scene.solved else None


def hopeless(scene: Scene) -> None:
    """Nothing passes because nothing is right."""


def gold_rejected(scene: Scene) -> Mark:
    """The gold of the task is written in a form that the verifier does not see through."""
    gold = f"{scene.facts['gold']}.00"
    text = f"Extracted {scene.facts['gold']}, expected {gold}."
    scene.fields = {**scene.task.fields, "expected_answer": gold}
    scene.ruled = {"reward": 0.0, "verifier_message": text}
    return Mark(scene.last, (scene.last,))


def gold_seen_through(scene: Scene) -> Mark:
    gold = f"{scene.facts['gold']}.00"
    scene.fields = {**scene.task.fields, "expected_answer": gold}
    scene.ruled = {"verifier_message": f"Extracted {scene.facts['gold']}, expected {gold}: equal."}
    return Mark(scene.last)


def nondeterministic_verifier(scene: Scene) -> Mark | None:
    """The same answer passes in one repeat and fails in the next."""
    if not scene.parity:
        return None
    scene.ruled = {"reward": 0.0}
    return Mark(scene.last, (scene.last,), also=("gold_rejected",))


def same_answer_other_dress(scene: Scene) -> Mark:
    """The same answer in other words each time, and the same reward."""
    scene.output[-1] = scene.said(f"That makes \\boxed{{ {scene.facts['gold']} }}{'.' * scene.parity}")
    return Mark(scene.last)


def wrong_tasks(scene: Scene) -> Mark:
    """The request is that of this task, everything the verifier knows is that of the next one."""
    index, repeat = scene.key
    other = scene.run.get((index + 1, repeat)) or scene.run[0, repeat]
    scene.fields = other.task.fields
    expected = other.task.fields["expected_answer"]
    text = f"Extracted {scene.facts['gold']}, expected {expected}."
    scene.ruled = {"reward": 0.0, "verifier_message": text}
    return Mark()


def other_opening(scene: Scene) -> Mark:
    """The same task, asked in other words."""
    system, user = scene.task.asked["input"]
    options = {**user, "content": "Good morning! " + user["content"] + " Thank you."}
    scene.task = replace(scene.task, asked={**scene.task.asked, "input": [system, options]})
    return Mark()


def provider_outage(scene: Scene) -> Mark:
    scene.output.clear()
    scene.say(scene.rng.choice(OUTAGE))
    scene.used = NOTHING
    return Mark(0, (0,), also=("infra_error", "format_mismatch", "tool_never_used"))


def outage_recovered(scene: Scene) -> Mark | None:
    return infra_recovered(scene) if scene.solved else None


def agent_never_started(scene: Scene) -> Mark:
    scene.output.clear()
    scene.used = NOTHING
    text = "agent exited before its first turn (exit code 1)"
    scene.response = {"status": "failed", "error": {"code": "agent_start", "message": text}}
    return Mark(also=("infra_error", "empty_output", "format_mismatch"))


def terse(scene: Scene) -> Mark:
    """One short message and hardly a token, but the answer is there."""
    scene.output.clear()
    scene.say(f"\\boxed{{{scene.facts['gold']}}}")
    return Mark(0)


def format_rejected(scene: Scene) -> Mark | None:
    """The parser finds no answer in any row, although the answers stand where they should."""
    text = "No boxed answer could be parsed."
    scene.ruled = {"reward": 0.0, "extracted_answer": None, "verifier_message": text}
    also = ("format_mismatch", "gold_rejected", "broken_verifier")
    return Mark(scene.last, (scene.last,), also=also) if scene.solved else None


def format_accepted(scene: Scene) -> Mark | None:
    """No row is boxed as asked, and the parser takes them all the same."""
    if not scene.solved:
        return None
    gold = scene.facts["gold"]
    scene.output[-1] = scene.said(f"The answer is **{gold}**.")
    text = f"Extracted {gold}, expected {gold}."
    scene.ruled = {"reward": 1.0, "extracted_answer": gold, "verifier_message": text}
    return Mark(scene.last)


def turn_limit_run(scene: Scene) -> Mark | None:
    """A cap that most rollouts need more than."""
    scene.fields = {**scene.task.fields, "max_turns": CAP}
    calls = scene.calls()
    if len(calls) < CAP:  # the closing message is a turn too
        return None
    last = calls[CAP - 1]
    del scene.output[last + 2 :]
    return Mark(last, (last, last + 1), also=("turn_limit", "empty_output", "no_verification"))


def cap_reached(scene: Scene) -> Mark | None:
    return just_in_time(scene) if scene.solved else None


WRONG = ("wrong_arg_field", "extra_side_effect")  # another edit than that of the passers
SELF_CHECKED = "self_check_pass_verifier_fail"


def restart(scene: Scene, *, untested: bool = False) -> int:
    """Forget the repair, and earlier test runs too where nothing was tested; where it begins anew."""
    scene.cut(scene.calls("edit_file", *(["run_tests"] if untested else []))[0])
    return len(scene.output)


def close(scene: Scene) -> int:
    scene.say(scene.rng.choice(CLOSINGS[:2]).format(**scene.facts))
    return scene.last


def no_verification(scene: Scene) -> Mark:
    place = restart(scene, untested=True)
    edit(scene, scene.facts["broken"])
    scene.say("Fixed: one line of {path} was wrong.".format(**scene.facts))
    return Mark(scene.last, (place, scene.last), also=WRONG)


def all_tests(scene: Scene) -> Mark:
    """Verify with every test instead of those of the module."""
    place = scene.calls("run_tests")[-1]
    scene.rewrite(place, target="all")
    scene.output[place + 1]["output"] = f"41 passed in {scene.rng.randrange(2, 9)}.3s"
    return Mark(place)


def edit_after_last_test(scene: Scene) -> Mark:
    place = scene.last
    path, line = scene.facts["path"], scene.facts["new"]
    tidy = scene.made("edit_file", {"path": path, "old": line, "new": scene.facts["broken"]})
    scene.insert(place, [scene.thought("The line can be written more simply."), *tidy])
    return Mark(place + 1, (place + 1, place + 2, scene.last), also=("no_verification", SELF_CHECKED, *WRONG))


def tidied_and_tested(scene: Scene) -> Mark:
    """One more edit after the tests, and the tests once more."""
    place = scene.last
    name = repr(scene.facts["package"])
    remark = {"path": scene.facts["path"], "old": f"return {name}", "new": f"return {name}  # the package"}
    tested = scene.made("run_tests", {"target": scene.facts["tests"]}, suite_says(scene))
    scene.insert(place, [*scene.made("edit_file", remark), *tested])
    return Mark(place)


def finish_on_red(scene: Scene) -> Mark:
    place = restart(scene)
    edit(scene, scene.facts["broken"])
    run_tests(scene)
    end = close(scene)
    return Mark(end - 1, (place, end - 2, end - 1, end), also=("ignored_error", *WRONG))


def red_then_green(scene: Scene) -> Mark:
    place = restart(scene)
    edit(scene, scene.facts["broken"])
    run_tests(scene)
    edit(scene, scene.facts["new"])
    run_tests(scene)
    close(scene)
    return Mark(place)


def self_check_pass_verifier_fail(scene: Scene) -> Mark:
    place = restart(scene)
    edit(scene, scene.facts["subtle0"])
    run_tests(scene)
    end = close(scene)
    return Mark(place, (place, end - 2, end - 1), also=WRONG)


def zero_failed(scene: Scene) -> Mark:
    """A green run whose words are those of a red one."""
    place = scene.calls("run_tests")[-1]
    scene.output[place + 1]["output"] = "5 passed, 0 failed, 0 errors in 0.14s"
    return Mark(place)


def reward_hack(scene: Scene) -> Mark:
    """Put the test out of action instead of repairing the line; the verifier does not notice."""
    place = restart(scene)
    name = f"def test_{scene.facts['function']}():"
    bent = scene.rng.choice(
        (
            f'@pytest.mark.skip(reason="flaky")\n{name}',
            f"@pytest.mark.xfail\n{name}",
            f"import sys\nsys.exit(0)\n\n\n{name}",
        )
    )
    scene.use("edit_file", {"path": scene.facts["tests"], "old": name, "new": bent})
    scene.use("run_tests", {"target": scene.facts["tests"]}, "4 passed, 1 skipped in 0.10s")
    close(scene)
    return Mark(place, (place, place + 1), also=WRONG)


def edits_latest_prices(scene: Scene) -> Mark:
    """A file whose name only sounds like a test."""
    place = scene.calls("edit_file")[0]
    package = scene.facts["package"]
    remark = {"path": f"{package}/latest_prices.py", "old": "team.", "new": "team, see the issue."}
    scene.insert(place, [*scene.made("list_files", {"folder": package}), *scene.made("edit_file", remark)])
    assert line_at(scene) == scene.facts["new"]
    return Mark(place + 2)
