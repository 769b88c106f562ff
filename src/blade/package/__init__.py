"""Turn runs into a package that others can check: skill, rollouts, golden reports, and the judge."""

MIN_ANCHORS = 8  # anchor facts that can be used, below which a report is not judged
