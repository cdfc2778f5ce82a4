"""The logger ``skdp``: what a fit plans and what it is charged with, as lines of level INFO.

The lines hold parameters, public numbers and released ones: they are the same for neighbouring data, except where
they follow from what was released. No line holds a record, a key or a seed. Nothing is printed unless the program
asks for it, for example by ``logging.basicConfig(level=logging.INFO)``. When a line comes is not protected, as the
time of a fit is not.
"""

import logging

__all__ = ["LOGGER"]

LOGGER = logging.getLogger("skdp")
LOGGER.addHandler(logging.NullHandler())
