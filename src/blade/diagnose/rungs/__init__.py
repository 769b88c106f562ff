"""Hold the rungs of the ladder, a module a question; add yours here, to `climb` and to RULES of `diagnose/ladder.py`."""
