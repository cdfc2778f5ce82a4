"""Statistics of private records: each a function of `Rows` that returns a `Bounded`.

One file holds one statistic, or statistics that differ in one word. Its docstring holds the proof of what one
unit of privacy can change. Nothing is computed before a session releases the statistic: only then is the grid
known.
"""
