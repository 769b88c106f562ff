"""From the rows of a benchmark to rollouts: inputs, the agent's loop, collection, and what is kept of it."""
