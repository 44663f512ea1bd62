"""Cost and scale, measured against the floor and against what else a user would run: ``make bench``."""
