"""Keep the rows of a run as tables: rollouts, tasks, fields, checks, answers, steps, calls, texts."""
