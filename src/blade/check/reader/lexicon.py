"""Name what reports say in words: measures, units, states, causes, and words that change nothing."""

from __future__ import annotations

import re

# Patterns over lower-case text; the first that matches at a place wins, so the longer stand first.
METRICS: tuple[tuple[str, str], ...] = (
    (r"(?:clean|adjusted) (?:pass@1|pass[ -]rate|score)", "clean_pass_at_1"),
    (r"pass(?:@| ?\^ ?1@|_at_| at )(?P<at>\d+)\b(?!\s?%|\.\d)", "pass_at_k"),
    (r"pass(?:\^|_hat_|-hat-| hat )(?P<hat>\d+)\b", "pass_hat_k"),
    (r"pass(?:@|_at_| at )k\b", "pass_at_any"),
    (r"pass(?:\^|_hat_| hat )k\b", "pass_hat_any"),
    (r"(?:mean|average|avg\.?) (?:task )?rewards?\b", "mean_reward"),
    (
        r"(?:mean|average|avg\.?|overall|headline|final|total) (?:pass|success|solve|resolve|"
        r"resolution)[ -]rate\b",
        "pass_rate",
    ),
    (r"(?:pass|success|solve|resolve|resolution|completion)[ -]rates?\b", "pass_rate"),
    (r"(?:overall |headline |final )?accuracy\b", "pass_rate"),
    (r"(?:overall |headline |final |mean |average )?scor(?:e|es|ed|ing)\b", "score"),
    (r"self-agreement\b", "self_agreement"),
    (r"(?:expected )?flip rate\b", "expected_flip_rate"),
    (r"retry value\b", "retry_value"),
    (r"consistency\b", "consistency"),
    (r"coverage\b", "coverage"),
    (r"icc\b|intraclass correlation\b", "icc"),
    (r"design effect\b", "design_effect"),
)

STATES: tuple[tuple[str, str], ...] = (
    (
        r"(?:always|consistently|reliably)[- ](?:pass(?:es|ed|ing)?|solved?|solves|succeed(?:s|ed)?)\b",
        "always",
    ),
    (
        r"(?:pass(?:es|ed)?|solved?|solves|succeed(?:s|ed)?) (?:in |on |it in )?(?:every|all|each)(?: "
        r"(?:of )?(?:its |the |\d+ |four |three |two )*)"
        r"(?:single )?(?:repeats?|attempts?|rollouts?|trials?|times?|runs?|try|tries|samples?)\b",
        "always",
    ),
    (
        r"(?:sometimes|occasionally|intermittently|inconsistently)[- ](?:pass(?:es|ed|ing)?|solved?|solves|"
        r"succeed(?:s|ed)?)\b",
        "sometimes",
    ),
    (
        r"(?:pass(?:es|ed)?|solved?) (?:in |on )?(?:only )?some (?:repeats|attempts|rollouts|trials|runs|"
        r"tries|samples)\b",
        "sometimes",
    ),
    (r"flaky\b|flakey\b|mixed outcomes?\b|mixed results?\b|sometimes passing\b", "sometimes"),
    (r"(?:never|not once|not ever)[- ](?:pass(?:es|ed|ing)?|solved?|solves|succeed(?:s|ed)?)\b", "never"),
    (r"(?:always|consistently)[- ]fail(?:s|ed|ing)?\b|fail(?:s|ed)? consistently\b", "never"),
    (r"(?:never|not once|not ever)[- ]fail(?:s|ed|ing)?\b", "always"),
    (
        r"(?:has|have|had|with) (?:no|zero) (?:fail(?:ing|ed) (?:rollout|repeat|attempt|run|trial)s?|"
        r"failures?)\b",
        "always",
    ),
    (
        r"(?:has|have|had|with) (?:no|zero) (?:(?:pass|succeed)(?:ing|ed) (?:rollout|repeat|attempt|"
        r"run|trial)s?"
        r"|passes|success(?:es)?|successful (?:rollout|repeat|attempt|run|trial)s?)\b",
        "never",
    ),
    (
        r"(?:not|[a-z]{2,5}n['’]t) (?:(?:been|be|ever|once) )*(?:pass(?:ed)?|solved?|"
        r"succeed(?:ed)?) (?:in |on )?(?:any|a single|"
        r"even one)(?: of (?:its|the|their))? (?:repeats?|attempts?|rollouts?|trials?|runs?|try|"
        r"tries|samples?)\b",
        "never",
    ),
    (
        r"fail(?:s|ed)? (?:in |on )?(?:every|all|each)(?: (?:of )?(?:its |the |\d+ |four |three |two "
        r")*)(?:single )?"
        r"(?:repeats?|attempts?|rollouts?|trials?|times?|runs?|try|tries|samples?)\b",
        "never",
    ),
    (
        r"(?:pass(?:es|ed)?|solved?) (?:in )?no(?:ne)?(?: (?:of )?(?:its |the )*)?(?:repeats?|attempts?|"
        r"rollouts?|trials?|runs?|tries|samples?)\b",
        "never",
    ),
    (r"unsolved\b|never-pass\b", "never"),
    (r"(?:pass(?:es|ed)?|solved?|solves|succeed(?:s|ed)?) at least (?:once|one time)\b", "solved_once"),
    (r"(?:with )?at least one (?:pass|passing (?:rollout|repeat|attempt))\b", "solved_once"),
    (r"(?<=\d )always(?= ?(?:[,;.)]|and\b|$))", "always"),
    (r"(?<=\d )sometimes(?= ?(?:[,;.)]|and\b|$))", "sometimes"),
    (r"(?<=\d )never(?= ?(?:[,;.)]|and\b|$))", "never"),
    (r"timed[- ]out\b|time[- ]?outs?\b|timing out\b|times out\b(?! of\b)", "timed_out"),
    (r"errored\b|(?:infrastructure|provider|api) errors?\b|crashed\b", "errored"),
    (r"malformed\b", "malformed"),
    (r"masked\b", "masked"),
    (r"missing\b", "missing"),
    (r"(?:solved|solves|solve|solving|resolved|resolves)\b", "solved"),
    (r"(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|success(?:es|ful(?:ly)?)?)\b(?![@^_]\d|[- ]rate)", "passed"),
    (
        r"(?:fail(?:s|ed|ing|ures?)?|unsuccessful)\b(?![- ](?:rate|mode|reason|type|categor|pattern|"
        r"cause))",
        "failed",
    ),
    (r"never[- ]miss(?:es|ed)?\b", "always"),
    (r"cracked\b", "solved"),
)
NOUN_STATES = re.compile(
    r"(?:failures?|time[- ]?outs?|pass(?:es)|success(?:es)|(?:infrastructure|provider|api) errors?)$"
)

UNITS: tuple[tuple[str, str], ...] = (
    (r"(?:tasks?|problems?|questions?|instances?|benchmark items)\b", "tasks"),
    (
        r"(?:rollouts?|rows?|attempts?|trials?|trajectories|trajectory|episodes?|traces?|samples?|repeats?|"
        r"tries)\b"
        r"(?! per task| each)",
        "rollouts",
    ),
)

CAUSES: tuple[tuple[str, str], ...] = (
    (r"knowledge[ -]gaps?\b", "KG"),
    (r"unreliable knowledge\b", "UK"),
    (r"behaviou?r(?:al)?(?: issues?| problems?| failures?)\b", "BI"),
    (r"task(?:[ -]or[ -]verifier|/verifier)?(?:[ -]issues?| defects?| problems?)\b|verifier (?:issues?|"
     r"defects?|bugs?)\b", "TI"),
    (r"infrastructure(?:[ -](?:reliability|issues?|failures?|problems?))?\b", "IR"),
    (r"data[ -]art[ei]facts?\b", "DA"),
)  # fmt: skip
CAUSE_CODES = frozenset({"KG", "UK", "BI", "TI", "IR", "DA"})

# What may stand in the clause of a claim without narrowing what it is about.
HARMLESS = frozenset(
    """once across ones a an the this that these those its their our his her it they he she we i you all
    both each is are was were be been being has have had do does did will of to in on for at with by
    from as than and or nor but so then also too thus hence again still yet only just even exactly
    precisely overall total totals altogether together combined aggregate respectively about around
    roughly approximately nearly almost some over under more less fewer most least run runs model
    models agent agents system benchmark evaluation eval evals result results dataset suite set
    score scores scored scoring reach reaches reached reaching achieve achieves achieved achieving
    get gets got obtain obtains obtained hit hits record records recorded post posts posted attain
    attains attained manage manages managed show shows showed shown see saw give gives gave given
    yield yields yielded stand stands stood sit sits come comes came make makes made up account
    accounts accounted represent represents amount amounts equal equals land lands landed end ends
    ended finish finishes finished solve solves solved complete completes completed contain contains
    contained include includes included comprise comprises comprised consist consists hold holds
    held use uses used remain remains remained leave leaves left produce produces produced number
    count share fraction percentage percent proportion rate value figure metric metrics task tasks
    rollout rollouts repeat repeats attempt attempts per out there here which who while whereas
    headline summary finally unfortunately notably interestingly surprisingly clearly indeed however
    therefore namely i.e. ie e.g. eg vs versus against compared every any one other another first
    second note key finding findings fact currently now today main mean average averaged whole
    entire full no not never none yes nothing right single same baseline candidate it's that's
    there's good bad poor strong weak low high higher lower small large big better worse data rows
    report numbers down resolution resolved resolves successfully passing failing graded measured
    observed evaluated tested ran rose rises risen fell falls fallen improved improves increased
    increases dropped drops climbed climbs went jumped jumps declined declines decreased decreases
    grew regressed collapse collapses collapsed dips dipped shrinks plunges plunged
    performance capability ability reliability lift lifts lifted raised raises pushed brought""".split()
)

# Words that say something else is meant: another time, another source, a part, a thought.
NARROWING = re.compile(
    r"\b(?:would|could|should|might|may|if|unless|target|goal|aim|threshold|published|claimed|leaderboard|"
    r"previous(?:ly)?|"
    r"earlier|prior|historical|human|paper|literature|estimated?|estimates|projected?|projection|assum\w*|"
    r"hypothe\w*|suppose|excluding|exclude[sd]?|"
    r"without|except|apart from|ignoring|ignored|removing|removed|discounting|not counting|other than|"
    r"rather than|instead|"
    r"adjusted|shrunk|weighted|conditional|subset|held-out|interval|margin|noise|standard error|median|"
    r"confidence|bootstrap|p-value|chance|random|expected|gain|worth|potential|upper bound|lower bound|at "
    r"best|"
    r"at worst|when|where|after|before|until|among|amongst|within|whose|remaining|rest|others?|"
    r"gap|difference|delta|increase|decrease|drop|improvement|regression|change|points? (?:higher|lower|"
    r"more|less)|"
    r"times|twice|double|triple|faster|slower|seconds?|minutes?|hours?|tokens?|dollars?|turns?|"
    r"steps?|calls?|"
    r"per|each|top|first|last|next|hardest|easiest|random\w*|simulated|oracle|majority|best[- ]of|typical|"
    r"usually|"
    r"best|worst|every|repeats? of|remov\w+|fix\w*|repair\w*|recover\w*|additional|another|further|extra|"
    r"new|old|old[- ]|v\d)\b",
    re.IGNORECASE,
)

BOTH = re.compile(
    r"\b(?:both|each|either|neither)(?: (?:runs?|models?|agents?|systems?|of them))?\b", re.IGNORECASE
)
BASELINE = re.compile(r"\b(?:the )?(?:baseline|control|reference run|base model)\b", re.IGNORECASE)
CANDIDATE = re.compile(r"\b(?:the )?(?:candidate|treatment|challenger|new model)\b", re.IGNORECASE)


_LARGE = re.compile(r"[A-Z]+")


def lowered(text: str) -> str:
    """A text in lower case, letter for letter, so that places stay the same."""
    return text.lower() if text.isascii() else _LARGE.sub(lambda hit: hit[0].lower(), text)


def compiled(table: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    """One pattern for a table, over lower case; an empty group behind each entry says which one matched."""
    # a group before an entry would keep the engine from skipping it by its first letter
    parts = "|".join(f"{pattern}(?P<g{at}>)" for at, (pattern, _) in enumerate(_spread(table)))
    return re.compile(rf"(?<![\w@^/.])(?:{parts})")


def _spread(table: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    return [(f"(?:{pattern})" if "|" in pattern else pattern, name) for pattern, name in table]


def which(hit: re.Match[str], table: tuple[tuple[str, str], ...]) -> str:
    """The entry of a table that a match of its pattern stands for."""
    return table[int((hit.lastgroup or "g0")[1:])][1]
