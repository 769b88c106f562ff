"""The other wing: from a benchmark's definition to the rollouts and numbers that BLADE reads."""
