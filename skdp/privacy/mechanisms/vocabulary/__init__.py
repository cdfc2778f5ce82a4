"""A private vocabulary: the words that enough groups have."""
