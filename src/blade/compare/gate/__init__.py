"""Judge a change by a policy: PASS, WARN, FAIL or INCONCLUSIVE, for a pipeline that must decide."""
