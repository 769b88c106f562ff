"""Ask whether the grade follows from the answer, else TI: answers equal to the gold that score 0, equal answers graded both ways.

Fires on string comparisons that trip over quotes, fences or formatting, and on graders that contradict their own checks.
A comparison counts only where the answer so found equals the gold in nearly all passes; without passes only exact equality.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from blade.answers import LEADING, is_closed, is_same, value_of
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.expected_calls import acts_of, graded_tools
from blade.diagnose.population import Findings, Group, Mask, Population, Trust, at_end, count, short
from blade.diagnose.reference import ANSWER_ORDER, Reference, answered
from blade.diagnose.rungs.ran import alarm_level

MANY = 0.1  # share of the rows that would be wrongly graded, from which only exact equality counts
DOUBT = 0.02  # share of the rows in doubt that is told before the causes
FENCED = 0.15  # least share of the failures
LEAST_PAIRS = 3
LEAST_CUT, CUT_RATE = 2, 0.5  # failures whose judge was cut off, and share of the usual pass rate up to which that is to blame
LEAST_SIGNS, LEAST_LATE = 5, 10  # failures from which a sign, a name or a place in the text is blamed
END = 200  # characters at the end of a text in which it says what it comes to
LEAST_READ = 100  # characters that a grader reads at least
ROUNDED = 0.005  # of a number, up to which an answer is the expected one in another rounding
RARELY = 0.25  # pass rate up to which a sign is blamed, where the same words without it pass
SELDOM = 0.1  # pass rate up to which rows are taken for rejected whatever they say
LEAST_REFUSED, OFTEN = 1, 0.8  # failures that say the gold, and pass rate of all rows that do


def ask(people: Population, left: Mask, reference: Reference | None) -> Findings:
    findings = Findings()
    rest = left.copy()
    # where calls are expected or a check failed, the answer is not all that is graded
    has_calls = people.where(lambda row: bool(row.expected)).any()
    reference = None if has_calls else reference
    makes = (
        _judge_cut, _same_pairs, _wrong_letter, _shifted_letter, _typographic, _unread_end, _denied, _checks_pass, _fields_pass,
        _log_passes, _missing_path, _blank_prompt, _equal, _misread, _fenced, _wrapped, _both_ways,
    )  # fmt: skip
    for make in makes:
        group = make(people, rest, reference)
        if group is not None:
            findings.groups.append(group)
            rest &= ~group.rows
            level = alarm_level(people, group)
            findings.trust.append(
                Trust(level, "TI" if level == "alarm" else None, group.text, group.rows, group.fix)
            )
    doubts = (
        _lenient(people, reference), _many_equal(people, rest, reference), _idle_passes(people),
        _broken_check(people), _capped(people),
    )  # fmt: skip
    findings.trust += [doubt for doubt in doubts if doubt is not None]
    if not has_calls:
        group = _refused(people, rest, reference)
        if group is not None:
            findings.groups.append(group)
            level = "warning" if group.rows.sum() > DOUBT * people.n else "note"
            findings.trust.append(Trust(level, None, group.text, group.rows))
    return findings


def _judge_cut(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows in which the judge that was asked did not come to its verdict, since a limit cut it off."""
    rows = people.where(lambda row: row.cut_call)
    n = int((rows & left).sum())
    if n < LEAST_CUT or not people.passed[~rows].any() or people.rate(rows) > CUT_RATE * people.rate(~rows):
        return None
    path = Counter(row.cut_call for row in people.of(rows & left)).most_common(1)[0][0]
    says = int((people.where(lambda row: row.says_gold) & rows & left).sum())
    return Group(
        rung="verifier", label="TI", name="the judge was cut off before its verdict", rows=rows & left, matched=rows,
        text=f"{count(n, 'failure')}: the model that was asked for the verdict was itself stopped by a limit (`{path}`), and the rollout "
        f"counts as failed. {people.rate(rows):.0%} of such rollouts pass, {people.rate(~rows):.0%} of all others."
        + (f" {says:,} of them hold the expected answer word for word." if says else ""),
        fix="Raise the output limit of the judge and score the stored answers again; the model need not be asked again.",
        why="the record of the judge says that it was stopped, so nothing was judged", confidence="proved",
        passed=int(people.passed[rows].sum()), deciding=(path,), place=lambda row: (row.cut_call, "") if row.cut_call else None,
        blame=lambda row: None, holds=lambda row: bool(row.cut_call),
        detail=lambda i: f"`{people.rows[i].cut_call}` records that it was stopped by a limit",
    )  # fmt: skip


def _same_pairs(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose fields differ from the expected ones in spelling alone, where two objects of the row are compared."""
    shown: dict[int, str] = {}
    for i in np.flatnonzero(left):
        failed = [name for name, met in people.rows[i].checks.items() if not met]
        pairs = [_pair(people.rows[i], name) for name in failed]
        if pairs and all(pair is not None and is_same(*pair) for pair in pairs):
            shown[int(i)] = "; ".join(f"{actual} for {wanted}" for actual, wanted in filter(None, pairs))
    n = len(shown)
    if n < LEAST_PAIRS:
        return None
    rows = people.mask(list(shown))
    return Group(
        rung="verifier", label="TI", name="right values in another spelling scored 0", rows=rows, matched=rows, confidence="proved",
        text=f"{count(n, 'failure')}: all fields that count as wrong have the expected value in another spelling, such as "
        f"{short(next(iter(shown.values())), 80)}.{_recounted(people, n)}",
        fix="Make the verifier compare values, not spelling, and score the stored records again; no rerun is needed.",
        why="what is compared has the same value", detail=lambda i: short(shown.get(i, ""), 120), blame=lambda row: None,
        place=at_end,
        against=["the task may ask for one spelling"],
    )  # fmt: skip


def _wrong_letter(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows that choose the option whose text a field of the task gives as right, as nearly all passes do."""
    chosen = people.where(lambda row: bool(row.choice))
    if (chosen & people.passed).sum() < 5 or chosen[people.passed].mean() < 0.9:
        return None
    for path in people.task_level:
        right = np.array([bool(row.choice) and is_same(row.choice, str(row.fields.get(path, ""))) for row in people.rows], bool)
        rows = right & left
        n = int(rows.sum())
        if right[people.passed].mean() < 0.9 or n < 3 or not (people.failed & ~right).any():
            continue
        group = _wrong_key(
            people, rows, f"the right option by `{path}` scored 0",
            f": the chosen option is the one that `{path}` gives as right, as in {right[people.passed].mean():.0%} of the passes, and the "
            "expected letter is another: the options were reordered or the key is wrong.",
            f"Derive the expected letter from `{path}` and the options as the prompt shows them, and score the stored answers again.",
            "the row gives the right option twice, and the two contradict each other",
            lambda i: f'it chooses "{short(people.rows[i].choice, 60)}", which `{path}` gives as right',  # noqa: B023
        )  # fmt: skip
        group.confidence, group.deciding = "proved", (path,)
        return group
    return None


def _shifted_letter(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows of one kind of task whose answered letter stands one and the same number of places before or after the expected one."""
    if reference is None or not reference.is_telling:
        return None
    pairs = [(_letter(a), _letter(g)) for a, g in zip(reference.answer, reference.gold, strict=True)]
    letters = {letter for pair in pairs for letter in pair if letter is not None}
    if not 3 <= len(letters) <= 10:
        return None
    shift = np.array([(g - a) % len(letters) if a is not None and g is not None else 0 for a, g in pairs])
    scopes = [(path, value, codes == code) for path, (codes, values) in people.task_level.items() if len(values) <= 30
              for code, value in enumerate(values)]  # fmt: skip
    best: tuple[int, str, object, int, Mask] | None = None
    for path, value, scope in [("", "", ~people.none), *scopes]:
        wrong = scope & left & (shift > 0)
        steps = np.bincount(shift[wrong]) if wrong.any() else np.zeros(1)
        step, n = int(steps.argmax()), int(steps.max())
        if n < LEAST_LATE or n < OFTEN * wrong.sum() or people.n_tasks(wrong) < 5 or people.rate(scope) > RARELY:
            continue
        if best is None or n > best[0]:
            best = n, path, value, step, wrong & (shift == step)
    if best is None:
        return None
    n, path, value, step, rows = best
    where = f" where `{path}` is `{short(str(value), 60)}`" if path else ""
    by = "one place" if step in (1, len(letters) - 1) else f"{min(step, len(letters) - step)} places"
    group = _wrong_key(
        people, rows, f"expected letters shifted by {by}",
        f"{where}: the answered letter is {by} away from the expected one, always to the same side: the key is probably shifted there.",
        f"Check the expected letters{where} against the options (counted from 0 or from 1?), and score the stored answers again.",
        "wrong answers of a model do not all lie on one side of the key", lambda i: answered(people, i, reference),
    )  # fmt: skip
    group.deciding = (path,) if path else ()
    return group


def _wrong_key(people: Population, rows: Mask, name: str, text: str, fix: str, why: str, detail: Callable[[int], str]) -> Group:
    """Rows whose letter is right, or probably so, while the key expects another."""
    n = int(rows.sum())
    return Group(
        rung="verifier", label="TI", name=name, rows=rows, matched=rows, confidence="likely", fix=fix, why=why, detail=detail,
        text=f"{count(n, 'failure')} in {count(people.n_tasks(rows), 'task')}{text}{_recounted(people, n)}",
        blame=lambda row: None, place=at_end,
    )  # fmt: skip


def _recounted(people: Population, n: int) -> str:
    """How many would pass with some failures counted, as a sentence."""
    return f" With these counted, {int(people.passed.sum()) + n:,} of {people.n:,} would pass."


def _letter(text: str | None) -> int | None:
    """The place of an answered letter in the alphabet."""
    kind, value = value_of(text) if text and text.strip() else ("", "")
    return ord(str(value).upper()) - ord("A") if kind == "letter" and len(str(value)) == 1 else None


_PLAIN = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"', "\u2010": "-", "\u2011": "-", "\u2013": "-", "\u2014": "-",
    "\u2212": "-",
})  # fmt: skip
_SIGNS, _FOLDED = frozenset(map(chr, _PLAIN)), frozenset("'\"-")


def _runs(text: str, signs: frozenset[str]) -> set[str]:
    """Every three words in a row of a text that hold one of some signs, signs folded."""
    words = text.casefold().split()
    marked = [i for i, word in enumerate(words) if not signs.isdisjoint(word)]
    starts = {start for i in marked for start in range(max(0, i - 2), min(i, len(words) - 3) + 1)}
    return {" ".join(words[start : start + 3]).translate(_PLAIN) for start in starts}


def _typographic(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing texts with a typographic sign, where the same words with the plain sign pass in the same tasks."""
    marked = people.where(lambda row: not _SIGNS.isdisjoint(row.final))
    here = np.isin(people.task, people.task[marked & left])
    if (marked & left).sum() < LEAST_SIGNS or not (people.passed & ~marked & here).any():
        return None
    phrase = {i: _runs(people.rows[i].final, _SIGNS) for i in np.flatnonzero(marked & here).tolist()}
    known = set().union(*(phrase[i] for i in np.flatnonzero(marked & left).tolist()))
    same = {i: _runs(people.rows[i].final, _FOLDED) & known for i in np.flatnonzero(~marked & here).tolist()}
    accepted = set().union(*(runs for i, runs in same.items() if people.passed[i]))
    rows, plain = people.none, people.none
    rows[[i for i, runs in phrase.items() if runs & accepted]] = True
    plain[[i for i, runs in same.items() if runs & accepted]] = True
    n = int((rows & left).sum())
    if n < LEAST_SIGNS or people.n_tasks(rows & left) < 3 or (plain & here).sum() < LEAST_SIGNS:
        return None
    if people.rate(rows & here) > RARELY or people.rate(plain & here) < OFTEN:
        return None
    sign = Counter(sign for i in np.flatnonzero(rows & left).tolist() for sign in _SIGNS & set(people.rows[i].final)).most_common(1)[0][0]
    return Group(
        rung="verifier", label="TI", name=f"texts with `{sign}` for `{sign.translate(_PLAIN)}` scored 0", rows=rows & left, matched=rows,
        text=f"{count(n, 'failure')}: the text has the typographic sign {sign}. On the same tasks {people.rate(plain & here):.0%} of the "
        f"texts that say the same words with the plain sign pass, and {people.rate(rows & here):.0%} of these: the check compares "
        "letters where it should compare words.",
        fix="Fold quotation marks, apostrophes, dashes and spaces to their plain form before the check compares, and score the stored "
        "texts again; no rerun is needed.",
        why="what separates them from passes of the same tasks is a sign that changes no meaning", confidence="likely",
        passed=int(people.passed[rows].sum()), place=lambda row: (row.final_step, sign) if row.final_step is not None else None,
        blame=lambda row: None, against=["the task may demand plain characters"],
        detail=lambda i: f'its text has {sign}: "{short(people.rows[i].final, 90)}"',
    )  # fmt: skip


def _unread_end(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing texts that end with the expected answer, where texts that give it early pass: the grader reads the beginning."""
    # what is only mentioned on the way may be what the text decides against
    says = people.where(lambda row: row.gold_at >= 0 and row.gold_text.strip().casefold() in row.final.casefold()[-END:])
    passes, fails = (np.sort([row.gold_at for row in people.of(says & some)]) for some in (people.passed, left))
    if min(len(passes), len(fails)) < LEAST_LATE:
        return None
    # the place that sets most passes apart from most failures
    places = np.unique(np.concatenate([passes, fails]))
    errors = len(passes) - np.searchsorted(passes, places, "right") + np.searchsorted(fails, places, "right")
    limit = int(places[int(np.argmin(errors))])
    late = says & people.where(lambda row: row.gold_at > limit)
    rows = late & left
    n = int(rows.sum())
    early = min((row.gold_at for row in people.of(rows)), default=0)
    if early < LEAST_READ or n < max(LEAST_LATE, 0.8 * len(fails)) or people.rate(late) > SELDOM or people.rate(says & ~late) < OFTEN:
        return None
    return Group(
        rung="verifier", label="TI", name="the expected answer stands beyond what the grader seems to read", rows=rows, matched=late,
        text=f"{count(n, 'failure')} end with the expected answer word for word, and give it only after {early:,} characters or more. Of "
        f"the texts that give it earlier {people.rate(says & ~late):.0%} pass, of these {people.rate(late):.0%}: the grader seems to be "
        "shown only the beginning.",
        fix="Check how much of the answer the grader is given, let it read the end, and score the stored answers again.",
        why="the same words pass early in the text and fail late in it", confidence="likely", passed=int(people.passed[late].sum()),
        place=lambda row: (row.final_step, row.gold_text.strip()) if row.final_step is not None else None, blame=lambda row: None,
        holds=lambda row: row.gold_at > limit, against=["a text may name the expected answer without giving it as its own"],
        detail=lambda i: f'the expected "{short(people.rows[i].gold_text, 70)}" comes after {people.rows[i].gold_at:,} characters',
    )  # fmt: skip


def _denied(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows with an error that says there is no such name, where the prompt itself gives that name."""
    rows = people.where(lambda row: bool(row.denied))
    n = int((rows & left).sum())
    if n < LEAST_SIGNS or people.n_tasks(rows & left) < 3 or people.rate(rows) > SELDOM:
        return None
    names = Counter(row.denied for row in people.of(rows & left))
    listed = ", ".join(f"`{name}` in {m:,}" for name, m in names.most_common(3))
    return Group(
        rung="verifier", label="TI", name="the prompt gives names that do not exist", rows=rows & left, matched=rows,
        text=f"{count(n, 'failure')}: an error says that there is no such name ({listed}), and the prompt itself gives the name. "
        f"{people.rate(rows):.0%} of the rollouts with such an error pass, {people.rate(~rows):.0%} of the others.",
        fix="Bring the names that the prompt gives in line with what the environment holds, and rerun these rollouts.",
        why="the model used what it was given", confidence="likely", passed=int(people.passed[rows].sum()), blame=lambda row: None,
        place=at_end, holds=lambda row: bool(row.denied),
        against=["the name may exist elsewhere than where it was used"],
        detail=lambda i: f"an error says that there is no `{people.rows[i].denied}`, which its prompt gives",
    )  # fmt: skip


def _pair(row: RowEvidence, name: str) -> tuple[str, str] | None:
    """The two values that a check of two objects compares; None for any other check."""
    path, _, member = name.partition(": ")
    sides = path.split(" = ")
    values = [row.fields.get(f"{side}.{member}") for side in sides] if len(sides) == 2 else []
    return (str(values[1]), str(values[0])) if len(values) == 2 and None not in values else None


def _refused(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing texts that hold the expected answer word for word, where such texts nearly always pass: to be reviewed."""
    if reference is not None and reference.is_telling:
        return None  # the answers themselves were compared
    says = people.where(lambda row: row.says_gold)
    rows = says & left
    n = int(rows.sum())
    if n < LEAST_REFUSED or people.rate(says) < OFTEN:
        return None
    places = [f"{people.keys[int(people.indexed[i])]}/{int(people.repeat[i])}" for i in np.flatnonzero(rows)[:5]]
    return Group(
        rung="verifier", label="undetermined", name="contains the expected answer", rows=rows, matched=says,
        text=f"{count(n, 'failure')} contain{'s' if n == 1 else ''} the expected answer word for word ({', '.join(places)}"
        f"{', …' if n > len(places) else ''}), as {int((says & people.passed).sum()):,} passes do: review them, the judge may have "
        "rejected right answers.",
        fix="Read these answers beside the expected ones; if they are right, repair the judge and score the stored answers again.",
        why="a judge may have had a reason that the words do not show", confidence="unsure",
        passed=int((says & people.passed).sum()), holds=lambda row: row.says_gold,
        place=lambda row: (row.final_step, row.gold_text.strip()) if row.final_step is not None else None,
        blame=lambda row: None, detail=lambda i: f'the expected "{short(people.rows[i].gold_text, 70)}" is in its text',
    )  # fmt: skip


def _capped(people: Population) -> Trust | None:
    """Tool results that many rollouts get in exactly the largest length."""
    rows = people.is_capped
    if not rows.any():
        return None
    top = max(row.longest[0] for row in people.rows)
    text = (
        f"In {int(rows.sum()):,} of {people.n:,} rollouts a tool result is exactly {top:,} characters long, the maximum in the run, with "
        f"different texts: results seem to be cut there, and the model never sees the rest. {people.rate(rows):.0%} of these rollouts "
        f"pass, {people.rate(~rows):.0%} of the others."
    )
    return Trust("warning", None, text, rows)


def _idle_passes(people: Population) -> Trust | None:
    """Passing rows that make no call, though the gold demands some and other passes make them."""
    graded = graded_tools(people)
    due = people.where(lambda row: row.expected is not None and bool(acts_of(row, graded)[1]))
    rows = people.passed & due & people.where(lambda row: row.is_spoken or row.n_acts == 0)
    n, active = int(rows.sum()), int((people.passed & due & ~rows).sum())
    if not n or n > 0.5 * active:
        return None
    text = (
        f"{count(n, 'pass', 'passes')} make{'s' if n == 1 else ''} no call at all although the expected calls demand some: the verifier "
        "may accept rollouts that did nothing."
    )
    return Trust("warning", None, text, rows)


def _broken_check(people: Population) -> Trust | None:
    """A check that no row passes and that reports an exception of its own."""
    names = Counter(name for row in people.rows for name in row.check_errors)
    for name, n in names.most_common():
        has = people.where(lambda row: name in row.checks)  # noqa: B023
        fails = people.where(lambda row: row.checks.get(name) is False)  # noqa: B023
        if n >= 5 and n >= 0.9 * fails.sum() and fails.sum() == has.sum():
            error = next(row.check_errors[name] for row in people.rows if name in row.check_errors)
            text = (
                f"The check `{name.partition(': ')[2] or name}` fails in all {int(has.sum()):,} rows that have it, with an error of "
                f"its own ({error[:100]}): repair the check before its verdict is used."
            )
            return Trust("warning", None, text, fails)
    return None


_SUCCESS = re.compile(r"\b(?:pass(?:ed|es)?|resolved|success(?:ful(?:ly)?)?|succeeded|solved|won|accepted|correct|ok)\b", re.IGNORECASE)
_FAILURE = re.compile(r"\b(?:fail\w*|error\w*|not|incorrect|wrong|rejected)\b", re.IGNORECASE)


def _log_passes(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose log ends with the words of success that every pass has and hardly any other failure."""
    if people.passed.sum() < 5:
        return None
    lines = Counter((path, line) for i in np.flatnonzero(people.passed) for path, all_ in people.rows[i].lines.items() for line in all_)
    for (path, line), n_passes in lines.most_common():
        if n_passes < people.passed.sum():
            return None
        rows = people.where(lambda row: line in row.lines.get(path, ())) & left  # noqa: B023
        n = int(rows.sum())
        others = people.failed & ~rows & people.where(lambda row: path in row.lines)  # noqa: B023
        is_verdict = _SUCCESS.search(line) and not _FAILURE.search(line)
        if n and is_verdict and n <= 0.25 * people.failed.sum() and others.sum() >= 3 * n:
            return _contradicted(path, f"ends with the words of every pass ({line[:80]})", "log", rows, line)
    return None


def _contradicted(path: str, phrase: str, what: str, rows: Mask, quote: str = "") -> Group:
    return Group(
        rung="verifier", label="TI", name=f"`{path}` says passed, reward 0", rows=rows, matched=rows, confidence="likely",
        text=f"{count(int(rows.sum()), 'failure')}: `{path}` {phrase}; the reward says the opposite.",
        fix=f"Compute the reward of these rows from `{path}` again.", deciding=(path,),
        why=f"the {what} of the row and its reward contradict each other", place=lambda row: (path, quote),
        against=["the reward may depend on something that the row does not record"],
    )  # fmt: skip


def _missing_path(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose test looks for a path that their request never names."""
    paths = Counter(row.missing for row in people.of(left) if row.missing)
    if not paths:
        return None
    path, n = paths.most_common(1)[0]
    rows = people.where(lambda row: row.missing == path)
    if n < 3 or people.passed[rows].any() or people.n_tasks(rows) < 3:
        return None
    return Group(
        rung="verifier", label="TI", name=f"the test needs `{path[-60:]}`, which the prompt never names", rows=rows & left, matched=rows,
        text=f"{count(n, 'failure')}: the test looks for `{path}` and does not find it; nothing that the model is told names this path.",
        fix=f"Say in the prompt where the result must be written (`{path}`), or let the test find it, and rerun these rollouts.",
        why="what the test needs is not in the task", confidence="likely",
        against=["a model that explores its surroundings might find the name"],
        place=lambda row: next(((name, path) for name in row.lines), None),
    )  # fmt: skip


def _blank_prompt(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose prompt holds an empty block, where the same block holds something in other prompts."""
    tags = Counter(tag for row in people.rows for tag in row.blank)
    for tag, _ in tags.most_common(3):
        rows = people.where(lambda row: tag in row.blank)  # noqa: B023
        filled = people.where(lambda row: tag in row.filled) & ~rows  # noqa: B023
        n = int((rows & left).sum())
        if n < 3 or people.n_tasks(filled) < 3 or people.rate(rows) > 0.5 * people.rate(filled):
            continue
        return Group(
            rung="verifier", label="TI", name=f"the prompt's `<{tag}>` is empty", rows=rows & left, matched=rows, confidence="proved",
            text=f"{count(n, 'failure')} in {count(people.n_tasks(rows & left), 'task')}: `<{tag}>` in the prompt holds nothing, so what "
            f"the task is about is missing. {people.rate(rows):.0%} of these rollouts pass, {people.rate(filled):.0%} of those with "
            "content.",
            fix=f"Find out why `<{tag}>` is empty (a failed export or upload), fill it, and rerun these tasks.",
            why="the model was not given what it is asked about", passed=int(people.passed[rows].sum()),
            place=at_end, blame=lambda row: None,
        )  # fmt: skip
    return None


def _wrapped(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing answers that are the gold inside other words, where passes are the gold and nothing else."""
    if reference is None:
        return None
    bare = people.where(lambda row: bool(row.gold_text) and row.final.strip() == row.gold_text.strip())
    if people.passed.sum() < 5 or bare[people.passed].mean() < 0.9:
        return None
    rows = people.where(lambda row: len(row.gold_text) >= 8 and row.gold_text.strip() in row.final) & left & ~bare
    n = int(rows.sum())
    if n < 2:
        return None
    return Group(
        rung="verifier", label="TI", name="right answer inside other words scored 0", rows=rows, matched=rows, confidence="likely",
        text=f"{count(n, 'failure')}: the expected answer is there letter by letter, with other words or tags around it; passes are "
        f"the answer and nothing else.{_recounted(people, n)}",
        fix="Have the verifier take the answer out of the text around it, or ask for the bare answer in the prompt, and score the "
        "stored answers again; no rerun is needed.",
        why="the content is right and only its wrapping differs from the passes",
        place=lambda row: (row.final_step, row.gold_text.strip()) if row.final_step is not None else None,
    )  # fmt: skip


def _equal(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose answer is the gold."""
    if reference is None:
        return None
    if not people.passed.any():
        return _exact(people, left, reference)
    if not reference.is_telling:
        return None
    verdict = _verdict_checks(people)
    rows = reference.same & left & people.where(lambda row: all(met for name, met in row.checks.items() if name not in verdict))
    n = int(rows.sum())
    if n > MANY * people.n:
        exact = _is_exact(people, reference)
        if exact[people.passed & reference.held].mean() < 0.9:
            return None
        if not _by_spelling(people, reference, rows, exact):
            rows &= exact
            n = int(rows.sum())
    if not n:
        return None
    how, exact_ones = _difference(reference, rows)
    letter = f" ({exact_ones:,} of them to the letter)" if how and exact_ones else ""
    read = ", check which part of the answer it reads" if letter else ""
    return Group(
        rung="verifier", label="TI", name="right answer scored 0" + (f" ({how})" if how else ""), rows=rows,
        text=f"{count(n, 'failure')}: the answer equals the expected one{f' but for {how}' if how else ' exactly'}{letter}, and is not "
        f"accepted. In {reference.agreement:.0%} of the passes the same comparison agrees.{_recounted(people, n)}",
        fix=f"{f'Make the verifier compare values, not spelling ({how})' if how else 'Repair the verifier'}{read}, and score the stored "
        "answers again; no rerun is needed.",
        why="the answer and the gold have the same value", confidence="proved", matched=rows,
        detail=lambda i: answered(people, i, reference),
        place=at_end,
    )  # fmt: skip


def _misread(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows that announce the gold as their answer, while the field in which the grader keeps what it read holds another value."""
    if reference is None or not reference.is_telling or reference.source in ANSWER_ORDER:
        return None
    places = [name for name in ("box", "announced", "tag") if sum(name in row.answers for row in people.rows) >= 0.5 * people.n]
    if not places:
        return None
    texts = (row.answers.get(places[0], "") for row in people.rows)
    own = np.array([_announces(text, gold or "") for text, gold in zip(texts, reference.gold, strict=True)], bool)
    rows = own & left & reference.held & ~reference.same
    n, passes = int(rows.sum()), people.passed & people.where(lambda row: places[0] in row.answers)
    if n < 2 or passes.sum() < 5 or own[passes].mean() < 0.9:
        return None
    return Group(
        rung="verifier", label="TI", name="right answer, but the grader reads something else", rows=rows, matched=rows, confidence="proved",
        text=f"{count(n, 'failure')}: the answer that the text announces is the expected one, and `{reference.source}`, what the grader "
        f"took from it, is another.{_recounted(people, n)}",
        fix=f"Repair how `{reference.source}` is taken from the text, and score the stored answers again; no rerun is needed.",
        why="the text says the expected answer, and the grader's own record of it differs", deciding=(reference.source,),
        place=lambda row: (row.final_step, row.answers.get(places[0], "")) if row.final_step is not None else None,
        detail=lambda i: f'it answers "{short(people.rows[i].answers[places[0]], 70)}", and `{reference.source}` is '
        f"{short(str(reference.answer[i]), 40)}",
    )  # fmt: skip


def _announces(answer: str, gold: str) -> bool:
    """Whether an announced answer is the gold, or begins with it where that is a number."""
    if not answer or not gold:
        return False
    head = LEADING.match(answer)
    return is_same(answer, gold) or (head is not None and value_of(gold)[0] == "number" and is_same(head[1], gold))


_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?\Z")


def _verdict_checks(people: Population) -> set[str]:
    """Checks that fail in every failing row that has them: they state the verdict again, and are no demand of their own."""
    unmet: Counter[str] = Counter()
    met: Counter[str] = Counter()
    for i in np.flatnonzero(people.failed):
        for name, passed in people.rows[i].checks.items():
            (met if passed else unmet)[name] += 1
    return {name for name in unmet if not met[name]}


def _by_spelling(people: Population, reference: Reference, rows: Mask, exact: Mask) -> bool:
    """Whether spelling alone decides: every pass is the gold letter by letter, and equal numbers in other spellings never pass."""
    spelled = reference.same & ~exact
    pairs = [(reference.answer[i] or "", reference.gold[i] or "") for i in np.flatnonzero(rows)]
    # the same number with more or fewer decimals is no other spelling: so many may be asked for
    is_closed = sum(
        value_of(gold)[0] in ("number", "date") and not (_DECIMAL.match(answer.strip()) and _DECIMAL.match(gold.strip()))
        for answer, gold in pairs
    ) >= 0.9 * len(pairs)
    is_spelled = people.passed.sum() >= 20 and exact[people.passed & reference.held].mean() >= 0.98
    return bool(is_closed and is_spelled and not people.passed[spelled].any())


_READ = re.compile(r"extracted|predicted|parsed|model_answer|given", re.IGNORECASE)  # fields that hold what was answered


def _is_letter_by_letter(row: RowEvidence) -> bool:
    """Whether some place of a row that holds its answer holds exactly the gold."""
    gold = row.gold_text.strip().strip("$ ")
    read = [value for path, value in row.fields.items() if isinstance(value, str) and _READ.search(path)]
    return bool(gold) and any(text.strip().strip("$ ") == gold for text in (*row.answers.values(), *read))


def _exact(people: Population, left: Mask, reference: Reference) -> Group | None:
    """Without any pass: answers that stand letter by letter in the gold, wherever the row puts them."""
    rows = people.where(_is_letter_by_letter) & left
    n = int(rows.sum())
    if n < max(2, 0.25 * left.sum()):
        return None
    whole = "every answer" if n == people.n else "the answer of many rollouts"
    return Group(
        rung="verifier", label="TI", name="correct answer scored 0", rows=rows,
        text=f"Nothing passes, yet {whole} ({n:,} of {people.n:,}) is exactly the expected one: the verifier or the reward is "
        "broken, not the model.",
        fix="Repair the verifier and score the stored answers again; no rerun is needed.",
        why="the answer matches the gold letter by letter and the reward is 0", confidence="proved", matched=rows,
        detail=lambda i: f'the expected "{short(people.rows[i].gold_text, 70)}" is what it answers',
        place=lambda row: (row.final_step, row.gold_text.strip()) if row.final_step is not None else None,
    )  # fmt: skip


def _many_equal(people: Population, left: Mask, reference: Reference | None) -> Trust | None:
    """Many failures that equal the gold in value but not letter by letter: too many to be sure that it is the gold."""
    if reference is None or not reference.is_telling or not people.passed.any():
        return None
    rows = reference.same & left
    n = int(rows.sum())
    if n <= MANY * people.n:
        return None
    text = (
        f"{count(n, 'failure')}: the answer has the value of `{reference.gold_name}` in another spelling. Either the grader "
        "compares strings, or that field is not what is graded: compare a few by hand."
    )
    return Trust("warning", None, text, rows)


def _is_exact(people: Population, reference: Reference) -> Mask:
    pairs = zip(reference.answer, reference.gold, strict=True)
    return np.array([bool(a and g and a.strip() == g.strip()) for a, g in pairs], np.bool_)


def _difference(reference: Reference, rows: Mask) -> tuple[str, int]:
    """How the answers of some rows mostly differ from the gold in spelling, and how many do not."""
    kinds: Counter[str] = Counter()
    for i in np.flatnonzero(rows):
        answer, gold = (reference.answer[i] or "").strip(), (reference.gold[i] or "").strip()
        if answer == gold:
            kinds[""] += 1
        elif answer.replace('"', "'") == gold.replace('"', "'"):
            kinds["quotation marks"] += 1
        elif "".join(answer.split()) == "".join(gold.split()):
            kinds["spaces"] += 1
        elif answer.casefold() == gold.casefold():
            kinds["upper and lower case"] += 1
        else:
            kinds["formatting"] += 1
    exact = kinds.pop("", 0)
    return kinds.most_common(1)[0][0] if kinds else "", exact


def _both_ways(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose answer passes in another repeat of the task, where equal answers are nearly always graded alike."""
    if not people.has_repeats:
        return None
    if reference is None or not reference.is_telling:
        return _both_ways_without_gold(people, left)
    passing: defaultdict[int, set[object]] = defaultdict(set)
    for i in np.flatnonzero(people.passed):
        answer = reference.answer[i]
        if answer and (is_closed(answer) or len(answer) <= 40):
            passing[int(people.task[i])].add(value_of(answer))
    rows = people.none
    rows[[
        i for i in np.flatnonzero(left)
        if (answer := reference.answer[i]) and value_of(answer) in passing.get(int(people.task[i]), ())
    ]] = True  # fmt: skip
    if not rows.any() or rows.sum() > 0.2 * left.sum():
        return None
    doubt = " It is not the expected answer, so either these passes or the expected answers are wrong."
    fix = "Review the expected answers of these tasks, then score their stored answers again with one rule."
    return _inconsistent(people, rows, reference, doubt, fix)


def _both_ways_without_gold(people: Population, left: Mask) -> Group | None:
    """The same where answers are not compared with a gold: closed ones, and whole replies that are the gold word for word."""
    if people.where(lambda row: bool(row.expected) or row.n_acts > 1).any():
        return None
    source = next((name for name in ANSWER_ORDER if sum(name in row.answers for row in people.rows) >= 0.9 * people.n), "")
    by_answer: defaultdict[tuple[int, object], list[int]] = defaultdict(list)
    for i, row in enumerate(people.rows):
        whole, part = row.answers.get("whole", ""), row.answers.get(source, "")
        # beside a gold the whole reply must be it: another reply may be graded by more than what it says
        answer = part if not row.gold_text and is_closed(part) else whole if row.gold_text and is_same(whole, row.gold_text) else ""
        if answer:
            by_answer[int(people.task[i]), value_of(answer)].append(i)
    equal = [places for places in by_answer.values() if len(places) > 1]
    split = [places for places in equal if 0 < people.passed[places].sum() < len(places)]
    if not split or len(split) > 0.5 * len(equal):
        return None
    rows = people.mask([i for places in split for i in places])
    return _inconsistent(people, rows & left, None, "", "Score the stored answers of these tasks again with one rule.")


def _inconsistent(people: Population, rows: Mask, reference: Reference | None, doubt: str, fix: str) -> Group | None:
    n = int(rows.sum())
    if not n:
        return None
    n_tasks = people.n_tasks(rows)
    return Group(
        rung="verifier", label="TI", name="same answer graded 0 and 1", rows=rows,
        text=f"{count(n, 'failure')} in {count(n_tasks, 'task')}: this answer passes in another repeat of the same task, so "
        f"the grading is not consistent.{doubt}",
        fix=fix,
        why="equal answers to the same task have different rewards", confidence="proved", matched=rows,
        detail=lambda i: answered(people, i, reference),
        place=at_end,
    )  # fmt: skip


def _checks_pass(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose own recorded checks all pass, where nothing else is known to be graded."""
    if people.where(lambda row: bool(row.expected)).any():
        return None
    has = people.where(lambda row: len(row.checks) >= 1)
    all_pass = people.where(lambda row: row.checks and all(row.checks.values()))
    rows = all_pass & left
    n = int(rows.sum())
    passes = has & people.passed
    fails = has & people.failed & ~all_pass
    is_graded = passes.sum() >= 5 and all_pass[passes].mean() >= 0.95 and not (people.passed & has & ~all_pass).any()
    if n < 2 or not is_graded or fails.sum() < 5:
        return None
    return Group(
        rung="verifier", label="TI", name="all checks pass, reward 0", rows=rows,
        text=f"{count(n, 'failure')}: every recorded check passed; every other row with these checks passes exactly when all of "
        "them do. The reward contradicts the checks.",
        fix="Compute the reward of these rows from their checks again.",
        why="the checks of the row and its reward contradict each other", confidence="likely", matched=rows,
    )  # fmt: skip


def _fields_pass(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows all of whose 0/1 verdict fields say that they passed, as in every pass and in no other failure."""
    if people.passed.sum() < 5 or people.where(lambda row: bool(row.expected)).any():
        return None
    fields = [path for path in people.paths if not people.is_reward(path) and _is_verdict(people, path)]
    if not fields:
        return None
    good = people.where(lambda row: all(bool(row.fields.get(path)) for path in fields))
    rows = good & left
    n = int(rows.sum())
    if not n or n > 0.2 * people.failed.sum():
        return None
    return _contradicted(fields[0], "says that the rollout passed, as in every pass", "verdict", rows)


def _is_verdict(people: Population, path: str) -> bool:
    """Whether a 0/1 field that is named as a success is 1 in every pass and 0 in most failures."""
    values = people.columns[path]
    if {value for value in values if value is not None} != {0, 1} or not _SUCCESS.search(re.sub(r"[._]", " ", path)):
        return False
    passes = all(bool(values[i]) for i in np.flatnonzero(people.passed))
    fails = np.flatnonzero(people.failed)
    return passes and sum(values[i] == 0 and values[i] is not None for i in fails) >= 0.7 * fails.size


def _fenced(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows that are a code fence as a whole, where fenced answers never pass and bare ones do."""
    fenced = people.where(lambda row: "fence" in row.answers)
    rows, n = fenced & left, int((fenced & left).sum())
    bare = people.where(lambda row: bool(row.final.strip())) & ~fenced
    if n < max(10, FENCED * left.sum()) or people.passed[fenced].any() or not bare.any() or people.rate(bare) < 0.2:
        return None
    matches = [row for row in people.of(rows) if row.gold_text]
    right = sum(is_same(row.answers.get("fence", ""), row.gold_text) for row in matches)
    if len(matches) >= 0.5 * n and right < 0.1 * len(matches):
        return None  # stripped of the fence they are wrong all the same
    text = f" Without it, {right:,} of the {len(matches):,} that can be compared match the expected answer." if matches else ""
    parses = sum(_is_like_passes(row.answers.get("fence", "")) for row in people.of(rows))
    return Group(
        rung="verifier", label="TI", name="answer in a code fence rejected", rows=rows,
        text=f"{count(n, 'failure')}: the answer is wrapped in a Markdown code fence; no fenced answer passes, while "
        f"{people.rate(bare):.0%} of the answers without a fence do. {parses:,} of them parse once the fence is stripped.{text}",
        fix="Strip code fences before grading, or forbid them in the prompt, and score the stored answers again.",
        why="the form alone separates them, and the content parses without it", confidence="likely", matched=fenced,
        place=lambda row: (row.final_step, "```") if row.final_step is not None else None,
    )  # fmt: skip


def _is_like_passes(text: str) -> bool:
    import ast

    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return bool(value_of(text)[0] == "literal")
    return True


def _lenient(people: Population, reference: Reference | None) -> Trust | None:
    """Passing rows whose closed answer is another than the closed gold."""
    if reference is None or not reference.is_telling:
        return None
    rows = people.passed & reference.held & ~reference.same
    rows = np.array(
        [bool(flag) and _differs(reference.answer[i] or "", reference.gold[i] or "") for i, flag in enumerate(rows)], bool
    )  # fmt: skip
    n = int(rows.sum())
    if not n or n > MANY * people.passed.sum():
        return None
    text = f"{count(n, 'pass', 'passes')}: another value than the expected one was accepted, so the verifier may accept wrong answers."
    return Trust("warning", None, text, rows)


def _differs(answer: str, gold: str) -> bool:
    first, second = value_of(answer), value_of(gold)
    if first[0] != second[0] or first[0] == "text":
        return False
    if first[0] == "number":
        return bool(abs(first[1] - second[1]) > ROUNDED * abs(second[1]))
    return str(first[1]).strip("'\"") != str(second[1]).strip("'\"")
