"""What docstrings of estimators and statistics say of parameters and attributes is so; shared texts are used."""

import ast
import inspect
import math
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import skdp
import skdp.datasets
import skdp.metrics
import skdp.model_selection
import skdp.statistics
from skdp import _docs, nn
from skdp._docs import REFERENCES, TEXTS, document
from skdp.base.declare import Declared, fitted, parameters_of

ROOT = Path(skdp.__file__).parent
ALL = dict(skdp.all_estimators())
STATISTICS = {
    name: getattr(skdp.statistics, name)
    for name in ("count", "crosstab", "describe", "histogram", "mean", "quantile", "std", "var")
}
METRICS = {name: getattr(skdp.metrics, name) for name in skdp.metrics.__all__ if name.islower()}
OTHERS = {name: getattr(skdp, name) for name in skdp.registry.OTHERS}
SEARCHES = {
    name: getattr(skdp.model_selection, name) for name in ("DPRandomizedSearch", "DPTunedThresholdClassifier")
}
SELECTION = {name: getattr(skdp.model_selection, name) for name in ("compare", "cross_validate")}
SETTINGS = {
    name: getattr(skdp.datasets, name) for name in ("make_sparse_classification", "make_sparse_regression")
}
OBJECTS = {
    name: getattr(nn, name) for name in ("Adam", "AvgPool2D", "MaxPool2D", "Microbatch", "Projections", "SGD")
}
DOCUMENTED = {**ALL, **OTHERS, **STATISTICS, **METRICS, **SEARCHES, **SELECTION, **SETTINGS, **OBJECTS}
each = pytest.mark.parametrize("name", sorted(ALL))
each_documented = pytest.mark.parametrize("name", sorted(DOCUMENTED))


def sections(doc):
    """Lines of each section by title; the summary is under ''."""
    lines = inspect.cleandoc(doc).split("\n")
    found, title = {"": []}, ""
    for line, below in zip(lines, [*lines[1:], ""]):
        if below and set(below) == {"-"} and len(below) == len(line):
            title = line
            found[title] = []
        elif not (line and set(line) == {"-"}):
            found[title].append(line)
    return found


def entries(lines):
    """Types by name; one entry for each name of ``a, b : float``."""
    heads = [line.partition(" : ") for line in lines if line and not line.startswith(" ")]
    assert all(bar for _, bar, _ in heads), heads
    return {name: kind for names, _, kind in heads for name in names.split(", ")}


def sources():
    """(name, its docstring in the source, what was given to `document`) of all that is documented."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "document":
                    like = mark.args[0].id if mark.args else None
                    yield node.name, ast.get_docstring(node, clean=False), like


def shared_keys(source, like):
    """Keys that are looked up among the shared texts."""
    own = {} if like is None else _docs._pieces(_docs._EXPANDED[DOCUMENTED[like]])
    lines = filter(_docs._PLACEHOLDERS.fullmatch, source.split("\n"))
    return {key for line in lines for key in re.findall(r"[\w.]+", line)} - set(own)


@pytest.mark.thorough
def test_every_estimator_is_documented_with_shared_texts():
    assert {name for name, _, _ in sources()} == set(DOCUMENTED)


@pytest.mark.thorough
def test_every_shared_text_is_used():
    for made in DOCUMENTED.values():
        assert made.__doc__
    used = set().union(*(shared_keys(source, like) for _, source, like in sources()))
    written = [inspect.cleandoc("\n".join(lines)) for lines in _docs._EXPANDED.values()]
    used |= {key for key, text in TEXTS.items() if any(text in doc for doc in written)}
    used -= set(skdp.statistics.mean._arguments)
    assert used == set(TEXTS)


@pytest.mark.thorough
def test_every_paper_is_cited():
    cited = {key for _, source, _ in sources() for key in re.findall(r"\[(\w+\d{4})\]_", source)}
    declared = [one.text for made in ALL.values() for one in parameters_of(made).values()]
    for text in [*TEXTS.values(), *declared]:
        cited |= set(re.findall(r"\[(\w+\d{4})\]_", text))
    assert cited == set(REFERENCES)


@each_documented
def test_nothing_is_left_to_be_replaced(name):
    doc = DOCUMENTED[name].__doc__
    assert not re.search(r"\[[A-Z]\w*\d{4}\]", doc)
    assert not re.search(r"\{\w[\w.]*\}", doc)
    for title in sections(doc):
        assert sections(doc)[title] != [], title


@each
def test_references_are_numbered_and_each_is_cited(name):
    found = sections(ALL[name].__doc__)
    listed = [int(n) for line in found.get("References", []) for n in re.findall(r"^\.\. \[(\d+)\]", line)]
    text = "\n".join(line for title, lines in found.items() if title != "References" for line in lines)
    assert listed == list(range(1, len(listed) + 1))
    assert {int(n) for n in re.findall(r"\[(\d+)\]_", text)} == set(listed)


@each_documented
def test_parameters_are_those_of_the_signature_with_their_defaults(name):
    signature = inspect.signature(DOCUMENTED[name]).parameters
    documented = entries(sections(DOCUMENTED[name].__doc__)["Parameters"])
    assert list(documented) == list(signature)
    for key, kind in documented.items():
        if signature[key].default is inspect.Parameter.empty:
            assert "default" not in kind
            continue
        text = re.search(r", default=(.+)$", kind)[1]
        told = math.inf if text == "inf" else ast.literal_eval(text)
        default = signature[key].default
        assert (type(told), told) == (type(default), default), key
        words = re.match(r"\{(.+)\}", kind)
        if words:
            assert default in ast.literal_eval(f"[{words[1]}]"), key


@pytest.fixture(scope="module")
def attributes_of_fits():
    """Public attributes of one small fit of each estimator."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    found = {}
    for name, cls in ALL.items():
        model = cls()
        known = model.get_params()
        if "classes" in known:
            model.set_params(classes=[0, 1])
        y = (X["a"] > 0).astype(int) if is_classifier(model) else X["a"] + rng.normal(size=200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "vocabulary_size" in known:
                model.set_params(vocabulary_size=9, max_length=4, max_iter=2)
                model.fit((X > 0).astype(int), y)
            else:
                model.fit(X, y)
        found[name] = {k for k in dir(model) if k.endswith("_") and not k.startswith("_")}
    return found


@pytest.mark.thorough
@each
def test_attributes_are_those_of_a_fit(name, attributes_of_fits):
    assert set(entries(sections(ALL[name].__doc__)["Attributes"])) == attributes_of_fits[name]


@pytest.mark.parametrize("name", sorted({**ALL, **OTHERS, **SEARCHES}))
def test_attributes_are_annotated_for_type_checkers_and_absent_before_a_fit(name):
    cls = DOCUMENTED[name]
    annotated = set().union(*(inspect.get_annotations(base) for base in cls.__mro__))
    computed = {key for key, value in inspect.getmembers(cls) if isinstance(value, property)}
    documented = set(entries(sections(cls.__doc__)["Attributes"]))
    assert documented <= annotated | computed
    assert {key for key in documented - computed if hasattr(cls, key)} == set()
    if "epsilon" in inspect.signature(cls).parameters:
        assert "privacy_" in documented


@each
def test_every_class_says_what_its_privacy_rests_on(name):
    notes = "\n".join(sections(ALL[name].__doc__)["Notes"])
    assert "**Privacy.**" in notes
    if "epsilon" in inspect.signature(ALL[name]).parameters:
        assert "zero-out" in notes
        assert "not protected" in notes


@each
def test_docstrings_are_valid_numpydoc(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    assert validate(f"skdp.{name}")["errors"] == []


@each
def test_decorated_classes_are_plain_estimators(name):
    model = ALL[name]()
    assert type(clone(model)) is ALL[name]
    assert set(vars(model)) == set(inspect.signature(ALL[name]).parameters)


def make(doc, like=None):
    return document(like)(type("Made", (), {"__doc__": inspect.cleandoc(doc)}))


def test_entries_descriptions_and_paragraphs():
    first = make(
        """First.

        {privacy.unprotected}

        Parameters
        ----------
        {n_iter_} {row_norm_}
            More of it.
        alpha : float, default=0.5
            {support_}
        choice : {"a", "b"}, default="a"
            One of {a, b}.

        Notes
        -----
        By [Wang2021]_.

        References
        ----------
        .. [Wang2021] Chapter 2.
        """
    )
    second = make("""Second.

        Parameters
        ----------
        {alpha} {choice} {n_iter_}

        Notes
        -----
        After [Abadi2016]_.

        {Notes}

        References
        ----------
        .. [Abadi2016]
        {References}
        """, first)  # fmt: skip
    found = sections(first.__doc__)
    assert "\n".join(found[""]).count("not protected") == 1
    assert found["Parameters"][:5] == [
        *TEXTS["n_iter_"].split("\n"), *TEXTS["row_norm_"].split("\n"), "    More of it.",
    ]  # fmt: skip
    assert found["Parameters"][5:9] == [
        "alpha : float, default=0.5",
        *TEXTS["support_"].split("\n")[1:],
        'choice : {"a", "b"}, default="a"',
        "    One of {a, b}.",
    ]
    assert found["Notes"][0] == "By Wang (2021) [1]_."
    found = sections(second.__doc__)
    assert next(iter(entries(found["Parameters"]).values())) == "float, default=0.5"
    assert found["Notes"][:3] == ["After Abadi et al. (2016) [1]_.", "", "By Wang (2021) [2]_."]
    assert found["References"][-2:][0].startswith(".. [2] L. Wang")


def test_sections_of_attributes_and_of_another():
    class First(Declared):
        """First.

        Notes
        -----
        Long.

        Examples
        --------
        >>> 1
        """

        privacy_: object = fitted()
        rounds_: int = fitted("int", "Rounds.")
        n_iter_: int = fitted()

    class Second(First):
        """Second."""

        rounds_: int = fitted(is_set=False)
        n_iter_: int = fitted("int", "Own steps.")

    found = sections(document()(First).__doc__)
    assert list(found) == ["", "Attributes", "Notes", "Examples"]
    assert found["Attributes"][:2] == ["rounds_ : int", "    Rounds."]
    assert list(entries(found["Attributes"])) == ["rounds_", "n_iter_", "privacy_"]
    found = sections(document(First)(Second).__doc__)
    assert list(entries(found["Attributes"])) == ["n_iter_", "privacy_"]
    assert found["Attributes"][1] == "    Own steps."
    assert found["Notes"][0] == "Long."
    with pytest.raises(KeyError, match="nowhere_"):
        document()(type("Third", (Declared,), {"__doc__": "Third.", "nowhere_": fitted()}))


@pytest.mark.parametrize(
    "doc",
    [
        "A.\n\nParameters\n----------\n{epsilom}\n",
        "A.\n\nBy [Nobody1999]_.\n",
        "A.\n\nBy [Wang2021]_, which no section References lists.\n",
        "A.\n\nReferences\n----------\n.. [Nobody1999]\n",
    ],
)
def test_unknown_texts_and_papers_are_refused(doc):
    with pytest.raises(KeyError):
        make(doc)


@pytest.mark.slow
def test_without_docstrings():
    code = "import skdp; print({cls.__doc__ for name, cls in skdp.all_estimators()})"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, cwd=ROOT.parent)
    assert done.stdout.strip() == "{None}", done.stderr


@pytest.mark.parametrize("name", sorted(n for n, cls in ALL.items() if hasattr(cls, "score")))
def test_every_score_says_that_it_is_not_private(name):
    said = " ".join(inspect.getdoc(ALL[name].score).split())
    assert "Not private" in said
    for other in ("cross_val_score", "permutation_importance", "partial_dependence"):
        assert other in said
