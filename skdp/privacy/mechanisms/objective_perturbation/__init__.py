"""The minimiser of an objective with a random linear term."""
