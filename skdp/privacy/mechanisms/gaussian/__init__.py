"""Gaussian noise on all records, and on fresh samples of them."""
