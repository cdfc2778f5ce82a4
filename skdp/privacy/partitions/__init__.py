"""Records whose rows lie in partitions: read in blocks, or kept by the workers of a cluster."""
