"""Provide the names that coding solutions use without importing them; run one as the main program.

The file also lies in the box, where it is the entry of a program that reads its input: it imports almost nothing.
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

# What tests judge with. A solution that could answer for these would be told what is expected of it.
JUDGES = {
    "math": "isclose fabs isnan isinf",
    "numpy": "allclose array_equal",
    "numpy.testing": "assert_allclose assert_array_equal assert_almost_equal assert_array_almost_equal"
    " assert_equal",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "datetime": "date datetime timedelta timezone",
    "pytest": "approx raises",
    "unittest": "TestCase",
}
JUDGED_BY = {name: home for home, names in JUDGES.items() for name in names.split()}
# What tests set for the whole process: it is set in the solution's too.
REPLAYED = ("random.seed", "numpy.random.seed", "sys.setrecursionlimit")
ALIASES = {"np": "numpy", "pd": "pandas", "pytest": "pytest", "numpy": "numpy", "pandas": "pandas"}

# What tests ask of plain values. An object that a solution gives in place of a list or a text does not get to
# answer `result.issubset(expected)` by itself; what a method that changes a list says is not judged.
CHANGES = set("add append clear discard extend insert pop popitem remove reverse sort update".split())
PLAIN = {name for kind in (str, list, dict, set, tuple, int, float, bytes) for name in dir(kind)} | set(
    "all any argmax date day days dtype equals flatten hour item isoformat max mean min minute month most_common"
    " ndim quantize second seconds shape size strftime sum time tobytes tolist total_seconds weekday year".split()
)
PREDICATES = {name for name in PLAIN if name.startswith("is")} | {"all", "any"}  # they judge without being told
JUDGING = PLAIN - CHANGES - set("copy decode encode get items join keys values".split())


def used(code: types.CodeType) -> set[str]:
    """Every name that a program looks up by name, attributes among them."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= used(constant)
    return names


def provide(code: types.CodeType, space: dict[str, object]) -> None:
    """Give a program the customary names that it uses; its own imports and definitions replace them."""
    provide_modules(code, space)
    for name in (used(code) & HOME.keys()) - space.keys():
        space[name] = member(name, HOME)


def member(name: str, home: dict[str, str]) -> object:
    """A customary name."""
    value: object = getattr(__import__(home[name], fromlist=["_"]), name)
    return value


def provide_modules(code: types.CodeType, space: dict[str, object]) -> None:
    """Give a program the customary modules that it uses and does not import."""
    for name in (used(code) & MODULES) - space.keys():
        space[name] = __import__(name)


def _main() -> None:
    """Run the solution under this module's name, with nothing of this module in its way."""
    import builtins
    import sys

    with open("/tmp/box/solution.py", encoding="utf-8", errors="surrogatepass") as file:
        code = compile(file.read(), "solution.py", "exec", dont_inherit=True)
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]  # which `site` would have set
    provided: dict[str, object] = {}
    provide(code, provided)
    space = globals()
    for name in [name for name in space if not name.startswith("__")]:
        del space[name]
    space.pop("__annotations__", None)
    space["__doc__"] = None
    space.update(provided)
    exec(code, space)


if __name__ in ("__main__", "__mp_main__"):  # the second is what a worker process makes of the first
    _main()
