"""Layers, one a file. Each is an immutable value: its parameters and its results belong to whoever calls it."""
