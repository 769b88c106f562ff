"""Validate the skill, rollouts and golden reports of a package, with a checklist at the end."""
