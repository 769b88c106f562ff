"""Answer queries over the tables of runs: measures, one SELECT, or conclusions."""
