"""Connections between the parties of a joint fit: frames, links, and errors that name a party."""
