"""Measure the sanitiser: planted canaries of many kinds and places, and what it changes in clean data."""
