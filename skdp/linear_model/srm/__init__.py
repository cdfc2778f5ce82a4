"""Stochastic recursive momentum."""
