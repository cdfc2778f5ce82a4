"""Statistics of private records: each a function of `Rows` that returns a `Bounded`.

One file has one statistic, or closely related ones. Its docstring proves what one unit of privacy can change. A
statistic is computed when a session releases it, because the grid is known only then.
"""
