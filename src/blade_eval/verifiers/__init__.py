"""Verify answers: add a verifier as a module here and to the ENVIRONMENTS table, from implementation name to module."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from blade.errors import UsageError
from blade_eval.environment import Environment

# The names are those of NeMo Gym's resources servers, so that its configs find ours. Each module has
# `environment(settings)`; it is imported when it is asked for, and only then its libraries.
ENVIRONMENTS = {
    "asr_with_pc": "blade_eval.verifiers.asr_with_pc", "bird_sql": "blade_eval.verifiers.bird_sql",
    "code_gen": "blade_eval.verifiers.code_gen",
    "equivalence_llm_judge": "blade_eval.verifiers.equivalence_llm_judge",
    "instruction_following": "blade_eval.verifiers.instruction_following",
    "math_with_judge": "blade_eval.verifiers.math_with_judge", "mcqa": "blade_eval.verifiers.mcqa",
    "string_match": "blade_eval.verifiers.string_match",
    "structured_outputs": "blade_eval.verifiers.structured_outputs",
    "wmt_translation": "blade_eval.verifiers.wmt_translation",
    "workplace_assistant": "blade_eval.verifiers.workplace_assistant",
    "xlam_fc": "blade_eval.verifiers.xlam_fc", "xstest": "blade_eval.verifiers.xstest",
}


def environment(name: str, settings: Mapping[str, Any]) -> Environment:
    """The environment of a resources server's implementation, built from its block of the config."""
    if name not in ENVIRONMENTS:
        hint = f"BLADE runs {', '.join(sorted(ENVIRONMENTS))}; others need the tool they were written for"
        raise UsageError(f"BLADE has no environment {name!r}", hint, "unknown-environment")
    built: Environment = import_module(ENVIRONMENTS[name]).environment(settings)
    return built
