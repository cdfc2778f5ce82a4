"""Statistics of private records, each with what one unit can change in it."""
