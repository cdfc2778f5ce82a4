"""The shape of the house: imports point down and in no circle, and every list of names is the registry's."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import skdp
from skdp._lazy import stub_of
from skdp.registry import ESTIMATORS, OTHERS

PACKAGE = Path(skdp.__file__).parent
ROOT = PACKAGE.parent
# From the roof to the ground. A module may import from its own floor and from those below.
FLOORS = [
    {"cli", "__main__"},
    {"skdp"},
    {"model_selection", "audit"},
    {"linear_model", "multiparty", "nn", "preprocessing", "metrics", "statistics", "text"},
    {"base"},
    {"privacy"},
    {"losses", "kernels", "datasets"},
    {"around"},
    {"exceptions", "_compat", "_docs", "_export", "_lazy", "_version", "registry"},
]
FLOOR = {room: i for i, rooms in enumerate(FLOORS) for room in rooms}
LAZY = sorted(
    ".".join(("skdp", *path.relative_to(PACKAGE).parent.parts))
    for path in PACKAGE.rglob("__init__.py")
    if "lazy_exports" in path.read_text()
)


def dotted(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {dotted(path): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def imported(module):
    """The modules of skdp that a module imports, at its top or inside functions."""
    guards = [n for n in ast.walk(SOURCES[module]) if isinstance(n, ast.If)]
    guards = [n for n in guards if ast.unparse(n.test) == "TYPE_CHECKING"]
    for_types = {id(inner) for guard in guards for inner in ast.walk(guard)}
    for node in ast.walk(SOURCES[module]):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in SOURCES else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


GRAPH = {module: sorted(set(imported(module)) & SOURCES.keys()) for module in SOURCES}


def floor(module):
    return FLOOR[module.split(".")[min(1, module.count("."))]]


def test_imports_point_down():
    up = [
        f"{module} -> {other}"
        for module, others in GRAPH.items()
        for other in others
        if floor(other) < floor(module)
    ]
    assert up == []


def circles(graph):
    """Groups of modules that reach each other."""

    def reach(start):
        seen, waiting = set(), [start]
        while waiting:
            waiting += [
                other for other in graph[waiting.pop()] if not (other in seen or seen.add(other))
            ]
        return seen

    reached = {module: reach(module) for module in graph}
    found = {frozenset(b for b in reached[a] if a in reached[b]) for a in graph}
    return sorted(sorted(group) for group in found if group)


def test_no_import_circles():
    """Imports inside functions count: they hide a circle, they do not open it."""
    assert circles(GRAPH) == []


def test_the_search_finds_circles():
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": []}) == [["b", "c"]]


@pytest.mark.parametrize("package", LAZY)
def test_stubs_name_what_the_package_offers(package):
    """Type checkers and editors read the stub, Python reads the table: see tools/make_stubs.py."""
    module = import_module(package)
    stub = Path(module.__file__).with_suffix(".pyi").read_text()
    assert stub == stub_of(package), "run: python tools/make_stubs.py"
    assert set(re.findall(r"^from .* import (\w+) as", stub, flags=re.M)) == set(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_every_estimator_is_registered_once_and_offered_by_its_room():
    assert len(LAZY) >= 6
    for name, module in ESTIMATORS.items():
        room = import_module(".".join(module.split(".")[:2]))
        assert name in room.__all__
        assert name in skdp.__all__
        assert getattr(room, name).__module__ == module


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the documentation is not here")
def test_the_api_reference_lists_the_estimators():
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.rst"))
    room = r"(?:linear_model|multiparty|nn|preprocessing)"
    listed = set(
        re.findall(rf"^   ({room}\.(?:[A-Z]{{2,}}|Public|Scattering)\w+)$", pages, flags=re.M)
    )
    listed.discard("nn.LSTM")  # a layer
    assert listed == {f"{module.split('.')[1]}.{name}" for name, module in ESTIMATORS.items()}
    others = {f"{module.split('.')[1]}.{name}" for name, module in OTHERS.items()}
    assert others == set(re.findall(r"^   (text\.\w+)$", pages, flags=re.M))


def resolves(name):
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def named(pattern):
    """What the sources and the documentation name, and where."""
    pages = [*PACKAGE.rglob("*.py"), *ROOT.glob("*.md")]
    pages += [p for part in ("docs", "examples") for p in (ROOT / part).rglob("*.*")]
    pages = [p for p in pages if p.suffix in {".py", ".md", ".rst"}]
    for page in pages:
        if not {"_build", "generated", "auto_examples", "conf.py"} & set(page.parts):
            for match in re.finditer(pattern, page.read_text(encoding="utf-8")):
                yield match[1], page.name


def test_dotted_names_exist():
    """`fetch_NAME` stands for any of the fetchers."""
    found = set(named(r"(?<![\w./\\-])(skdp(?:\.[A-Za-z_]\w*)+)"))
    assert [pair for pair in sorted(found) if not resolves(pair[0])] == [
        ("skdp.datasets.fetch_NAME", "_files.py")
    ]


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the documentation is not here")
def test_named_files_and_tests_exist():
    files = set(named(r"(?<![\w.])((?:skdp|tests|docs|examples|tools)/[\w/.-]*\w)"))
    assert [pair for pair in sorted(files) if not (ROOT / pair[0]).exists()] == []
    for test, page in set(named(r"(tests/[\w/]+\.py::[\w:]+)")):
        path, *names = test.split("::")
        assert f"def {names[-1]}(" in (ROOT / path).read_text(encoding="utf-8"), (page, test)
