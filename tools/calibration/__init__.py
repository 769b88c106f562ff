"""Measure whether verdicts, intervals and claimed causes of a comparison are as right as they say."""
