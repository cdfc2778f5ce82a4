"""Sums of gradients whose largest entry is clipped, and their upkeep along a path of vertices."""
