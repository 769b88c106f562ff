"""From the rows of a benchmark to rollouts: inputs, the agent, collection, and what is kept of it."""
