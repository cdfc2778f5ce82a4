"""Private choices of coordinates, and Gaussian noise on these."""
