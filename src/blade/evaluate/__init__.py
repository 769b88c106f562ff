"""The other wing: from a benchmark's definition to the rollouts, profiles and aggregates that BLADE reads."""
