"""The session of a fit: its budget, its plans, its releases and its report."""
