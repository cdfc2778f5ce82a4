"""Sphinx configuration. Builds offline; SKDP_INTERSPHINX=1 links to other projects' documentation.

It adds a role, ``:test:`tests/file.py::name```, that fails the build when the named test does not exist. It
turns CHANGELOG.md into reStructuredText when it is included. It shows docstring sections "Privacy" under Notes.
"""

import ast
import inspect
import os
import re
import sys
import warnings
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.utils.math.latex2mathml import tex2mathml
from numpydoc.docscrape import NumpyDocString
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("MPLBACKEND", "Agg")

import skdp  # noqa: E402

project = "skdp"
author = "The skdp developers"
copyright = "2026, the skdp developers"
version = release = skdp.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
default_role = "obj"
pygments_style = "tango"

autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
# `A or B` types and the like are prose, not names to be looked up.
numpydoc_xref_param_type = False
NumpyDocString.sections["Privacy"] = []  # shown by privacy_into_notes

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"skdp {release}"
html_static_path = ["_static"]
html_css_files = ["skdp.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "header_links_before_dropdown": 7,
}
# Pages without subpages have nothing to show on the left.
html_sidebars = {
    page: [] for page in ("index", "getting_started", "changelog", "glossary", "references", "auto_examples/*")
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"[\\/]plot_",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1000,
    "plot_gallery": "True",
}

if os.environ.get("SKDP_INTERSPHINX") == "1":
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

# The gallery declares its classes; a notebook viewer may not support Agg.
warnings.filterwarnings("ignore", message=".*non-interactive.*", category=UserWarning)


@cache
def _tests_in(path):
    """Names of the tests of a file, ``Class::method`` for methods."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (item for item in node.body if isinstance(item, ast.FunctionDef))
            names |= {f"{node.name}::{method.name}" for method in methods}
    return frozenset(names)


def named_test(name, rawtext, text, lineno, inliner, options=None, content=()):
    """Show a pytest node id; warn (and fail under -W) if there is no such test."""
    path, _, test = text.partition("::")
    shown = nodes.literal(rawtext, text.removeprefix("tests/"))
    if test in _tests_in(path):
        return [shown], []
    message = inliner.reporter.warning(f"no such test: {text}", line=lineno)
    return [shown], [message]


def changelog_as_rst(app, relative_path, parent_docname, content):
    """Translate the little Markdown that CHANGELOG.md uses: headings, links, code."""
    if relative_path.suffix != ".md":
        return
    text = content[0]
    text = re.sub(r"\[([^\]]+)\]\((https?://[^)\s]+)\)", r"`\1 <\2>`__", text)
    text = re.sub(r"(?<![`\w])`([^`<\n]+)`(?![`_])", r"``\1``", text)
    lines = []
    for line in text.splitlines():
        heading = re.match(r"(#{1,4}) +(.*)", line)
        if heading is None:
            lines.append(line)
            continue
        title = heading[2].replace("[", "").replace("]", "")
        lines += ["", title, "=-~^"[len(heading[1]) - 1] * len(title), ""]
    content[0] = "\n".join(lines) + "\n"


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what classes inherit from scikit-learn: it is documented there."""
    if what != "class" or skip:
        return skip
    function = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    module = getattr(function, "__module__", None)
    if name.startswith(("set_", "get_metadata")) or (module and not module.startswith("skdp")):
        return name != "get_feature_names_out"
    # The two methods of a fit are for authors of estimators: the page of `PrivateFit` has them.
    return True if name in ("read", "solve") and module != "skdp.base.fit" else None


def privacy_into_notes(app, what, name, obj, options, lines):
    """Move the section "Privacy", which numpydoc would drop, to the end of the section "Notes"."""
    heads = [
        place
        for place, (title, rule) in enumerate(pairwise(lines))
        if title.strip() and rule and set(rule) == {"-"} and len(rule) == len(title)
    ]
    sections = {lines[a]: lines[a:b] for a, b in zip(heads, [*heads[1:], len(lines)])}
    privacy = sections.pop("Privacy", None)
    if privacy is None:
        return
    after = [title for title in ("References", "Examples") if title in sections]
    notes = sections.pop("Notes", ["Notes", "-----"])
    last = {title: sections.pop(title) for title in after}
    notes += ["", "**Privacy.**", "", *privacy[2:], ""]
    lines[:] = [*lines[: heads[0]], *chain(*sections.values(), notes, *last.values())]


@cache
def _guide_pages():
    """By name of a class: the page of the user guide that names it most often."""
    pages = {
        path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "guide").glob("*.rst"))
    }
    del pages["index"]  # it names all of them
    found = {}
    for name, _ in skdp.all_estimators():
        counts = {page: len(re.findall(rf"`(?:~?[\w.]+\.)?{name}`", text)) for page, text in pages.items()}
        page = max(counts, key=counts.get)
        if counts[page]:
            found[name] = page
    return found


def link_to_guide(app, what, name, obj, options, lines):
    """Say on the page of an estimator where the user guide explains it."""
    page = _guide_pages().get(name.rpartition(".")[2]) if what == "class" else None
    if page is None:
        return
    heads = [
        place
        for place, (title, rule) in enumerate(pairwise(lines))
        if title == "Parameters" and set(rule) == {"-"}
    ]
    if heads:
        lines[heads[0] : heads[0]] = [f"Read more in the user guide: :doc:`/guide/{page}`.", ""]


def _escape_bars(match):
    return match[0].replace("|", "\\|")


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are read in terminals too: |k| is an absolute value, (n_features_in_,) a shape."""
    for place, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = re.split(r"(``[^`]*``)", line)
        for k in range(0, len(parts), 2):  # the others are literals
            parts[k] = re.sub(r"(?<![`\\\w|])\|+\w+\|+(?![_|])", _escape_bars, parts[k])
            if "of shape (" in line:
                parts[k] = re.sub(r"(?<![`\w])(\w+)_(?=[,)])", r"\1\\_", parts[k])
        lines[place] = "".join(parts)


def signatures_shown(app, exception):
    """Fail the build where the page of an estimator does not show the parameters of its constructor."""
    if exception is not None or app.builder.name != "html":
        return
    for name, cls in skdp.all_estimators():
        package = ".".join(cls.__module__.split(".")[:2])
        page = Path(app.outdir, "api", "generated", f"{package}.{name}.html").read_text(encoding="utf-8")
        shown = re.search(rf'<dt class="sig[^>]*id="{package}.{name}">(.*?)</dt>', page, re.DOTALL)[1]
        shown = set(re.findall(r'<span class="n"><span class="pre">(\w+)</span></span>', shown))
        missing = set(inspect.signature(cls).parameters) - shown
        if missing:
            raise ExtensionError(f"the page of {name} does not show its parameters {sorted(missing)}")


def public_names(app, env, node, contnode):
    """Link ``DPSGDClassifier`` or ``nn.Conv2D``: a name of the API without its package, if it is the only one."""
    if node.get("refdomain") != "py":
        return None
    domain, end = env.get_domain("py"), "." + node["reftarget"]
    found = [name for name, entry in domain.objects.items() if name.endswith(end) and not entry.aliased]
    found = [name for name in found if domain.objects[name].objtype in ("class", "exception", "function")]
    if len(found) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, contnode)


# Of TeX, as docutils reads it: the commands that it does not know, and others for the same.
OTHER_TEX = {r"\lt": "<", r"\gt": ">", r"\texttt": r"\text", r"\_": "_", "∎": r"\square"}


def formula(self, node):
    """Write a formula as MathML, which browsers show without a script that is loaded from elsewhere."""
    block = isinstance(node, nodes.math_block)
    text = node.astext()
    for known, other in OTHER_TEX.items():
        text = text.replace(known, other)
    for part in filter(str.strip, text.split("\n\n")):
        if r"\\" in part and not part.lstrip().startswith(r"\begin"):
            part = rf"\begin{{aligned}}{part}\end{{aligned}}"
        made = tex2mathml(part, as_block=block)
        self.body.append(f'<div class="formula">{made}</div>' if block else made)
    raise nodes.SkipNode


class Picture(Directive):
    """``.. picture:: NAME``: ``_static/pictures/NAME-light.svg``, and the dark picture in the dark theme.

    Its content is the caption; the option ``:alt:`` says in words what the picture shows.
    """

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required, "width": directives.unchanged}

    def run(self):
        folder = ROOT / "docs" / "_static" / "pictures"
        figure = nodes.figure(classes=["picture"])
        # In a box of their own: the theme hides the caption that follows a picture of the other theme.
        figure += nodes.container()
        for theme in ("light", "dark"):
            file = folder / f"{self.arguments[0]}-{theme}.svg"
            if not file.is_file():
                raise self.error(f"no such picture: {file}")
            image = nodes.image(uri=f"/_static/pictures/{file.name}", classes=[f"only-{theme}"], **self.options)
            figure[0] += image
        if self.content:
            text = nodes.Element()
            self.state.nested_parse(self.content, self.content_offset, text)
            figure += nodes.caption("", "", *text[0].children)
            figure += nodes.legend("", *text.children[1:]) if len(text) > 1 else []
        return [figure]


def setup(app):
    app.add_directive("picture", Picture)
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("build-finished", signatures_shown)
    app.add_role("test", named_test)
    app.connect("missing-reference", public_names)
    app.connect("include-read", changelog_as_rst)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", link_to_guide, priority=90)  # before numpydoc, as the next one
    app.connect("autodoc-process-docstring", privacy_into_notes, priority=100)
    app.connect("autodoc-process-docstring", plain_text, priority=900)  # after numpydoc
