"""Hold the rungs of the ladder, a module a question: add yours here, to `climb` of `ladder.py`, its words to `ladder.yaml`."""
