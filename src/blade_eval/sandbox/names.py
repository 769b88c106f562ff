"""The names that solutions of coding tasks use without importing them, as their templates do.

The file also lies in the box, and runs before every program there: it imports almost nothing.
"""

from __future__ import annotations

import types

# Templates annotate with `List[int]` and never import it; graders of such tasks import these beforehand.
MEMBERS = {
    "typing": "Any Callable DefaultDict Deque Dict FrozenSet Generator Iterable Iterator List Mapping"
    " Optional Sequence Set Tuple Union",
    "collections": "Counter OrderedDict defaultdict deque namedtuple",
    "heapq": "heapify heappop heappush heappushpop heapreplace nlargest nsmallest",
    "bisect": "bisect_left bisect_right insort insort_left insort_right",
    "functools": "cache cmp_to_key lru_cache partial reduce",
    "itertools": "accumulate chain combinations combinations_with_replacement count cycle groupby islice"
    " pairwise permutations product repeat starmap takewhile zip_longest",
    "math": "ceil comb cos factorial floor gcd hypot inf isqrt lcm log log10 log2 perm pi prod sin sqrt",
    "operator": "add attrgetter itemgetter mul xor",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation",
    "copy": "deepcopy",
}
MODULES = set(
    "bisect collections copy datetime decimal fractions functools heapq itertools json math operator os"
    " random re statistics string sys time typing".split()
)
HOME = {name: home for home, names in MEMBERS.items() for name in names.split()}


def used(code: types.CodeType) -> set[str]:
    """Every name that a program looks up by name, attributes among them."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= used(constant)
    return found


def given(code: types.CodeType, space: dict[str, object]) -> None:
    """Give a program the customary names that it uses; its own imports and definitions replace them."""
    modules(code, space)
    for name in used(code) - space.keys():
        if name in HOME:
            space[name] = member(name)


def member(name: str) -> object:
    """A customary name."""
    found: object = getattr(__import__(HOME[name]), name)
    return found


def modules(code: types.CodeType, space: dict[str, object]) -> None:
    """Give a program the customary modules that it uses and does not import."""
    for name in (used(code) & MODULES) - space.keys():
        space[name] = __import__(name)
