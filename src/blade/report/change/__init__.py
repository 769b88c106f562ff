"""Tell a comparison: why the score changed, on every page and on one screen."""
