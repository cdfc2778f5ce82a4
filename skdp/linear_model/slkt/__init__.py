"""Sparse learning by knowledge transfer."""
