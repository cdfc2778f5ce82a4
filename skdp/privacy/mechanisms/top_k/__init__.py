"""The largest of noisy scores, by Gumbel noise."""
