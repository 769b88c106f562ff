"""Measure speed and memory against the budgets; `python -m tools.bench`."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line sets it, before numpy is imported
