"""Turn runs into a package that others can check: skill, rollouts, golden reports, and the judge."""
