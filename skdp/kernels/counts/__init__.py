"""Loops over cells whose integers are added for each column: places, thresholds and windows, by record or by group.

Privacy: what a unit adds is a function of its own cells alone. A record's cells are looked at one by one. A group's
are collected in tables that are cleared before the next group. All sums are integers modulo 2**64, so no order of
units and no other unit changes what a unit adds.
"""
