"""The public names of `skdp.privacy`: what others import, what statistics take and give, what Rows refuse."""

import ast
import copy
import importlib
import inspect
import pickle
import pkgutil
import typing
from pathlib import Path

import numpy as np
import pytest

import skdp
import skdp.privacy
from skdp.losses import LogisticLoss
from skdp.privacy import PrivateRecords, statistics
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.rows import HoldsRows
from skdp.privacy.statistics import perturbed_minimizer, target_count
from skdp.privacy.statistics.perturbed import PerturbedMinimizer
from skdp.privacy.statistics.vertices import VertexScores

PACKAGE = Path(skdp.__file__).parent
# Names come from these modules too, until every subpackage imports them from `skdp.privacy`.
MODULES = {
    f"skdp.privacy.{name}"
    for name in (
        "accounting", "accounting.sampled", "adjacency", "bounded", "budget", "noise", "partitions.client",
        "records", "report",
        "seed_context", "session", "shape", "statistics", "statistics.linear_map",
    )
}  # fmt: skip
# A module and its one function have one name: the package cannot offer both.
OTHERS = {"seed_context"}


def imported(source):
    """(module, name) of everything that a file imports from `skdp.privacy`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((a.name, "") for a in node.names if a.name.startswith("skdp.privacy"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skdp.privacy"):
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "skdp":
            yield from (("skdp", a.name) for a in node.names if a.name == "privacy")


def refused(module, name):
    if module == "skdp.privacy":
        return name not in skdp.privacy.__all__
    public = {*skdp.privacy.__all__, *OTHERS}
    if module.removeprefix("skdp.privacy.") in ("accounting", "noise", "partitions.client", "statistics"):
        public.update(importlib.import_module(module).__all__)
    return module not in MODULES or name not in public


def test_other_subpackages_import_public_names_only():
    inside = PACKAGE / "privacy"
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if inside in path.parents:
            continue
        for module, name in imported(path.read_text()):
            if refused(module, name):
                wrong.append((path.relative_to(PACKAGE).as_posix(), module, name))
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    [
        "from skdp.privacy.rows import Rows",
        "from skdp.privacy import mechanisms",
        "from skdp.privacy.bounded import Source",
        "from skdp.privacy.statistics.row_moments import RowMoments",
        "import skdp.privacy.rows",
        "from skdp import privacy",
    ],
)
def test_the_test_above_sees_a_back_door(line):
    assert all(refused(*found) for found in imported(line))


def test_no_other_subpackage_uses_private_names_of_records_and_sessions():
    private = {"_rows", "_value", "_ledger", "_keys", "_parts", "_units", "_family", "_blocks"}
    inside, wrong = PACKAGE / "privacy", []
    own = {"_rows", "_blocks", "_units", "_value", "_family"}  # of kernels and the like: on self
    for path in sorted(PACKAGE.rglob("*.py")):
        if inside in path.parents or "kernels" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in private:
                mine = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                if not (mine and node.attr in own):
                    wrong.append((path.name, node.attr))
    assert wrong == []


def test_every_public_name_of_the_package_is_there():
    for name in skdp.privacy.__all__:
        assert getattr(skdp.privacy, name) is not None
    assert len(set(skdp.privacy.__all__)) == len(skdp.privacy.__all__)


# ------------------------------------------------------------------ statistics

# Functions that are parts of statistics, or work on public values: what they take and give.
HELPERS = {
    "projected_sum": "a part of gradient_sum: Rows in, BoundedStatistic out",
    "mean_of_vectors": "Rows in, BoundedStatistic out",
    "sum_of_units": "Rows in, BoundedStatistic out",
    "point": "public values only",
    "predictions": "features in, one value a row out: the targets of other records",
    "block_vote": "rows of one block in, a vote out",
    "count_votes": "counts, before they are bounded",
    "canonical_csr": "a public matrix",
    "spectral_norm_bound": "a public matrix",
    "objective_of": "Rows in, an objective of the solver out, inside a release",
}
SECRET = (BoundedStatistic, PerturbedMinimizer)


def functions():
    for info in pkgutil.iter_modules(statistics.__path__, "skdp.privacy.statistics."):
        module = importlib.import_module(info.name)
        for name in module.__all__:
            yield module, name, getattr(module, name)


def test_statistics_take_rows_and_give_bounded_values():
    seen = set()
    for module, name, found in functions():
        assert found.__module__ == module.__name__, name
        if name in HELPERS or inspect.isclass(found):
            continue
        hints = typing.get_type_hints(found)
        first = next(iter(inspect.signature(found).parameters))
        assert issubclass(hints["return"], SECRET), name
        assert hints[first] in (HoldsRows, BoundedStatistic), name
        seen.add(name)
    methods = {name for name, _ in inspect.getmembers(PrivateRecords, inspect.isfunction)}
    assert seen - methods == {*statistics.__all__, "linear_map"}
    assert not methods & {*statistics.__all__}
    derived = {"with_intercept", "centered", "residual", "restricted", "standardized", "select_targets"}
    derived |= {"averaged", "expanded"}
    derived |= {"mapped", "scored"}
    derived.add("predicted")
    derived.add("shortened")
    assert {m for m in methods if not m.startswith("_")} - seen == derived


def test_classes_of_statistics_refuse_copies():
    """A class that holds private values: only a session makes numbers of it."""
    r = PrivateRecords(np.eye(4), np.array([0.0, 1.0, 1.0, 0.0]))
    made = [
        VertexScores(r, LogisticLoss(), 1.0),
        perturbed_minimizer(r, LogisticLoss(), penalty=1.0, row_norm=1.0),
    ]
    for value in made:
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                attempt(value)


def test_every_statistic_has_its_proof_and_is_a_method_or_offered_by_the_package():
    for _, name, found in functions():
        if name in HELPERS or inspect.isclass(found):
            continue
        owner = skdp.privacy if name == "linear_map" else PrivateRecords
        assert getattr(owner, name, None) is found or getattr(statistics, name) is found
        assert name == "linear_map" or "Privacy.**" in found.__doc__ or "as `norm_count`" in found.__doc__


# ------------------------------------------------------------------ rows


def rows(**options):
    rng = np.random.default_rng(0)
    return PrivateRecords(rng.normal(size=(20, 3)), np.arange(20.0), **options)._rows


@pytest.mark.parametrize(
    "attempt",
    [
        copy.copy, copy.deepcopy, pickle.dumps, np.asarray, np.array, list, len, vars, lambda r: r[0],
        lambda r: 3 in r, lambda r: r + r, lambda r: setattr(r, "y", None), lambda r: delattr(r, "X"),
        lambda r: r.__reduce__(), lambda r: r.__getstate__(),
    ],
)  # fmt: skip
def test_rows_refuse(attempt):
    with pytest.raises((TypeError, AttributeError)):
        attempt(rows())


def test_rows_show_shapes_only():
    assert repr(rows()) == "Rows(unit='record', n_features=3)"
    assert "20" not in repr(rows(groups=np.arange(20) % 4))


def test_derived_rows_share_kernels_only_where_nothing_changed():
    loss = LogisticLoss()
    one = PrivateRecords._of(rows(fit_intercept=True))

    def kernel(records, **options):
        return records._rows.kernel(loss, **options)

    near, far = one.with_intercept(0.5), one.with_intercept(0.25)
    assert kernel(near) is kernel(one.with_intercept(0.5))
    assert kernel(near) is not kernel(far)
    assert kernel(near) is not kernel(near, by_group=False) or one._rows.groups is None
    moved = near.centered(-1.0)
    assert kernel(moved) is not kernel(near)
    assert kernel(moved.with_intercept(0.25)) is not kernel(far)
    few = near.restricted([0, 2])
    assert kernel(few) is not kernel(near)
    assert few._rows.matrix.shape == (20, 2)
    assert one._rows.family is few._rows.family is moved._rows.family
    assert rows().family is not rows().family
    for other in (near, moved, few):
        assert other is not one
        assert not one._rows._kept


def test_a_statistic_of_derived_records_is_of_these():
    """Counts are kept from question to question: never those of other targets, features or intercepts."""
    r = PrivateRecords(np.diag([1.0, 2.0, 3.0, 4.0]), np.zeros(4), fit_intercept=True)
    asked = [
        (r, lambda r: r.norm_count(2.5), 0.0),
        (r.restricted([0, 1]), lambda r: r.norm_count(1.5), 1.0),
        (r, lambda r: target_count(r, 0.5, absolute=True), 2.0),
        (r.centered(1.0), lambda r: target_count(r, 0.5, absolute=True), -2.0),
        (r, lambda r: r.norm_count(2.5), 0.0),
    ]
    for records, question, wanted in asked:
        assert question(records)._value.plain() == [wanted]


def test_statistics_of_records_that_differ_are_not_added():
    r = PrivateRecords(np.eye(3), np.zeros(3), fit_intercept=True)
    with pytest.raises(ValueError, match="same PrivateRecords"):
        r.norm_count(1.0) + r.with_intercept(0.5).norm_count(1.0)
