"""The front door: two estimators that choose a method by public numbers, and the method of moments."""
