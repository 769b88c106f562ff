"""Judge a word: does it name a secret or somebody, was it drawn or chosen as one, or does anyone write it."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

# ---- Names of secrets ----------------------------------------------------------------------------

SECRET_WORD = (
    r"passwords?|passwd|passphrase|passcode|pwd|client[_\-]?secret|secret|token|"
    r"api[_\- ]?keys?|(?:access|private|secret|signing|encryption|account|license|master|shared|service"
    r"|ssh|deploy|"
    r"admin|webhook|wandb|storage|subscription|auth|session|hmac|jwt|app|client|root)[_\-]?keys?"
    r"(?:[_\-]?id)?|"
    r"credentials?|authorization|auth|cookie|session[_\-]?id|sessionid|signature|x-amz-credential|"
    r"(?<![a-z0-9])(?:db|database|sql|mysql|pg|postgres|mongo|redis|smtp|imap|ftp|mail|email|user|admin"
    r"|root|sudo|ssh|http|proxy|login|account|become|keystore|store|vault|ldap)[_\-]?(?:pass|pw)(?!"
         r"[a-z0-9_\-])"
    r"|(?-i:(?<=[A-Z0-9]_)(?:PASS|PW)(?![A-Za-z0-9_\-]))"
)
_NAME = re.compile(rf"(?i){SECRET_WORD}")
_TAIL = re.compile(r"(?:[_\-]|\d|(?=[A-Z]))\w{0,8}|")
# Tokens of language models and parsers, and settings about secrets that are none themselves.
_HARMLESS = re.compile(
    r"(?i)(?:^|[_\-])(?:tokens|tokeni[sz]er|tokeni[sz]ed|(?:eos|bos|pad|unk|sep|cls|mask|stop|start|end"
    r"|special|next|"
    r"prev|previous|page|image|audio|first|last|new|cur|current|num|n|max|min|per|sub|think|eot|each"
    r"|this|max_new)_?"
    r"token(?:_?ids?)?|token_?(?:ids?|type|count|len|length|index|limit|budget|usage|url|uri|name|s)|"
    r"auth_?(?:type|method|mode|url|uri|enabled|required|or|ors|ority|entic\w{0,12}|orization_?(?:type"
    r"|url|code_url))|"
    r"(?:password|secret|api_?key|credentials?|cookie|session|signature)_?(?:type|method|length|len|min"
    r"|max|policy|"
    r"required|enabled|name|field|file|path|env|hash_?type|version|url|reset|count|s|label|hint"
    r"|placeholder|expir\w{0,8})"
    r"|s?(?:reset|forgot|change|invalid|wrong|missing|no|has|need|needs|bad)_?(?:password|token|api_?key"
    r"|credentials?)|"
    r"function_?signature|method_?signature|type_?signature|call_?signature)$|^signature$"
)
_QUIET = frozenset("pass pw token auth authorization session cookie signature credential credentials".split())


def secret_name(name: str) -> bool:
    """Is it the name of something that holds a secret."""
    hit = next(reversed(list(_NAME.finditer(name))), None)
    if hit is None or _HARMLESS.search(name):
        return False
    return _TAIL.fullmatch(name, hit.end()) is not None


def is_hard(name: str) -> bool:
    """Does the name mean a secret and nothing else: a password does, a token may be a word."""
    last = ""
    for hit in _NAME.finditer(name):
        last = hit[0].lower()
    return last not in _QUIET


# ---- Values of secrets ---------------------------------------------------------------------------

_NO_SECRET = re.compile(
    r"(?i)(?:none|null|nil|true|false|undefined|str|string|int|bytes|bool|float|optional.*|any|self.*|os\..*|"
    r"process\..*|env\..*|config.*|settings.*|args.*|request.*|getenv.*|input|required|invalid|expired"
    r"|missing|"
    r"x{3,}.*|\*{2,}.*|\.{3,}.*|…+.*|<.*|\$.*|%.*|\{.*|\[[A-Z]{2,12}:[0-9a-f]{8}.*|your[_\- ].*|my[_\- "
    r"].*|redacted|"
    r"changeme|change_me|example|placeholder|dummy|secret|password|token|api_key|credentials?|basic|bearer|"
    r"n/a|empty|unset|not[_ ].*|\d{1,5}|and|or|the|is|in|of|to|for|with|are|was|must|should|can|not)"
)
_SWITCH, _DIGIT, _LETTER = re.compile(r"[a-z][A-Z]"), re.compile(r"\d"), re.compile(r"[^\W\d_]")
_PARTS = re.compile(r"[^\W\d_]+")
_EXPRESSION = re.compile(r"[\-~./]|\w+=|.*[(){}<>$]|.*\.\.")


def is_no_secret(value: str) -> bool:
    """Is it a word that stands where a secret would: `<password>`, `$TOKEN`, `changeme`."""
    return _NO_SECRET.fullmatch(value) is not None


def secret_value(name: str, value: str) -> bool:
    """Can a value under the name of a secret be that secret."""
    if not 4 <= len(value) <= 20_000 or _NO_SECRET.fullmatch(value):
        return False
    if " " in value.strip() and not is_hard(name):
        return False
    if value[0] in "/~" and name.lower().endswith("pwd"):
        return False  # the folder that one works in
    return is_hard(name) or mixes(value, 8)


def mixes(value: str, least: int) -> bool:
    """Does it look drawn at random: long enough, letters and digits or mixed cases, no word or number."""
    if len(value) < least or value.replace(".", "").isdigit():
        return False
    if _DIGIT.search(value):
        return _LETTER.search(value) is not None
    return len(value) >= 12 and len(_SWITCH.findall(value)) >= 2


def is_chosen(value: str) -> bool:
    """Can a person have chosen it as a password: no plain word, no name of a variable, no expression."""
    if not 4 <= len(value) <= 200 or is_no_secret(value) or _EXPRESSION.match(value):
        return False
    if value.replace("_", "").replace("-", "").isalpha() and (value.isupper() or "_" in value):
        return False
    parts = _PARTS.findall(value)
    return bool(parts) and (_DIGIT.search(value) is not None or not all(map(is_plain, parts)))


# ---- Words that a machine drew, whatever stands beside them --------------------------------------

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+|[0-9a-fA-F\-]+")
_NUMBERS = re.compile(r"[\deEjJ]+")
_SPLIT = re.compile(r"[-_.~]")
# An issuer's beginning: a short word or two, as in `acme_live_...`.
_ISSUED = re.compile(
    r"(?P<issuer>[A-Za-z][A-Za-z0-9]{0,11}(?:[_\-.][A-Za-z0-9]{1,8}){0,2}?)[_\-.]"
    r"(?P<rest>[A-Za-z0-9_\-.~]{20,})"
)
# As long as a hash, after the short name of an issuer: ids of models' providers are longer.
_HASHED = re.compile(r"(?P<issuer>[a-z][a-z0-9]{1,5})_(?:[0-9a-f]{40}|[0-9a-f]{64})")
# Beginnings of ids that rollouts are full of, and of hashes: they open nothing.
_PLAIN_IDS = frozenset(
    "call chatcmpl cmpl toolu tool msg message resp response fc rs req request run thread asst "
    "assistant file batch gen evt event item task job step trace span conv conversation chat id uid "
    "uuid guid node img image sha1 sha256 sha384 sha512 md5 hash digest commit blob etag tree ref cache "
    "tmp temp fp ftjob ws order user product doc document video vs cid rollout sample row episode build "
    "release layer model srvtoolu".split()
)
_SPELT = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_VOWEL = re.compile(r"(?i)[aeiouy]")
_CHANGE = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_DIGITS = re.compile(r"\d+")


def is_random(word: str) -> bool:
    """Does a long word look drawn at random, where a word before it speaks of secrets."""
    if _UUID.fullmatch(word) or not mixes(word, 20) or word.count("/") > 2:
        return False
    longest = max(re.split(r"[-_/+=]", word), key=len)
    if len(longest) < 12:
        return False
    bits = entropy(longest)
    return bits >= 2.7 if _HEX.fullmatch(longest) else bits >= 3.2 and mixes(longest, 12)


def entropy(text: str) -> float:
    """Bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def is_key(word: str) -> bool:
    """Does a word look like a key of any issuer by itself."""
    if _HEX.fullmatch(word):
        return False
    if (hashed := _HASHED.fullmatch(word)) is not None:
        return hashed["issuer"] not in _PLAIN_IDS
    if _SPLIT.split(word)[0].lower() in _PLAIN_IDS:
        return False
    hit = _ISSUED.fullmatch(word)
    return (hit is not None and _is_drawn(hit["rest"], 20)) or (len(word) >= 30 and _is_drawn(word, 30))


def _is_drawn(word: str, least: int) -> bool:
    """Does a word change between small letters, capitals and digits as no name does."""
    parts = [
        part for part in _SPLIT.split(word) if len(part) < 24 or not _HEX.fullmatch(part.removeprefix("0x"))
    ]
    letters = "".join(parts)
    size = len(letters)
    if size < least - 4 or len(parts) - 1 > max(3, len(word) // 8) or max(map(len, parts)) < 6:
        return False
    if _HEX.fullmatch(letters) or _NUMBERS.fullmatch(letters):
        return False
    if any(len(part) >= 20 and _turns(part) for part in parts):
        return True
    # names are joined with dots, and their words in one case; keys are not
    has_cases = letters.lower() != letters and letters.upper() != letters
    return "." not in word and (has_cases or max(map(len, parts)) >= 16) and _turns(letters)


def _turns(letters: str) -> bool:
    """Are small letters, capitals and digits mixed, and few of them in pieces that can be said."""
    size = len(letters)
    groups = _DIGITS.findall(letters)
    digits = sum(map(len, groups))
    changes = len(_CHANGE.findall(letters))
    if letters.lower() != letters and letters.upper() != letters:
        spelt = sum(len(piece) for piece in _SPELT.findall(letters) if _VOWEL.search(piece))
        most = 0.6 if len(groups) == 1 else 0.72  # a name may end with a number
        return digits >= 1 and changes >= 0.3 * size and spelt < most * (size - digits)
    return digits >= 0.07 * size and changes >= 0.14 * size and len(groups) >= 2


# ---- Names of somebody, and words of everybody ---------------------------------------------------

# Accounts that any machine has: they tell of nobody.
GENERIC = frozenset(
    "root user users ubuntu admin administrator runner app node vscode agent sandbox docker test tester "
    "guest "
    "nobody public shared default git www www-data daemon bin sys sync mail ec2-user centos debian fedora pi "
    "jovyan codespace circleci jenkins gitpod workspace model assistant system you me name username "
    "home dev staff wheel sudo users devuser appuser nonroot coder openhands swe-agent oracle postgres mysql "
    "redis nginx hadoop spark airflow linuxbrew".split()
)
# Accounts of services, names of things, and names that examples give.
_SERVICE = re.compile(
    r"(?i).*(?:user|group|test|admin|example|daemon|foo|owner|name|data|model|ckpt|cache|tmp"
    r"|conda|bench|imagenet|llama|qwen).*|(?:res|alex)net\d*|coco\d*|bert|bar|demo\d*|systemd.*|_.*|[ug]id"
         r"|www.*|elasticsearch|kafka|zookeeper"
    r"|prometheus|grafana|rabbitmq|tomcat\d*|apache\d*|httpd|hdfs|hive|yarn|vagrant|deploy(?:er)?|mongodb?"
    r"|memcached?|sshd|messagebus|gitlab|backup|postfix|dovecot|bind|ntp|chrony|solr|cassandra|jupyter"
    r"|slurm|munge|ceph|nfsnobody|alice|bob"
)
_LEAST = 4  # letters of a name that stands alone
_LONG = 6  # signs of one that has hardly any letters, but digits
_TELLING = 3  # letters from which on a part of a name may tell of someone


@cache
def _plain_words() -> frozenset[str]:
    """Words that anyone writes: English ones, and names of tools."""
    listed = Path(__file__).with_name("words.txt").read_text(encoding="ascii").split()
    return frozenset(listed) | GENERIC


def is_plain(word: str) -> bool:
    """Is it a word that anyone writes, so that it tells of nobody where it stands alone."""
    lowered, words = word.lower(), _plain_words()
    stems = (lowered, lowered.removesuffix("s"), lowered.removesuffix("es"), lowered.removesuffix("ed"))
    return not words.isdisjoint(stems) or lowered.removesuffix("ing") in words


def is_account(name: str) -> bool:
    """Does the name of an account tell of someone."""
    name = name.lower()
    return len(name) > 2 and name not in GENERIC and not is_plain(name) and not _SERVICE.fullmatch(name)


def is_telling(kind: str, value: str) -> bool:
    """Is it a name that can be known again by itself, wherever it stands."""
    parts = _PARTS.findall(value)
    telling = [part for part in parts if len(part) >= _TELLING]
    if kind == "PERSON":
        return len(parts) > 1 and not all(map(is_plain, telling))
    if value.lower() in GENERIC or not parts:
        return False
    if not telling:
        return len(value) >= _LONG
    return sum(map(len, parts)) >= _LEAST and not all(map(is_plain, telling))
