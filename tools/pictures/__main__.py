"""Draw pictures in both themes: ``python -m tools.pictures [NAME ...]``, all without a name."""

import sys

from tools.pictures import NAMES
from tools.pictures.draw import save

for name in sys.argv[1:] or NAMES:
    for path in save(name):
        print(f"{path.stat().st_size / 1024:5.0f} kB  {path.name}")
