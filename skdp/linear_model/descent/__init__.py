"""Gradient descent with full gradients, and random round SGD."""
