"""The documentation: classes are on guide pages, pages in the menu, links have targets, and words are few."""

import functools
import inspect
import re
from importlib import import_module
from pathlib import Path, PurePosixPath

import pytest

import skdp
from tools.count_words import counted, counts, pages, words_of_readme

ROOT = Path(skdp.__file__).parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here")
MOST_WORDS, MOST_WORDS_OF_README = 35_000, 900

# Folders of which one must link each class of the subpackages. The other subpackages are for authors of mechanisms
# and estimators.
PLACES = {
    ("guide",): (
        "audit", "linear_model", "metrics", "model_selection", "multiparty", "nn", "preprocessing", "statistics",
        "text",
    ),
    ("guide", "researchers"): ("losses", "reproductions"),
}  # fmt: skip
OTHERS = {"skdp.privacy.BudgetAccountant": ("guide",), "skdp.privacy.PrivacyReport": ("guide", "reviewers")}

ROLE = re.compile(r"(?:(?<=:)|(?<![\w`:]))(?::(?P<role>[\w:+-]+):)?`(?P<text>[^`]+)`(?!`)")
OF_OBJECTS = {None, "class", "exc", "func", "meth", "mod", "obj", "py:class", "py:obj"}


def read(page):
    return (DOCS / f"{page}.rst").read_text(encoding="utf-8")


def names():
    """Pages as links name them, from the folder docs/."""
    return {path.relative_to(DOCS).with_suffix("").as_posix() for path in pages(ROOT)}


def resolved(target, page):
    """The page that a link or an entry of a menu names."""
    parts = []
    start = PurePosixPath() if target.startswith("/") else PurePosixPath(page).parent
    for part in (start / target.lstrip("/")).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def roles(text):
    """(role or None, target) of everything in single backticks."""
    text = re.sub(r"``.*?``", " ", text, flags=re.DOTALL)
    for found in ROLE.finditer(text):
        target = re.search(r"<([^>]*)>$", found["text"])
        yield found["role"], re.sub(r"\s+", " ", target[1] if target else found["text"]).strip()


def menu(page):
    """The pages that the menus of a page name, in their order."""
    found = []
    lines = read(page).splitlines()
    for place, line in enumerate(lines):
        start = re.match(r"( *)\.\. toctree::", line)
        for entry in lines[place + 1 :] if start else ():
            if entry.strip() and len(entry) - len(entry.lstrip()) <= len(start[1]):
                break
            if entry.strip() and not entry.lstrip().startswith(":"):
                target = re.search(r"<([^>]+)>$", entry.strip())
                found.append(resolved(target[1] if target else entry.strip(), page))
    return found


@functools.cache
def documented():
    """Full names of all that the API pages list."""
    found = []
    for path in sorted((DOCS / "api").glob("*.rst")):
        module, inside = "", False
        for line in path.read_text(encoding="utf-8").splitlines():
            directive = re.match(r"\.\. ([\w-]+):: *(.*)", line)
            if directive is not None:
                inside = directive[1] == "autosummary"
                module = directive[2] if directive[1] == "currentmodule" else module
            elif line.strip() and not line.startswith(" "):
                inside = False
            elif inside and line.strip() and not line.strip().startswith(":"):
                found.append(f"{module}.{line.strip()}")
    return tuple(found)


def is_class(name):
    module, _, last = name.rpartition(".")
    return inspect.isclass(getattr(import_module(module), last))


def classes():
    """(full name, folders of docs/ of which one must link it) of each class for users."""
    for name in documented():
        for folders, packages in PLACES.items():
            if name.split(".")[1] in packages and is_class(name):
                yield name, folders
    yield from OTHERS.items()


@functools.cache
def linked(folder):
    """Targets of links to objects on the pages of a folder."""
    text = "\n".join(read(name) for name in sorted(names()) if name.startswith(f"{folder}/"))
    return frozenset(target.lstrip("~.") for role, target in roles(text) if role in OF_OBJECTS)


def test_the_readers_of_pages_read():
    text = 'A `DPX` and :class:`~skdp.nn.Conv2D`, ``none`` and `a\nb <skdp.C>`, :doc:`/guide/nets` "`E`"'
    found = [(None, "DPX"), ("class", "~skdp.nn.Conv2D"), (None, "skdp.C"), ("doc", "/guide/nets"), (None, "E")]
    assert list(roles(text)) == found
    assert resolved("../theory/iht", "guide/sparse") == "theory/iht"
    assert resolved("/theory/iht", "guide/sparse") == "theory/iht"
    assert menu("index")[0] == "getting_started"
    assert "guide/evaluation" in menu("guide/index")
    assert "skdp.linear_model.DPLogisticRegression" in documented()


def test_words_are_those_of_prose():
    text = """
    Title here
    ==========

    .. _label:

    Of 3 words, :doc:`two more <x>`::

        not = these

    .. csv-table:: Not this
       :file: x.csv

       nor, these

    .. note:: But this
       and this.

    >>> 1 + 1
    .. A comment.
    """
    found = counted(inspect.cleandoc(text))
    assert (found["words"], found["numbers"]) == (11, 1)


def test_every_estimator_is_in_the_api():
    listed = {name.rpartition(".")[2] for name in documented()}
    assert {name for name, _ in skdp.all_estimators()} <= listed


def test_every_class_is_linked_on_a_guide_page():
    missing = []
    for name, folders in classes():
        of_name = {name, *(name.split(".", cut)[-1] for cut in range(1, name.count(".") + 1))}
        if not any(of_name & linked(folder) for folder in folders):
            missing.append(f"{name} in {' or '.join(folders)}")
    assert not missing, "\n".join(missing)


def test_every_page_is_two_clicks_from_the_menu():
    first = menu("index")
    second = [page for entry in first if entry in names() for page in menu(entry)]
    missing = names() - {"index", *first, *second}
    assert not missing, "\n".join(sorted(missing))
    assert len(second) == len(set(second)), "a page is in two menus"


def test_every_entry_of_a_menu_is_a_page():
    missing = {f"{page}: {entry}" for page in names() for entry in menu(page) if not exists(entry)}
    assert not missing, "\n".join(sorted(missing))


def exists(page):
    """Whether a page is there, or is one that the gallery writes from a script."""
    folder, _, name = page.partition("/")
    if folder == "auto_examples":
        return name == "index" or (ROOT / "examples" / f"{name}.py").is_file()
    return page in names()


def test_every_link_to_a_page_has_its_page():
    missing = []
    texts = {name: read(name) for name in names()}
    texts["auto_examples/index"] = (ROOT / "examples" / "GALLERY_HEADER.rst").read_text(encoding="utf-8")
    for script in (ROOT / "examples").glob("*.py"):
        texts[f"auto_examples/{script.stem}"] = script.read_text(encoding="utf-8")
    for page, text in sorted(texts.items()):
        for role, target in roles(text):
            if role == "doc" and not exists(resolved(target, page)):
                missing.append(f"{page}: {target}")
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_picture_is_there(theme):
    named = {name for page in names() for name in re.findall(r"\.\. picture:: *(\S+)", read(page))}
    folder = DOCS / "_static" / "pictures"
    missing = {name for name in named if not (folder / f"{name}-{theme}.svg").is_file()}
    assert not missing, "\n".join(sorted(missing))


def test_titles_and_paths_that_messages_quote_are_there():
    under = re.compile(r"^(\S.*)\n([-=~^])\2{2,}$", re.MULTILINE)
    titles = {title for page in names() for title, _ in under.findall(read(page))}
    quoted, paths = {}, {}
    for file in sorted(Path(skdp.__file__).parent.rglob("*.py")):
        # A string of several literals is one text: quotation marks and line ends between them are left out.
        text = re.sub(r"[\"']\s*\n\s*f?[\"']", "", file.read_text(encoding="utf-8"))
        text = re.sub(r"\s+", " ", text)
        found = re.findall(r"\b(?:guide|page|section)\b[^'\"(.=,]{0,25}(['\"])([A-Z][^'\"]{3,60})\1", text)
        quoted |= {title: file.name for _, title in found}
        paths |= dict.fromkeys(re.findall(r"\bdocs/[a-z_/]+\.rst", text), file.name)
    assert {"Steps before a fit", "Linear and logistic regression"} <= set(quoted)
    assert {title: file for title, file in quoted.items() if title not in titles} == {}
    assert {path: file for path, file in paths.items() if not (ROOT / path).is_file()} == {}


def test_the_documentation_is_short():
    words = {page: found["words"] for page, found in counts(ROOT).items()}
    longest = sorted(words.items(), key=lambda item: -item[1])[:20]
    assert sum(words.values()) <= MOST_WORDS, "\n".join(f"{number} {page}" for page, number in longest)


def test_the_readme_is_short():
    assert words_of_readme(ROOT) <= MOST_WORDS_OF_README
