"""Ask an OpenAI-compatible endpoint: the one client of `blade read` and of `blade eval run`."""
