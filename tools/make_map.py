"""Write the maps of the package from its docstrings: ``python tools/make_map.py``

`LAYERS` is the one list of the subpackages and their order. `tests/test_architecture.py` compares imports, folders
and both maps with it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "skdp"

# From the highest to the lowest: a layer imports from itself and from those below it. None shares its place.
LAYERS = (
    "cli",
    "reproductions",
    "multiparty",
    "audit",
    "model_selection",
    "metrics",
    "text",
    "nn",
    "linear_model",
    "statistics",
    "preprocessing",
    "datasets",
    "distributed",
    "fitting",
    "base",
    "privacy",
    "kernels",
    "losses",
    "around",
    "_export",
    "_docs",
    "registry",
    "exceptions",
    "_compat",
    "_version",
)
DETAILED = ("linear_model", "fitting", "privacy")  # whose parts the map in docs/ lists, too
START, END = "Written by tools/make_map.py", "End of what tools/make_map.py writes"


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring."""
    found = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert found, f"{path} has no docstring"
    return found.splitlines()[0]


def described(folder: Path, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each subpackage or module as it is shown, with its sentence."""
    for name in names:
        inner = folder / name / "__init__.py"
        whole = inner.is_file()
        yield (f"{name}/" if whole else f"{name}.py", first_line(inner if whole else folder / f"{name}.py"))


def parts(folder: Path) -> tuple[str, ...]:
    """Return the modules and subpackages of a folder by name."""
    found = {p.stem for p in folder.glob("*.py")} | {p.parent.name for p in folder.glob("*/__init__.py")}
    return tuple(sorted(found - {"__init__", "__main__"}))


def literals(sentence: str, mark: str) -> str:
    """Return the sentence with every name in backticks as a literal of the page's language."""
    return re.sub(r"`+([^`]+)`+", rf"{mark}\1{mark}", sentence)


def markdown() -> str:
    rows = [f"| `{name}` | {literals(says, '`')} |" for name, says in described(PACKAGE, LAYERS)]
    return "\n".join(["| layer | what it holds |", "|---|---|", *rows])


def table(title: str, folder: Path, names: tuple[str, ...]) -> str:
    rows = [
        f'   "``{name}``", "{literals(says, "``").replace(chr(34), chr(34) * 2)}"'
        for name, says in described(folder, names)
    ]
    head = [".. csv-table::", f'   :header: "{title}", "what it holds"', "   :widths: 26, 74", ""]
    return "\n".join([*head, *rows])


def restructured() -> str:
    inner = [table(f"in {name}/", PACKAGE / name, parts(PACKAGE / name)) for name in DETAILED]
    return "\n\n".join([table("layer", PACKAGE, LAYERS), *inner])


# Page -> its map, and how a comment is written there.
MAPS = {
    ROOT / "CONTRIBUTING.md": (markdown, "<!-- {} -->"),
    ROOT / "docs" / "contributing" / "architecture.rst": (restructured, ".. {}"),
}


def with_map(path: Path) -> str:
    """Return the page with its map as the docstrings are now."""
    write, comment = MAPS[path]
    before, start, rest = path.read_text(encoding="utf-8").partition(comment.format(START))
    _, end, after = rest.partition(comment.format(END))
    if not end:
        raise ValueError(f"{path} lacks a comment that marks its map")
    return f"{before}{start}\n\n{write()}\n\n{end}{after}"


def main() -> None:
    for path in MAPS:
        path.write_text(with_map(path), encoding="utf-8")


if __name__ == "__main__":
    main()
