"""Judge a report: its claims by the rollouts, its findings by the anchor facts."""
