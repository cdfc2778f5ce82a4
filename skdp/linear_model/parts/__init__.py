"""What several methods share: scales of the data, step rules, penalties, progress."""
