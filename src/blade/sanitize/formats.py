"""Find secrets by their form: keys, tokens and webhooks as their issuers make them."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What issuers put before their secrets, and what follows. Each begins a word and is bounded, so that a long
# text costs one look a character. Every kind of secret is told as SECRET: the kind of a leak helps a finder.
_FORMS = (
    r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA|AGPA|AIDA|AROA)[0-9A-Z]{16}(?![0-9A-Za-z])",  # Amazon key ids
    r"gh[pousr]_[A-Za-z0-9]{30,255}",
    r"github_pat_[A-Za-z0-9_]{22,255}",
    r"gl(?:pat|dt|ft|soat|rt|cbt|ptt|imt|agent|oas|ffct)-[A-Za-z0-9_\-]{20,300}",
    r"sk-(?:proj-|svcacct-|admin-|ant-|or-|lf-|None-)?[A-Za-z0-9_\-]{20,250}",  # providers of models
    r"(?:sk|rk|pk|whsec)_(?:live_|test_|prod_)?[A-Za-z0-9]{24,250}",
    r"xox[abeoprs]-[A-Za-z0-9\-]{10,250}|xapp-[A-Za-z0-9\-]{20,250}|xoxe\.[A-Za-z0-9.\-]{20,250}",
    r"AIza[0-9A-Za-z_\-]{35}|ya29\.[0-9A-Za-z_\-]{20,300}|GOCSPX-[0-9A-Za-z_\-]{20,60}"
    r"|1//0[0-9A-Za-z_\-]{30,200}",
    r"hf_[A-Za-z0-9]{30,60}|api_org_[A-Za-z0-9]{30,60}|nvapi-[A-Za-z0-9_\-]{20,120}",
    r"gsk_[A-Za-z0-9]{20,120}|r8_[A-Za-z0-9]{20,60}|xai-[A-Za-z0-9]{20,120}|pplx-[A-Za-z0-9]{20,120}",
    r"tgp_v1_[A-Za-z0-9_\-]{20,80}|fw_[A-Za-z0-9]{20,60}|csk-[A-Za-z0-9]{20,80}|jina_[A-Za-z0-9_]{30,90}",
    r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,90}|wandb_v1_[A-Za-z0-9_]{20,120}|ak-[A-Za-z0-9]{22,40}(?![\w\-])",
    r"npm_[A-Za-z0-9]{30,80}|pypi-[A-Za-z0-9_\-]{30,300}|rubygems_[a-f0-9]{40,60}|dckr_(?:pat"
    r"|oat)_[\w\-]{20,60}",
    r"SG\.[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{32,64}|(?:AC|SK)[a-f0-9]{32}(?![0-9A-Za-z])",
    r"key-[a-f0-9]{32}(?![0-9A-Za-z])|[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])",
    r"sq0(?:csp|atp|idp)-[0-9A-Za-z_\-]{22,60}|EAAA[A-Za-z0-9_\-]{50,80}|EAA[A-Za-z0-9]{80,300}",
    r"dapi[a-f0-9]{32}|do[opr]_v1_[a-f0-9]{40,80}|shp(?:at|ca|pa|ss|ua)_[a-fA-F0-9]{32}",
    r"hv[sbr]\.[A-Za-z0-9_\-]{20,300}|s\.[A-Za-z0-9]{24}(?![0-9A-Za-z])"
    r"|[A-Za-z0-9]{14}\.atlasv1\.[\w\-]{50,90}",
    r"glsa_[A-Za-z0-9_]{30,60}|glc_[A-Za-z0-9+/=]{30,300}|lin_api_[A-Za-z0-9]{30,60}|ntn_[A-Za-z0-9]{40,60}",
    r"secret_[A-Za-z0-9]{40,50}|figd_[A-Za-z0-9_\-]{30,60}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|NRAK-[A-Z0-9]{27}",
    r"sntry[su]_[A-Za-z0-9+/=_\-]{30,300}|dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9]{30,60}",
    r"AKC[a-zA-Z0-9]{40,90}|cmVmd[A-Za-z0-9]{50,80}|CFPAT-[A-Za-z0-9_\-]{30,60}|sbp_[a-f0-9]{40}",
    r"ATATT3[A-Za-z0-9_\-=]{50,250}|ATCTT3[A-Za-z0-9_\-=]{50,250}|tskey-[a-z]{2,10}-[A-Za-z0-9\-]{10,80}",
    r"eyJ[A-Za-z0-9_\-]{10,2000}\.eyJ[A-Za-z0-9_\-]{10,8000}(?:\.[A-Za-z0-9_\-]{0,2000})?",  # web tokens
    r"[MNO][A-Za-z\d_\-]{23,25}\.[A-Za-z\d_\-]{6}\.[A-Za-z\d_\-]{27,40}(?![\w\-])",
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,70}|ops_eyJ[A-Za-z0-9+/=]{50,2000}|pul-[a-f0-9]{40}",
)
_MORE = (
    r"(?:LTAI[A-Za-z0-9]{16,24}|EZ[AT]K[A-Za-z0-9]{54})(?![0-9A-Za-z])|FLW(?:SEC"
    r"|PUB)K(?:_TEST)?-[a-h0-9]{12,40}(?:-X)?",
    r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,160}|sgp_(?:[a-f0-9]{16}_|local_)?[a-f0-9]{40}"
    r"|xkeysib-[a-f0-9]{64}-\w{16}",
    # what is used, and that it opens something: `acme_live_...`, `acme-production-...`, `acme_pat_...`
    r"(?:[a-z]{2,12}[_\-])?(?:live|test|prod|production|sandbox"
    r"|development)[_\-](?:pub_)?[a-f0-9\-]{31,64}(?![\w.])",
    r"[a-z]{2,10}_(?:pat|aat|sat|tok|tkn|token|key|apikey|secret)_[A-Za-z0-9]{16,200}(?!\w)",
)
# The same, where a letter before does not hide them: their beginnings are no part of any word.
_GLUED = re.compile(
    r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])|gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{36,255}"
    r"|glpat-[A-Za-z0-9_\-]{20}|xox[abeoprs]-[0-9A-Za-z\-]{24,250}|AIza[0-9A-Za-z_\-]{35}(?![0-9A-Za-z])"
    r"|sk-(?:proj|ant|svcacct)-[A-Za-z0-9_\-]{32,250}|hf_[A-Za-z0-9]{34}(?![0-9A-Za-z])"
    r"|nvapi-[A-Za-z0-9_\-]{40,120}"
)
# Beginnings of tokens that no word has, and what more of the same stands before what is drawn.
_HEADS = {
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hf_", "nvapi-"), ""),
    **dict.fromkeys(("AIza", "AKIA", "npm_", "pypi-", "sk-proj-"), ""),
    "sk-ant-": "[a-z0-9]{3,6}-",
    "xox": "[abeoprs]-",
}
_CUT = re.compile(
    rf"(?<![A-Za-z0-9])(?:{'|'.join(re.escape(head) + more for head, more in _HEADS.items())}"
    r"|sk-|SG\.|eyJ)(?P<rest>[A-Za-z0-9_\-]{6,60})(?=…|\.{3}|\[…)"
)
_TORN = re.compile(
    rf"(?<![A-Za-z0-9])(?P<head>(?:{'|'.join(map(re.escape, _HEADS))})[A-Za-z0-9_\-]{{1,200}})"
    r"\r?\n[ \t>+|]{0,8}(?P<rest>[A-Za-z0-9_\-]{4,200})"
)
_ELLIPSIS = re.compile(r"[….](?:(?<=…)|\.{2,})")
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_AZURE = re.compile(r"(?<![\w~.])[\w~.]{3}\dQ~[\w~.\-]{31,34}(?![\w~])")
_LOGIN_TOKEN = re.compile(r"(?<![\w~])sha256~[A-Za-z0-9_\-]{43}(?![\w\-])")
_APP_TOKEN = re.compile(r"(?<!\d)\d{15,16}\\?\|[A-Za-z0-9_\-]{27,40}(?![A-Za-z0-9_\-])")
_FORM = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{'|'.join((*_FORMS, *_MORE))})")
Hit = tuple[int, int, str]
RUN = re.compile(r"[A-Za-z0-9_\-+/=.]{20,}")  # where a secret, or something encoded, can stand
_HAS_DIGIT = re.compile(r"\d")
_PART = re.compile(r"[-_./]")
# Beginnings that words have too: what follows must look drawn at random.
_LOOSE = (
    "sk-",
    "ak-",
    "csk-",
    "pk_",
    "sk_",
    "rk_",
    "fw_",
    "secret_",
    "s.",
    "key-",
    "xai-",
    "EAA",
    "pypi-",
    "1//",
)
_TURN = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_GLUE = 320  # letters of a run within which a glued secret begins and ends
_MIXED = re.compile(r"[a-z][A-Z][a-z]?[A-Z]")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----[^\x00]{0,12000}?"
    r"-----END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
)
_TORN_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\+[rnt]"
    r"|[\s+A-Za-z0-9/=>\"',:.\-]){0,12000}"
)
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d:[^\x00]{0,8000}?Private-MAC: ?[0-9a-f]{20,80}")
_WEBHOOK = re.compile(
    r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/\-]{10,200}"
    r"|discord(?:app)?\.com/api/webhooks/\d{5,30}/[A-Za-z0-9_\-]{20,120}"
    r"|[A-Za-z0-9\-]{1,60}\.webhook\.office\.com/[A-Za-z0-9@/\-]{20,300}"
)
_TELEGRAM = re.compile(r"(?<!\d)\d{8,10}:[A-Za-z0-9_\-]{35}(?![A-Za-z0-9_\-])")
_ACCOUNT = re.compile(r"(?i)\b(?:AccountKey|SharedAccessKey|SharedSecretValue)=([A-Za-z0-9+/]{20,100}={0,2})")


def forms_in(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where a run of characters holds a secret of a known form."""
    for hit in _FORM.finditer(text, start, end):
        if _is_made_up(hit[0]):
            yield hit.span()
            if hit[0].startswith(("AKIA", "ASIA")):
                yield from _paired(text, *hit.span())
    for hit in _GLUED.finditer(text, start, min(end, start + _GLUE)):
        if _is_made_up(hit[0]):
            yield hit.span()


def _paired(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The secret that stands beside the id of an Amazon key."""
    for hit in _AWS_SECRET.finditer(text, max(0, start - 120), end + 120):
        if _HAS_DIGIT.search(hit[0]) and hit[0].lower() != hit[0] != hit[0].upper():
            yield hit.span()


def cut_in(text: str) -> Iterator[Hit]:
    """Secrets that an ellipsis cuts short: what is left of them is known by its beginning."""
    for cut in _ELLIPSIS.finditer(text):
        before = text[cut.start() - 1 : cut.start()]
        if not (before.isalnum() or before in ("_", "-", "[")):
            continue
        hit = _CUT.search(text, max(0, cut.start() - 80), cut.end())
        rest = hit["rest"] if hit else ""
        if hit and _HAS_DIGIT.search(rest) and len(_TURN.findall(rest)) >= 2:
            yield *hit.span(), "SECRET"


def torn_in(text: str) -> Iterator[Hit]:
    """Secrets that a line break tears: neither half has their form, both together do."""
    if not any(head in text for head in _HEADS):
        return
    for hit in _TORN.finditer(text):
        whole = hit["head"] + hit["rest"]
        form = _FORM.match(whole)
        is_drawn = _HAS_DIGIT.search(hit["rest"]) and not hit["rest"].isdigit()
        if form and is_drawn and not _FORM.match(hit["head"]) and _is_made_up(form[0]):
            yield hit.start(), hit.end() - (len(whole) - form.end()), "SECRET"


def login_token_at(text: str, at: int) -> Iterator[Hit]:
    """The token of a user of OpenShift, which only looks like a hash."""
    hit = _LOGIN_TOKEN.match(text, at)
    if hit is not None:
        yield *hit.span(), "SECRET"


def azure_at(text: str, at: int) -> Iterator[Hit]:
    """The secret of an Azure client, known by its middle."""
    hit = _AZURE.match(text, max(0, at - 4))
    if hit is not None:
        yield *hit.span(), "SECRET"


def _is_made_up(told: str) -> bool:
    """Is it drawn by a machine, rather than written as words: `sk-learn-preprocessing-pipeline-v2`."""
    if not told.startswith(_LOOSE):
        return len(set(told)) >= 8 and (_HAS_DIGIT.search(told) is not None or told.lower() != told)
    for part in _PART.split(told):
        if len(part) >= 10 and _HAS_DIGIT.search(part) and not part.isdigit():
            return True
        if len(part) >= 16 and _MIXED.search(part):
            return True
    return False


def private_key_at(text: str, at: int) -> Iterator[Hit]:
    """A private key, whole or torn."""
    hit = _PRIVATE_KEY.match(text, at) or _TORN_KEY.match(text, at)
    if hit is not None:
        yield *hit.span(), "SECRET"


def putty_at(text: str, at: int) -> Iterator[Hit]:
    """A private key as PuTTY keeps it."""
    hit = _PUTTY.match(text, at)
    if hit is not None:
        yield *hit.span(), "SECRET"


def webhook_at(text: str, at: int) -> Iterator[Hit]:
    """An address that anyone who has it may post to."""
    hit = _WEBHOOK.search(text, max(0, at - 80), at + 400)
    if hit is not None and hit.start() <= at:
        yield *hit.span(), "SECRET"


def account_at(text: str, at: int) -> Iterator[Hit]:
    """The key in a connection string."""
    hit = _ACCOUNT.match(text, at)
    if hit is not None:
        yield *hit.span(1), "SECRET"


def numbered_near(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The token of a bot or an application, whose number stands before the run."""
    pattern = _TELEGRAM if text[start - 1] == ":" else _APP_TOKEN
    hit = pattern.search(text, max(0, start - 18), min(len(text), end + 1))
    return hit.span() if hit else None
