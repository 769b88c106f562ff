"""Ask whether the grade follows from the answer, else TI: answers equal to the gold that score 0, equal answers graded both ways.

Fires on string comparisons that trip over quotes, fences or formatting, and on graders that contradict their own checks.
A comparison counts only where the answer so found equals the gold in nearly all passes; without passes only exact equality.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from blade.answers import LEADING, is_closed, is_same, value_of
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.expected_calls import acts_of, graded_tools
from blade.diagnose.groups import Findings, Group, Trust, ask_each, doubt, group, in_final, short, warning
from blade.diagnose.population import Mask, Population, most_common
from blade.diagnose.reference import ANSWER_ORDER, Reference, answered

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
PASSES = 5  # that must show how the grade follows from what the row records


def ask(people: Population, left: Mask, reference: Reference | None) -> Findings:
    # where calls are expected or a check failed, the answer is not all that is graded
    has_calls = any(row.expected for row in people.rows)
    reference = None if has_calls else reference
    makes = (
        _judge_cut, _same_pairs, _wrong_letter, _shifted_letter, _typographic, _unread_end, _denied, _checks_pass, _fields_pass,
        _log_passes, _missing_path, _blank_prompt, _equal, _misread, _fenced, _wrapped, _both_ways,
    )  # fmt: skip
    findings = ask_each(people, left, makes, reference)
    for proved in findings.groups:
        entry = doubt(people, proved)
        entry.label = "TI" if entry.level == "alarm" else None
        findings.trust.append(entry)
    rest = findings.rest(left)
    findings.trust += _doubts(people, rest, reference)
    refused = _refused(people, rest, reference) if not has_calls else None
    if refused is not None:
        findings.groups.append(refused)
        level = "warning" if refused.rows.sum() > DOUBT * people.n else "note"
        findings.trust.append(Trust(level, None, refused.text, refused.rows))
    return findings


# ---- The judge and the key -------------------------------------------------------------------------


def _judge_cut(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows in which the judge that was asked did not come to its verdict, since a limit cut it off."""
    rows = people.where(lambda row: row.cut_call)
    own = people.of(rows & left)
    if len(own) < LEAST_CUT or not people.passed[~rows].any() or people.rate(rows) > CUT_RATE * people.rate(~rows):
        return None
    return group(
        "verifier.judge cut", people, rows, left, path=Counter(row.cut_call for row in own).most_common(1)[0][0],
        says=sum(row.says_gold for row in own), place=lambda row: (row.cut_call, "") if row.cut_call else None,
    )  # fmt: skip


def _same_pairs(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose fields differ from the expected ones in spelling alone, where two objects of the row are compared."""
    shown: dict[int, str] = {}
    for i in np.flatnonzero(left).tolist():
        pairs = [_pair(people.rows[i], name) for name, met in people.rows[i].checks.items() if not met]
        if pairs and all(pair is not None and is_same(*pair) for pair in pairs):
            shown[i] = "; ".join(f"{actual} for {wanted}" for actual, wanted in filter(None, pairs))
    if len(shown) < LEAST_PAIRS:
        return None
    return group(
        "verifier.same pairs", people, people.mask(shown), example=short(next(iter(shown.values())), 80),
        detail=lambda i: short(shown.get(i, ""), 120),
    )  # fmt: skip


def _pair(row: RowEvidence, name: str) -> tuple[str, str] | None:
    """The two values that a check of two objects compares; None for any other check."""
    path, _, member = name.partition(": ")
    values = [row.fields.get(f"{side}.{member}") for side in path.split(" = ")]
    return (str(values[1]), str(values[0])) if len(values) == 2 and None not in values else None


def _wrong_letter(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows that choose the option whose text a field of the task gives as right, as nearly all passes do."""
    chosen = people.where(lambda row: bool(row.choice))
    if (chosen & people.passed).sum() < PASSES or chosen[people.passed].mean() < 0.9:
        return None
    for path in people.task_level:
        right = people.where(lambda row: row.choice and is_same(row.choice, str(row.fields.get(path, ""))))  # noqa: B023
        share = right[people.passed].mean()
        if share >= 0.9 and (right & left).sum() >= 3 and (people.failed & ~right).any():
            return group("verifier.wrong letter", people, right & left, path=path, share=share)
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
    shifts = []
    for path, value, scope in [("", "", ~people.none), *people.kinds_of_task(30)]:
        wrong = scope & left & (shift > 0)
        step, n = most_common(shift[wrong].tolist())
        if n >= max(LEAST_LATE, OFTEN * wrong.sum()) and people.n_tasks(wrong) >= 5 and people.rate(scope) <= RARELY:
            shifts.append((n, path, value, step, wrong & (shift == step)))
    if not shifts:
        return None
    _, path, value, step, rows = max(shifts, key=lambda entry: entry[0])
    step = min(step, len(letters) - step)
    return group(
        "verifier.shifted letter", people, rows, by="one place" if step == 1 else f"{step} places",
        where=f" where `{path}` is `{short(str(value), 60)}`" if path else "", detail=lambda i: answered(people, i, reference),
    )  # fmt: skip


def _letter(text: str | None) -> int | None:
    """The place of an answered letter in the alphabet."""
    kind, value = value_of(text or "")
    return ord(value) - ord("A") if kind == "letter" else None


# ---- What the prompt, the grader and the row's own records say ---------------------------------------


_PLAIN = str.maketrans("\u2018\u2019\u02bc\u201c\u201d\u2010\u2011\u2013\u2014\u2212", "'''\"\"-----")
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
    signed = {i: _runs(people.rows[i].final, _SIGNS) for i in np.flatnonzero(marked & here).tolist()}
    known = set().union(*(signed[i] for i in np.flatnonzero(marked & left).tolist()))
    same = {i: _runs(people.rows[i].final, _FOLDED) & known for i in np.flatnonzero(~marked & here).tolist()}
    accepted = set().union(*(runs for i, runs in same.items() if people.passed[i]))
    rows, plain = (people.mask([i for i, runs in texts.items() if runs & accepted]) for texts in (signed, same))
    if min((rows & left).sum(), (plain & here).sum()) < LEAST_SIGNS or people.n_tasks(rows & left) < 3:
        return None
    if people.rate(rows & here) > RARELY or people.rate(plain & here) < OFTEN:
        return None
    sign = Counter(sign for row in people.of(rows & left) for sign in _SIGNS & set(row.final)).most_common(1)[0][0]
    return group(
        "verifier.typographic", people, rows, left, sign=sign, plain_sign=sign.translate(_PLAIN),
        plain=people.rate(plain & here), marked=people.rate(rows & here), place=in_final(lambda row: sign),
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
    n, sooner = int((late & left).sum()), people.rate(says & ~late)
    early = min((row.gold_at for row in people.of(late & left)), default=0)
    if early < LEAST_READ or n < max(LEAST_LATE, 0.8 * len(fails)) or people.rate(late) > SELDOM or sooner < OFTEN:
        return None
    return group("verifier.unread end", people, late, left, early=early, sooner=sooner)


def _denied(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows with an error that says there is no such name, where the prompt itself gives that name."""
    rows = people.where(lambda row: bool(row.denied))
    names = Counter(row.denied for row in people.of(rows & left))
    if names.total() < LEAST_SIGNS or people.n_tasks(rows & left) < 3 or people.rate(rows) > SELDOM:
        return None
    listed = ", ".join(f"`{name}` in {n:,}" for name, n in names.most_common(3))
    return group("verifier.denied", people, rows, left, listed=listed)


def _checks_pass(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose own recorded checks all pass, where nothing else is known to be graded."""
    all_pass = people.where(lambda row: row.checks and all(row.checks.values()))
    some_fail = people.where(lambda row: not all(row.checks.values()))
    is_graded = (all_pass & people.passed).sum() >= PASSES and not (some_fail & people.passed).any()
    if (all_pass & left).sum() < 2 or not is_graded or (some_fail & people.failed).sum() < 5 or any(row.expected for row in people.rows):
        return None
    return group("verifier.checks pass", people, all_pass & left)


_SUCCESS = re.compile(r"\b(?:pass(?:ed|es)?|resolved|success(?:ful(?:ly)?)?|succeeded|solved|won|accepted|correct|ok)\b", re.IGNORECASE)
_FAILURE = re.compile(r"\b(?:fail\w*|error\w*|not|incorrect|wrong|rejected)\b", re.IGNORECASE)


def _fields_pass(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows all of whose 0/1 verdict fields say that they passed, as in every pass and in no other failure."""
    if people.passed.sum() < PASSES or people.where(lambda row: bool(row.expected)).any():
        return None
    fields = [path for path in people.paths if not people.is_reward(path) and _is_verdict(people, path)]
    rows = people.where(lambda row: all(bool(row.fields.get(path)) for path in fields)) & left
    if not fields or not 0 < rows.sum() <= 0.2 * people.failed.sum():
        return None
    says = "says that the rollout passed, as in every pass"
    return group("verifier.contradicted", people, rows, path=fields[0], says=says, kind="verdict")


def _is_verdict(people: Population, path: str) -> bool:
    """Whether a 0/1 field that is named as a success is 1 in every pass and 0 in most failures."""
    values = people.columns[path]
    if {value for value in values if value is not None} != {0, 1} or not _SUCCESS.search(re.sub(r"[._]", " ", path)):
        return False
    fails = np.flatnonzero(people.failed)
    has_passed = all(bool(values[i]) for i in np.flatnonzero(people.passed))
    return has_passed and sum(values[i] == 0 and values[i] is not None for i in fails) >= 0.7 * fails.size


def _log_passes(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose log ends with the words of success that every pass has and hardly any other failure."""
    if people.passed.sum() < PASSES:
        return None
    lines = Counter((path, line) for row in people.of(people.passed) for path, every in row.lines.items() for line in every)
    for (path, line), n_passes in lines.most_common():
        if n_passes < people.passed.sum():
            return None
        rows = people.where(lambda row: line in row.lines.get(path, ())) & left  # noqa: B023
        n = int(rows.sum())
        others = people.failed & ~rows & people.where(lambda row: path in row.lines)  # noqa: B023
        is_verdict = _SUCCESS.search(line) and not _FAILURE.search(line)
        if n and is_verdict and n <= 0.25 * people.failed.sum() and others.sum() >= 3 * n:
            says = f"ends with the words of every pass ({line[:80]})"
            return group("verifier.contradicted", people, rows, path=path, says=says, kind="log", place=lambda row: (path, line))  # noqa: B023
    return None


def _missing_path(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose test looks for a path that their request never names."""
    path, n = most_common(row.missing for row in people.of(left) if row.missing)
    rows = people.where(lambda row: row.missing == path)
    if n < 3 or people.passed[rows].any() or people.n_tasks(rows) < 3:
        return None
    return group(
        "verifier.missing path", people, rows, left, missing=path, end_of_path=path[-60:],
        place=lambda row: next(((name, path) for name in row.lines), None),
    )  # fmt: skip


def _blank_prompt(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose prompt holds an empty block, where the same block holds something in other prompts."""
    tags = Counter(tag for row in people.rows for tag in row.blank)
    for tag, _ in tags.most_common(3):
        rows = people.where(lambda row: tag in row.blank)  # noqa: B023
        filled = people.where(lambda row: tag in row.filled) & ~rows  # noqa: B023
        if (rows & left).sum() >= 3 and people.n_tasks(filled) >= 3 and people.rate(rows) <= 0.5 * people.rate(filled):
            return group("verifier.blank prompt", people, rows, left, tag=tag, filled=people.rate(filled))
    return None


# ---- The answer beside the expected one -------------------------------------------------------------


def _equal(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows whose answer is the gold."""
    if reference is None:
        return None
    if not people.passed.any():
        return _exact(people, left)
    if not reference.is_telling:
        return None
    # checks that fail in every failing row that has them state the verdict again, and are no demand of their own
    demands = {name for row in people.of(people.failed) for name, met in row.checks.items() if met}
    rows = reference.same & left & people.where(lambda row: all(met for name, met in row.checks.items() if name in demands))
    if rows.sum() > MANY * people.n:
        pairs = zip(reference.answer, reference.gold, strict=True)
        exact = np.array([bool(a and g and a.strip() == g.strip()) for a, g in pairs], np.bool_)
        if exact[people.passed & reference.held].mean() < 0.9:
            return None
        if not _by_spelling(people, reference, rows, exact):
            rows &= exact
    if not rows.any():
        return None
    how, n_exact = _difference(reference, rows)
    is_mixed = bool(how and n_exact)
    return group(
        "verifier.equal", people, rows, how=f" ({how})" if how else "", but=f" but for {how}" if how else " exactly",
        letter=f" ({n_exact:,} of them to the letter)" if is_mixed else "", read=", check which part of the answer it reads" * is_mixed,
        agreement=reference.agreement, detail=lambda i: answered(people, i, reference),
    )  # fmt: skip


_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?\Z")


def _by_spelling(people: Population, reference: Reference, rows: Mask, exact: Mask) -> bool:
    """Whether spelling alone decides: every pass is the gold letter by letter, and equal numbers in other spellings never pass."""
    pairs = [(reference.answer[i] or "", reference.gold[i] or "") for i in np.flatnonzero(rows)]
    # the same number with more or fewer decimals is no other spelling: so many may be asked for
    is_closed = sum(
        value_of(gold)[0] in ("number", "date") and not (_DECIMAL.match(answer.strip()) and _DECIMAL.match(gold.strip()))
        for answer, gold in pairs
    ) >= 0.9 * len(pairs)
    is_spelled = people.passed.sum() >= 20 and exact[people.passed & reference.held].mean() >= 0.98
    return bool(is_closed and is_spelled and not people.passed[reference.same & ~exact].any())


def _difference(reference: Reference, rows: Mask) -> tuple[str, int]:
    """How the answers of some rows mostly differ from the gold in spelling, and how many do not."""
    folds: dict[str, Callable[[str], str]] = {
        "": str, "quotation marks": lambda text: text.replace('"', "'"), "spaces": lambda text: "".join(text.split()),
        "upper and lower case": str.casefold, "formatting": lambda text: "",
    }  # fmt: skip
    pairs = [((reference.answer[i] or "").strip(), (reference.gold[i] or "").strip()) for i in np.flatnonzero(rows)]
    kinds = Counter(next(name for name, fold in folds.items() if fold(answer) == fold(gold)) for answer, gold in pairs)
    exact = kinds.pop("", 0)
    return kinds.most_common(1)[0][0] if kinds else "", exact


_READ = re.compile(r"extracted|predicted|parsed|model_answer|given", re.IGNORECASE)  # fields that hold what was answered


def _exact(people: Population, left: Mask) -> Group | None:
    """Without any pass: answers that are the gold letter by letter, wherever the row puts them."""

    def is_gold(row: RowEvidence) -> bool:
        read = (value for path, value in row.fields.items() if isinstance(value, str) and _READ.search(path))
        gold, *texts = (text.strip().strip("$ ") for text in (row.gold_text, *row.answers.values(), *read))
        return bool(gold) and gold in texts

    rows = people.where(is_gold) & left
    if rows.sum() < max(2, 0.25 * left.sum()):
        return None
    return group("verifier.exact", people, rows, whole="every answer" if rows.all() else "the answer of many rollouts")


def _misread(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows that announce the gold as their answer, while the field in which the grader keeps what it read holds another value."""
    if reference is None or not reference.is_telling or reference.source in ANSWER_ORDER:
        return None
    places = (name for name in ("box", "announced", "tag") if sum(name in row.answers for row in people.rows) >= 0.5 * people.n)
    if not (place := next(places, "")):
        return None
    texts = (row.answers.get(place, "") for row in people.rows)
    own = np.array([_announces(text, gold or "") for text, gold in zip(texts, reference.gold, strict=True)], bool)
    rows = own & left & reference.held & ~reference.same
    passes = people.passed & people.where(lambda row: place in row.answers)
    if rows.sum() < 2 or passes.sum() < PASSES or own[passes].mean() < 0.9:
        return None
    return group(
        "verifier.misread", people, rows, path=reference.source, place=in_final(lambda row: row.answers.get(place, "")),
        detail=lambda i: f'it answers "{short(people.rows[i].answers[place], 70)}", and `{reference.source}` is '
        f"{short(str(reference.answer[i]), 40)}",
    )  # fmt: skip


def _announces(answer: str, gold: str) -> bool:
    """Whether an announced answer is the gold, or begins with it where that is a number."""
    head = LEADING.match(answer)
    return is_same(answer, gold) or (head is not None and value_of(gold)[0] == "number" and is_same(head[1], gold))


def _wrapped(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing answers that are the gold inside other words, where passes are the gold and nothing else."""
    if reference is None:
        return None
    bare = people.where(lambda row: bool(row.gold_text) and row.final.strip() == row.gold_text.strip())
    if people.passed.sum() < PASSES or bare[people.passed].mean() < 0.9:
        return None
    rows = people.where(lambda row: len(row.gold_text) >= 8 and row.gold_text.strip() in row.final) & left & ~bare
    return group("verifier.wrapped", people, rows) if rows.sum() >= 2 else None


def _fenced(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing rows that are a code fence as a whole, where fenced answers never pass and bare ones do."""
    fenced = people.where(lambda row: "fence" in row.answers)
    rows = people.of(fenced & left)
    bare = people.where(lambda row: bool(row.final.strip())) & ~fenced
    if len(rows) < max(10, FENCED * left.sum()) or people.passed[fenced].any() or not bare.any() or people.rate(bare) < 0.2:
        return None
    compared = [row for row in rows if row.gold_text]
    right = sum(is_same(row.answers.get("fence", ""), row.gold_text) for row in compared)
    if len(compared) >= 0.5 * len(rows) and right < 0.1 * len(compared):
        return None  # stripped of the fence they are wrong all the same
    return group(
        "verifier.fenced", people, fenced, left, bare=people.rate(bare), compared=len(compared), right=right,
        parses=sum(_parses(row.answers.get("fence", "")) for row in rows), place=in_final(lambda row: "```"),
    )  # fmt: skip


def _parses(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return bool(value_of(text)[0] == "literal")
    return True


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
    rows = people.mask(
        i for i in np.flatnonzero(left).tolist()
        if (answer := reference.answer[i]) and value_of(answer) in passing.get(int(people.task[i]), ())
    )  # fmt: skip
    return _inconsistent(people, rows, reference) if rows.sum() <= 0.2 * left.sum() else None


def _both_ways_without_gold(people: Population, left: Mask) -> Group | None:
    """The same where answers are not compared with a gold: closed ones, and whole replies that are the gold word for word."""
    if any(row.expected or row.n_acts > 1 for row in people.rows):
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
    return _inconsistent(people, people.mask(i for places in split for i in places) & left, None)


def _inconsistent(people: Population, rows: Mask, reference: Reference | None) -> Group | None:
    detail = lambda i: answered(people, i, reference)  # noqa: E731
    return group("verifier.both ways", people, rows, gold=reference is not None, detail=detail) if rows.any() else None


def _refused(people: Population, left: Mask, reference: Reference | None) -> Group | None:
    """Failing texts that hold the expected answer word for word, where such texts nearly always pass: to be reviewed."""
    if reference is not None and reference.is_telling:
        return None  # the answers themselves were compared
    says = people.where(lambda row: row.says_gold)
    rows = np.flatnonzero(says & left)
    if rows.size < LEAST_REFUSED or people.rate(says) < OFTEN:
        return None
    places = [f"{people.keys[int(people.indexed[i])]}/{int(people.repeat[i])}" for i in rows[:5]]
    return group(
        "verifier.refused", people, says, left, contain="contains" if rows.size == 1 else "contain",
        places=", ".join([*places, "…"] if rows.size > 5 else places),
    )  # fmt: skip


# ---- Doubts that take no points ----------------------------------------------------------------------


def _doubts(people: Population, left: Mask, reference: Reference | None) -> Iterator[Trust]:
    if reference is not None and reference.is_telling:
        # passing rows whose closed answer is another than the closed gold
        others = np.flatnonzero(people.passed & reference.held & ~reference.same).tolist()
        rows = people.mask(i for i in others if _differs(reference.answer[i] or "", reference.gold[i] or ""))
        if 0 < rows.sum() <= MANY * people.passed.sum():
            yield warning("verifier.lenient", people, rows)
        # many failures that equal the gold in value but not letter by letter: too many to be sure that it is the gold
        rows = reference.same & left
        if people.passed.any() and rows.sum() > MANY * people.n:
            yield warning("verifier.many equal", people, rows, gold=reference.gold_name)
    # passing rows that make no call, though the gold demands some and other passes make them
    graded = graded_tools(people)
    due = people.passed & people.where(lambda row: row.expected is not None and bool(acts_of(row, graded)[1]))
    rows = due & people.where(lambda row: row.is_spoken or row.n_acts == 0)
    if 0 < rows.sum() <= 0.5 * (due & ~rows).sum():
        yield warning("verifier.idle passes", people, rows, make="makes" if rows.sum() == 1 else "make")
    yield from _broken_checks(people)
    if people.is_capped.any():
        yield warning("verifier.capped", people, people.is_capped, top=max(row.longest[0] for row in people.rows))


def _broken_checks(people: Population) -> Iterator[Trust]:
    """The first check that no row passes and that reports an exception of its own."""
    errors = {name: error for row in reversed(people.rows) for name, error in row.check_errors.items()}
    for name, n in Counter(name for row in people.rows for name in row.check_errors).most_common():
        fails = people.where(lambda row: row.checks.get(name) is False)  # noqa: B023
        if n >= max(5, 0.9 * fails.sum()) and not any(row.checks.get(name) for row in people.rows):
            yield warning("verifier.broken check", people, fails, check=name.partition(": ")[2] or name, error=errors[name][:100])
            return


def _differs(answer: str, gold: str) -> bool:
    (kind, first), (kind_of_gold, second) = value_of(answer), value_of(gold)
    if kind == kind_of_gold == "number":
        return bool(abs(first - second) > ROUNDED * abs(second))
    return kind == kind_of_gold != "text" and str(first).strip("'\"") != str(second).strip("'\"")
