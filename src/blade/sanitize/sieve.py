"""Turn a text into the marks that make a closer look worth while: most texts have none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from blade.sanitize import accounts, chosen, commands, formats, named, places

Detector = Callable[[str, int], Iterator[tuple[int, int, str]]]

# What begins or betrays a private thing, in lower case and within one word -> who looks there.
_PLACES: dict[str, Detector] = {
    "@": places.mail_at,
    "://": places.url_at,
    "~": places.tilde_at,
    "fe80:": places.v6_at,
    "fd": places.v6_at,
    "fc": places.v6_at,
    "ip-1": places.dashed_at,
    **dict.fromkeys(("/home/", "/users/", "users\\", ":/users"), places.home_at),
    "settings\\": places.home_at,
    **dict.fromkeys(("10.", "192.168.", "172.", "169.254.", "100."), places.v4_at),
    **dict.fromkeys(
        (".internal", ".corp", ".local", ".lan", ".intra", ".home.arpa", ".private"), places.host_at
    ),
    **dict.fromkeys(("drwx", "-rw", "lrwx", "-r-", "dr-", "srw"), places.listed_at),
    "logged": places.login_at,
    **dict.fromkeys(("intranet.", ".corp."), places.inner_host_at),
    **dict.fromkeys(("uid=", "gid=", "groups="), places.uid_at),
    **dict.fromkeys(("author:", "committer:", "-by:", "from:", "assignee:", "reviewer:"), places.person_at),
    **dict.fromkeys(
        ("user", "name", "login", "run_as", "_by", "nodelist", "fqdn", "host", "_addr"), places.named_at
    ),
}
_SECRETS: dict[str, tuple[Detector, ...]] = {
    "passw": (named.assigned_at, named.query_at),
    "pwd": (named.assigned_at, named.query_at),
    "secret": (named.assigned_at, named.query_at),
    "token": (named.assigned_at, named.query_at, named.header_at),
    "key": (named.assigned_at, named.query_at, named.header_at),
    "auth": (named.assigned_at, named.query_at, named.header_at, named.login_at),
    "-u": (named.login_at,),
    "credential": (named.assigned_at, named.query_at),
    "cookie": (named.assigned_at, named.cookie_at),
    "session": (named.assigned_at, named.query_at),
    "sign": (named.assigned_at, named.query_at),
    "bearer": (named.header_at,),
    "basic": (named.header_at,),
    "passphrase": (named.assigned_at,),
    **dict.fromkeys(("_pass", "dbpass", "userpass", "rootpass", "_pw", "dbpw"), (named.assigned_at,)),
    "passcode": (named.assigned_at,),
    **dict.fromkeys(("sig=", "code=", "sid=", "jwt=", "ticket=", "sas=", "state="), (named.query_at,)),
    **dict.fromkeys(("--pass", "--token", "--secret", "--api"), (named.flag_at,)),
    **dict.fromkeys(("accountkey=", "sharedaccesskey=", "sharedsecretvalue="), (formats.account_at,)),
    "-----begin": (formats.private_key_at,),
    "putty-user": (formats.putty_at,),
    "webhook": (formats.webhook_at,),
    "hooks.slack": (formats.webhook_at,),
}
_EXTRA: dict[str, tuple[Detector, ...]] = {
    "/users/": (places.home_at, places.shared_at),
    "/user/": (places.shared_at,),
}
MARKS: dict[str, tuple[Detector, ...]] = {
    **{mark: (detect,) for mark, detect in _PLACES.items()},
    **_SECRETS,
    **_EXTRA,
}
for _more in (commands.MARKS, chosen.MARKS, accounts.MARKS):
    MARKS |= {mark: (*MARKS.get(mark, ()), *detectors) for mark, detectors in _more.items()}
# What is private by its form or by what is written beside it, and so replaced even where a model, a tool
# or a task is named; a word that merely looks drawn at random is not.
SURE = frozenset(
    {
        places.mail_at, places.home_at, places.shared_at, places.url_at, places.host_at, places.inner_host_at,
        formats.private_key_at, formats.putty_at, formats.webhook_at, formats.account_at,
        named.assigned_at, named.query_at, named.header_at, named.flag_at,
    }
)  # fmt: skip
_AROUND = ".,;!?()'\"*`"  # punctuation around a word; no mark is made of it alone
_RUN = 20
_LONG = 17  # letters from which on a word may be a secret by itself
_KEPT_LETTERS, _KEPT_WORDS = 48, 200_000


def _may_be_secret(word: str) -> bool:
    """Can a long word be a secret or the address of a network card: no word of small letters is."""
    if len(word) < _RUN:
        return word.count(":") >= 5
    return not (word.isalpha() and word.islower())


class Sieve:
    """Words seen before, and the marks in them: rollouts say the same words over and over."""

    def __init__(self) -> None:
        self._words: dict[str, tuple[str, ...]] = {}

    def marks(self, text: str) -> tuple[Mapping[str, tuple[Detector, ...]], list[str]]:
        """The marks of a text with who looks there, and its long words."""
        known = self._words
        found: set[str] = set()
        long_words: list[str] = []
        new: list[str] = []
        for word in set(text.split()):
            held = known.get(word)
            if held is None:
                new.append(word)
            elif held:
                found.update(held)
            if len(word) >= _LONG and _may_be_secret(word):
                long_words.append(word)
        if new:
            found.update(self._learned(new))
        return {mark: MARKS[mark] for mark in sorted(found)}, sorted(long_words)

    def _learned(self, words: list[str]) -> list[str]:
        """The marks in new words: those of all of them first, as few marks are in any."""
        lowered = "\n".join(words).lower()
        marks = [mark for mark in MARKS if mark in lowered]
        letters = [mark for mark in marks if mark.isalpha()]
        for word in words:
            # hashes and their like come once
            if len(self._words) < _KEPT_WORDS and (
                len(word) < _RUN or (len(word) <= _KEPT_LETTERS and word.isalpha())
            ):
                small = word.lower()
                held = letters if small.strip(_AROUND).isalpha() else marks
                self._words[word] = tuple([mark for mark in held if mark in small])
        return marks


# What a word holds is the same for every policy, so all that look share what they learned.
SIEVE = Sieve()
