"""Measure and test the engine: planted faults, accuracy, calibration, canaries, speed. Nothing here ships."""
