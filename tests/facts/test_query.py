"""The language of queries: what it selects, counts and adds, and what is no query."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.facts.query import BadQuery, answer, path, step

DOCUMENT = {
    "measures": [
        {"run": "a", "name": "pass_at_1", "k": None, "value": 0.5},
        {"run": "a", "name": "pass_at_k", "k": 2, "value": 0.75},
        {"run": "b", "name": "pass_at_1", "k": None, "value": 0.25},
    ],
    "buckets": [{"run": "a", "never": ["3", "4"], "always": []}],
    "losses": [
        {"run": "a", "cause": "IR", "lost": 0.1},
        {"run": "a", "cause": "IR", "lost": 0.2},
        {"run": "a", "cause": "BI", "lost": 0.2},
    ],
    "matrix": None,
    "runs": [{"name": "a", "settings": {"top.p": "1"}}],
}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("measures[run=a,name=pass_at_1,k=null].value", 0.5),
        ("measures[run=a,name=pass_at_k,k=2].value", 0.75),
        ('measures[run="a",name=pass_at_k,k="2"].value', 0.75),
        ("measures[run=c,name=pass_at_1].value", None),
        ("measures[name=pass_at_1].value", None),  # two runs say different things
        ("measures[run=a,name!=pass_at_1].value", 0.75),
        ("buckets[run=a].never", ["3", "4"]),
        ("count(buckets[run=a].never)", 2),
        ("count(buckets[run=a].always)", 0),
        ("count(losses[run=a,cause=IR])", 2),
        ("count(losses[run=a,cause=TI])", 0),
        ("count(measures)", 3),
        ("sum(losses[run=a,cause=TI].lost)", 0),
        ("sum(losses.lost)", 0.5),
        ("mean(losses[cause=IR].lost)", pytest.approx(0.15)),
        ("mean(losses[cause=TI].lost)", None),
        ("most(measures.value)", 0.75),
        ("least(measures.value)", 0.25),
        ("share(sum(losses[cause=BI].lost), sum(losses.lost))", pytest.approx(0.4)),
        ("share(1, 0)", None),
        ("minus(measures[run=a,k=null].value, measures[run=b].value)", 0.25),
        ("minus(1, 0.25)", 0.75),
        ("plus(1, 2, 3)", 6),
        ("matrix.n_tasks", None),
        ('runs[name=a].settings."top.p"', "1"),
        ("nothing.at.all", None),
    ],
)
def test_queries_say_what_the_document_holds(query: str, said: object) -> None:
    assert answer(query, DOCUMENT) == said


@pytest.mark.parametrize(
    "query",
    ["", "[", "a[", "a[b", "a[b=", "a[b=c", "a[b=c].", "count(", "count(a", "count()", "a b", "a..b",
     "evil(a)", "count(a, b)", "a]", "count(" * 30 + "a" + ")" * 30],
)  # fmt: skip
def test_what_is_no_query_is_refused(query: str) -> None:
    with pytest.raises(BadQuery):
        answer(query, DOCUMENT)


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_any_name_can_be_selected(name: str, other: str, key: str) -> None:
    document = {"runs": [{"name": name, "held": {key: 1}}, {"name": other + "!", "held": {key: 2}}]}
    wanted = 1 if name != other + "!" else None
    assert answer(f"{path('runs', name=name)}.held.{step(key)}", document) == wanted


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner)))
def test_any_document_is_answered(held: object) -> None:
    for query in ("a", "a.b", "a[b=c]", "count(a)", "sum(a)", "mean(a)", "share(a, a)", "minus(a, 1)"):
        answer(query, {"a": held})


def test_selectors_tell_null_from_its_name() -> None:
    document = {"runs": [{"name": "null", "at": 1}, {"name": None, "at": 2}]}
    assert answer(path("runs", "at", name="null"), document) == 1
    assert answer(path("runs", "at", name=None), document) == 2
    assert json.loads(path("", name="null").removeprefix("[name=").removesuffix("]")) == "null"
