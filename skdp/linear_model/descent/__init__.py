"""Gradient descent with full gradients, the rivals of recursive momentum."""
