"""Turn the rows of a run into tables: rollouts, tasks, fields, checks, answers, steps, calls, texts."""
