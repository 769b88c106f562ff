"""Serve environments, agents and models over HTTP as NeMo Gym does, and run rollouts on such servers."""
