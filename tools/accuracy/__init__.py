"""Measure how right causes, steps and detectors are where the truth is known."""
