"""The Gaussian mechanism, rounded to a grid."""
