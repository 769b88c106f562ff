"""Serve agents and people who read single tasks: dossiers, queue, judgements, skills, MCP, reading by a model."""
