"""A few coordinates, chosen privately, with Gaussian noise on these."""
