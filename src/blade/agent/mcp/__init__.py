"""Answer a coding agent over the Model Context Protocol: what the commands tell, as tools."""
