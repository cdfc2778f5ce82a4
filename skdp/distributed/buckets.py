"""x."""
bucketed = None
