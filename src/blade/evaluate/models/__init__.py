"""The models that answer: a table from implementation name to the module that builds its `Respond`."""

from __future__ import annotations

# Each module has `model(settings)`, an async context manager that yields a `Respond`; imported when asked for.
MODELS = {
    "openai_model": "blade.evaluate.models.openai_model",
    "scripted_model": "blade.evaluate.models.scripted_model",
}
