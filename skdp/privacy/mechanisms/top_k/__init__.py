"""The k largest scores, by Gumbel noise."""
