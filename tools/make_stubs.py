"""Write the stubs of the packages with lazy exports, so that type checkers and editors know their names.

Run from the repository root after a change of `skdp.registry` or of a package's exports:
``python tools/make_stubs.py``. `tests/test_import.py` fails where a stub is out of date.
"""

from pathlib import Path

from skdp._lazy import stub_of


def main() -> None:
    for source in sorted(Path("skdp").rglob("__init__.py")):
        if "lazy_exports" in source.read_text(encoding="utf-8"):
            stub = source.with_suffix(".pyi")
            stub.write_text(stub_of(".".join(source.parent.parts)), encoding="utf-8")
            print(stub)


if __name__ == "__main__":
    main()
