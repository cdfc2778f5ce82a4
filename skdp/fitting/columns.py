"""The frame of a fit that releases statistics of columns: no targets, and public bounds or none."""

from collections.abc import Iterable
from numbers import Real
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.base.declare import fixed, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import described
from skdp.base.plan import Advice, Decision, NoRecords
from skdp.base.problem import Problem
from skdp.base.user_tables import encode_groups, validate_table
from skdp.fitting.utility import Facts, utility_warnings
from skdp.privacy import PrivacySession, PrivateRecords, PublicShape, accounting

Array = NDArray[np.float64]
MOST_VALUES = 64  # most released numbers of a column without bins: answers of searches, means, variances


class ColumnProblem(Problem):
    """A validated table: the records."""

    records: PrivateRecords


class ColumnFit(PrivateFit[ColumnProblem]):
    """The fit of statistics of columns; a subclass gives `solve`, and may refine `_read_shape`."""

    _no_blocks: ClassVar[str | None] = None

    bounds: object = parameter(
        described("tuple of (low, high)", lambda name, given: check_bounds(given, name=name)),
        "Public numbers, or one for each column, between which values are looked for. None searches for them.",
        default=None,
    )
    skipna: bool = fixed(default=False)  # whether NaN is a missing value; without it NaN is refused
    _finite_bounds = True

    def read(self, X: object, y: object = None, groups: object = None) -> ColumnProblem:
        """Check the table: finite numbers, and NaN with ``skipna``. Targets are not looked at."""
        scratch = type(self)(**self.get_params(deep=False))
        table = validate_table(scratch, X, missing=self.skipna)
        codes = None if groups is None else encode_groups(groups, table.shape[0])
        records = PrivateRecords(table, groups=codes, n_public=self.n_public)
        self._read_shape(records)
        seen = {name: value for name, value in vars(scratch).items() if name.endswith("_in_")}
        return ColumnProblem(records, seen, ())

    def _read_shape(self, records: PrivateRecords) -> None:
        """Refuse parameters that do not fit the public shape."""
        per_column("bounds", self.bounds, records.n_features, finite=self._finite_bounds)

    def _searches(self) -> bool:
        """Whether the fit searches for the scale of the columns."""
        return self.bounds is None

    def _searches_in(self, problem: ColumnProblem) -> bool:
        """Whether the fit searches for the scale of the columns, where public facts of the table decide."""
        return self._searches()

    def _values_per_column(self) -> int:
        """Most numbers that the fit releases for one column."""
        return MOST_VALUES

    def _released_values(self, problem: ColumnProblem) -> int:
        """Most numbers that the fit releases; public."""
        return problem.records.n_features * self._values_per_column()

    def _imagined(self, shape: PublicShape) -> ColumnProblem:
        records = cast("PrivateRecords", NoRecords(shape))
        self._read_shape(records)
        return ColumnProblem(records, {}, ())

    def _decide(self, session: PrivacySession, problem: ColumnProblem) -> Decision:
        # Refused before the first release, not after the searches.
        session.require_feasible(self._released_values(problem), 1, 1.0)
        d = problem.records.shape.n_features
        return Decision(signal=None if session.exact else self._effective_n(problem) / d**0.5)

    def _effective_n(self, problem: ColumnProblem) -> float:
        """Units times mu."""
        return problem.records.shape.n_units * accounting.gaussian_mu(self.epsilon, self.delta)

    def _advice(self, session: PrivacySession, problem: ColumnProblem) -> tuple[Advice, ...]:
        shape = problem.records.shape
        if session.exact or not self._searches_in(problem):
            return ()
        effective_n = self._effective_n(problem)
        facts = Facts(type(self).__name__, shape, self.epsilon, effective_n, "statistics", searched=("bounds",))
        return utility_warnings(facts)

    def _assumptions(self, problem: ColumnProblem) -> tuple[str, ...]:
        if self.bounds is None:
            return super()._assumptions(problem)
        return (*super()._assumptions(problem), "bounds were not chosen by looking at these records")


def column_numbers(name: str, given: object) -> Array:
    """Return a number, or one for each column, as float64; anything else raises."""
    if isinstance(given, Real) and not isinstance(given, bool):
        return np.asarray(float(given))
    if isinstance(given, (str, bytes, bool)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a number, or one number for each column, got {type(given).__name__}")
    found = np.asarray(cast("ArrayLike", given))
    if found.ndim > 1 or found.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number, or one number for each column")
    return found.astype(np.float64)


def check_bounds(bounds: object, *, finite: bool = True, name: str = "bounds") -> tuple[Array, Array] | None:
    """Return public bounds (low, high), each a number or one for each column; None stays None."""
    if bounds is None:
        return None
    wrong = (
        f"{name} must be None or (low, high), each a finite number or one for each column "
        "([low, ...], [high, ...]), low < high"
    )
    if isinstance(bounds, (str, bytes, dict, set)) or not isinstance(bounds, Iterable):
        raise TypeError(f"{wrong}; got {type(bounds).__name__}")
    ends = list(bounds)
    if len(ends) != 2:
        raise ValueError(wrong)
    if isinstance(bounds, list) and all(isinstance(end, tuple) for end in ends):
        raise ValueError(f"{wrong}; got a pair for each of two columns: give {list(zip(*ends))}")
    low, high = (column_numbers(name, end) for end in ends)
    known = np.isfinite(low).all() and np.isfinite(high).all()
    if low.ndim and high.ndim and low.shape != high.shape:
        raise ValueError(wrong)
    if (finite and not known) or not (low < high).all():
        raise ValueError(wrong)
    if not finite or (high / 2 - low / 2 < 1e150).all():
        return low, high
    raise ValueError(f"{wrong}, and less than 1e150 apart")


def per_column(name: str, given: object, n_features: int, *, finite: bool = True) -> tuple[Array, Array] | None:
    """Return bounds as two arrays of shape (n_features,); None stays None."""
    ends = check_bounds(given, finite=finite, name=name)
    if ends is None:
        return None
    for end in ends:
        if end.shape not in ((), (n_features,)):
            raise ValueError(f"{name} has {end.size} numbers, but X has {n_features} columns")
    low, high = (np.array(np.broadcast_to(end, (n_features,))) for end in ends)
    return low, high
