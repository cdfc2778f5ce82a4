"""The numeric sparse vector technique."""
