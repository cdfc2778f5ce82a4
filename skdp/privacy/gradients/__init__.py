"""Gradients of nets: pieces of them, their norms, and sums in blocks of positions.

`skdp.privacy.statistics.gradient_sum` is the statistic; it has the proof.
"""
