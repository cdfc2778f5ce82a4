"""What estimators share: labels, targets and their scales, step rules, penalties, calibration, progress."""
