"""Additive models: the automatic linear estimators, with smooth functions of the columns that ask for them."""
