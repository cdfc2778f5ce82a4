"""The sparse vector technique: which of many queries are above a threshold."""
