"""describe and crosstab: values, noise, messy frames, neighbours, budgets, refusals."""

import functools
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq

from skdp import BudgetAccountant
from skdp.exceptions import PrivacyLeakWarning, UtilityWarning
from skdp.privacy import accounting
from skdp.statistics import Description, ReleasedTable, crosstab, describe, mean
from skdp.statistics.describe_fit import MEANS, QUARTILES, Crosstab
from skdp.statistics.frames import category_codes
from skdp.statistics.released_tables import shown
from tests.privacy.exact.test_replay import Tape

pd = pytest.importorskip("pandas")
N = 4000
CATEGORIES = {"sex": ["f", "m"], "grade": [1, 2, 3], "kind": ["a", "b"]}


def frame(n=N, seed=0):
    """Every kind of column that is described."""
    rng = np.random.default_rng(seed)
    some = rng.random(n) < 0.2
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "bmi": np.where(some, np.nan, rng.normal(26, 4, n)),
            "sex": rng.choice(["f", "m", "x", None], n, p=[0.5, 0.4, 0.07, 0.03]),
            "ill": rng.random(n) < 0.2,
            "dose": rng.exponential(3, n).astype(np.float32),
            "none": np.full(n, np.nan),
            "constant": np.full(n, 7.0),
            "visits": pd.array(np.where(some, 2, 5), dtype="Int64"),
            "grade": rng.choice([1.0, 2.0, 3.0, 4.0, np.nan], n),
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], n), categories=["c", "b", "a"]),
        }
    )


def declared(*names):
    return {name: CATEGORIES[name] for name in names}


def quiet(call, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return call(*args, **options)


# ------------------------------------------------------------------ values


def test_without_noise_it_is_that_of_pandas():
    given = frame()
    given.loc[3, "visits"] = pd.NA
    found = describe(given, categories=CATEGORIES, by="sex", epsilon=math.inf)
    assert isinstance(found, Description)
    table, numbers = found.to_frame(), given.select_dtypes("number").drop(columns="grade")
    plain = numbers.astype(float).describe().T
    rows = table.xs("", level="category")
    assert rows.index.tolist() == plain.index.tolist()
    assert rows["count"].to_numpy() == pytest.approx(plain["count"].to_numpy())
    assert rows["missing"].to_numpy() == pytest.approx(numbers.isna().mean().to_numpy())
    seen = [name for name in plain.index if name != "none"]
    # A window leaves out a few values of a column with a long tail.
    assert rows.loc[seen, "mean"].to_numpy() == pytest.approx(plain.loc[seen, "mean"].to_numpy(), rel=0.03)
    assert rows.loc[seen, "std"].to_numpy() == pytest.approx(plain.loc[seen, "std"].to_numpy(), rel=0.15, abs=1e-3)
    for level in ("25%", "50%", "75%"):
        wanted = numbers.astype(float).quantile(float(level[:-1]) / 100, interpolation="lower")
        assert rows.loc[seen, level].to_numpy() == pytest.approx(wanted[seen].to_numpy(float), rel=0.01, abs=0.02)
    assert rows.loc["none", ["mean", "std", "50%"]].isna().all()
    assert table.loc[("sex", "f"), "count"] == (given["sex"] == "f").sum()
    assert table.loc[("sex", "other"), "count"] == (given["sex"] == "x").sum()
    assert table.loc[("sex", "missing"), "count"] == given["sex"].isna().sum()
    assert table.loc[("ill", True), "share"] == pytest.approx(given["ill"].mean())
    assert table.loc["ill"].index.tolist() == [False, True]
    assert table.loc[("grade", "other"), "count"] == (given["grade"] == 4).sum()
    assert table.loc[("kind", "other"), "count"] == (given["kind"] == "c").sum()
    assert found.bounds["age"][0] < 18 < 90 < found.bounds["age"][1]


def test_groups_are_those_of_pandas():
    given = frame()
    bounds = {
        "age": (0, 100),
        "bmi": (0, 60),
        "dose": (0, 50),
        "none": (0, 1),
        "constant": (0, 9),
        "visits": (0, 9),
    }
    found = describe(given, bounds=bounds, categories=CATEGORIES, by="sex", epsilon=math.inf)
    table = found.by_table.to_frame()
    for sex in ("f", "m"):
        own = given[given["sex"] == sex]
        for name in ("age", "bmi", "dose", "visits"):
            row = table.loc[(name, "", sex)]
            x = own[name].dropna().to_numpy(float)
            assert row["count"] == pytest.approx(x.size, abs=1e-3)
            assert row["mean"] == pytest.approx(x.mean(), rel=1e-5)
            assert row["std"] == pytest.approx(x.std(), rel=1e-4)
        assert table.loc[("none", "", sex), ["mean", "std"]].isna().all()
        assert table.loc[("ill", True, sex), "count"] == own["ill"].sum()
        assert table.loc[("ill", True, sex), "share"] == pytest.approx(own["ill"].mean())
        assert table.loc[("sex", "", sex), "count"] == len(own)
    other = given["sex"] == "x"
    assert table.loc[("kind", "a", "other"), "count"] == ((given["kind"] == "a") & other).sum()
    assert table.loc[("age", "", "missing"), "mean"] == pytest.approx(given.loc[given["sex"].isna(), "age"].mean())
    assert found.bounds == {name: tuple(map(float, pair)) for name, pair in bounds.items()}


def test_crosstab_is_that_of_pandas():
    given = frame()
    found = crosstab(given["sex"], given["grade"], categories=(["f", "m"], [1, 2, 3]), epsilon=math.inf)
    plain = pd.crosstab(given["sex"], given["grade"])
    assert isinstance(found, ReleasedTable)
    table = found.to_frame()
    assert np.array_equal(table.loc[["f", "m"], [1, 2, 3]], plain.loc[["f", "m"], [1.0, 2.0, 3.0]])
    assert table.loc["other", "other"] == plain.loc["x", 4.0]
    assert table.to_numpy().sum() == N
    lists = crosstab(
        given["sex"].tolist(), given["grade"].tolist(), categories=(["f", "m"], [1, 2, 3]), epsilon=math.inf
    )
    assert np.array_equal(lists.value, found.value)
    noisy = crosstab(given["ill"], given["sex"], categories=([False, True], ["f"]), adjacency="zero-out")
    assert noisy.noise_std == pytest.approx(1 / accounting.gaussian_mu(1.0, 1e-5), rel=1e-3)


def test_cells_are_categories_by_their_values():
    labels = ("a", 1, "other")  # "other" is a label of the user: all else counts there
    cells = ["a", 1.0, True, "b", None, math.nan, "1", [], 2, np.str_("a")]
    codes = category_codes(np.fromiter(cells, dtype=object), labels)
    assert codes.tolist() == [0, 1, 1, 2, 3, 3, 2, 2, 2, 0]
    assert category_codes(np.array([1.0, 2.0, np.nan]), labels).tolist() == [1, 2, 3]
    assert category_codes(pd.Series(["a", None, "z"], dtype="category"), labels).tolist() == [0, 3, 2]
    assert category_codes(pd.array([True, None, False], dtype="boolean"), (False, True)).tolist() == [1, 3, 0]


@pytest.mark.parametrize("kind", ["array", "csr", "polars"])
def test_other_containers_are_described(kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(26, 4, 3000), rng.integers(0, 3, 3000)]) * (rng.random((3000, 2)) < 0.7)
    given = {"array": X, "csr": sp.csr_matrix(X)}.get(kind)
    if kind == "polars":
        pl = pytest.importorskip("polars")
        given = pl.DataFrame({"0": X[:, 0], "1": X[:, 1], "s": ["f", None, "m"] * 1000}).drop("s")
    wanted = describe(pd.DataFrame(X), random_state=0).table.value
    assert describe(given, random_state=0).table.value == pytest.approx(wanted, nan_ok=True)


def test_polars_text_and_missing_values():
    pl = pytest.importorskip("polars")
    given = pl.DataFrame({"s": ["f", None, "m", "x"] * 500, "v": [1, None, 3, 5] * 500, "b": [True, None] * 1000})
    found = describe(given, categories={"s": ["f", "m"]}, by="s", epsilon=math.inf).to_frame()
    assert found.loc[("v", ""), ["count", "missing", "mean"]].tolist() == pytest.approx([1500, 0.25, 3], abs=1e-5)
    assert found.loc["s", "count"].tolist() == [500, 500, 500, 500]
    assert found.loc[("b", "missing"), "count"] == 1000


# ------------------------------------------------------------------ noise


@pytest.mark.thorough
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
def test_the_stated_noise_covers_the_values(adjacency):
    """Errors of 28 runs over their noise: none beyond 7, and their spread is 1; half the noise is seen."""
    given = frame(2000)[["age", "bmi", "dose", "sex", "ill"]]
    options = dict(bounds=(0, 100), categories=declared("sex"), by="sex", n_public=2000)
    exact = describe(given, epsilon=math.inf, **options)
    z, of_groups = [], []
    for seed in range(28):
        found = quiet(describe, given, epsilon=4.0, adjacency=adjacency, random_state=seed, **options)
        with np.errstate(invalid="ignore"):
            z.append((found.table.value - exact.table.value) / found.table.noise_std)
            of_groups.append((found.by_table.value - exact.by_table.value) / found.by_table.noise_std)
    names = found.table.columns
    for name in ("count", "mean", "std", "share"):
        for tables, columns in ((z, names), (of_groups, found.by_table.columns)):
            numbers = np.array(tables)[:, :, columns.index(name)]
            # Rows where the noise may hide the group, or the deviation is not that of first order, are left out.
            kept = ~np.isnan(numbers).any(axis=0)
            if tables is of_groups and name != "count":
                sure = exact.by_table.value[:, columns.index("count")]
                kept &= np.array([label[2] in ("f", "m") for label in found.by_table.index]) & ~(sure < 0)
            numbers = numbers[:, kept]
            assert numbers.size >= 80
            off = 5.2 / math.sqrt(2 * numbers.size)  # false alarm below 1e-6
            assert off < 0.5, name
            assert abs(numbers.std() - 1) < off, name
            assert np.abs(numbers).max() < 7


def test_a_mean_is_as_good_as_one_that_is_released_alone():
    """At the same share of mu^2: at most 1.5 times the noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(50, 10, size=(5000, 4))
    for adjacency in ("replace-one", "zero-out"):
        whole = describe(X, bounds=(0, 100), adjacency=adjacency)
        wanted = accounting.gaussian_mu(1.0, 1e-5) * math.sqrt(MEANS / (MEANS + QUARTILES))
        epsilon = brentq(lambda e, mu=wanted: accounting.gaussian_mu(e, 1e-5) - mu, 0.05, 1.0)
        alone = mean(X, bounds=(0, 100), adjacency=adjacency, epsilon=epsilon)
        noise = whole.table.noise_std[:, whole.table.columns.index("mean")]
        assert np.all(noise <= 1.5 * alone.noise_std)
        assert np.all(noise >= 0.9 * alone.noise_std)


# ------------------------------------------------------------------ neighbours


def released(given, groups, **settings):
    """All that a description shows, to the last bit."""
    found = describe(
        given, groups=groups, bounds={"age": (0, 100)}, categories=CATEGORIES, by="sex", random_state=0, **settings
    )
    tables = [
        table.value.tobytes() + table.noise_std.tobytes() + repr(table.index).encode()
        for table in (found.table, found.by_table)
    ]
    return SimpleNamespace(
        columns_=tables[0], groups_=tables[1], text_=repr(found), html_=found._repr_html_(),
        bounds_=repr(found.bounds), report_=repr(found.privacy_), levels_=found.level_noise_std.tobytes(),
    )  # fmt: skip


WORST = {
    "age": [0, 10**9], "bmi": [np.nan, 1e200, -1e-300], "sex": ["f", "m", None, "?", 3],
    "ill": [True, False], "dose": [np.nan, 1e30], "none": [np.nan, 1.0], "constant": [7.0, -1e200],
    "visits": [pd.NA, 2**60], "grade": [1.0, np.nan, 1e300], "kind": ["a", "c", np.nan],
}  # fmt: skip


def with_rows(others, size, choice, rng):
    """The other rows, and rows that are as different as they can be."""
    own = {}
    for name, values in WORST.items():
        picked = [values[(choice if choice >= 0 else rng.integers(9)) % len(values)] for _ in range(size)]
        own[name] = pd.Series(picked, dtype=object)
    joined = {}
    for name in others:
        column = list(others[name]) + list(own[name])
        joined[name] = (
            pd.Categorical(column, categories=["c", "b", "a"])
            if name == "kind"
            else pd.Series(column, dtype=others[name].dtype)
        )
    return pd.DataFrame(joined)


@pytest.mark.parametrize(
    "adjacency",
    ["replace-one", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("zero-out", "add-remove"))],
)
@pytest.mark.parametrize("unit", ["record", "group"])
def test_a_neighbour_takes_the_same_path_within_the_sensitivities(adjacency, unit, monkeypatch):
    """Rows of every kind, in groups of every size: the same releases, noise, warnings, tables and report."""
    tape, rng, others = Tape(monkeypatch), np.random.default_rng(0), frame(60)
    grouped, comes = unit == "group", adjacency != "replace-one"
    n_public = None if adjacency == "replace-one" and not grouped else 31
    settings = dict(adjacency=adjacency, unit=unit, epsilon=3.0, n_public=n_public)
    codes, largest = np.repeat(np.arange(30), 2), 0.0

    def pair(size, choice):
        more = with_rows(others, size, choice, rng)
        return more, np.r_[codes, np.full(size, 30)] if grouped else None

    def run(given, groups):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            found = released(given, groups, **settings)
        found.warned_ = sorted(str(one.message) for one in heard)
        return found

    for choice, size in ((0, 1), (1, 5), (2, 2), (-1, 40), (3, 1), (4, 7)):
        size = size if grouped else 1
        first = (others, codes if grouped else None) if comes else pair(1, choice + 1)
        largest = max(largest, tape.compare(run, pair(size, choice), first))
        tape.playing = False
    assert 0.6 <= largest <= 1 + 1e-9


def test_a_mutant_with_a_wider_weight_is_caught(monkeypatch):
    """A cell that counts twice moves the moments by more than is declared."""
    from skdp.kernels.counts import moment_cells

    honest = moment_cells.moment_sums
    monkeypatch.setattr(
        moment_cells, "moment_sums",
        lambda X, members, codes, k, cells: honest(X, members, codes, k, cells._replace(there=3 * cells.there)),
    )  # fmt: skip
    tape = Tape(monkeypatch)
    rng, others = np.random.default_rng(0), frame(60)
    run = functools.partial(released, groups=None, epsilon=3.0)
    one, two = (with_rows(others, 1, choice, rng) for choice in (0, 1))
    found = quiet(tape.compare, run, (one,), (two,))
    assert found > 1.05


# ------------------------------------------------------------------ budgets and refusals


def test_it_is_charged_once():
    accountant = BudgetAccountant(3.0, 1e-4)
    given = frame()
    found = describe(given, categories=CATEGORIES, by="ill", accountant=accountant)
    (row,) = [row for row in accountant.ledger() if row["state"] == "spent"]
    assert (row["estimator"], row["epsilon"]) == ("Describe", 1.0)
    assert found.privacy_.guarantee == "proven"
    assert found.table.privacy_ is found.by_table.privacy_ is found.privacy_
    claimed = accounting.gaussian_mu(1.0, 1e-5)
    assert accounting.rows_mu(found.privacy_.mechanisms) == pytest.approx(claimed, rel=1e-3)
    assert found.privacy_.public == {"n_records": N, "columns of numbers": 6, "columns of categories": 4}
    assert any("categories were not chosen" in line for line in found.privacy_.assumptions)


DATES = pd.date_range("2020-01-01", periods=N)


@pytest.mark.parametrize(
    ("given", "options", "error", "words"),
    [
        (frame(), {}, TypeError, r"column 'sex' .*give its public categories by categories=\{'sex'"),
        (frame()[["kind"]], {}, TypeError, r"'kind' is categorical.*declare public ones by categories="),
        (frame()[["age"]].assign(t=DATES), {}, TypeError, "subtract a public date"),
        (frame()[["age"]].astype(object), {}, TypeError, "column 'age' is neither"),
        (frame()[["age"]], {"categories": {"sx": ["f"]}}, ValueError, "'sx', which is no column"),
        (frame()[["age"]], {"categories": [1]}, TypeError, "categories must be a dict"),
        (frame()[["sex"]], {"categories": {"sex": "fm"}}, TypeError, "sequence of different labels"),
        (frame()[["sex"]], {"categories": {"sex": []}}, ValueError, "sequence of different labels"),
        (frame()[["sex"]], {"categories": {"sex": ["f", "f"]}}, ValueError, "different labels"),
        (frame()[["sex"]], {"categories": {"sex": ["f", None]}}, ValueError, "none missing"),
        (frame()[["sex"]], {"categories": {"sex": ["f", []]}}, TypeError, "cannot be compared"),
        (frame()[["age"]], {"by": "sex"}, ValueError, r"by must name .*categories=\{'sex'"),
        (frame()[["age"]], {"by": "age"}, ValueError, "by must name a column with public categories"),
        (frame()[["age"]], {"bounds": {"bmi": (0, 1)}}, ValueError, "'bmi', which is no column of numbers"),
        (frame()[["age"]], {"bounds": {"age": (1, 0)}}, ValueError, r"bounds\['age'\] must be"),
        (frame()[["age"]], {"bounds": {"age": ([0, 0], [1, 1])}}, ValueError, "two numbers"),
        (frame()[["age"]], {"bounds": ([0, 0], [1, 1])}, ValueError, "bounds has 2 numbers"),
        (frame()[[]], {}, ValueError, "the frame has no columns"),
        (frame()[["age"]].iloc[:0], {}, ValueError, "the frame has no rows"),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), {}, ValueError, "different names"),
        (frame()[["bmi"]].replace({np.nan: np.inf}), {}, ValueError, "infinity"),
        (np.ones(5), {}, TypeError, "two dimensions"),
        ([[1.0], [2.0]], {}, TypeError, "must be a data frame"),
        ({"a": [1.0]}, {}, TypeError, "must be a data frame"),
        (iter([1]), {}, TypeError, "not in memory"),
        (sp.csr_matrix(np.eye(3)), {"categories": {0: [1]}}, ValueError, "CSR matrix has columns of numbers"),
        (frame()[["age"]], {"unit": "group"}, ValueError, "needs groups="),
        (frame()[["age"]], {"unit": "group", "groups": [1]}, ValueError, "groups must be of shape"),
        (frame()[["age"]], {"adjacency": "add-remove"}, ValueError, "n_public"),
        (frame()[["age"]], {"delta": 0.0}, ValueError, "delta=0"),
    ],
)  # fmt: skip
def test_bad_input_spends_nothing(given, options, error, words):
    accountant = BudgetAccountant(10.0, 1e-3)
    with pytest.raises(error, match=words):
        describe(given, accountant=accountant, **options)
    assert accountant.spent() == (0.0, 0.0)


@pytest.mark.parametrize(
    ("a", "b", "categories", "words"),
    [
        ([1, 2], [1], ([1], [1]), "same length"),
        ([], [], ([1], [1]), "at least one row"),
        ([1], [1], ([1],), "two sequences"),
        ([1], [1], "ab", "two sequences"),
        ([1], [1], None, "two sequences"),
        ([1], [1], ([1], [1, 1]), r"categories\[1\] must be"),
        (np.eye(2), [1, 2], ([1], [1]), "columns of the same length"),
    ],
)
def test_a_bad_crosstab_spends_nothing(a, b, categories, words):
    accountant = BudgetAccountant(10.0, 1e-3)
    with pytest.raises((TypeError, ValueError), match=words):
        crosstab(a, b, categories=categories, accountant=accountant)
    assert accountant.spent() == (0.0, 0.0)


def test_columns_of_one_kind_alone():
    given = frame()
    only = describe(given[["sex", "ill"]], categories=declared("sex"), by="ill", epsilon=math.inf)
    assert only.bounds == {}
    assert (
        only.by_table.to_frame().loc[("sex", "f", True), "count"] == ((given["sex"] == "f") & given["ill"]).sum()
    )
    assert describe(given[["ill"]]).table.value.shape == (2, 11)
    numbers = describe(given[["age", "dose"]])
    assert numbers.by_table is None
    assert numbers.table.index == (("age", ""), ("dose", ""))


def test_few_records_are_named():
    with pytest.warns(UtilityWarning, match="40 records at epsilon=1 are few for 2 columns"):
        describe(frame()[["age", "dose"]][:40])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        describe(frame()[["age", "dose"]][:40], bounds=(0, 100))
        describe(frame()[["ill"]][:40])


# ------------------------------------------------------------------ what is shown


@pytest.mark.parametrize("unit", ["record", "group"])
def test_a_rare_one_among_zeros_is_not_clipped_away(unit):
    """8 % of ones; a window that holds their 0 alone gave a mean of 0 with noise 1e-12, as it does for floats.

    False alarm: 8 means within 6 standard deviations of Gaussian noise, below 2e-8.
    """
    ill = np.arange(4000) % 25 < 2
    groups = None if unit == "record" else np.arange(4000) // 4
    for seed in range(4):
        found = quiet(
            describe, pd.DataFrame({"ill": ill.astype(int), "age": 50 + 0.001 * np.arange(4000)}),
            unit=unit, groups=groups, epsilon=0.5, random_state=seed,
        )  # fmt: skip
        low, high = found.bounds["ill"]
        assert high - low >= 2
        row = found.table.index.index(("ill", "")), found.table.columns.index("mean")
        assert abs(found.table.value[row] - 0.08) < 6 * found.noise_std[row]


def test_tables_are_readable_and_escape_names():
    given = frame()[["age", "sex"]].rename(columns={"age": "<b>age"})
    found = describe(given, categories=declared("sex"), by="sex")
    text = repr(found)
    assert "±" in text
    assert "\n\nby sex\n" in text
    assert all(len(line) == len(line.rstrip()) for line in text.split("\n"))
    page = found._repr_html_()
    assert "<b>" not in page
    assert page.count("<table>") == page.count("</table>") == 2
    assert found.to_frame(noise_std=True).shape == found.to_frame().shape == found.noise_std.shape
    assert crosstab([1] * 20, [2] * 20, categories=([1], [2]))._repr_html_().startswith("<table>")
    assert "nan" not in text
    last = text.split("\n")[-1]
    assert "which ± leaves out" in last
    assert "epsilon=1, delta=1e-05, replace-one, unit record" in last
    assert last[1:-1] in page
    assert "low and high" not in repr(crosstab([1] * 20, [2] * 20, categories=([1], [2])))


def test_no_number_isshown_as_zero_that_is_none():
    assert shown(-0.0, math.nan) == "0"
    assert shown(-0.2, 17.0) == "0 ± 17"
    assert shown(2.5e-12, 3.1e-13) == "2.5e-12 ± 3.1e-13"


def test_without_pandas_only_the_frame_is_missing(monkeypatch):
    import sys

    found = describe(np.random.default_rng(0).normal(size=(3000, 2)))
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "mean" in repr(found)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        found.to_frame()


def test_crosstab_moves_by_what_its_noise_is_for(monkeypatch):
    tape, largest = Tape(monkeypatch), 0.0
    rng = np.random.default_rng(0)
    a, b = rng.choice(["f", "m", "x"], 50), rng.integers(0, 4, 50)
    for own in (("f", 0), ("?", 9), ("m", 1)):
        one, two = ((np.r_[a, [x]].astype(object) for x in ("f", own[0])), (np.r_[b, [x]] for x in (3, own[1])))
        fit = Crosstab(categories=(["f", "m"], [0, 1]), random_state=0)
        pairs = list(zip(one, two))
        run = lambda x, y, fit=fit: quiet(Crosstab(**fit.get_params()).fit, x, y)  # noqa: E731
        largest = max(largest, tape.compare(run, *pairs))
        tape.playing = False
    assert 0.99 <= largest <= 1 + 1e-9


def test_one_group_counts_as_one():
    """However many rows it has, also of different categories: it adds the mean of its rows."""
    given = frame(400)
    many = pd.concat([given, given.iloc[np.tile([3, 5, 8], 500)]])
    few = pd.concat([given, given.iloc[[3, 5, 8]]])
    tables = [
        describe(
            rows, bounds=(0, 100), categories=CATEGORIES, by="sex", epsilon=math.inf, unit="group",
            groups=np.r_[np.arange(400), np.full(len(rows) - 400, 400)],
        )
        for rows in (many, few)
    ]  # fmt: skip
    assert np.allclose(tables[0].table.value, tables[1].table.value, equal_nan=True, atol=1e-5)
    assert np.allclose(tables[0].by_table.value, tables[1].by_table.value, equal_nan=True, atol=1e-4)
    counts = tables[0].to_frame().loc["sex", "count"]
    assert counts.sum() == pytest.approx(401, abs=1e-6)


def test_what_a_released_window_leaves_out_is_shown_and_warned_of():
    """Windows of 5,000 units may leave out the 8 % of each column that are large; 'clipped' then says so.

    Six standard deviations of the noise are passed in one of 10^8 columns. All eight windows held all values in
    none of 20 runs.
    """
    rng = np.random.default_rng(5)
    n, names = 5000, [f"cost {j}" for j in range(8)]
    rare = pd.DataFrame({j: np.where(rng.random(n) < 0.08, 1e6, rng.normal(10, 1, n)) for j in names})
    with pytest.warns(UtilityWarning, match="leave out more than 1% of the values .*'clipped'"):
        found = describe(rare, epsilon=1.0, delta=1e-6)
    frame = found.to_frame().loc[[(name, "") for name in names]]
    noise = found.to_frame(noise_std=True)["clipped"].to_numpy()
    low, high = frame["low"].to_numpy(), frame["high"].to_numpy()
    beyond = ((rare < low) | (rare > high)).mean().to_numpy()
    assert beyond.max() > 0.05
    assert (np.abs(frame["clipped"].to_numpy() - beyond) < 6 * noise).all()
    known = describe(rare, bounds=(0, 2e6), epsilon=1.0, delta=1e-6)
    given, noise = known.to_frame(), known.to_frame(noise_std=True)["mean"].to_numpy()
    assert given["clipped"].isna().all()
    assert (np.abs(given["mean"].to_numpy() - rare.mean().to_numpy()) < 6 * noise).all()


def test_all_columns_that_need_categories_are_named_at_once():
    wrong = pd.DataFrame({"a": ["x"], "b": [1.0], "c": ["y"], "d": pd.to_datetime(["2020-01-01"])})
    with pytest.raises(TypeError, match=r"column 'a' is neither .*; the same holds for 'c', 'd'"):
        describe(wrong)
