"""Code that families of models share: targets and their scales, step rules, penalties, calibration, progress."""
