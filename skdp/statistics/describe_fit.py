"""The fits behind `describe` and `crosstab`: several statistics of one frame through one session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from skdp.base.column_search import Present, Window, least_tails, released_window, window_steps
from skdp.base.declare import changed, parameter
from skdp.base.kinds import described
from skdp.base.plan import Advice, Decision, gaussian_steps
from skdp.base.problem import Solution
from skdp.base.user_tables import columns_named, encode_groups, validate_table
from skdp.fitting.columns import ColumnProblem, check_bounds, per_column
from skdp.fitting.utility import Released, released_warnings
from skdp.privacy import PrivacySession, PrivateRecords, PublicShape
from skdp.statistics.column_moments import ColumnMoments, Counted, released_counts, released_once
from skdp.statistics.fits import CAUTION, MEAN_TAIL, Statistic, points_of_levels, quantiles_in, questions_of_levels
from skdp.statistics.frames import Codes, Columns, category_codes, check_categories, labels_of

LEVELS = np.array([0.25, 0.5, 0.75])
# Weights in mu^2 of a column of numbers and of a column of categories, by the importance of their errors; then
# parts of the numbers' share. Choices: tools/describe_shares.py shows that errors hardly depend on these.
OF_NUMBERS, OF_CATEGORIES = 5.0, 1.0
COUNTS, WINDOWS, INSIDE, MEANS, QUARTILES = 0.05, 0.33, 0.05, 0.28, 0.29
WHOLE_REACH = 1.0  # least half length of a released window of whole numbers: 0 and 1 are in it
MIN_SIGNIFICANT_VALUES = 3.0  # noise standard deviations from which a released number of values is taken for one
GROUPS = 0.3  # part of the numbers' share for means by group, where they are wanted


@dataclass(frozen=True)
class FrameProblem(ColumnProblem):
    """The columns of numbers (or, without any, the codes), the codes of categories, and their public facts."""

    records: PrivateRecords
    codes: PrivateRecords | None
    columns: Columns
    joint: Mapping[object, tuple[int, ...]]  # of each column of codes: the sizes of its table


class _Arrays(NamedTuple):
    """The columns of a frame: numbers, cells of tables of categories, and the group of each row, if wanted."""

    columns: Columns
    joint: dict[object, tuple[int, ...]]
    numbers: Any
    cells: Codes | None
    of_groups: Codes | None
    n_groups: int | None


def _codes_of(groups: object, X: Any) -> Any:
    return None if groups is None else encode_groups(groups, int(X.shape[0]))


def _labels_by_column(name: str, given: object) -> dict[object, tuple[object, ...]]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a dict of lists, by column, got {type(given).__name__}")
    return {column: check_categories(f"{name}[{column!r}]", labels) for column, labels in (given or {}).items()}


def _check_bounds_by_column(name: str, given: object) -> None:
    if not isinstance(given, Mapping):
        check_bounds(given, name=name)
        return
    for column, pair in given.items():
        ends = check_bounds(pair, name=f"{name}[{column!r}]")
        if ends is not None and any(end.ndim for end in ends):
            raise ValueError(f"{name}[{column!r}] must be None or two numbers (low, high)")


@dataclass(frozen=True, eq=False, kw_only=True)
class DescribeDecision:
    """Shares of mu^2 of the releases of a description, 0 for none, and the bounds of columns of numbers.

    Attributes
    ----------
    categories, counts, windows, inside, means, quartiles, groups : float
    bounds : tuple of ndarray
        Lower and upper ends, and for which columns they are given.
    """

    categories: float
    counts: float
    windows: float
    inside: float
    means: float
    quartiles: float
    groups: float
    bounds: tuple[np.ndarray, ...]


class Describe(Statistic):
    """Numbers of values, means, deviations and quartiles of numbers, counts of categories; also by group."""

    _records_are_rows = False

    categories: object = parameter(described("dict", _labels_by_column), "Public labels, by column.", default=None)
    by: object = parameter(
        described("column name"), "Column of ``categories`` whose labels are the groups.", default=None
    )
    names: object = parameter(
        described("sequence of str"), "Names of the columns of an array.", default=None, releases=False
    )
    bounds = changed(kind=described("dict or tuple of (low, high)", _check_bounds_by_column))
    skipna: bool = changed(default=True, releases=True)

    # Columns are listed by name.
    _counts: ClassVar[Mapping[str, str]] = {k: k for k in ("n_records", "n_groups", "n_public")}

    def read(self, X: object, y: object = None, groups: object = None) -> FrameProblem:
        """Sort the columns, check that the numbers are finite or NaN, and look the others up."""
        made = self._arrays(X)
        columns, joint = made.columns, made.joint
        more: dict[str, Any] = {"groups": _codes_of(groups, X), "n_public": self.n_public}
        codes = None if made.cells is None else PrivateRecords(made.cells, **more)
        if made.numbers is None:
            return FrameProblem(cast("PrivateRecords", codes), {}, (), codes, columns, joint)
        records = PrivateRecords(made.numbers, made.of_groups, n_classes=made.n_groups, **more)
        return FrameProblem(records, {}, (), codes, columns, joint)

    def _read_block(self, X: object, y: object = None, groups: object = None, **more: object) -> FrameProblem:
        # One table of both: blocks hold one kind of records.
        made = self._arrays(X)
        found = [table for table in (made.numbers, made.cells) if table is not None]
        table = found[0] if len(found) == 1 else np.column_stack(found).astype(found[0].dtype)
        records = PrivateRecords(
            table, made.of_groups, groups=_codes_of(groups, X), n_public=self.n_public, n_classes=made.n_groups
        )
        return FrameProblem(records, {"columns_": made.columns}, (), None, made.columns, made.joint)

    def _of_blocks(self, problem: ColumnProblem) -> FrameProblem:
        read = cast("FrameProblem", problem)
        d, q = len(read.columns.numbers), len(read.joint)
        if not q:
            return read
        if not d:
            return replace(read, codes=read.records)
        codes = read.records.restricted(np.arange(d, d + q))
        return replace(read, records=read.records.restricted(np.arange(d)), codes=codes)

    def _arrays(self, X: object) -> "_Arrays":
        declared = _labels_by_column("categories", self.categories)
        columns = Columns.of(X, declared, cast("Sequence[str] | None", self.names))
        if not columns.names:
            raise ValueError("the frame has no columns: give at least one")
        if hasattr(X, "indptr") and columns.categories:
            raise ValueError("a CSR matrix has columns of numbers only: give a data frame or an array")
        if self.by is not None and self.by not in columns.categories:
            raise ValueError(
                f"by must name a column with public categories, got {self.by!r}: declare them by "
                f"categories={{{self.by!r}: [...]}}"
            )
        if not X.shape[0]:  # type: ignore[attr-defined]
            raise ValueError("the frame has no rows: there is nothing to describe")
        _check_names(self.bounds, columns)
        if columns.numbers:
            self._read_bounds(columns)
        of_columns = columns.codes(X, declared)
        joint = self._tables(columns)
        counted = [_joint(of_columns, name, self.by, sizes) for name, sizes in joint.items()]
        cells = np.column_stack(counted) if counted else None
        if not columns.numbers:
            return _Arrays(columns, joint, None, cells, None, None)
        with columns_named(None):  # these are some of the columns, whose names `columns` has
            table = validate_table(Describe(), columns.table(X), missing=True)
        n_groups = None if self.by is None else len(columns.categories[self.by])
        return _Arrays(columns, joint, table, cells, of_columns.get(self.by), n_groups)

    def _tables(self, columns: Columns) -> dict[object, tuple[int, ...]]:
        """Sizes of the table of each column of categories: its labels, and with ``by`` the groups' labels."""
        size = {name: len(labels) for name, labels in columns.categories.items()}
        return {
            name: (k,) if self.by is None or name == self.by else (k, size[self.by]) for name, k in size.items()
        }

    def _read_bounds(self, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bounds of each column of numbers, and for which of them they are given."""
        d = len(columns.numbers)
        low, high, given = np.zeros(d), np.ones(d), np.zeros(d, dtype=bool)
        if isinstance(self.bounds, Mapping):
            for j, name in enumerate(columns.numbers):
                if name in self.bounds:
                    ends = check_bounds(self.bounds[name])
                    if ends is not None:
                        (low[j], high[j]), given[j] = (float(end) for end in ends), True
            return low, high, given
        ends = per_column("bounds", self.bounds, d)
        return (low, high, given) if ends is None else (*ends, np.ones(d, dtype=bool))

    # ---------------------------------------------------------------- before the first release

    def _searches_in(self, problem: ColumnProblem) -> bool:
        return not cast("DescribeDecision", problem.decision.details).bounds[2].all()

    def _released_values(self, problem: ColumnProblem) -> int:
        read = cast("FrameProblem", problem)
        cells = sum(int(np.prod(sizes)) for sizes in read.joint.values())
        groups = len(read.columns.categories[self.by]) if self.by is not None else 0
        return cells + len(read.columns.numbers) * (128 + 3 * groups)

    def _public_facts(self, problem: ColumnProblem) -> dict[str, object]:
        columns = cast("FrameProblem", problem).columns
        return {"columns of numbers": len(columns.numbers), "columns of categories": len(columns.categories)}

    def _assumptions(self, problem: ColumnProblem) -> tuple[str, ...]:
        chosen = ("categories were not chosen by looking at these records",)
        return (
            *super()._assumptions(problem),
            "names and types of columns are public: they were not inferred from these records",
            *(chosen if self.categories else ()),
        )

    # ---------------------------------------------------------------- releases

    def _imagined(self, shape: PublicShape) -> FrameProblem:
        raise TypeError(
            "describe has no plan of a shape: names and types of the columns decide what is released. Call it on "
            "as many made-up rows with these columns: the report has the parts of the budget"
        )

    def _decide(self, session: PrivacySession, problem: ColumnProblem) -> Decision:
        read = cast("FrameProblem", problem)
        d, q = len(read.columns.numbers), len(read.joint)
        share = OF_NUMBERS * d / (OF_NUMBERS * d + OF_CATEGORIES * q)
        bounds = self._read_bounds(read.columns) if d else (np.zeros(0),) * 3
        parts = self._parts_of_numbers(read.columns, bounds[2])
        made = DescribeDecision(
            categories=1.0 - share, bounds=bounds, **{name: share * x for name, x in parts.items()}
        )
        steps = gaussian_steps(session, ("counts of categories", made.categories, 1))
        if d:
            points = points_of_levels(session, read.records.shape, made.quartiles, LEVELS.size)
            steps += (
                *gaussian_steps(session, ("counts", made.counts, 1)),
                *window_steps(session, made.windows),
                *gaussian_steps(
                    session,
                    ("values in windows", made.inside, 1),
                    ("moments", made.means, 1),
                    ("quantiles", made.quartiles, questions_of_levels(points)),
                    ("moments", made.groups, 1),
                ),
            )
        return replace(super()._decide(session, problem), steps=steps, details=made)

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release counts of categories; then of numbers how many there are, windows, moments and quartiles."""
        read = cast("FrameProblem", problem)
        made = cast("DescribeDecision", problem.decision.details)
        found: dict[str, object] = {"columns_": read.columns}
        if read.codes is not None:
            found["tables_"] = _counts(session, read.codes, read.joint, made.categories)
        if read.columns.numbers:
            found.update(self._numbers(session, read, made))
        return Solution(attributes=found, warnings=_warnings(read.columns, found.get("clipped_")))

    def _numbers(
        self, session: PrivacySession, problem: FrameProblem, made: DescribeDecision
    ) -> dict[str, object]:
        """Summaries of the columns of numbers, together and by group."""
        records, columns = problem.records, problem.columns
        low, high, given = made.bounds
        counted = self._present(session, problem, made.counts)
        window = Window.between(low, high)
        if not given.all():
            searched = np.flatnonzero(~given)
            present = Present()
            if counted is not None:
                present = Present(counted.share(records.n_units, less=CAUTION)[searched])
            some = records if searched.size == given.size else records.restricted(searched)
            least = least_tails(session, some, made.windows, MEAN_TAIL)
            found = released_window(session, some, made.windows, tail=MEAN_TAIL, least=least, present=present)
            window.center[searched], window.half_width[searched] = found.center, found.half_width
            # A narrower window of whole numbers may hold one value alone: the 0 of a rare 0 or 1, with no noise.
            # Types are public, so this looks at nothing.
            narrow = np.array(columns.whole) & ~given
            window.half_width[narrow] = np.maximum(window.half_width[narrow], WHOLE_REACH)
        inside = None
        if not given.all():
            edges = np.stack(window.bounds, axis=1)
            asked = records.histogram(edges, adjacency=session.adjacency)
            held, noise = released_once(session, asked, "values in windows", made.inside)
            inside = Counted(held[:, 0], np.full(len(held), noise))
        every = ColumnMoments.released(session, records, window, made.means, counted=counted)
        quartiles = quantiles_in(session, records, window, LEVELS, made.quartiles, ~given)
        summaries: dict[str, object] = {
            "moments_": every,
            # A quantile of whole numbers is one of them; types are public.
            "quartiles_": np.where(columns.whole, np.rint(quartiles[0]), quartiles[0]),
            "level_noise_std_": quartiles[1],
            "bounds_": window.bounds,
            "clipped_": _clipped(inside, every.counted, given),
        }
        if self.by is not None:
            summaries["moments_by_"] = ColumnMoments.released(
                session, records, window, made.groups,
                n_classes=len(columns.categories[self.by]),
            )  # fmt: skip
        return summaries

    @property
    def _n_is_private(self) -> bool:
        return self.adjacency == "add-remove" or self.n_public is not None

    def _parts_of_numbers(self, columns: Columns, given: np.ndarray) -> dict[str, float]:
        """Parts of the numbers' share; a statistic that is not needed leaves its part to the others."""
        parts = {"means": MEANS, "quartiles": QUARTILES}
        if not given.all():
            parts["windows"], parts["inside"] = WINDOWS, INSIDE
            if not all(columns.whole) or self._n_is_private:
                parts["counts"] = COUNTS
        left = (1.0 - GROUPS) / sum(parts.values()) if self.by is not None else 1 / sum(parts.values())
        shares = {name: part * left for name, part in parts.items()}
        groups = GROUPS if self.by is not None else 0.0
        return {"counts": 0.0, "windows": 0.0, "inside": 0.0, "groups": groups, **shares}

    def _present(self, session: PrivacySession, problem: FrameProblem, share: float) -> Counted | None:
        """How many values each column has: released, or public where its type holds no NaN."""
        records, whole = problem.records, np.array(problem.columns.whole)
        if self._n_is_private:
            return released_counts(session, records, share) if share else None
        known = Counted.known(records)
        if whole.all():
            return known
        if not share:
            return None
        found = released_counts(session, records, share)
        return Counted(np.where(whole, known.value, found.value), np.where(whole, 0.0, found.noise_std))


def _clipped(inside: Counted | None, counted: Counted, given: np.ndarray) -> Counted:
    """Part of the values beyond a released window, with its noise; NaN with given bounds or unclear counts."""
    if inside is None:
        return Counted(np.full(given.shape, np.nan), np.full(given.shape, np.nan))
    there = np.maximum(counted.value, 1.0)
    share = np.clip(inside.value / there, 0.0, 1.0)
    noise = np.hypot(inside.noise_std, share * counted.noise_std) / there
    hidden = given | (counted.value <= np.maximum(1.0, MIN_SIGNIFICANT_VALUES * counted.noise_std))
    return Counted(np.where(hidden, np.nan, 1.0 - share), np.where(hidden, np.nan, noise))


def _warnings(columns: Columns, clipped: Any) -> tuple[Advice, ...]:
    if clipped is None:
        return ()
    parts, noise = (np.nan_to_num(found).tolist() for found in (clipped.value, clipped.noise_std))
    return released_warnings(Released(clipped=tuple(zip(columns.numbers, parts, noise))))


def _counts(
    session: PrivacySession, codes: PrivateRecords, joint: Mapping[object, tuple[int, ...]], share: float
) -> dict[object, Counted]:
    """Release the tables of counts, by column, all as one vector; shorter ones have cells that stay empty."""
    cells = [int(np.prod(sizes)) for sizes in joint.values()]
    counts = codes.histogram(np.arange(max(cells) + 1.0), adjacency=session.adjacency)
    value, noise = released_once(session, counts, "counts of categories", share)
    return {
        name: Counted(row[:size].reshape(sizes), np.full(sizes, noise))
        for (name, sizes), row, size in zip(joint.items(), value, cells)
    }


def _check_names(bounds: object, columns: Columns) -> None:
    for name in bounds if isinstance(bounds, Mapping) else ():
        if name not in columns.numbers:
            raise ValueError(f"bounds names {name!r}, which is no column of numbers of the frame")


def _joint(codes: Mapping[object, Codes], name: object, by: object, sizes: tuple[int, ...]) -> Codes:
    """The place of each row in a column's table."""
    return codes[name] if len(sizes) == 1 else codes[name] * sizes[1] + codes[by]


def _label_pair(name: str, given: Any) -> list[tuple[object, ...]]:
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__len__") or len(given) != 2:
        raise TypeError(f"{name} must be two sequences of public labels: of a, and of b")
    return [check_categories(f"{name}[{i}]", labels) for i, labels in enumerate(given)]


class Crosstab(Statistic):
    """Counts of pairs of categories of two columns."""

    _records_are_rows = False

    categories: object = parameter(
        described("pair of sequences", _label_pair), "Public labels of both columns.", default=None
    )

    _purpose = "counts of categories"

    def _searches(self) -> bool:
        return False

    def _pair(self) -> list[tuple[object, ...]]:
        return _label_pair("categories", self.categories)

    def read(self, X: object, y: object = None, groups: object = None) -> ColumnProblem:
        """Look up the cells of both columns."""
        if np.ndim(X) != 1 or np.ndim(y) != 1 or len(X) != len(y) or not len(X):  # type: ignore[arg-type]
            raise ValueError("a and b must be columns of the same length, at least one row")
        first, second = self._pair()
        codes = category_codes(_column(X), first) * len(labels_of(second))
        codes += category_codes(_column(y), second)
        of = None if groups is None else encode_groups(groups, codes.size)
        return ColumnProblem(PrivateRecords(codes[:, None], groups=of, n_public=self.n_public), {}, ())

    def _read_block(self, X: object, y: object = None, groups: object = None, **more: object) -> ColumnProblem:
        return self.read(X[:, 0] if np.ndim(X) == 2 else X, y, groups, **more)  # type: ignore[arg-type, index]

    def _released_values(self, problem: ColumnProblem) -> int:
        first, second = (len(labels_of(labels)) for labels in self._pair())
        return first * second

    def _assumptions(self, problem: ColumnProblem) -> tuple[str, ...]:
        chosen = "categories were not chosen by looking at these records"
        return (*super()._assumptions(problem), chosen)

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release a histogram of the pairs."""
        sizes = [len(labels_of(labels)) for labels in self._pair()]
        edges = np.arange(sizes[0] * sizes[1] + 1.0)
        counts = problem.records.histogram(edges, adjacency=session.adjacency)
        value, noise = released_once(session, counts, "counts of categories")
        return self._solution(value.reshape(sizes), noise)


def _column(given: object) -> object:
    """A column with a type, or its cells one by one."""
    return given if hasattr(given, "dtype") else np.fromiter(given, dtype=object)  # type: ignore[call-overload]
