"""The best of a random number of private trials."""
