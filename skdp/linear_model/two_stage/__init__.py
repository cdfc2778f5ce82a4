"""Two stages: choose the support, then fit on it."""
