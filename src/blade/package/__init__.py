"""Build, validate, judge and calibrate packages: skill, rollouts and golden reports of a benchmark."""

MIN_ANCHORS = 8  # anchor facts that can be used, below which a report is not judged
