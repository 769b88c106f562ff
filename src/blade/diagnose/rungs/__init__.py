"""The questions of the ladder, in the order in which they are asked; each proves its answer or stays silent."""
