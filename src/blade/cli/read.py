"""`blade read`: have a model read failed tasks; what it cannot quote is thrown away."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import ENDPOINT, ONLY, THRESHOLD, force_option, json_option, output_option
from blade.cli.output import Progress, refuse_sources, refuse_unwritable, write_text
from blade.cli.sanitize import cleaner
from blade.errors import Unreadable, UsageError
from blade.targets import refuse_taken

if TYPE_CHECKING:
    from blade.agent.reader import Cap, Endpoint, Price
    from blade.pipeline import Loaded
    from blade.pipeline.model_reading import Plan, Reading, Wish
    from blade.pipeline.session import Session


_COUNT = click.IntRange(min=1)


@click.command(short_help="Have a model read failed tasks; every answer is verified against its rollouts.")
@click.argument("run", metavar="RUN")
@click.option("--label", is_flag=True, help="Label the root cause of failed tasks, the first of the queue.")
@click.option("--name-clusters", is_flag=True, help="Name each failure group.")
@click.option("--explain", metavar="TASK", multiple=True, help="Where failing repeats part from passing ones.")
@click.option("--ask", metavar="QUESTION", help="Answer a question of yours for each failed task, and count.")
@click.option("--choice", metavar="TEXT", multiple=True, help="With --ask: an answer that is allowed; repeat it.")
@click.option("--task", "tasks", metavar="TASK", multiple=True, help="Only this task; may be repeated.")
@click.option("--most", metavar="N", type=_COUNT, help="At most N, the most valuable first (default: 20; of --ask all).")
@ONLY
@THRESHOLD
@click.option("--budget", metavar="TOKENS", type=int, help="Most tokens of a dossier (default: 3000).")
@click.option("--model", metavar="NAME", help="The model (default: BLADE_MODEL).")
@ENDPOINT
@click.option("--price", metavar="IN,OUT", help="Dollars for a million tokens in and out, to tell the cost.")
@click.option("--max-cost", metavar="USD", type=click.FloatRange(min=0), help="Spend no more; needs --price.")
@click.option("--max-tokens", metavar="N", type=_COUNT, help="Spend no more tokens, in and out.")
@click.option("--max-output", metavar="N", type=click.IntRange(min=16), default=4000, show_default=True,
              help="Most tokens of one reply, thinking included.")  # fmt: skip
@click.option("--concurrency", metavar="N", type=click.IntRange(1, 64), default=4, show_default=True,
              help="Questions asked at once.")  # fmt: skip
@click.option("--timeout", metavar="S", type=click.FloatRange(min=0, min_open=True), default=120.0,
              show_default=True, help="Seconds that one call may take.")  # fmt: skip
@click.option("--retries", metavar="N", type=click.IntRange(0, 20), default=4, show_default=True,
              help="How often a call that failed is tried again.")  # fmt: skip
@click.option("--redact", is_flag=True, help="Send prompts with placeholders for what looks private.")
@click.option("--dry-run", is_flag=True, help="Tell what would be asked and its cost; nothing is sent.")
@click.option("--fresh", is_flag=True, help="Ask again what was answered before.")
@click.option("--record", is_flag=True, help="Keep the labels beside the run as judgements by the model.")
@output_option("Write the result to FILE instead of printing it.", "FILE")
@force_option("Write over FILE.")
@json_option("The result as JSON.")
def read(run: str, **options: Any) -> None:
    """Have a language model read failed tasks of RUN: label them, name clusters, explain, answer a question.

    TEXT OF YOUR ROLLOUTS IS SENT to the endpoint that --base-url names (by default OpenAI's): dossiers of
    the tasks that are asked about, with quotations from their rollouts. --redact replaces what looks private,
    --dry-run sends nothing and tells what would be sent.

    Any OpenAI-compatible endpoint serves. The key is read from the environment and never stored or printed.
    An answer counts only if what it quotes stands in the rollouts, word for word, where it says; otherwise
    the model may correct itself once, then the answer is discarded. Accepted answers are kept in the cache:
    asked again, they cost nothing. The exit code is 0 unless no question was answered at all.
    """
    from blade import pipeline
    from blade.agent.reader import host_of
    from blade.cli import read_text
    from blade.pipeline import model_reading

    wish, whom = _wish(options), named_model(options)
    _refuse_output(options)
    with Progress() as progress:
        session = pipeline.session([run], progress, options["pass_threshold"], f"blade read {run}")
        clean = cleaner(session, session.run(wish.run)) if options["redact"] else None
        plan = model_reading.plan(session, wish, whom.model, host_of(whom.url), clean, options["fresh"])
    _refuse_output(options, session.loaded)
    before = read_text.before(plan, whom.price, options["max_output"], options["redact"])
    if options["dry_run"]:
        listed = "\n".join([*before, *read_text.listed(plan)]) + "\n"
        document = read_text.dry_json(plan, whom.price, options["max_output"]) if options["as_json"] else None
        return _put(document or listed, options)
    for line in before:
        click.echo(line, err=True)
    reading = _asked(session, plan, whom, options)
    recorded = model_reading.record(session, reading) if options["record"] else None
    _put(read_text.as_json(reading, recorded) if options["as_json"] else read_text.render(reading, recorded), options)
    for line in read_text.after(reading):
        click.echo(line, err=True)
    _refuse_nothing_answered(reading)


# ---- What was asked for ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Whom:
    """Which model is asked where, with which key, at which price; the key is never printed."""

    model: str
    url: str
    key: str = field(repr=False)
    price: Price | None
    cap: Cap

    def endpoint(self, timeout: float, limit: int) -> Endpoint:
        from blade.agent.reader import Endpoint

        return Endpoint(self.model, self.url, self.key, timeout, limit)


def _wish(options: dict[str, Any]) -> Wish:
    from blade.agent.dossier import BUDGET, check_budget
    from blade.pipeline import model_reading

    kinds = {"label": options["label"], "name": options["name_clusters"], "explain": bool(options["explain"]),
             "ask": options["ask"] is not None}  # fmt: skip
    kind, *others = [kind for kind, is_wanted in kinds.items() if is_wanted] or [""]
    for is_wrong, why, hint in (
        (not kind or others, "several questions at once" if others else "nothing is asked",
         "give one of --label, --name-clusters, --explain TASK, --ask QUESTION"),
        (kind == "ask" and not (options["ask"] or "").strip(), "the question is empty", 'write it as --ask "QUESTION"'),
        (options["choice"] and kind != "ask", "--choice goes with --ask", "leave it out"),
        (options["record"] and kind != "label", "only labels can be recorded", "give --record with --label"),
        (options["tasks"] and kind in ("name", "explain"), "--task goes with --label and --ask", "leave it out"),
    ):  # fmt: skip
        if is_wrong:
            raise UsageError(why, hint, "usage")
    budget = options["budget"] if options["budget"] is not None else BUDGET
    check_budget(budget)
    most = options["most"] or (None if kind == "ask" else 20)
    return model_reading.Wish(
        kind, options["explain"] or options["tasks"], most, options["ask"] or "", options["choice"],
        options["only"], budget,
    )  # fmt: skip


def named_model(options: dict[str, Any]) -> Whom:
    """The model that options and the environment name."""
    from blade.agent import reader

    model = options["model"] or os.environ.get("BLADE_MODEL", "")
    if not model.strip():
        raise UsageError("no model is named", "give --model NAME, or set BLADE_MODEL", "no-model")
    url = options["base_url"] or os.environ.get("OPENAI_BASE_URL") or reader.PUBLIC
    reader.host_of(url)
    variable = options["key_env"] or "OPENAI_API_KEY"
    key = os.environ.get(variable, "").strip()
    if not key and (options["key_env"] or url == reader.PUBLIC) and not options["dry_run"]:
        hint = f"export {variable}=..., or name another with --key-env"
        raise UsageError(f"there is no key: {variable} is not set", hint, "no-key")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{variable} holds no key", "a key has no line breaks and no accents", "no-key")
    price = _price(options["price"])
    if options["max_cost"] is not None and price is None:
        raise UsageError("--max-cost needs a price", "give --price IN,OUT, or use --max-tokens", "no-price")
    return Whom(model, url, key, price, reader.Cap(options["max_cost"], options["max_tokens"]))


def _price(text: str | None) -> Price | None:
    from blade.agent.reader import Price

    if text is None:
        return None
    try:
        first, second = (float(part) for part in text.split(","))
        if not (0 <= first < float("inf") and 0 <= second < float("inf")):
            raise ValueError(text)
    except ValueError:
        hint = "write dollars for a million tokens in and out, as --price 2.50,10"
        raise UsageError(f"--price {text} is no price", hint, "no-price") from None
    return Price(first, second)


# ---- Asking ----------------------------------------------------------------------------------------


def _asked(session: Session, plan: Plan, whom: Whom, options: dict[str, Any]) -> Reading:
    from blade.agent.reader import Patience
    from blade.pipeline import model_reading

    if not plan.open:
        return model_reading.answers(session, plan, None, whom.cap, whom.price)
    warn_open(whom.url)
    endpoint = whom.endpoint(options["timeout"], options["max_output"])
    done = 0

    def told(_: Any) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            end = "\n" if done == len(plan.open) else ""
            print(f"\r{done} of {len(plan.open)} answered{end}", end="", file=sys.stderr, flush=True)

    patience = Patience(tries=options["retries"] + 1)
    return model_reading.answers(session, plan, endpoint, whom.cap, whom.price, options["concurrency"], patience, told)


def warn_open(url: str) -> None:
    """A key and rollouts over an unencrypted line to another machine."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        click.echo(f"warning: {parts.hostname} is asked without encryption (http)", err=True)


def _refuse_nothing_answered(reading: Reading) -> None:
    """An endpoint that answered nothing at all is an error; the result was printed before."""
    answered = [result for result in reading.results if result.status not in ("failed", "left")]
    if answered or not reading.results or (reading.stopped is not None and reading.stopped.is_cap):
        return
    why = reading.stopped.text if reading.stopped is not None else reading.results[0].reasons[-1]
    hint = reading.stopped.hint if reading.stopped is not None else ""
    raise Unreadable(
        f"no question was answered: {why}", hint or "is the endpoint running, and is --base-url right?",
        "endpoint-refused",
    )  # fmt: skip


# ---- Where the result goes -------------------------------------------------------------------------


def _refuse_output(options: dict[str, Any], loaded: Sequence[Loaded] = ()) -> None:
    if not options["output"]:
        return
    path = Path(options["output"])
    refuse_taken(path, options["force"])
    refuse_sources(path, loaded)
    refuse_unwritable(path.parent)


def _put(text: str, options: dict[str, Any]) -> None:
    if not options["output"]:
        click.echo(text, nl=False)
        return
    path = Path(options["output"])
    write_text(path, text)
    click.echo(f"Wrote {path}", err=options["as_json"])
