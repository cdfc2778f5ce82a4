"""A pure mechanism on a fresh uniform sample."""
