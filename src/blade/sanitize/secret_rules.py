"""Find secrets by what stands beside them: a table of rules by mark, and readers of what no pattern reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from blade.sanitize.lexicon import (
    GENERIC,
    NAME_CHARS,
    SECRET_WORD,
    is_account,
    is_chosen,
    is_hard,
    is_no_secret,
    mixes,
    secret_name,
    secret_value,
)

Hit = tuple[int, int, str]  # from, to, kind
Detector = Callable[[str, int], Iterator[Hit]]
# What the groups of a pattern hold; `key` must be the name of a secret, other groups only help the pattern.
KINDS = {"value": "SECRET", "user": "USER", "group": "USER", "host": "HOST", "ip": "IP", "person": "PERSON"}


QUOTE = r"\\{0,3}[\"']?"  # `<q>` in a pattern: a quotation mark, or none, escaped or not
_AHEAD = 600  # letters after a mark within which a match that begins before it ends


class Rule(NamedTuple):
    """One look where a mark stands: what is there, and which of its values are private."""

    marks: str  # in lower case, each within one word; where one stands we look
    pattern: str
    accept: Callable[[str], object] = lambda _: True
    left: str = ""  # letters that may stand between the beginning of a match and the mark
    reach: int = 0  # how many of them; else how far before the mark, on its line, the match may begin
    begins: str = ""  # the match begins at the last of these signs before the mark
    after: str = ""  # what must stand before the match
    ends: str = ".!?"  # signs at the end of a value that are the sentence's
    is_sure: bool = False  # true by its form, and so even where a tool or a model is named
    is_user: Callable[[str], object] = lambda name: name.lower() not in GENERIC


def detector(rule: Rule) -> Detector:
    """Look as a rule says."""
    pattern = re.compile(rule.pattern.replace("<q>", QUOTE))
    after = re.compile(rule.after) if rule.after else None
    groups = sorted((group for group in pattern.groupindex if group in KINDS),
         key=lambda name: name != "value")

    def match(text: str, place: int) -> re.Match[str] | None:
        first = max(0, place - rule.reach)
        if rule.left:
            window = text[first:place]
            return pattern.match(text, place - len(window) + len(window.rstrip(rule.left)))
        if rule.begins:
            start = max(text.rfind(sign, first, place) for sign in rule.begins)
            return pattern.match(text, start) if start >= 0 else None
        if not rule.reach:
            return pattern.match(text, place)
        hits = pattern.finditer(text, text.rfind("\n", first, place) + 1 or first, place + _AHEAD)
        return next((hit for hit in hits if hit.end() > place), None)

    def look(text: str, place: int) -> Iterator[Hit]:
        hit = match(text, place)
        if hit is None or hit.start() > place:
            return
        if after is not None and not after.search(text[max(0, hit.start() - 120) : hit.start()]):
            return
        key = hit["key"] if "key" in pattern.groupindex else None
        if key is not None and not secret_name(key.lstrip("-+")):
            return
        for group in groups:
            value = hit[group]
            if value is None:
                continue
            kind = KINDS[group]
            value = value.rstrip(rule.ends if kind == "SECRET" else ".-" if kind in ("USER", "HOST") else "")
            is_private = rule.is_user(value) if kind == "USER" else rule.accept(value)
            if kind == "SECRET" and not (value and is_private and (key is None or secret_value(key, value))):
                return  # whoever it belongs to stands there for an example
            if is_private:
                yield hit.start(group), hit.start(group) + len(value), kind

    return look


def _has_digit(value: str) -> bool:
    return any(sign.isdigit() for sign in value)


def _is_told(value: str) -> bool:
    return is_chosen(value) and _has_digit(value)


def _is_given(value: str) -> bool:
    return not is_no_secret(value)


def _is_mixed(value: str) -> bool:
    return mixes(value, 8)


def _is_mixed_word(value: str) -> bool:
    return not is_no_secret(value) and mixes(value, 8)


def _is_sent(value: str) -> bool:
    return mixes(value, 8) or (len(value) >= 20 and value.endswith("="))


def _is_cookie(value: str) -> bool:
    return "=" in value and mixes(value.partition("=")[2], 8)


def _is_login(value: str) -> bool:
    return not is_no_secret(value) and not value.isdigit()


_ASKED = frozenset(
    "erforderlich falsch fehlt vergessen pflichtfeld obligatorio requerida requerido incorrecta "
    "incorrecto obligatoire requis incorrecte invalide errada ausente".split()
)
_NAME = r"[A-Za-z_][\w.\-]{1,31}"
_ENDS = r"(?=[\s;&|\"'`)\\]|$)"
_SECRETS = "passw pwd secret token key auth credential _pass _pw"
_FOREIGN = "kennwort contrase senha 密码 密碼 口令 пароль パスワード 비밀번호"
_KEY_BLOCK = r"(?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_STORED = r"-(?:(?:src|dest|new|old|trust)?(?:key)?(?:store|key|src|dest|new|old)pass(?:word)?|passphrase)"

RULES = (
    # ---- by their form
    Rule("-----begin", rf"(?P<value>-----BEGIN {_KEY_BLOCK}(?:[^\x00]{{0,12000}}?-----END {_KEY_BLOCK}|"
         rf"(?:\\+[rnt]|[\s+A-Za-z0-9/=>\"',:.\-]){{0,12000}}))", ends="", is_sure=True),
    Rule("putty-user", r"(?P<value>PuTTY-User-Key-File-\d:(?:[^\x00]{0,12000}?Private-MAC: ?[0-9a-f]{20,80}|"
         r"[^\x00]{0,4000}?Private-Lines: ?\d+(?:\s+[A-Za-z0-9+/=]{16,80})+))", ends="", is_sure=True),
    Rule("private-lines", r"Private-Lines: ?\d{1,3}\s+(?P<value>[A-Za-z0-9+/=]{16,80}(?:\s+"
         r"[A-Za-z0-9+/=]{16,80})*)", ends=""),
    Rule("webhook hooks.slack", r"(?P<value>hooks\.slack\.com/(?:services|workflows|triggers)/"
         r"[A-Za-z0-9_/\-]{10,200}|discord(?:app)?\.com/api/webhooks/\d{5,30}/[A-Za-z0-9_\-]{20,120}|"
         r"[A-Za-z0-9\-]{1,60}\.webhook\.office\.com/[A-Za-z0-9@/\-]{20,300})", reach=80, ends="",
         is_sure=True),
    Rule("accountkey= sharedaccesskey= sharedsecretvalue=", r"(?i:AccountKey|SharedAccessKey"
         r"|SharedSecretValue)=(?P<value>[A-Za-z0-9+/]{20,100}={0,2})", is_sure=True),
    Rule("q~", r"(?<![\w~.])(?P<value>[\w~.]{3}\dQ~[\w~.\-]{31,34})(?![\w~])", left=NAME_CHARS + "~.",
         reach=4, ends=""),
    Rule("sha256~", r"(?<![\w~])(?P<value>sha256~[A-Za-z0-9_\-]{43})(?![\w\-])", ends=""),
    Rule("$1$ $2 $5$ $6$ $7$ $y$ $gy$ $p$ $h$ $apr1$ $argon2 $scrypt$ $pbkdf2", r"(?P<value>\$(?:[1567y]|gy"
         r"|2[abxy]?|apr1|argon2i?d?|scrypt|pbkdf2[\w\-]{0,10}|P|H)\$(?:[\w=,.\-/]{1,64}\$){0,3}"
         r"[A-Za-z0-9./+]{20,128}={0,2})", lambda value: _has_digit(value[4:]), ends=""),
    Rule("wifi:", r"(?i:WIFI):(?=[^\n]{0,200}?[TS]:)(?:[^\n;]{1,80};){0,4}?P:(?P<value>(?:[^;\\\n]|"
         r"\\.){4,80});", ends=""),
    # ---- headers, cookies, queries, logins
    Rule("token key auth", r"(?i)\b(?:(?:proxy-)?authorization|bearer|basic|x-api-key|x-auth-token|x-"
         r"[a-z\-]{2,30}-(?:token|key)|api-key)<q>[ ]{0,2}[:=]?[ ]{0,2}<q>(?:(?:bearer|basic|token|digest"
         r"|negotiate|apikey)[ ]{1,2})?(?P<value>[A-Za-z0-9_\-.~+/=:]{8,4000})", _is_sent, NAME_CHARS, 32,
         ends="", is_sure=True),
    Rule("token key auth bearer basic", r"(?i)\b(?:bearer|basic)[ ]{1,2}(?P<value>"
         r"[A-Za-z0-9_\-.~+/=]{12,4000})", _is_sent, ends="", is_sure=True),
    Rule("authorization", r"(?i)authorization<q>\]?\s{0,2}[:=,]\s{0,2}<q>(?:bearer|basic|token)\s{1,2}"
         r"(?P<value>[\w\-.~+/=]{6,200})(?=\\{0,3}[\"']|\s{0,8}(?:$|\r|\n))", is_chosen),
    Rule("cookie", r"(?i)\b(?:set-)?cookie<q>[ ]{0,2}[:=][ ]{0,2}<q>(?P<value>[^\r\n\"'\\]{8,2000})",
         _is_cookie, ends=""),
    Rule("passw pwd secret token key auth credential session sign sig= code= sid= jwt= ticket= sas= state=",
         r"(?i)[?&;](?:amp;)?(?:access_token|auth|key|sig|signature|code|token|apikey|api_key|secret"
         r"|password|pwd|state|sas|sv|se|x-amz-(?:signature|credential|security-token)|x-goog-signature"
         r"|session|sid|jwt|ticket)=(?P<value>[^&\s\"'<>#\\)\]]{6,4000})", _is_mixed, reach=28, begins="?&;",
         ends="", is_sure=True),
    Rule("-u", r"(?<!\S)(?:-u|--(?:proxy-)?user)[ =]{0,3}\\{0,7}[\"']?[^\s:\"'$\\]{1,64}:(?P<value>"
         r"[^\s\"':/$\\]{4,200})(?![:/])", _is_login, "-proxy", 8, ends=""),
    Rule("curl", r"curl\s(?:[^\n|;]{0,300}?\s)?(?:-[a-zA-Z]{0,6}u|--(?:proxy-)?user)[ =]{0,2}<q>"
         r"[^\s:\"'$\\]{1,64}:(?P<value>[^\s\"'$\\]{3,200})", _is_login, ends=""),
    Rule("auth", r"auth\s?=\s?\(\s?[\"'][^\"'\n]{1,64}[\"'],\s?[\"'](?P<value>[^\"'\n]{4,200})[\"']",
         _is_login, ends=""),
    Rule("--pass --token --secret --api", r"(?<!\S)(?:--?(?:password|passwd|token|secret|api-?key))[ =]"
         r"(?P<value>[^\s\"']{6,200})", _is_mixed_word, ends="", is_sure=True),
    # ---- what a person chose, where an option, a statement or a sentence tells of it
    Rule("passw --pass -pass key token secret -pw passphrase", r"(?<![\w\-])--?(?:[a-z]{1,16}-){0,2}"
         r"(?:password|passwd|passphrase|pass|pw|api-?key|access-?key|secret-?key|token|secret)(?: {1,2}|=)"
         r"<q>(?P<value>[^\s\"'`,;|\\\]]{4,200})", is_chosen, NAME_CHARS, 40),
    Rule("storepass keypass srcpass destpass newpass oldpass -passphrase -passwd",
         rf"(?<![\w\-]){_STORED}(?: {{1,2}}|[=:])<q>(?P<value>[^\s\"'`,;|\\\]$]{{4,200}})", is_chosen,
         NAME_CHARS, 24),
    Rule("/pass /p: /user", r"(?i)/(?:pass|password|p):<q>(?P<value>[^\s\"'`,;|\\\]$]{4,200})", is_chosen),
    Rule("--from-literal", r"--from-literal[= ]<q>(?P<key>[\w.\-]{1,80})=<q>(?P<value>[^\s\"'\\$]{3,400})",
         ends=""),
    Rule("--from-literal", r"--from-literal[= ]<q>[\w.\-]{1,80}=<q>(?P<value>[^\s\"'\\$]{4,400})", is_chosen,
         after=r"(?i)create\s+secret\b[^\n]{0,100}$", ends=""),
    Rule("securestring", r"(?i)(?:ConvertTo-SecureString|SecureString)\s+(?:-String\s+|-AsPlainText\s+"
         r"|-Force\s+){0,3}\(?<q>(?P<value>[^\s\"'$\\|()\-][^\s\"'$\\|()]{3,200})", _is_given,
         "convertoCONVERTO-", 12, ends=""),
    Rule("pwd= password=", r"(?i)(?:pwd|password)=(?P<value>[^;'\"\s=]{4,100})(?=[;'\"]|$)", is_chosen,
         after=r"(?i)(?:server|host|uid|user id|user|data source|driver|dsn|database)=[^\n]{0,100};\s?$"),
    Rule("psk", r"(?<![\w\-])psk\s?=\s?<q>(?P<value>[^\s\"'\\]{8,64})", is_chosen),
    Rule("setx", r"(?i:setx)\s+[\"']?(?P<key>\w{2,60})[\"']?\s+[\"']?(?P<value>[^\s\"'%$]{4,200})",
         is_chosen),
    Rule("passw", r"(?i:password)\s{1,3}(?:=\s?)?\\{0,3}(?P<mark>[\"'])(?P<value>[^\"'\s\\]{4,200})\\{0,3}(?P=mark)", _is_given,
         ends="", after=r"(?i)\b(?:create|alter|set|with|encrypted)\b[^\n;]{0,80}$"),
    Rule("identified", r"(?i)identified\s+(?:with\s+\S{1,40}\s+)?(?:by|as)\s+(?:password\s+)?\\{0,3}[\"']"
         r"(?P<value>[^\"'\s\\]{4,200})", is_chosen),
    Rule("chpasswd", r"chpasswd\s{0,3}(?:-\w\s+)?<<<\s{0,3}<q>(?P<user>[\w.\-]{1,32}):(?P<value>"
         r"[^\s\"'|:$\\]{4,100})", _is_given, ends=""),
    Rule("chpasswd", r"(?P<user>[\w.\-]{1,32}):(?P<value>[^\s\"'|:$]{4,100}?)(?:\\+n)?<q>\s{0,3}\|\s{0,3}"
         r"(?:sudo\s+(?:-\S+\s+)?)?\S{0,20}chpasswd", _is_given, reach=200, ends=""),
    Rule("sudo", r"(?:echo|printf)\s+(?:-\w+\s+){0,2}(?:\\{0,3}[\"']%s\\+n\\{0,3}[\"']\s+)?<q>(?P<value>"
         r"[^\s\"'|$\\]{3,100})(?:\\+n)?<q>\s{0,3}\|\s{0,3}sudo\s+(?:-\S+\s+){0,4}?-\w{0,4}S", _is_given,
         reach=200, ends=""),
    Rule("sudo", r"sudo\s+(?:-\S+\s+){0,4}?-\w{0,4}S\b[^\n|;]{0,80}<<<\s{0,3}<q>(?P<value>"
         r"[^\s\"'|$\\]{3,100})", _is_given, ends=""),
    Rule("pass: pass= pw: pw=", r"(?i)(?<![^\W_])(?:pass|pw)\s?[:=]\s?[\"'`]?(?P<value>"
         r"[A-Za-z0-9!@#%&*+?\-]{6,40})(?![\w./:(])", _is_told, after=r"(?i)\b(?:user(?:name)?|login|account"
         r"|e?mail)\b[^\n]{0,60}$"),
    Rule(f"passw {_FOREIGN} mot", r"(?i)(?:(?:passwort|kennwort|contrase(?:ñ|n)a|mot de passe|senha|密码|密碼|口令"
         r"|пароль|パスワード|비밀번호)[\"'*]{0,2}\s{0,2}(?:ist\s|[:=]|：)|password[\"'*]{0,2}\s{0,2}：)\s{0,2}"
         r"[\"'`*]{0,2}(?P<value>[!-~]{4,100})",
         lambda value: is_chosen(value) and value.lower() not in _ASKED, ends=".,;!?\"'`*"),
    Rule("pin passcode otp verification one-time 2fa mfa security", r"(?i)(?<![\w\-.])(?:PIN(?:[ \-]?(?:code|number))?"
         r"|passcode|OTP|(?:verification|one-time|2FA|MFA|security)[ ]code)(?:[ ]{0,2}[:=]|[ ]?\((?=\d{4,8}\))|[ ]"
         r"(?:is|was|has been)(?: now)?(?: (?:re)?(?:set|changed) to)?:?|(?: (?:re)?set| changed)? to:?)"
         r"[ ]{0,2}\\{0,3}[\"'`*]{0,2}(?P<value>\d{4,8})(?![\w\-:/%]|\.\d)"),
    Rule("-p", r"(?<=\s)-[pP]\s{1,2}<q>(?P<value>[^\s\"'$\\]{4,100})", is_chosen,
         after=r"\s(?:-u|--user(?:name)?)[ =]\S{1,80}\s[^\n|;]{0,30}$"),
    Rule("passw", r"(?i)(?:set|change|reset|update|make|check)_?passw(?:or)?d\(\s?(?:[^()\n]{0,60},\s?)?"
         r"[\"'](?P<value>[^\"'\n\\]{4,100})[\"']", is_chosen, NAME_CHARS, 20),
    Rule("login(", r"login\(\s?[\"'][^\"'\n]{1,80}[\"'],\s?[\"'](?P<value>[^\"'\n\\]{4,100})[\"']",
         is_chosen),
    Rule("send sendline", r"send(?:line)?\s{1,2}(?:--\s)?\\{0,3}[\"'](?P<value>[^\"'\s\\$]{4,100})",
         is_chosen, after=r"(?i)passw\w*[^\n]{0,20}\n?[^\n]{0,30}$"),
    Rule("phrase mnemonic words", r"(?i)(?:(?:seed|recovery|backup|secret|mnemonic)[ _\-]?(?:phrase|words)"
         r"|mnemonic)[\"'*]{0,2}[ ]?(?:\w{1,8}[ ]){0,2}(?:is|was|[:=])\s{0,3}\\{0,3}[\"'`]?(?P<value>"
         r"(?-i:(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8}))(?![a-z])", reach=12, ends=""),
    Rule("login credential account creds", r"(?i)\b(?:login|credentials?|account|creds)\b(?: (?:is|are|with"
         r"|as|for|details|data|via)){0,2}(?: ?[:=])?\s{1,3}[\"'`(]?(?P<user>[A-Za-z][\w.@\-]{1,40})"
         r"[\"'`]?(?: ?/ ?|:)[\"'`]?(?P<value>[^\s/,;\"'`)]{5,60})", _is_told, is_user=is_account),
    Rule("admin root", r"(?i)(?<![\w/.\-])(?:admin|administrator|root)[\"'`]? / [\"'`]?(?P<value>"
         r"[^\s/,;\"'`)]{5,60})", _is_told),
    # ---- files of settings
    Rule("<input", r"(?i)<input\b(?=[^<>]{0,400}?\btype\s?=\s?<q>password)[^<>]{0,400}?\bvalue\s?=\s?<q>"
         r"(?P<value>[^\"'\s<>\\]{3,200})", _is_given, ends=""),
    Rule("variable", r"variable\s+\\{0,3}\"(?P<key>[\w\-]{2,80})\\{0,3}\"\s{0,3}\{[^{}]{0,600}?\bdefault"
         r"\s{0,8}=\s{0,3}\\{0,3}\"(?P<value>[^\"\n\\]{4,400})", _is_given, ends=""),
    Rule("passw pass: pwd secret token key: credential", r"(?P<key>[\w.\-]{2,64})[\"']?[ \t]{0,3}:[ \t]{0,3}"
         r"[|>][+\-]?\d?[ \t]{0,8}\r?\n(?P<pad>[ \t]{1,40})(?P<value>[^\s#][^\n]{2,400}(?:\n(?P=pad)"
         r"[^\n]{1,400}){0,100})", _is_given, NAME_CHARS + ".", 64, ends="\r\n"),
    Rule("requirepass masterauth community enable", r"(?i)\b(?:requirepass|masterauth|enable "
         r"(?:password|secret)(?: \d)?|snmp-server community)\s{1,4}[\"']?(?P<value>[^\s\"'$<>]{4,128})",
         is_chosen, reach=12),
    Rule("passw secret", r"(?i)\busername\s+(?P<user>\S{2,32})\s+(?:privilege\s+\d+\s+)?(?:password|secret)"
         r"\s+(?:\d\s+)?(?P<value>[^\s\"'<>]{4,128})", is_chosen, reach=80),
    Rule("login", r"login\s{1,8}(?P<user>\S{1,100})\s{1,8}password\s{1,8}(?P<value>[^\s\"'\\]{4,200})",
         _is_given, ends=""),
    Rule(":5432: :5433: :6432: :*:", r"(?<![^\s\"'>=+])[\w.*\-]{1,100}:(?:5432|5433|6432|\*):[\w*\-]{1,63}:"
         r"[\w*.\-]{1,63}:(?P<value>[^\s\"'\\:]{4,200})", _is_given, NAME_CHARS + ".*", 100, ends=""),
    Rule(_SECRETS, r"(?P<key>[\w\-]{2,80}?)\\{0,7}[\"']?,?\s{0,16}-?\s{0,4}\\{0,7}[\"']?value\\{0,7}[\"']?"
         r"\s{0,3}[=:]\s{0,3}\\{0,7}[\"']?(?P<value>[^\s\"'<>\\,;]{4,400})", left=NAME_CHARS, reach=40,
         ends=""),
    # ---- users whom commands name
    Rule("sudo", rf"sudo\s+(?:-[A-Zbehiknsv]{{1,5}}\s+){{0,3}}(?:-[a-zA-Z]{{0,3}}u\s?|--user[= ])"
         rf"(?P<user>{_NAME}){_ENDS}", is_user=is_account),
    Rule("chown", rf"chown\s+(?:-\S+\s+){{0,3}}(?P<user>{_NAME})(?:[:](?P<group>{_NAME})?(?=\s)|(?=\s+"
         rf"[\w.\-]*[/.~]))", is_user=is_account),
    Rule("useradd adduser usermod userdel deluser", rf"(?:useradd|adduser|usermod|userdel|deluser)\s+"
         rf"(?:(?:-[a-zA-Z]{{0,2}}[sdgGucekpb]|--(?:shell|home|home-dir|gid|groups|uid|comment|gecos"
         rf"|ingroup))[ =](?:\"[^\"\n]{{0,60}}\"|'[^'\n]{{0,60}}'|\S{{1,60}})\s+|-[\w\-]{{1,24}}\s+){{0,8}}"
         rf"(?P<user>{_NAME}){_ENDS}", is_user=is_account),
    Rule("whoami", rf"whoami[ \t]{{0,4}}\r?\n(?P<user>{_NAME})[ \t]{{0,4}}(?=\r?\n|$)", is_user=is_account,
         after=r"(?:^|\n)(?:[^\n]{0,60}[$#>%+] ?)?$"),
    Rule("/scratch", r"(?<=[\W_])/scratch\d?/(?P<user>[a-z][\w.\-]{1,31})(?=/)", is_user=is_account),
    Rule("ssh sftp", rf"(?:ssh|sftp)\s(?:[^\n|;]{{0,120}}?\s)?-l\s{{0,2}}(?P<user>{_NAME})(?=\s)",
         is_user=lambda name: name not in GENERIC),
)  # fmt: skip


# No mark of one word: too many words hold its two letters.
SWITCHED = Rule("su", rf"(?<![\w\-./])su (?:-l?|--login) (?P<user>{_NAME}){_ENDS}", is_user=is_account)


# ---- Values after the name of a secret -----------------------------------------------------------

_ASSIGNED = re.compile(
    rf"[A-Za-z0-9_\-]{{0,48}}?(?i:(?P<word>{SECRET_WORD}))(?P<tail>[A-Za-z0-9_]{{0,24}})"
    r"(?P<close>\\{0,3}[\"'`]?\]?\*{0,2})[ \t]{0,3}(?P<by>=>|:=|=(?!=)|:(?!:)|\bis\b:?"
    r"|,(?=[ ]?\\{0,3}[\"'])|>(?=[^<>\s]{3,200}</))[ \t]{0,3}"
    r"(?P<open>\\{0,3}(?:[rbuf]?[\"'`])?)"
)
_QUOTED_VALUE = re.compile(r"[^\"'`\\\s\r\n](?:[^\"'`\\\r\n]|\\(?![\"'`nrt\\])){2,400}")
_BARE_VALUE = re.compile(r"[^\s\"'`,;<>(){}\[\]&|\\]{4,400}")
_MARKED_VALUE = re.compile(
    r"[A-Za-z0-9](?:[^\s\"'`=\\.(]|\((?=[\w!@#%^&*+\-]{3,60}(?![\w(),.=]))){4,100}(?![=\w.(])"
)
_UNCALLED = re.compile(r"[(\[][\w!@#%^&*+\-]{3,60}(?![\w(),.=\]\[])")
_SIGN = re.compile(r"[A-Za-z0-9_\-]{0,40}(?: ?key\w{0,3})?\\{0,3}[\"'`]?\]?\*{0,2}[ \t]{0,3}(?:=|:|is\b|,|>)")


def assigned_at(text: str, place: int) -> Iterator[Hit]:
    """The value after the name of a secret: `api_key = "..."`, `PASSWORD: ...`."""
    if not _SIGN.match(text, place):
        return
    before = text[max(0, place - 40) : place]
    left = max(0, place - 40) + len(before.rstrip(NAME_CHARS))
    if text[max(0, left - 4) : left].lower() == "api ":
        left -= 4
    hit = _ASSIGNED.match(text, left, place + 600)
    if hit is None:
        return
    name = text[left : hit.end("tail")]
    if not secret_name(name.lstrip("-+")) or (hit["by"] in ("is", "is:") and not is_hard(name)):
        return
    is_quoted = hit["open"][-1:] in ("'", '"', "`")
    if hit["by"] == "," and not (is_quoted and hit["close"]):
        return
    value = (_QUOTED_VALUE if is_quoted else _BARE_VALUE).match(text, hit.end())
    if value is None:
        return
    start, end = value.span()
    if not is_quoted and hit["by"] == "=" and hit.end() == hit.end("by"):
        # the value of NAME=value, marks within; unless these begin another setting or a call
        marked = _MARKED_VALUE.match(text, start)
        if marked and mixes(marked[0], 8):
            end = max(end, start + len(marked[0].rstrip(")]};,>|&")))
    if not is_quoted:
        end = start + len(text[start:end].rstrip(".:!?*"))
    if _is_code(text, start, end, hit["by"], hit["open"]) or not secret_value(name, text[start:end]):
        return
    # a word right behind the sign, as in commands; in code it would be a name, before a comma or a bracket
    is_argument = hit["by"] == "=" and hit.end() == hit.end("by") and text[end : end + 1] in ("", " ", "\n",
         "\r")
    is_argument = is_argument or hit["by"] == ">"  # an element of XML
    is_word = is_argument and is_hard(name) and is_chosen(text[start:end])
    if is_quoted or mixes(text[start:end], 6) or is_word or _is_setting(text, hit, end):
        yield start, end, "SECRET"


def _is_code(text: str, start: int, end: int, by: str, opened: str) -> bool:
    """Is the value an expression rather than a value: a call, an attribute, an index."""
    after = text[end : end + 1]
    return not opened and (
        (after in ("(", "[") and not _UNCALLED.match(text, end))
        or (by == "=" and after == "." and text[start].isalpha())
    )


def _is_setting(text: str, hit: re.Match[str], end: int) -> bool:
    """Does an unquoted word stand as in a file of settings: at the end of its line, the name at its start."""
    line = text[max(0, hit.start() - 48) : hit.start()].rpartition("\n")[2]
    head = line.strip(" \t+-#*_").split(" ")
    alone = len(head) == 1 and hit["by"] in ("=", ":") and text[hit.end() - 1 : hit.end()] != " "
    return (
        (alone or hit["by"] == ":") and len(head) == 1 and text[end : end + 1] in ("", "\n", "\r", " ", "\\")
    )


# ---- Passwords in commands, sentences and tables -------------------------------------------------

# A tool, and the option after which it takes a password; none of them is a port.
_TOOL = re.compile(
    r"(?<![\w.\-])(?:(?:mysql|mariadb)\w{0,10}(?=\s)(?P<a>[^\n|;]{0,300}?\s-p)"
    r"|sshpass(?P<b>\s+-p\s{0,2})|mongo\w{0,8}(?=\s)(?P<c>[^\n|;]{0,300}?\s-p\s)"
    r"|redis-cli(?P<d>[^\n|;]{0,200}?\s-a\s)"
    r"|(?:docker|podman|helm|az)\s(?P<e>[^\n|;]{0,40}login\s[^\n|;]{0,200}?\s-p\s)"
    r"|smbclient(?P<f>[^\n|;]{0,200}?\s-U\s?\S{1,64}?%)|ldap\w{2,10}(?=\s)(?P<g>[^\n|;]{0,300}?\s-w\s)"
    r"|sqlcmd(?P<h>[^\n|;]{0,300}?\s-P\s?)|htpasswd(?P<i>\s+-(?:\w*n\w*|\w*b\w*\s+\S+)\s+\S+\s)"
    r"|openssl(?P<j>[^\n|;]{0,300}?\s(?:-[kK]\s{1,2}|-?pass(?:in|out|word)?[ :]{1,2}(?:pass:)?|pass:)"
         r"(?!file:|env:|fd:|stdin))"
    r"|lftp(?P<o>[^\n|;]{0,200}?\s-u\s?[^\s,]{1,64},)|wpa_passphrase(?P<p>\s+\S+\s)"
    r"|nmcli(?P<r>\s[^\n|;]{0,200}?\spassword\s)"
    r"|ssh-keygen(?P<m>[^\n|;]{0,300}?\s-[NP]\s{1,2})|net(?P<n> user [\w.\-]{1,40} )"
    r"|(?:zip|7z)(?P<k>[^\n|;]{0,100}?\s-[pP]\s?)|unzip(?P<l>[^\n|;]{0,100}?\s-P\s?))"
    r"[\"']?(?P<value>[^\s\"'`$<>|;\\]{4,200})"
)
_SAID = re.compile(
    r"(?i:password|passphrase|passwd|passcode)\s(?i:(?:for \S{1,40} )?(?:is|was|has been|had been|got)"
         r"(?: now)?"
    r"(?P<changed> (?:(?:re)?set|changed|updated|rotated|switched) (?:back )?to)?|(?P<verb>"
         r"(?:for \S{1,40} )?to)):?\s"
    r"\\{0,3}(?P<open>[\"'`*]{0,2})(?P<value>[^\s\"'`*,;\\]{4,100})(?P<rest>[^\n]?)"
)
_CHANGING = re.compile(r"(?i)\b(?:(?:re)?set|chang|updat|rotat|switch)(?:e|es|ed|ing|ting|s)?\b[^\n.]{0,40}$")
_ADJECTIVE = ("ed", "ing", "able", "ible", "ive", "ly", "en", "ous", "ful", "less")
_DATA = re.compile(r"(?m)^[ \t+>\-]{0,24}(?:data|stringData):[ \t]{0,4}\r?$")
_PAIR = re.compile(
    r"(?P<pad>[ \t+>\-]{0,24})[\w.\-]{1,100}:[ \t]{1,4}[\"']?(?P<value>[^\s\"']{4,4000})[^\n]{0,200}(?:\n|$)"
)
_COLUMN = re.compile(r"(?i)[*`\"']*(?:[\w ]{0,16}[_ ])?(?:passwords?|passwd|pwd|passwort|passphrase)[*`\"']*")
_DASHES = re.compile(r"\|?[\s:|\-]*-[\s:|\-]*")
_HEADS = re.compile(r"(?:[^\n]{0,200}:[ \t])?(?P<heads>\"?[\w\-]{1,40}\"?(?:(?P<by>[,;\t]) ?\"?"
         r"[\w\-]{1,40}\"?)+)")
_SENTENCE = re.compile(r":\s*$|[^\W\d_]+ [^\W\d_]+ [^\W\d_]+")
_ROWS = 500  # of a table that are looked at
_LIST = re.compile(
    r"(?i)[\w\-]{0,24}(?:passwords|passphrases|secrets|api[_-]?keys)[\"']?\s{0,2}[:=](?P<items>\s{0,3}\["
         r"[^\[\]{}]{1,2000}\]"
    r"|(?:\r?\n[ \t]{0,40}- [^\n:{}]{1,200}){1,200})"
)
_ITEM = re.compile(r"(?<=[\s\"'\[,])[^\s\"',\[\]\-][^\s\"',\[\]]{3,199}(?=[\s\"'\],]|$)")
_INSERT = re.compile(
    r"(?i)(?:insert|replace)\s+(?:ignore\s+)?into\s+[\w.`\"\[\]]{1,100}\s{0,4}\((?P<columns>"
         r"[^()]{1,1000})\)\s{0,8}"
    r"(?:\w+\s+)?values\s{0,4}"
)
# Possessive: what a quote begins is read one way only, however many quotes follow.
_QUOTED = r"'(?:[^'\\]|\\.|'')*+'|\"[^\"]*+\"|\([^()]*+\)"
_TUPLE = re.compile(rf"\s{{0,8}}\((?P<values>(?:[^()'\"]|{_QUOTED}){{1,4000}}+)\)\s{{0,4}}(?P<more>,?)")
_CELL = re.compile(rf"(?:{_QUOTED}|[^,'\"(])++")


def command_at(text: str, place: int) -> Iterator[Hit]:
    """The password that a tool is given on its command line."""
    hit = _TOOL.match(text, place)
    if hit is None or is_no_secret(hit["value"]) or hit["value"].isdigit():
        return
    # other tools have options that begin as this one does, such as -print
    is_login = hit[0].startswith("sshpass") or (hit["a"] or "").find(" -u") >= 0
    # the other tools have no such option but for a password
    is_sure = not (hit["a"] or hit["k"]) and is_chosen(hit["value"])
    if is_login or is_sure or secret_value("token", hit["value"]):
        yield *hit.span("value"), "SECRET"


def said_at(text: str, place: int) -> Iterator[Hit]:
    """A password in a sentence: quoted, with a digit, or the sentence's last word."""
    hit = _SAID.match(text, place)
    if hit is None or not is_chosen(value := hit["value"].rstrip(".!?")):
        return
    if hit["verb"] and not _CHANGING.search(text[max(0, place - 60) : place]):
        return
    end = hit.start("value") + len(value)
    is_adjective = value.endswith(_ADJECTIVE) and not (hit["changed"] or hit["verb"])
    is_last = not hit["rest"].strip() and "-" not in value and not is_adjective
    if is_last and not (_has_digit(value) or hit["open"]):
        ends = text[hit.end("value") : hit.end("value") + 2].strip(" ")
        is_last = not ends or ends[0] in "\r\n" or value != hit["value"]
    if _has_digit(value) or hit["open"] or is_last:
        yield hit.start("value"), end, "SECRET"


def kept_secret_at(text: str, at: int) -> Iterator[Hit]:
    """The values of a Kubernetes secret, which its kind alone gives away."""
    if not text[max(0, at - 12) : at].rstrip(" \"'").endswith("kind:"):
        return
    for head in _DATA.finditer(text, max(0, at - 4000), at + 4000):
        place = head.end() + 1
        while (pair := _PAIR.match(text, place)) is not None:
            yield *pair.span("value"), "SECRET"
            place = pair.end()


def column_at(text: str, place: int) -> Iterator[Hit]:
    """The passwords in the column of a table of that name."""
    start = text.rfind("\n", max(0, place - 400), place) + 1
    if not start and place > 400:
        return
    end = text.find("\n", place, place + 400)
    head = text[start:end].rstrip("\r") if end >= 0 else ""
    heads = _HEADS.fullmatch(head)
    head = heads["heads"] if heads else head
    by = "|" if head.count("|") else heads["by"] if heads else ""
    names = head.split(by) if by else []
    places = [n for n, name in enumerate(names) if _COLUMN.fullmatch(name.strip())]
    above = text[max(0, start - 400) : start].rstrip("\r\n").rpartition("\n")[2]
    if len(names) < 2 or not places:
        return
    if above.count(by) == head.count(by) and (by == "|" or not _SENTENCE.search(above)):
        return  # what stands below a row of as many cells is no head
    yield from _cells(text, end + 1, by, len(names), places)


def _cells(text: str, start: int, by: str, width: int, places: list[int]) -> Iterator[Hit]:
    """The cells of some columns that can be passwords, line by line, until the table ends."""
    for row in range(_ROWS):
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        cells = line.split(by)
        is_rule = by == "|" and row == 0
        if len(cells) != width or is_rule != (_DASHES.fullmatch(line.strip()) is not None):
            return
        for n in places:
            value = cells[n].strip(" \r`\"'*")
            place = start + sum(len(cell) + 1 for cell in cells[:n]) + cells[n].find(value)
            if not is_rule and not any(map(str.isspace, value)) and is_chosen(value):
                yield place, place + len(value), "SECRET"
        if end < 0:
            return
        start = end + 1


def inserted_at(text: str, place: int) -> Iterator[Hit]:
    """The values that SQL inserts into a column of passwords, tokens or the like."""
    hit = _INSERT.match(text, place)
    if hit is None:
        return
    columns = [name.strip(" \t\r\n`\"'[]\\") for name in hit["columns"].split(",")]
    places = {n for n, name in enumerate(columns) if secret_name(name) or name.lower() in ("pass", "pw",
         "pin")}
    row, start = (_TUPLE.match(text, hit.end()) if places else None), 0
    for _ in range(_ROWS):
        if row is None:
            return
        start = row.start("values")
        for n, cell in enumerate(_CELL.finditer(row["values"])):
            value = cell[0].strip()
            inner = value.strip("'\"\\")
            begin = start + cell.start() + cell[0].find(inner)
            if n in places and value[:1] in ("'", '"', "\\") and len(inner) > 2 and not is_no_secret(inner):
                yield begin, begin + len(inner), "SECRET"
        row = _TUPLE.match(text, row.end()) if row["more"] else None


def listed_at(text: str, place: int) -> Iterator[Hit]:
    """The members of a list of passwords, as YAML writes it."""
    hit = _LIST.match(text, place - len(text[max(0, place - 24) : place]) + len(text[max(0,
         place - 24) : place].rstrip(NAME_CHARS)))
    for item in _ITEM.finditer(text, *hit.span("items")) if hit else ():
        if is_chosen(item[0]):
            yield *item.span(), "SECRET"


READERS: dict[str, tuple[Detector, ...]] = {
    **dict.fromkeys(("secret", "token", "key", "auth", "credential", "cookie", "session", "sign"),
         (assigned_at,)),
    **dict.fromkeys(("_pass", "dbpass", "userpass", "rootpass", "_pw", "dbpw"), (assigned_at,)),
    **dict.fromkeys(("passphrase", "passcode"), (assigned_at, said_at)),
    "passw": (assigned_at, said_at, column_at),
    "pwd": (assigned_at, column_at),
    **dict.fromkeys("mysql mariadb sshpass mongo redis-cli docker podman helm smbclient ldap".split(),
         (command_at,)),
    **dict.fromkeys("sqlcmd htpasswd openssl unzip zip 7z ssh-keygen net lftp wpa_ nmcli".split(), (command_at,)),
    "insert": (inserted_at,), "replace": (inserted_at,),
}  # fmt: skip
READERS["secret"] += (kept_secret_at, listed_at)
READERS["passw"] += (listed_at,)
READERS["passphrase"] += (listed_at,)
READERS["key"] += (listed_at,)
