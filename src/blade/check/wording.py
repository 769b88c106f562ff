"""Tell from the words beside a quotation whether it is said to be from a rollout, or to be none at all."""

from __future__ import annotations

import re

_WHO = (
    r"(?:model|agent|assistant|user|customer|caller|rollouts?|repeats?|responses?|answers?|transcripts?|traces?"
    r"|trajector(?:y|ies)|reasoning|repl(?:y|ies)|messages?|tools?|calls?|steps?|tasks?)"
)
# Forms of regular verbs are made from what comes before their endings.
_REGULAR = (
    "say|answer|respond|return|output|print|report|ask|conclud|stat|claim|announc|complain|quot|reason|admit|assert"
    "|promis|insist|apologis|apologiz|confirm|think|tell|writ|repl"
)
_SPEECH = (
    rf"(?:(?:{_REGULAR})(?:e?s|e?d|ing|y|ies|ied|ying|ted|ting|e)?|said|wrote|written|told|thought|reads?|verbatim"
    r"|(?:end|start|begin|began|open|clos|finish|fail|stopp?)(?:e?s|e?d|ning|ing)? (?:with|by))"
)
_SAID = rf"\b(?:{_WHO}\b[^.;]{{0,60}}?|(?:it|they)\s+(?:[\w'’-]+\s+){{0,2}})\b{_SPEECH}\b[^.;]{{0,40}}$"
_SAID_AFTER = rf"^[,\s]*(?:{_SPEECH}\s+(?:the\s+)?{_WHO}\b|(?:the\s+)?(?:{_WHO}|it)\s+{_SPEECH}\b)"
_REPORTED = (
    rf"\b{_SPEECH}\b[^.;]{{0,40}}$|\b(?:errors?|exceptions?|messages?|outputs?|text|line|evidence)\W{{0,3}}$"
)
_NO = r"(?:\b(?:never|not|nor|neither|no|none|without|cannot|nowhere)\b|n['’]t\b)"
_NAMING = (
    r"called|calls? (?:this|it|that|them|these)|label(?:l?ed)?|named?|titled?|termed|dubbed|known as|so-called"
    r"|categor(?:y|ies)|polic(?:y|ies)|hypothesis|class(?:ed)?|(?:mode|mechanism|cluster|theme|pattern|type|slice"
    r"|bucket|section|chapter|heading|column|metric|benchmark|rule|prompt|instruction|definition|question|term)s?"
)
_UNSAID = "|".join(
    (
        # said not to have been said
        rf"{_NO}(?:\s+[\w'’-]+){{0,3}}?\s+(?:{_SPEECH}|(?:contain|mention|includ|show)\w*|sign of)\b[^.;:]{{0,40}}$",
        rf"(?:{_NO}|\b(?:lacks?|lacking|omit\w*|missing|instead of|rather than)\b)(?:\s+[\w'’-]+){{0,2}}\s*$",
        # wished for, supposed, proposed
        r"\b(?:should|would|could|might|ought|must|expected|ideally|supposed?|wanted?|wants|needs?|if|better|add"
        r"|instead of|rather than|correct(?:ly)?|imagine|adding|insert|append|include|change|replace|rewrite|use|try"
        r"|reword|consider|require|tell the|(?:hypothetical|recommend|suggest|instruct|propos)\w*)\b[^.;]{0,60}$",
        # the gist of it
        r"\b(?:basically|essentially|effectively|something like|along the lines|i\.e\.|in effect|roughly|akin"
        r"|as if|paraphras\w*|in other words|meaning|to the effect|sort of|kind of|similar to|variants? of"
        r"|such as|e\.g\.|typical(?:ly)?|generic)[^.;]{0,40}$",
        # a name, or another source
        rf"\b(?:{_NAMING})\s*(?:is|are|was|of|as|says|reads|states)?\s*[:(–—]?\s*$",
        r"\b(?:papers?|documentation|docs|readme|guidelines?|specification|blog|article|authors?|website|card|our|my"
        r"|reviewers?|annotators?|colleagues?|team)\b[^.;]{0,40}$",
        r"\b(?:we|I) (?:say|write|call|mean|argue|define|use)\b[^.;,]{0,40}$",
    )
)
_ONWARD = (
    r";|\b(?:and|but|yet|then|so|while|whereas|although|though|after\w*|before|later|final\w*|last\w*|next|still|even"
    r"|eventually|nevertheless|nonetheless|however|followed|subsequent\w*|despite|conclu\w*|until)\b"
)
_SPEAKER = rf"\b(?:(?:the|its?|this|that|an?)\s+(?:[\w'’-]+\s+)?{_WHO}|it|they|he|she)\b"
_REACH = 120  # characters before a quotation that say what it is


def _has(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def is_said(before: str, after: str = "") -> bool:
    """Whether someone in a rollout is said to have said it."""
    return _has(_SAID, before[-_REACH:]) or _has(_SAID_AFTER, after[:_REACH])


def is_direct(between: str) -> bool:
    """Whether nothing between a place and a quotation goes on to another place or time."""
    return not _has(_ONWARD, between)


def speakers(between: str) -> list[str]:
    """What stands before each speaker between a place and a quotation."""
    return [between[: hit.start()] for hit in re.finditer(_SPEAKER, between, re.IGNORECASE)]


def is_reported(before: str) -> bool:
    """Whether it is said to have been said, or to be an error or an output."""
    return _has(_REPORTED, before[-_REACH:])


def is_unsaid(before: str) -> bool:
    """Whether it is said not to have been said, to be wished for, a gist, a name, or from elsewhere."""
    return _has(_UNSAID, before[-_REACH:])
