"""Measure speed and memory against the budgets: `python -m bench`."""
