"""Turn a package into checks of its skill, rollouts and golden reports, with a checklist at the end."""
