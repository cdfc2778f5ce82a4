"""Loops over cells whose integers are added by column: positions, thresholds and windows, of records or of groups.

Privacy: a unit's part is a function of its own cells alone. A record's cells are looked at one by one. Those of a
group are collected in tables that are cleared before the next group. All sums are integers modulo 2**64, so no
order of units and no other unit changes a unit's part.
"""
