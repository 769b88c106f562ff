"""Clean rows and texts: private strings replaced by placeholders, all else byte for byte."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from blade.model.run_rows import ID_FIELDS
from blade.sanitize.echoes import Echoes, Found, apart
from blade.sanitize.escapes import TOKEN, View, base64_in, decoded, encoded, is_json, numbers_end, value_end
from blade.sanitize.key_blocks import KeyBlocks
from blade.sanitize.lexicon import secret_name, secret_value
from blade.sanitize.policy import PLACEHOLDER, Key, Policy
from blade.sanitize.rule_table import compiled, words
from blade.sanitize.scan import TYPED, Scanner, forms_in
from blade.sanitize.secret_rules import Hit

Seen = Callable[[str, str, str], None]  # field, kind, value
OnLine = Callable[[int, int], None]  # the line, how many line breaks go; 0, 0: from the top
Edit = tuple[int, int, str]
Path = tuple[str, ...]
_MANIFEST = ("(manifest)",)  # where the fields of one lie
_DEPTH = 4  # texts inside texts: JSON in a string, in base64, in a string
_REMEMBERED = 64 << 20  # letters of texts that are kept as clean
_PLACES = 100_000  # of rows that are remembered
_PASSES = 8  # what a placeholder uncovers is looked at again, at most so often
_SHORT = 16_384  # letters of a text that is read again as a whole
_DENSE = 64  # letters for each edit: where there are fewer, all of the text stands around edits
_AROUND = 1024  # letters on either side of an edit that it may change the meaning of, and as many again
_BOM = "\ufeff"


class Site:
    """Where values of rows stand: how they are looked at there, and which of them are known to be clean."""

    __slots__ = ("_inside", "_listed", "below", "clean", "holder", "is_row", "path", "role")

    def __init__(self, path: Path, role: Role, holder: str, is_row: bool) -> None:
        self.path, self.role, self.holder, self.is_row = path, role, holder, is_row
        self.clean: set[str] = set()  # texts, as JSON writes them
        self.below: dict[str, Site] = {}
        self._listed: Site | None = None
        self._inside: Site | None = None

    def listed(self) -> Site:
        """Where the members of a list here stand."""
        if self._listed is None:
            role = self.role
            if self.path and self.holder and not secret_name(self.path[-1]):  # of a list of secrets
                role = Role("password" if self.path[-1].lower().endswith("passwords") else "token")
            self._listed = self if role == self.role else Site(self.path, role, self.holder, self.is_row)
        return self._listed

    def named(self, name: str) -> Site:
        """Where a value stands whose name is the value of the key before it."""
        if self.role.is_id or not is_beside(self.path, name):
            return self
        return Site(self.path, Role(name), self.holder, self.is_row)

    def within(self) -> Site:
        """Where what is encoded in a text here stands: it is no field of the row."""
        self._inside = self._inside or Site(self.path, Role(), self.holder, is_row=False)
        return self._inside


class Lines:
    """The lines of a text, told before what is found in them is."""

    def __init__(self, text: str, on_line: OnLine | None) -> None:
        self._text, self._on_line = text, on_line
        self._at, self._line = 0, 1
        if on_line is not None:
            on_line(0, 0)

    def tell(self, start: int, end: int) -> None:
        self.start_at(start)
        if self._on_line is not None:
            self._on_line(self._line, self._text.count("\n", start, end))

    def start_at(self, start: int) -> None:
        """From here on a piece of the text is read."""
        if self._on_line is not None:
            if start < self._at:
                self._at, self._line = 0, 1
            self._line += self._text.count("\n", self._at, start)
            self._at = start

    def within(self, line: int, gone: int) -> None:
        """A line of that piece is told."""
        if self._on_line is not None:
            self._on_line(self._line + line - 1 if line else 0, gone)


class Cleaner:
    """One policy and one key at work; `seen` is told of every replacement, never where values could leak."""

    def __init__(self, key: Key, policy: Policy | None = None, seen: Seen | None = None) -> None:
        self.key = key
        self.policy = policy or Policy()
        self.scanner = Scanner(self.policy, key.secret)
        self.seen = seen
        self.field = ""
        self.known = Echoes()
        self.task_ids: set[str] = set()  # and verifier codes: what the rows keep
        self.ids: frozenset[str] = frozenset()  # the same, for texts about these rows
        self.kept: set[str] = {words.lower() for words in self.policy.allow}  # words that name no person here
        self.on_line: OnLine | None = None  # told the line of a text before `seen` is called
        self.blocks: KeyBlocks | None = KeyBlocks()  # private keys, from text to text
        self.find: Callable[[str, Role], list[Found]] = self._scanned
        self.listed: Callable[[str], list[Hit]] = self.scanner.listed
        self._raw = ""  # the row that is looked at
        self._row = Site((), Role(), "", is_row=True)
        self._manifest = Site(_MANIFEST, Role(), "", is_row=False)
        self._any = Site((), Role(), "", is_row=False)
        self._keys: set[str] = set()  # that are clean, as JSON writes them
        self._letters = self._places = 0
        self._renamed: dict[str, str] = {}  # keys, as the report of what was removed may name them

    def put(self, kind: str, value: str) -> str:
        """The placeholder of a value."""
        if self.seen is not None:
            self.seen(self.field, kind, value)
        self.known.add(kind, value)
        return self.key.placeholder(kind, value)

    def stub(self, kind: str, value: str) -> str:
        """What is left of a field or of source code: its hash and its length."""
        if self.seen is not None:
            self.seen(self.field, kind, value)
        return self.key.stub(kind, value)

    def row(self, raw: str) -> str:
        """A line of JSON; one that is broken is cleaned as text."""
        body = raw.removeprefix(_BOM)
        self._raw = body
        # a torn row still has fields; what of it is no string is looked at as text
        base = self._manifest if is_manifest(body) else self._row
        new = self._json(body, base, on_line=self.on_line) if body.lstrip()[:1] in ("{", "[") else body
        new = new if is_json(new) else self.text(new)
        if self.blocks and self.blocks.late:  # the end of a key came up: what stood before it is of the key
            for piece in (piece for line in self.blocks.late for piece in (line, *re.split(r"[+/]", line))):
                if len(piece) >= 8:  # a part of it may have gone for looking random
                    self.known.add("SECRET", piece.lstrip("+/"))
            self.blocks.late = []
            new = self.echoing(self.seen).row(new)
        return raw[: len(raw) - len(body)] + new

    def text(self, text: str) -> str:
        """Any text."""
        return self._text(text, self._any, on_line=self.on_line)

    def echoing(self, seen: Seen | None, at_end: bool = False) -> Cleaner:
        """One that looks for nothing but what this one has found, alone or cut short, ids aside."""
        other = Cleaner(self.key, seen=seen)
        other.find = lambda text, role: self._echoed(text, role, at_end)
        other.listed = lambda raw: []
        other.blocks = None
        return other

    def testing(self, seen: Seen) -> Cleaner:
        """One that looks for the same, and for what was found: whether anything is left."""
        other = Cleaner(self.key, self.policy, seen)
        other.ids = frozenset(self.task_ids)

        def find(text: str, role: Role) -> list[Found]:
            hits = other._scanned(text, role)
            return sorted([*hits, *apart(self._echoed(text, role), hits)])

        other.find = find
        return other

    def _echoed(self, text: str, role: Role, at_end: bool = False) -> list[Found]:
        if role.is_id or (role.is_name and not role.name.endswith("_id")):
            return []
        return [item for item in self.known.found(text, at_end, self.kept) if item[3] not in self.task_ids]

    def _json(self, raw: str, base: Site, depth: int = 0, on_line: OnLine | None = None) -> str:
        """JSON text: its strings and keys cleaned, its numbers, order and spaces untouched."""
        raw = self._without_listed(raw, Lines(raw, on_line))
        parts: list[str] = []
        lines = Lines(raw, on_line)
        outer, up = self.field, len(base.path)
        saved: list[tuple[Site, Site]] = []
        done, place, above, keys, beside = 0, base, base, self._keys, ""
        for hit in TOKEN.finditer(raw):
            text = hit["text"]
            if hit.start() < done:
                continue  # inside of what was replaced as a whole
            if text is None:
                beside = ""
                if hit["open"]:
                    saved.append((place, above))
                    if hit["open"] == "{":
                        above = place
                    else:
                        place = place.listed()
                elif saved:
                    place, above = saved.pop()
            elif hit["key"]:
                if text not in keys:
                    lines.tell(hit.start(), hit.start())
                    self.field = self._told(outer, (*above.path[up:], "(key)"))
                    done = self._edited(parts, raw, done, hit.span("text"), self._any, 0, keys)
                place = above.below.get(text) or self._below(above, text)
                if place.role.is_numeric or self.policy.drop_fields:
                    lines.tell(hit.start(), hit.start())
                    self.field = self._told(outer, place.path[up:])
                    end, new = self._whole(raw, hit.end(), place)
                    if end > hit.end():
                        parts += [raw[done : hit.end()], new]
                        done = end
            else:
                site = place.named(beside) if beside else place
                beside = naming(place.path, text) or beside
                if text not in site.clean or (self.blocks and self.blocks.patience):
                    lines.tell(hit.start(), hit.start())
                    self.field = self._told(outer, place.path[up:])
                    done = self._edited(parts, raw, done, hit.span("text"), site, depth, site.clean)
        self.field = outer
        return "".join([*parts, raw[done:]]) if parts else raw

    def _without_listed(self, raw: str, lines: Lines) -> str:
        """JSON text without what the other members of a list give away."""
        edits: list[Edit] = []
        for start, end, kind in self.listed(raw):
            if kind == "SECRET" or raw[start:end] not in self.ids:
                lines.tell(start, end)
                edits.append((start, end, self.put(kind, raw[start:end])))
        return applied(raw, edits)

    def _edited(
        self, parts: list[str], raw: str, done: int, span: tuple[int, int], place: Site, depth: int, clean: set[str]
    ) -> int:
        """Add a string to the parts if it changes; up to where these tell the text."""
        text = raw[span[0] : span[1]]
        words = decoded(text)
        new = self._text(words, place, depth)
        if new == words:
            self._remember(clean, text)
            return done
        if clean is self._keys:
            self._renamed[words] = new
        parts += [raw[done : span[0]], encoded(new, text)]
        return span[1]

    def _below(self, above: Site, text: str) -> Site:
        key = decoded(text)
        path = (*above.path, key)
        role = role_of(path, above.holder, above.is_row, self.policy)
        holder = above.holder or (key if holds(key) else "")
        place = Site(path, role, holder, above.is_row)
        if above.is_row and len(path) == 1:
            self.kept.add(key.lower())
        if self._places < _PLACES:
            self._places += 1
            above.below[text] = place
        return place

    def _told(self, outer: str, keys: Path) -> str:
        """A path as it may be told: a key that was private is told by what stands for it."""
        return ".".join(filter(None, (outer, *(self._renamed.get(key, key) for key in keys))))

    def _whole(self, raw: str, start: int, place: Site) -> tuple[int, str]:
        """Where a value ends that is replaced as a whole, and what stands for it; `start` if it stays."""
        if self.policy.drops(place.path):
            end = value_end(raw, start)
            value = raw[start:end]
            # a value that is none, or that was dropped before, goes the way of any other
            if value not in ("null", '""') and not PLACEHOLDER.fullmatch(value.strip('"')):
                return end, f'"{self.stub("DROPPED", value)}"'
        elif place.role.is_numeric and (end := numbers_end(raw, start)) > start:
            return end, re.sub(r"-?\d+", self._number, raw[start:end])
        return start, ""

    def _number(self, hit: re.Match[str]) -> str:
        return f'"{self.put("SECRET", hit[0])}"' if secret_value("password", hit[0]) else hit[0]

    def _remember(self, clean: set[str], text: str) -> None:
        """A text that is clean need not be looked at again: prompts and results recur from row to row."""
        # Whether code or a field may stay hangs on where it stands, so that it is looked at every time.
        if self.policy.source_code == "hash" or (self.policy.drop_fields and text.lstrip()[:1] in ("{", "[")):
            return
        if self._letters < _REMEMBERED:
            self._letters += len(text) + 64
            clean.add(text)

    def _text(self, text: str, place: Site, depth: int = 0, on_line: OnLine | None = None) -> str:
        if len(text) < 4 and not (self.blocks and self.blocks.patience):
            return text
        if self.policy.source_code == "hash" and not self.policy.clears(place.path):
            text = without_code(text, place.role.name, self.stub)
        if depth < _DEPTH and text.lstrip()[:1] in ("{", "[") and is_json(text):
            return self._json(text, self._manifest if is_manifest(text) else place.within(), depth + 1, on_line)
        if self.blocks:
            blocks = KeyBlocks() if place.role.is_name else self.blocks  # a name is no line among others
            text = self._without_keys(text, place, blocks, on_line)
        return self._settled(text, place, depth, on_line)

    def _without_keys(self, text: str, place: Site, blocks: KeyBlocks, on_line: OnLine | None) -> str:
        view, lines, edits = View(text), Lines(text, on_line), []
        for start, end in blocks.spans(view.text, place):
            value, start, end = view.text[start:end], view.place(start), view.end(end)
            lines.tell(start, end)
            edits.append((start, end, self.put("SECRET", value)))
        return applied(text, edits)

    def _settled(self, text: str, place: Site, depth: int, on_line: OnLine | None) -> str:
        for _ in range(_PASSES):
            lines = Lines(text, on_line)
            edits = self._edits(text, place.role, lines)
            if depth < _DEPTH and len(text) >= 24:
                edits += apart(self._encoded(text, place, depth, lines), edits)
            if not edits:
                break
            text = applied(text, edits)
            around = windows(text, edits)
            if around is not None and not place.role.is_name:
                return self._settled_around(text, around, place, depth, on_line)
        return text

    def _settled_around(
        self, text: str, around: list[tuple[int, int]], place: Site, depth: int, on_line: OnLine | None
    ) -> str:
        """A long text in which only what stands around its edits is read again."""
        lines = Lines(text, on_line)
        within = lines.within if on_line else None
        parts, done = [], 0
        for start, end in around:
            lines.start_at(start)
            parts += [text[done:start], self._settled(text[start:end], place.within(), depth, within)]
            done = end
        return "".join([*parts, text[done:]])

    def _edits(self, text: str, role: Role, lines: Lines) -> list[Edit]:
        view, edits = View(text), []
        for start, end, kind, value in self.find(view.text, role):
            start, end = view.place(start), view.end(end)
            lines.tell(start, end)
            edits.append((start, end, self.put(kind, value)))
        return edits

    def _encoded(self, text: str, place: Site, depth: int, lines: Lines) -> list[Edit]:
        def clean(content: str, start: int) -> str:
            lines.tell(start, start)
            outer, self.blocks = self.blocks, self.blocks and KeyBlocks()
            new = self._text(content, place.within(), depth + 1)
            self.blocks = outer
            return new

        return sorted(base64_in(text, clean))

    def _scanned(self, text: str, role: Role) -> list[Found]:
        is_word = role.is_name and not any(char.isspace() for char in text)
        spans = self.scanner.spans(text, role.name, is_id=is_word)
        hits = [(start, end, kind, text[start:end]) for start, end, kind in spans]
        if role.is_thing and is_word:
            self.kept.add(text.lower())
        if role.is_id and is_word and not (role.name in WEAK and STRONG.search(self._raw)):
            self.task_ids.add(text)
            return [item for item in hits if not _is_of_id(text, item)]
        return [item for item in hits if item[2] == "SECRET" or item[3] not in self.ids] if self.ids else hits


def _is_of_id(text: str, hit: Found) -> bool:
    """Is it how an id may look: an address, a host, or `name:word` where the word is of no known form."""
    start, end, kind, _ = hit
    is_word = kind == "SECRET" and text[:start].endswith(":") and not list(forms_in(text, start, end))
    return is_word or kind in ("EMAIL", "HOST")


def windows(text: str, edits: list[Edit]) -> list[tuple[int, int]] | None:
    """What stands around the edits that `text` has seen; None if that is most of it."""
    if len(text) < max(_SHORT, _DENSE * len(edits)):
        return None
    hits: list[tuple[int, int]] = []
    moved = 0
    for start, end, new in sorted(edits):
        place = start + moved
        moved += len(new) - (end - start)
        left = _edge(text, max(0, place - 2 * _AROUND), max(0, place - _AROUND))
        right = _edge(text, place + len(new) + _AROUND, place + len(new) + 2 * _AROUND)
        if hits and left <= hits[-1][1]:
            hits[-1] = (hits[-1][0], right)
        else:
            hits.append((left, right))
    return hits if 2 * sum(end - start for start, end in hits) < len(text) else None


def _edge(text: str, start: int, end: int) -> int:
    return text.rfind("\n", start, end) + 1 or text.rfind(" ", start, end) + 1 or end


def applied(text: str, edits: list[tuple[int, int, str]]) -> str:
    """`text` with its edits made."""
    if not edits:
        return text
    parts, done = [], 0
    for start, end, new in sorted(edits):
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


# ---- Where texts stand ---------------------------------------------------------------------------

# Texts that rows are joined and counted by stand here, and nowhere else.
_TASKS = frozenset(tuple(name.split(".")) for name in ID_FIELDS) - {("name",)}
# These name a task only where nothing better does; else they may well name a person.
WEAK = frozenset(("id", "uuid", "task_name"))
STRONG = re.compile(r'"(?:_ng_task_index|task_id|problem_id|instance_id|question_id)"\s*:')
_VERIFIER = frozenset({(), ("verifier_metadata",), ("metadata",), ("verifier",), ("verification",)})
_CODE = re.compile(r"(?:\w*_)?(?:kind|code|class|category|verdict|label|outcome)")
# What the format itself names: models, tools, roles, states.
_FORMAT = words("formats")
_TOOLS = frozenset("tools function output agent_ref tool_choice".split())
_NAMES = frozenset(
    "id uuid call_id tool_call_id task_name name type role status object model finish_reason".split()
)
# Below a key such as `credentials`: what holds the secret, who it is of, and what only tells about it.
_SECRETS = frozenset("pass pw pin value secret password key plain plaintext current new old previous confirm".split())
_USERS = frozenset("user login account usr".split())
_ABOUT = words("about")
_NAMING = frozenset("name key variable var env env_var header element label field".split())
_POINTING = frozenset("selector target element locator css xpath label placeholder field".split())
_FIELD = compiled("password_field")
_VALUES = frozenset("value val content data secret_value text".split())
_IS_MANIFEST, _KEPT = compiled("manifest"), frozenset(("data", "stringData"))
_NAME_LETTERS = 60
_NUMERIC = re.compile(r"(?i)\w*(?:pass(?:word|wd|code|phrase)|pwd|secret|api_?key|credential)|pin")


class Role(msgspec.Struct, frozen=True):
    """How a text is looked at: under which name, and whether rows are joined or named by it."""

    name: str = ""
    is_id: bool = False  # of a task, or a verifier's code: it stays, unless it is a secret or a home
    is_name: bool = False  # what the format names: no word is private there for looking random
    is_numeric: bool = False  # a number here is a secret
    is_thing: bool = False  # a tool, a model or an agent is named here, never a person


def role_of(path: tuple[str, ...], holder: str, is_row: bool, policy: Policy) -> Role:
    """The role of the values at a path; `holder` is the key above that names a secret, if any does."""
    key = path[-1]
    if path[0] in _MANIFEST and (not _KEPT.isdisjoint(path) or path[1:] == ("key",)):
        return Role("password")  # whatever its name
    if holder:
        is_of_somebody = holder.lower().endswith("passwords") and key not in _ABOUT
        return Role("password") if is_of_somebody else _held(key)
    if key == "token" and any("logprob" in part for part in path):
        return Role()  # what a model said
    name_of_secret = secret_name(key)
    if is_row and not name_of_secret:
        is_code = path[:-1] in _VERIFIER and _CODE.fullmatch(key) is not None
        if path in _TASKS or is_code or ".".join(path) in policy.ids:
            return Role(key, is_id=True, is_name=True)
        if _is_named(path):
            is_tool = key == "name" and len(path) > 1 and path[-2] in _TOOLS
            return Role(key, is_name=True, is_thing=key == "model" or is_tool)
    return Role(key, is_numeric=name_of_secret and _NUMERIC.fullmatch(key) is not None)


def _held(key: str) -> Role:
    """The role of what lies below the name of a secret."""
    if key.lower() in _SECRETS:
        return Role("password", is_numeric=True)
    if key.lower() in _ABOUT or secret_name(key):
        return Role(key, is_numeric=_NUMERIC.fullmatch(key) is not None)
    return Role("username" if key.lower() in _USERS else "token")


@lru_cache(maxsize=10_000)
def holds(key: str) -> bool:
    """Does the name of an object or a list say that secrets lie in it."""
    is_other, is_plural = key.lower().endswith(("signature", "tokens")), key.lower().endswith("s")
    return not is_other and (secret_name(key) or (is_plural and secret_name(key[:-1])))


def is_manifest(text: str) -> bool:
    """Is it JSON whose kind alone tells that it holds secrets."""
    return _IS_MANIFEST.search(text) is not None and "_ng_task_index" not in text


def naming(path: tuple[str, ...], text: str) -> str:
    """The name of a secret, where it is a value of its own: `{"name": "DB_PASSWORD", "value": ...}`."""
    key = path[-1].lower() if path else ""
    if len(text) > _NAME_LETTERS or not (key in _NAMING or key in _POINTING or text.lower() == "authorization"):
        return ""
    text = re.sub(r" (?:field|input|box)$", "", text)
    if (key in _NAMING or text.lower() == "authorization") and secret_name(text):
        return text
    return TYPED if key in _POINTING and _FIELD.search(text) else ""


def is_beside(path: tuple[str, ...], name: str) -> bool:
    """Is it where the value of what was named before stands; a header and its value may be a plain pair."""
    if name == TYPED:
        return path[-1:] in (("text",), ("value",), ("keys",), ("input",))
    return name.lower() == "authorization" or (bool(path) and path[-1].lower() in _VALUES)


def _is_named(path: tuple[str, ...]) -> bool:
    """Is it where the format, and not its content, names something."""
    is_top = len(path) == 1 and path[-1].endswith(("_id", "_index"))
    return is_top or (path[-1] in _NAMES and all(part in _FORMAT for part in path[:-1]))


# ---- Source code ---------------------------------------------------------------------------------

_FENCED = compiled("fenced")
_DIFF = re.compile(r"(?m)^(?:diff --git |--- (?:a/|/dev/null)|Index: )")
_CODE_LINE = compiled("source_line")
_LEAST_LINES, _LEAST_CHARS, _SHARE = 5, 120, 0.5
_FIELDS = frozenset(
    "patch model_patch gold_patch test_patch diff source source_code code solution_code file_content".split()
)


def without_code(text: str, name: str, stub: Callable[[str, str], str]) -> str:
    """`text` with its source code replaced by what `stub` leaves of it."""
    if (len(text) < 40 and name not in _FIELDS) or PLACEHOLDER.fullmatch(text):
        return text
    if (name in _FIELDS and text.strip()) or is_code(text):
        return stub("CODE", text)
    if "```" in text or "~~~" in text:
        text = _FENCED.sub(lambda hit: f"{hit['open']}{stub('CODE', hit['body'])}\n{hit['close']}", text)
    start = _DIFF.search(text)
    return text[: start.start()] + stub("CODE", text[start.start() :]) if start else text


def is_code(text: str) -> bool:
    """Is a text of several lines code for the most part."""
    if len(text) < _LEAST_CHARS or "\n" not in text:
        return False
    lines = [line for line in text[:20_000].splitlines() if line.strip()]
    n_code = sum(bool(_CODE_LINE.search(line)) for line in lines)
    return len(lines) >= _LEAST_LINES and n_code >= _SHARE * len(lines)
