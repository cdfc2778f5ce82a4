"""Sums of gradients whose norm is clipped, row by row or group by group."""
