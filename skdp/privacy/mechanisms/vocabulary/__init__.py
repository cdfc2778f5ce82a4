"""The words that enough units have, by Gaussian counts and a threshold."""
