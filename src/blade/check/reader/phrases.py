"""Name the phrases in which a sentence tells a measure or counts tasks and rollouts."""

from __future__ import annotations

from blade.check.reader.mentions import pattern as shaped

LINK = (
    r"\s*(?:\(\s*)?(?:(?:of|for|in|by|on)\s+(?:the\s+)?<RLT>(?:['’]s)?\s*)?(?:\(<R>\)\s*)?"
    r"(?:(?:across|over)\s+(?:all\s+)?(?:the\s+)?<N>\s*)?(?:(?:rates?|value|of|is|was|are|were|at|=|"
    r":|only|just|stands|"
    r"stood|sits|reached|reaches|equals|comes|came|in|to|a|an|the|overall|remains|remained|lands|landed|"
    r"here|→|->|a total of|(?:drops?|dropped|falls?|fell|collapses?|collapsed|rises?|rose|climbs?|"
    r"climbed|grows?|grew|"
    r"shrinks?|jumps?|jumped|dips?|plunges?|goes|went)\s+to)\s*)*\s*"
)
NOT_MORE = (
    r"(?!\s*(?:of\b|<N>|<S>|higher|lower|better|worse|above|below|more|less|points|times|gain|gap|drop|"
    r"improvement))"
)
MEASURED = shaped(rf"(?P<m><M>){LINK}(?P<q><Q>){NOT_MORE}")
DENIED = shaped(rf"(?P<m><M>){LINK}(?:not|n['’]t)\s+(?P<q><Q>){NOT_MORE}")
REACHES = shaped(
    r"(?:<R>|\b(?:the|this)\s+(?:model|agent|run|system)|^it)\s+(?:(?:only|just|now|still)\s+)*"
    r"(?:reach(?:es|ed)?|achieve[sd]?|gets?|got|attain(?:s|ed)?|hits?|lands?\s+at|landed\s+at|"
    r"sits?\s+at|stands?\s+at|"
    r"comes?\s+in\s+at|came\s+in\s+at|manage[sd]?|posts?|posted|is\s+at|was\s+at|"
    r"ends?\s+(?:up\s+)?at|finishe[sd]\s+at)\s+"
    r"(?:(?:only|just|a|an)\s+)*(?P<q><Q>)"
    r"(?=\s*(?:$|[.,;:)(]|and\b|while\b|but\b|whereas\b|against\b|vs\b|versus\b|compared\b|overall\b|"
    r"on (?:the|this)\b|here\b))"
)
BESIDE = shaped(r"<R>\s*\((?P<q><Q>)\)")
BEFORE = shaped(r"(?P<q><Q>)\s+(?:overall\s+|mean\s+|average\s+)?(?P<m><M>)(?!\s*(?:of|is|was|at|=|:)\s*<Q>)")
GOES_ON = shaped(
    r"(?:\s|,|;|/|\(|\)|<R>|['’]s|\b(?:and|vs\.?|versus|against|compared|to|with|while|but|whereas|for|on|"
    r"is|was|has|had|gets|"
    r"reaches|scores|only|at|the|in|of|by|it)\b|=|:)*(?P<q><Q>)" + NOT_MORE
)

VERBS = (
    r"(?:\s+(?:give|gives|gave|show|shows|showed|are|is|were|was|have|had|has|been|get|got|being|"
    r"that|which|ended|end|as|in|labelled|labeled|"
    r"attributed|assigned|to|due|caused|by|classified|marked|be|only|a|an|of|type|the)\b)*"
)
DONE = shaped(
    r"(?P<s><S>)\s+(?:only\s+|just\s+|on\s+|in\s+)*(?P<q><Q>)\s+(?:of\s+)?(?:(?:the|its|"
    r"all)\s+)*(?P<pre><SCD>[\s-]+)?(?P<n><N>)(?P<once>\s+at least once\b)?"
)
SET = shaped(
    r"(?P<q><Q>)\s+(?P<of>of\s+)?(?:(?:the|all|its|our|these)\s+)*(?P<pre><SCD>[\s-]+)?(?P<n><N>)"
    rf"(?:(?P<b>\s*\(<Q>\))?{VERBS}\s+(?P<post><SCD>))?"
)
STATED = shaped(
    rf"(?P<q><Q>)(?P<b>\s*\(<Q>\))?\s+(?P<of>of\s+)?(?:(?:the|all|its|our|"
    rf"these|are|were|is|was)\s+)*(?P<pre><S>)(?:{VERBS}\s+(?P<post><SCD>))?"
)
LISTED = shaped(
    r"(?:^|[,;(]\s*|\band\s+)(?:the\s+)?(?:number of\s+)?(?P<pre><S>)?[\s-]*(?P<n><N>)?\s*(?:[:=]|\bis\b|"
    r"\bwas\b)\s*(?P<q><Q>)(?=\s*(?:$|[,;.()]))(?!\s*,?\s*(?:and\s+)?<Q>)"
)
HAS = shaped(
    r"(?:\b(?:has|have|contains?|covers?|comprises?|consists? of|a total of|evaluated on|ran on|run on|"
    r"there (?:are|were))|^)"
    r"\s*(?:all\s+)?(?P<q><Q>)\s+(?P<n><N>)(?!\s*(?::|<SCD>|that|which|whose|with|where|when|are|"
    r"were|is|was|"
    r"in which|each))"
)  # fmt: skip
HAS_MORE = shaped(
    r"(?:,|,?\s+(?:and|over|across|on|from|covering|for)|"
    r"\s*[×x])\s+(?P<q><Q>)\s+(?P<n><N>)(?=\s*(?:$|[.,;:)(]|in total\b|overall\b))"
)
ALONE_BEFORE = shaped(
    r"(?:^|[,;:(]\s*|\b(?:and|has|have|had|there (?:are|were|is|was)|with|recorded|produced|total of|saw|"
    r"(?:we|i) (?:see|count|counted|find|found|observed))\s+)"
    r"(?:a total of\s+|only\s+|just\s+|the\s+)?$"
)
ALONE_AFTER = shaped(r"\s*(?:$|[.,;:)(]|and\b|in total\b|overall\b|(?:in|for) <R>)")
IN_BRACKETS = shaped(r"\s*\(\s*(?:i\.e\.,?\s*|or\s+|=\s*)?(?P<q><Q>)\s*[),]")


# What a mode or a cause does to the score: `costs 3 points`, `takes a third of the lost score`.
_COSTS = r"costs?|takes?|took|accounts?\s+for|explains?|is\s+responsible\s+for"
COSTS = shaped(
    rf"(?P<c><DC>)(?:\s+(?:errors?|issues?|failures?|alone))?\s+(?:{_COSTS}|loses?|lost|eats?|burns?|is\s+worth)"
    r"\s+(?:the\s+(?:run|model|agent)\s+|us\s+|it\s+)?(?:a\s+(?:further\s+)?)?(?P<q><Q>)"
    r"(?!\s*(?:of\s+(?!(?:the\s+)?<M>)|<N>|<S>))"
)
COSTS_OF_LOSS = shaped(
    rf"(?P<c><CD>)\s+(?:alone\s+)?(?:{_COSTS}|makes? up)\s+(?P<q><Q>)\s+of\s+(?:the\s+|all\s+)?"
    r"(?P<lost>lost\s+(?:<M>|points)|(?:<M>|points)\s+lost|loss(?:es)?\b|<S>)"
)
