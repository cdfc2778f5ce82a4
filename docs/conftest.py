"""pytest: the documentation's examples are doctests; what a build has generated is not."""

collect_ignore = ["conf.py"]
collect_ignore_glob = ["_build/*", "auto_examples/*", "api/generated/*"]
