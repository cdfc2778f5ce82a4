"""The architecture: imports point down and in no circle, maps are complete, lists of names are the registry's."""

import ast
import functools
import re
from importlib import import_module
from pathlib import Path

import pytest

import skdp
import skdp.base
import skdp.fitting
from skdp.registry import ESTIMATORS, OTHERS
from tools.make_map import LAYERS, MAPS, parts, with_map

PACKAGE = Path(skdp.__file__).parent
ROOT = PACKAGE.parent
# The command imports the package's own names, and runs by `python -m skdp`.
HEIGHT = {name: -i for i, name in enumerate(("__main__", "cli", "skdp", *LAYERS[1:]))}
APART = {"linear_model", "nn", "text"}  # what these three share is in fitting
LAZY = sorted(
    ".".join(("skdp", *path.relative_to(PACKAGE).parent.parts))
    for path in PACKAGE.rglob("__init__.py")
    if "lazy_loader" in path.read_text()
)


def dotted(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache  # read by the worker that runs these tests, and not by each of them while it collects
def sources():
    return {dotted(path): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def statements(node):
    """All statements below a node, but for those under ``if TYPE_CHECKING``; no expression holds one."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, part, ()):
            if not (isinstance(inner, ast.If) and getattr(inner.test, "id", None) == "TYPE_CHECKING"):
                yield inner
                yield from statements(inner)


def imported(module):
    """The modules of skdp that a module imports, at its top or inside functions."""
    for node in statements(sources()[module]):
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in sources() else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@functools.cache
def graph():
    return {module: sorted(set(imported(module)) & sources().keys()) for module in sources()}


def layer(module):
    return module.split(".")[min(1, module.count("."))]


def between_layers(graph):
    """(importing layer, imported layer, importing module) of all imports that leave a layer."""
    for module, others in graph.items():
        for other in others:
            if layer(module) != layer(other):
                yield layer(module), layer(other), module


def upward(graph):
    return [crossing for crossing in between_layers(graph) if HEIGHT[crossing[1]] >= HEIGHT[crossing[0]]]


def test_every_subpackage_and_module_is_a_layer_of_its_own():
    assert sorted(LAYERS) == list(parts(PACKAGE))


def test_imports_point_down():
    assert upward(graph()) == []


def test_linear_models_nets_and_words_do_not_import_each_other():
    assert [edge for edge in between_layers(graph()) if {*edge[:2]} <= APART] == []


def test_imports_that_point_up_are_found():
    graph = {"skdp.base.fit": ["skdp.fitting.linear", "skdp.privacy"], "skdp": ["skdp._version"]}
    assert upward(graph) == [("base", "fitting", "skdp.base.fit")]


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the documentation is not here")
@pytest.mark.parametrize("page", MAPS, ids=lambda page: page.name)
def test_maps_are_what_the_docstrings_say(page):
    assert page.read_text(encoding="utf-8") == with_map(page), "run: python tools/make_map.py"


def circles(graph):
    """Groups of modules that import each other, directly or not."""

    def reachable(start):
        seen, waiting = set(), [start]
        while waiting:
            waiting += [other for other in graph[waiting.pop()] if not (other in seen or seen.add(other))]
        return seen

    reached = {module: reachable(module) for module in graph}
    found = {frozenset(b for b in reached[a] if a in reached[b]) for a in graph}
    return sorted(sorted(group) for group in found if group)


def test_no_import_circles():
    """Imports inside functions count: they hide a circle, they do not open it."""
    assert circles(graph()) == []


def test_the_search_finds_circles():
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": []}) == [["b", "c"]]


@pytest.mark.parametrize("package", LAZY)
def test_packages_offer_what_their_stubs_name(package):
    """Type checkers take a name of a stub for the package's own if it has an alias, lazy-loader takes each."""
    module = import_module(package)
    assert sorted(module.__all__) == sorted(dir(module))
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    for line in stub.body:
        for alias in line.names:
            assert alias.asname == alias.name
            home = import_module("." * line.level + (line.module or ""), package)
            found = getattr(home, alias.name)
            assert getattr(module, alias.name) is found is not None


def test_every_estimator_is_registered_once_and_offered_by_its_package():
    assert len(LAZY) >= 6
    for name, module in ESTIMATORS.items():
        package = import_module(".".join(module.split(".")[:2]))
        assert name in package.__all__
        assert name in skdp.__all__
        assert getattr(package, name).__module__ == module


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the documentation is not here")
def test_the_api_reference_lists_the_estimators():
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.rst"))
    package = r"(?:linear_model|multiparty|nn|preprocessing|reproductions)"
    listed = set(re.findall(rf"^   ({package}\.(?:[A-Z]{{2,}}|Public|Scattering)\w+)$", pages, flags=re.M))
    listed -= {"nn.LSTM", "nn.SGD"}  # a layer and an optimizer
    assert listed == {f"{module.split('.')[1]}.{name}" for name, module in ESTIMATORS.items()}
    for package in (skdp.base, skdp.fitting):  # what authors of estimators use
        offered = {f"{package.__name__}.{name}".removeprefix("skdp.") for name in package.__all__}
        assert offered == set(re.findall(rf"^   ({package.__name__[5:]}\.\w+)$", pages, flags=re.M))
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
        if not {"_build", "generated", "auto_examples", "conf.py", "moved.md"} & set(page.parts):
            for match in re.finditer(pattern, page.read_text(encoding="utf-8")):
                yield match[1], page.name


def test_dotted_names_exist():
    """`fetch_NAME` stands for any of the fetchers."""
    found = set(named(r"(?<![\w./\\-])(skdp(?:\.[A-Za-z_]\w*)+)"))
    assert [pair for pair in sorted(found) if not resolves(pair[0])] == [("skdp.datasets.fetch_NAME", "_files.py")]


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the documentation is not here")
def test_named_files_and_tests_exist():
    files = set(named(r"(?<![\w.])((?:skdp|tests|docs|examples|tools)/[\w/.-]*\w)"))
    assert [pair for pair in sorted(files) if not (ROOT / pair[0]).exists()] == []
    for test, page in set(named(r"(tests/[\w/]+\.py::[\w:]+)")):
        path, *names = test.split("::")
        assert f"def {names[-1]}(" in (ROOT / path).read_text(encoding="utf-8"), (page, test)
