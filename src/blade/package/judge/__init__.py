"""Turn a report into a score: its claims by the rollouts, its facts by the anchors, times gates."""
