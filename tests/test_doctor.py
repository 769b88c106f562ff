"""`blade doctor` says what is there, and what of the verifiers' packages is not."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from tests.conftest import Blade

EVAL = {"math-verify", "rapidfuzz", "jiwer", "sacrebleu", "langdetect", "pyarrow"}


def test_the_packages_of_the_verifiers_are_listed_apart(blade: Blade) -> None:
    told = json.loads(blade("doctor", "--json").out)
    assert set(told["eval_packages"]) == EVAL
    assert told["packages"]["msgspec"] == metadata.version("msgspec")
    assert EVAL.isdisjoint(told["packages"])


@pytest.mark.parametrize("name", ["surely-not-installed", "msgspec"])
def test_what_is_missing_is_told_with_what_to_install(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The description of another installation stands before that of this one."""
    folder = tmp_path / "blade_diagnostics-9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: blade-diagnostics\nVersion: 9\nProvides-Extra: eval\n"
        f'Requires-Dist: click>=8.1\nRequires-Dist: {name}>=0.1; extra == "eval"\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("blade_eval.sandbox.holds", tuple)  # which takes a second to try
    told = blade("doctor").out
    assert ("MISSING" in told) is (name != "msgspec")
    assert ("pip install 'blade-diagnostics[eval]'" in told) is (name != "msgspec")
