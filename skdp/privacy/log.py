"""The logger ``skdp``: what a fit plans and what it is charged with, as lines of level INFO.

These lines hold parameters and public numbers, and are the same for neighbouring data. Plans that were made after
a release may follow from it and are of level DEBUG. No line holds a record, a key or a seed. Nothing is printed
unless the program asks for it, for example by ``logging.basicConfig(level=logging.INFO)``. When a line comes is
not protected, as the time of a fit is not.
"""

import logging

__all__ = ["LOGGER"]

LOGGER = logging.getLogger("skdp")
LOGGER.addHandler(logging.NullHandler())
