"""Turn a report into the same report in other words: numbers, ids, quotations and tables stay."""

from __future__ import annotations

import re
from random import Random

# Words around a claim, never of one: no direction, quantity, negation, cause, unit or name is among them.
_OTHER_WORDS = (
    ("for instance", ("for example", "as an example,")),
    ("for example", ("for instance", "to give an example,")),
    ("instead of", ("rather than", "in place of")),
    ("rather than", ("instead of",)),
    ("as well as", ("along with",)),
    ("in addition", ("besides", "moreover")),
    ("such as", ("like",)),
    ("in order to", ("to",)),
    ("due to", ("owing to",)),
    ("as told above", ("as described above",)),
    ("see also", ("compare also",)),
    ("see", ("compare",)),
    ("because", ("since", "as")),
    ("therefore", ("hence", "thus")),
    ("however", ("still", "though")),
    ("but", ("yet",)),
    ("although", ("though", "even though")),
    ("while", ("whereas",)),
    ("whereas", ("while",)),
    ("likely", ("probably",)),
    ("entire", ("whole",)),
    ("shows", ("exhibits", "displays")),
    ("show", ("exhibit", "display")),
    ("needed", ("required",)),
    ("required", ("needed",)),
    ("begins", ("starts",)),
    ("starts", ("begins",)),
    ("asks for", ("calls for", "demands")),
    ("states", ("says",)),
    ("holds", ("contains",)),
    ("follows from", ("derives from",)),
    ("follow from", ("derive from",)),
    ("often", ("frequently",)),
    ("frequently", ("often",)),
    ("usually", ("as a rule",)),
    ("mainly", ("chiefly", "primarily")),
    ("primarily", ("chiefly", "mainly")),
    ("appears", ("shows up",)),
    ("observed", ("noticed",)),
    ("found", ("discovered",)),
    ("occurs", ("happens",)),
    ("occur", ("happen",)),
    ("happened", ("took place",)),
    ("attempt to", ("try to",)),
    ("tries to", ("attempts to",)),
    ("needs", ("requires",)),
    ("requires", ("needs",)),
    ("uses", ("employs",)),
    ("using", ("by means of",)),
    ("big", ("large",)),
    ("quick", ("fast",)),
    ("stands", ("is given",)),
    ("the report", ("this report",)),
    ("as a result", ("in consequence",)),
    ("in particular", ("especially",)),
    ("especially", ("in particular",)),
    ("together", ("jointly",)),
    ("first and foremost", ("above all",)),
    ("should be", ("ought to be",)),
    ("must be", ("has to be",)),
    ("may be", ("might be",)),
)
_CHANGES = dict(_OTHER_WORDS)
OTHER_WORDS = frozenset(
    word.strip(",") for given, other in _OTHER_WORDS for told in (given, *other) for word in told.split()
)  # all of them, one by one
_WORDS = re.compile(
    r"(?<![\w@/.-])(?:"
    + "|".join(sorted(map(re.escape, _CHANGES), key=len, reverse=True))
    + r")(?![\w@/-]|\.\w)",
    re.IGNORECASE,
)
_KEPT = re.compile(
    r"(`{1,9})(?!`).+?(?<!`)\1(?!`)|“[^“”]*”|(?<!\w)\"[^\"\n]+\"(?!\w)|<!--.*?-->|!?\[[^\[\]]*\]\([^()]*\)|\\?\[[^\[\]]*\]"
    r"|\([^()]*\)|<[^<>\s][^<>]*>|https?://\S+"
)
_STOP = re.compile(r"(?<=[.!?])\s+(?=[*_]*[A-Z\0])")
_SHORT = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|nos?|figs?|eq|sec|ca|incl)\.$", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_FLAT_ITEM = re.compile(r"^(?P<mark>[-*+]) (?P<text>\S.*)$")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,9}[.)])\s")
_LEADING = re.compile(
    r"^(?P<phrase>(?:In|Without|Within|Over|Among|During|After|Across|On|Under)\s[^,;:.\0]*(?:\0\d+\0[^,;:.\0]*)*),\s"
    r"(?P<rest>[^,;:]+?)(?P<stop>[.!?])$"
)
_SUPERLATIVE = re.compile(
    r"^The (?P<what>(?:largest|biggest|most common|dominant|main|primary|commonest|smallest)\b[^,;:.]*?) is "
    r"(?P<who>(?:the |a |an )?[\w\0 /-]+?)(?P<rest>:.*)?(?P<stop>[.!?])$"
)
# A subject, one of these verbs, and an object that runs to the end of the sentence.
_PASSIVE = {
    "hit": "hit", "carry": "carried", "carries": "carried", "show": "shown", "shows": "shown", "use": "used",
    "uses": "used", "explain": "explained", "explains": "explained", "cause": "caused", "causes": "caused",
}  # fmt: skip
_ACTIVE = re.compile(
    rf"^(?P<subject>[A-Z0-9\0][^,;:.]*?) (?P<verb>{'|'.join(_PASSIVE)}) "
    r"(?P<object>(?:their|the|a|an|no) [^,;:.\0]*?)(?P<stop>\.)$"
)
_LEANS = re.compile(
    r"^\W*(?:it|its|this|that|these|those|they|their|them|he|she|both|neither|either|none|each|such|so|"
    r"the same|the former|the latter|the others?|the rest|here|there|without it|with it|of these|of them|"
    r"then|but|yet|and|or|however|therefore|hence|thus|still|though|for instance|for example)\b",
    re.IGNORECASE,
)


def paraphrased(text: str, seed: int = 0) -> str:
    """The same statements in other words and another shape; what they claim stays letter by letter."""
    random = Random(f"paraphrase/{seed}")
    return "\n".join(line for block in _blocks(text) for line in _rewritten(block, random))


def _blocks(text: str) -> list[list[str]]:
    """Lines that belong together: a fenced block, a table, a list, a paragraph, or one other line."""
    blocks: list[list[str]] = []
    kind, fence = "", ""
    for line in text.split("\n"):
        opened = _FENCE.match(line)
        if fence:
            blocks[-1].append(line)
            fence = "" if opened and line.strip().startswith(fence) and not line.strip(" `~") else fence
            continue
        if opened:
            fence, now = opened[1], "fence"
        else:
            now = _kind(line, kind)
        if now == kind and now in ("table", "list", "paragraph"):
            blocks[-1].append(line)
        else:
            blocks.append([line])
        kind = now
    return blocks


def _kind(line: str, above: str) -> str:
    if not line.strip():
        return "blank"
    if "|" in line:
        return "table"
    if line.startswith(("#", ">", "<", "    ", "\t", "---", "===", "***")) and above != "list":
        return "other"
    if _ITEM.match(line):
        return "list"
    return "list" if above == "list" else "paragraph"


def _rewritten(block: list[str], random: Random) -> list[str]:
    first = block[0]
    if _FENCE.match(first) or not first.strip() or "|" in first or _kind(first, "") == "other":
        return block
    if _ITEM.match(first):
        return _listed(block, random)
    if any(line.endswith(("  ", "\\", ":")) for line in block) or any("|" in line for line in block):
        return [_worded(line, random) for line in block]
    sentences = [_sentence(one, random) for one in _sentences(" ".join(line.strip() for line in block))]
    # A sentence that leans on the one before it loses its meaning as an item of its own.
    if len(sentences) > 2 and not any(map(_LEANS.match, sentences[1:])) and random.random() < 0.5:
        return [f"- {one}" for one in sentences]
    return [" ".join(sentences)]


def _listed(block: list[str], random: Random) -> list[str]:
    items = [_FLAT_ITEM.match(line) for line in block]
    flat = [item["text"] for item in items if item]
    if len(flat) < len(block):
        return [_worded(line, random) for line in block]
    told = [" ".join(_sentence(one, random) for one in _sentences(text)) for text in flat]
    alone = all(text.endswith((".", "!", "?")) and not _LEANS.match(text) for text in told)
    if alone and len(told) > 1 and random.random() < 0.5:
        return [" ".join(told)]
    mark = random.choice(["-", "*", "+"])
    return [f"{mark} {text}" for text in told]


class _Masked:
    """A text whose code, quotations, links and brackets are put aside while its words change."""

    def __init__(self, text: str) -> None:
        self.kept: list[str] = []
        self.text = _KEPT.sub(self._aside, text.replace("\0", ""))

    def _aside(self, hit: re.Match[str]) -> str:
        self.kept.append(hit[0])
        return f"\0{len(self.kept) - 1}\0"

    def back(self, text: str) -> str:
        return re.sub("\0(\\d+)\0", lambda hit: self.kept[int(hit[1])], text)


def _sentences(text: str) -> list[str]:
    masked = _Masked(text)
    found: list[str] = []
    for part in _STOP.split(masked.text):
        if found and _SHORT.search(found[-1]):
            found[-1] += " " + part
        else:
            found.append(part)
    return [masked.back(part) for part in found]


def _worded(text: str, random: Random) -> str:
    """Other words for those that carry no claim."""
    masked = _Masked(text)

    def other(hit: re.Match[str]) -> str:
        chosen = random.choice(_CHANGES[hit[0].lower()])
        return chosen[0].upper() + chosen[1:] if hit[0][0].isupper() else chosen

    return masked.back(_WORDS.sub(other, masked.text))


def _sentence(text: str, random: Random) -> str:
    masked = _Masked(text)
    return _worded(masked.back(_moved(masked.text, random)), random)


def _moved(text: str, random: Random) -> str:
    """The clauses of a sentence in another order, where a rule can tell that nothing else changes."""
    if "**" in text or "__" in text:
        return text
    if hit := _LEADING.match(text):
        return _capital(f"{hit['rest']} {_small(hit['phrase'])}{hit['stop']}")
    if hit := _SUPERLATIVE.match(text):
        return _capital(f"{hit['who']} is the {hit['what']}{hit['rest'] or ''}{hit['stop']}")
    if hit := _ACTIVE.match(text):
        # `is` or `are` goes by the object alone.
        be = "are" if hit["object"].startswith("their ") or re.search(r"[^su]s$", hit["object"]) else "is"
        if not hit["object"].startswith(("their ", "no ")):
            verb = _PASSIVE[hit["verb"]]
            return _capital(f"{hit['object']} {be} {verb} by {_small(hit['subject'])}{hit['stop']}")
    if text.count("; ") == 1 and random.random() < 0.7:
        left, right = text.split("; ")
        if not _LEANS.match(right) and right[:1].isalpha():
            return f"{left}. {_capital(right)}"
    return text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _small(text: str) -> str:
    """The first word in lower case, unless it is a name or an abbreviation."""
    word = text.split(" ", 1)[0]
    known = {
        "The",
        "A",
        "An",
        "In",
        "Without",
        "Within",
        "Over",
        "Among",
        "During",
        "After",
        "Across",
        "On",
        "Under",
    }
    return (
        text[:1].lower() + text[1:] if word in known | {"Of", "All", "Some", "No", "Each", "Every"} else text
    )
