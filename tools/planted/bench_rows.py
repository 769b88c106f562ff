"""Write large files of simulated rows, fast, for measuring speed and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tools.planted import planted_rows
from tools.planted.planted_rows import Item, encode, prose

REPEATS = 8
WINDOW = 64  # tasks in flight together: rows are shuffled within a window, as completion order does
TASK_MARK, ROW_MARK = "@TASK@", "@ROW@"  # where the number of the task and of the row are spliced in

NOUNS = (
    "ticket",
    "order",
    "customer",
    "invoice",
    "parcel",
    "refund",
    "address",
    "supplier",
    "message",
    "schedule",
    "warranty",
    "stock",
)
VERBS = ("lookup", "search", "update", "send", "archive", "merge", "approve", "list")


@dataclass(frozen=True, slots=True)
class Kind:
    """The make-up of a row: shares are of `row_bytes`; the rest goes to the verifier's fields."""

    row_bytes: int
    prompt: float
    output: float
    n_items: int
    n_tools: int
    n_bodies: int
    n_verifier: int  # verifier keys
    token_ids: bool = False


KINDS = {
    "mix": Kind(24_000, 0.55, 0.35, 9, 14, 256, 14),
    "mcqa": Kind(5_000, 0.40, 0.48, 2, 0, 256, 8),
    "agentic": Kind(70_000, 0.25, 0.65, 30, 14, 192, 14),
    "tokids": Kind(140_000, 0.03, 0.96, 2, 2, 96, 8, token_ids=True),
}


@dataclass(frozen=True, slots=True)
class Bodies:
    """Rows in pieces: what is written between them differs from row to row."""

    prompts: list[tuple[bytes, bytes]]
    outputs: list[tuple[bytes, bytes]]
    verdicts: dict[bool, list[bytes]]


def write_bench(path: Path, kind: str, size_bytes: int, seed: int = 0) -> int:
    """Write about `size_bytes` of rows of a kind, eight repeats per task; the number of rows."""
    kind_of_rows = KINDS[kind]
    rng = Random(f"{kind}/{seed}")
    bodies = build_bodies(rng, kind_of_rows)
    n_tasks = max(1, round(size_bytes / kind_of_rows.row_bytes / REPEATS))
    with path.open("wb", buffering=1 << 20) as file:
        file.writelines(bench_rows(rng, bodies, n_tasks))
    return n_tasks * REPEATS


def write_light(path: Path, n_rows: int, repeats: int = REPEATS, seed: int = 0) -> int:
    """Write `n_rows` rows of about 400 bytes; the number of rows."""
    rng = Random(f"light/{seed}")
    form = (
        b'{"responses_create_params":{"input":"Ticket %06d: which order is it about?"},'
        b'"response":{"id":"resp_%016x","model":"sim-model-a",'
        b'"output":[{"type":"message","role":"assistant","content":"%s"}],'
        b'"usage":{"input_tokens":%d,"output_tokens":%d}},"reward":%s,"category":"%s",'
        b'"difficulty":"%s","_ng_task_index":%d,"_ng_rollout_index":%d,"agent_ref":{"name":"sim_desk_agent"}}\n'
    )
    with path.open("wb", buffering=1 << 20) as file:
        rate = 0.0
        for row in range(n_rows):
            task, repeat = divmod(row, repeats)
            if repeat == 0:
                rate = task_rate(rng)
            draw, bits = rng.random(), rng.getrandbits(64)
            n_in, n_out = 200 + bits % 700, 20 + bits % 311
            passed = draw < rate
            file.write(
                form
                % (
                    task,
                    bits,
                    b"It is the open order." if passed else b"I could not find it.",
                    n_in,
                    n_out,
                    b"1.0" if passed else b"0.0",
                    (b"billing", b"orders", b"returns")[task % 3],
                    (b"easy", b"medium", b"hard", b"hard")[task % 4],
                    task,
                    repeat,
                )
            )
    return n_rows


def task_rate(rng: Random) -> float:
    """A pass rate: a quarter of the tasks always pass, a fifth never do."""
    draw = rng.random()
    return 1.0 if draw < 0.25 else 0.0 if draw < 0.45 else rng.random()


def bench_rows(rng: Random, bodies: Bodies, n_tasks: int) -> Iterator[bytes]:
    for start in range(0, n_tasks, WINDOW):
        keys = [
            (task, repeat, rate)
            for task in range(start, min(start + WINDOW, n_tasks))
            for rate in (task_rate(rng),)
            for repeat in range(REPEATS)
        ]
        rng.shuffle(keys)
        for task, repeat, rate in keys:
            passed = rng.random() < rate
            before, after = bodies.prompts[task % len(bodies.prompts)]
            opening, rest = bodies.outputs[rng.randrange(len(bodies.outputs))]
            verdict = bodies.verdicts[passed]
            number = b"%06d" % task
            yield b"".join(
                (
                    b'{"responses_create_params":',
                    before,
                    number,
                    after,
                    b',"response":',
                    opening,
                    b"%016x" % rng.getrandbits(64),
                    rest,
                    b',"reward":',
                    b"1.0" if passed else b"0.0",
                    b',"task_id":"desk-',
                    number,
                    b'"',
                    verdict[task % len(verdict)],
                    b',"_ng_task_index":%d,"_ng_rollout_index":%d,"agent_ref":{"name":"sim_desk_agent"}}\n'
                    % (task, repeat),
                )
            )


def build_bodies(rng: Random, kind: Kind) -> Bodies:
    tools = bench_tools(rng, kind)
    policy = prose(rng, round(kind.row_bytes * kind.prompt * 0.35))
    prompts, outputs = [], []
    for number in range(kind.n_bodies):
        size = round(kind.row_bytes * kind.prompt)
        prompts.append(split(encode(prompt(rng, size, tools, policy, abroad=number % 48 == 0)), TASK_MARK))
        size = round(kind.row_bytes * kind.output * rng.uniform(0.8, 1.2))
        outputs.append(split(encode(answer(rng, size, kind, abroad=number % 32 == 0)), ROW_MARK))
    size = round(kind.row_bytes * (1 - kind.prompt - kind.output))
    verdicts = {
        passed: [
            b"," + encode(verifier_fields(rng, size, kind.n_verifier, number, passed=passed))[1:-1]
            for number in range(kind.n_bodies)
        ]
        for passed in (True, False)
    }
    return Bodies(prompts, outputs, verdicts)


def split(body: bytes, mark: str) -> tuple[bytes, bytes]:
    before, after = body.split(mark.encode())
    return before, after


def bench_tools(rng: Random, kind_of_rows: Kind) -> list[Item]:
    """Tool schemas over about half of the prompt's bytes."""
    tools: list[Item] = []
    room = round(kind_of_rows.row_bytes * kind_of_rows.prompt * 0.5 / kind_of_rows.n_tools) if kind_of_rows.n_tools else 0
    for number in range(kind_of_rows.n_tools):
        noun, verb = NOUNS[number % len(NOUNS)], VERBS[number % len(VERBS)]
        fields = [f"{noun}_id", "reason", "limit", "include_closed"]
        kinds = ["string", "string", "integer", "boolean"]
        spare = max(20, (room - 420) // 6)
        properties = {
            name: {"type": kind, "description": prose(rng, spare)}
            for name, kind in zip(fields, kinds, strict=True)
        }
        tools.append(planted_rows.tool(f"{verb}_{noun}", prose(rng, 2 * spare), properties, fields[:2]))
    return tools


def prompt(rng: Random, size: int, tools: list[Item], policy: str, *, abroad: bool) -> Item:
    request = {
        "input": [{"role": "system", "content": policy}, {"role": "user", "content": ""}],
        "tools": tools,
        "temperature": 1.0,
        "top_p": None,
        "max_output_tokens": 4096,
        "parallel_tool_calls": False,
        "metadata": None,
    }
    room = max(40, size - len(encode(request)) - 20)
    user: Any = request["input"]
    user[1]["content"] = f"Request {TASK_MARK}. " + prose(
        rng, round(room * rng.uniform(0.8, 1.2)), abroad=abroad
    )
    return request


def answer(rng: Random, size: int, kind: Kind, *, abroad: bool) -> Item:
    """A response of about `size` bytes: reasoning, calls with their results, a closing message."""
    used = planted_rows.usage(size // 3, size // 5, size // 9)
    if kind.token_ids:
        output = [planted_rows.reasoning("0", prose(rng, 900)), token_message(rng, size - 2600)]
        return planted_rows.response(ROW_MARK, "sim-model-a", output, used)
    room = max(80, (size - 700) // kind.n_items - 110)
    output = []
    for place in range(kind.n_items - 1):
        ident = f"{rng.getrandbits(48):012x}"
        turn = place % 3
        if turn == 0:
            output.append(planted_rows.reasoning(ident, prose(rng, room, abroad=abroad)))
        elif turn == 1:
            output.append(
                planted_rows.call(ident, f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}", arguments(rng, room // 2))
            )
        else:
            failed = rng.random() < 0.1
            text = "Error: no such record. " + prose(rng, 60) if failed else record(rng, room + room // 2)
            output.append(planted_rows.result(output[-1]["call_id"].removeprefix("call_"), text))
    room = max(room // 2, size - 600 - len(encode(output)))
    output.append(planted_rows.message(f"{rng.getrandbits(48):012x}", prose(rng, room, abroad=abroad)))
    return planted_rows.response(ROW_MARK, "sim-model-a", output, used, truncated=rng.random() < 0.02)


def arguments(rng: Random, size: int) -> Item:
    return {"ticket_id": f"T-{rng.randrange(10_000):04d}", "reason": prose(rng, max(20, size)), "limit": 5}


def record(rng: Random, size: int) -> str:
    """A tool's answer: JSON inside a string, so every quotation mark is escaped in the row."""
    rows = []
    for _ in range(max(1, size // 165)):
        rows.append(
            {
                "order_id": f"O-{rng.randrange(100_000):05d}",
                "status": rng.choice(("open", "sent", "held")),
                "total": round(rng.uniform(5, 900), 2),
                "note": prose(rng, 70),
                "paid": rng.random() < 0.5,
            }
        )
    return encode({"ok": True, "rows": rows}).decode()


def token_message(rng: Random, size: int) -> Item:
    """A message with token arrays as training keeps them: an id takes 6 bytes, a log-probability 20."""
    n_generated = size // 40
    n_prompt = (size - n_generated * 26) // 6
    return planted_rows.message(
        "1",
        prose(rng, 1200),
        prompt_token_ids=rng.choices(range(10_000, 99_999), k=n_prompt),
        generation_token_ids=rng.choices(range(10_000, 99_999), k=n_generated),
        generation_log_probs=[-(rng.random() ** 4) for _ in range(n_generated)],
    )


def verifier_fields(rng: Random, size: int, count: int, number: int, *, passed: bool) -> Item:
    """`count` fields as a desk verifier would add them, filled up with its message."""
    gold = f"O-{number:05d}"
    actions = [
        {"name": f"{VERBS[place]}_{NOUNS[place]}", "arguments": {"order_id": gold, "limit": place}} for place in range(4)
    ]
    fields: Item = {
        "category": ("billing", "orders", "returns")[number % 3],
        "difficulty": ("easy", "medium", "hard")[number % 4 % 3],
        "expected_answer": gold,
        "extracted_answer": gold if passed else f"O-{number + 7:05d}",
        "db_match": passed,
        "n_lookups": rng.randrange(1, 6),
        "failure_reason": None if passed else rng.choice(("wrong_record", "stopped_early", "no_answer")),
        "verifier_message": "",
        "expected_actions": actions,
        "matched_actions": 4 if passed else rng.randrange(4),
        "format_ok": passed or rng.random() < 0.8,
        "checks": {"total": passed, "address": rng.random() < 0.9},
        "verify_s": round(rng.uniform(0.01, 2.0), 4),
        "split": "test",
    }
    fields = dict(list(fields.items())[:count])
    start = (
        "All expected changes are in the database. "
        if passed
        else "The database differs from the gold state. "
    )
    fields["verifier_message"] = start + prose(rng, max(10, size - len(encode(fields)) - 130))
    return fields
