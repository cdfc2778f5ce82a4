"""The pictures of README and documentation: ``python -m tools.pictures [NAME ...]`` draws them."""
