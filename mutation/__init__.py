"""Measure how many planted faults of a report the checker catches, and how often it cries wolf."""
