"""Methods that the secure ones are compared with, each with a report of its true budget."""
