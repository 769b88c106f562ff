"""Turn what a page says into claims: each slot of a statement bound to the fact that it states."""
