"""Compress the RAND HIE table of the statsmodels wheel into skdp/datasets/data/rand_hie.csv.xz.

The bytes inside the archive are those of statsmodels/datasets/randhie/src/randhie.csv, unchanged,
so anyone can compare them with the source: ``xz -dc rand_hie.csv.xz | sha256sum`` must print
SHA256.

Run from the repository root with statsmodels installed: ``python tools/make_rand_hie.py``.
"""

import argparse
import hashlib
import lzma
from importlib.util import find_spec
from pathlib import Path

SHA256 = "fe64f3c8e987779daa6052dd756d9ce277e025330f5549126c7c2f6a3c9c5541"
TARGET = Path("skdp/datasets/data/rand_hie.csv.xz")


def find_source() -> Path:
    """Locate the table without importing statsmodels."""
    spec = find_spec("statsmodels")
    if spec is None or spec.origin is None:
        raise SystemExit("statsmodels is not installed: pip install statsmodels")
    return Path(spec.origin).parent / "datasets" / "randhie" / "src" / "randhie.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=None, help="randhie.csv, 20190 x 45")
    args = parser.parse_args()
    table = (args.source or find_source()).read_bytes()
    digest = hashlib.sha256(table).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"The source has sha256 {digest}, expected {SHA256}.")
    TARGET.write_bytes(lzma.compress(table, preset=9 | lzma.PRESET_EXTREME))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
