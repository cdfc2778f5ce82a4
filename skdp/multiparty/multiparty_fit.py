"""Base of the multi-party estimators: owners, units, the range of targets, checks and lines of the report."""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import scipy.sparse as sp

from skdp._compat import warn_user
from skdp.base.declare import changed, declares, fitted, fixed, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import check_choice, choice, described, real
from skdp.base.plan import Advice, Step, gaussian_steps
from skdp.base.problem import Solution
from skdp.exceptions import UnsupportedAccounting, UtilityWarning
from skdp.fitting import parameters
from skdp.fitting.closing import LinearDecision
from skdp.fitting.linear import LinearFit
from skdp.fitting.parameters import Auto
from skdp.fitting.targets import LabelModel, NumberModel, Problem, clipped_arguments
from skdp.fitting.task import parameter_shape
from skdp.fitting.utility import OwnerFacts, Release, utility_warnings
from skdp.kernels import is_cupy
from skdp.kernels.protocols import Matrix, issparse
from skdp.losses import HuberLoss, Loss, SquaredLoss
from skdp.multiparty.owners import UNITS, WEIGHTINGS, Owners, OwnersShape, OwnRecords, owners_of
from skdp.multiparty.release import NOISES, check_engine, is_plain, surplus_of
from skdp.privacy import PrivacySession, PrivateRecords, PublicShape, accounting

LONG_ROWS_RATIO = (
    1.5  # the warning of long rows: median norm of the rows to predict over the largest norm in the fit
)


# The delta of methods with Gaussian noise alone.
DELTA_OF_GAUSSIAN = changed(
    text="Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n."
)


@dataclass(frozen=True, kw_only=True)
class OwnersDecision(LinearDecision):
    """Decisions of every method of several owners; a method's own numbers come in a subclass.

    Attributes
    ----------
    prediction_noise : float
        Standard deviation that the noise gives to predictions; 0 where it is not known.
    penalised : bool
        Whether a larger alpha makes the noise smaller.
    penalty : float
        How many times ``alpha`` the proof needs for the smallest owner.
    """

    prediction_noise: float = 0.0
    penalised: bool = False
    penalty: float = 1.0


class MultipartyFit(LinearFit):
    """The fit of a linear model to the records of several owners; a subclass gives `_method` and `solve`."""

    delta = changed(
        text="""Probability with which the epsilon may fail, in [0, 1). Choose it far below 1/n. 0 is pure
        differential privacy. `privacy_` then reports the sampler's error as a delta below 1e-20."""
    )
    alpha: float = parameter(
        real(low=0, strict=True, high=1e50),
        """Weight of the l2 penalty, > 0, where rows are measured in units of ``row_norm``: coefficients cost
        ``alpha / 2 * row_norm^2 * ||coef||^2``.""",
        default=1e-3,
    )
    row_norm: Auto = parameter(
        real(low=1e-20, high=1e20, word="auto"),
        """Public length in which rows are measured. Longer rows are scaled to it, in the fit only. "auto" is
        ``sqrt(n_features)``, the usual length of a standardized row. Give 1 for rows in the unit ball.""",
        default="auto",
    )
    weighting: Literal["owner", "record"] = parameter(
        choice(*WEIGHTINGS),
        """"owner" gives every owner the same weight, as published, with noise as for ``m`` owners of the
        size of the smallest one. "record" gives every record (or group) the same weight, with noise as for one
        owner that has all of them.""",
        default="owner",
    )
    noise: Literal["gaussian", "laplace"] = parameter(
        choice(*NOISES),
        """Laplace noise is calibrated to the l1 norm, so it is about ``sqrt(n_parameters)`` times larger. It is
        pure with ``delta=0``. With delta > 0 it pays by the budget's mu. Where servers make it
        (``engine="mpyc"``, ``skdp party``), one server that does not follow the protocol can remove it, and
        nobody notices.""",
        default="gaussian",
    )
    engine: object = parameter(
        described('{"plain", "mpyc"} or engine'),
        """Who adds the owners' statistics and draws the noise. "plain" does both in this process, which
        everybody must then trust: a simulation for research. "mpyc" starts three servers on this machine that
        compute on shares.""",
        default="plain",
    )
    adjacency = changed(
        kind=choice("replace-one", "zero-out"),
        text="""What one record (or group, or owner) may do between neighbouring data sets. With "replace-one"
        it takes other values. With "zero-out" it is replaced by an absent one, which adds 0 to every sum.""",
    )
    unit: Literal["record", "group", "owner"] = changed(  # type: ignore[assignment]  # one word more
        default="record",
        kind=choice(*UNITS),
        text="""Whose change the claim protects: one row, all rows of one of ``groups`` at one owner, or all
        rows of an owner. The rows of a group, or of an owner that is the unit, share the weight of one record.""",
    )
    n_public: int | None = fixed(default=None)  # the number of every owner's units is public
    row_norm_: float = fitted("float", 'The length given, or the one that "auto" became; public.')

    _no_blocks: ClassVar[str | None] = "each owner's rows are read together; several blocks are no owners"
    _shape_type = OwnersShape
    _held: Release = ""  # number of coefficients of one release, for the warnings
    _pooled = False  # whether the method can use one statistic of all records
    _half_width = 1.0  # units of y in which the targets of the fit are measured

    def _closing(self, problem: Problem) -> tuple[()]:
        """No step: the owners' noise is planned for the whole budget."""
        return ()

    def _widening(self, problem: Problem) -> float:
        """How much larger the noise of the whole sum is than that which the budget asks for."""
        return surplus_of(self.engine, self.noise)

    def _rescaled(self, theta: np.ndarray, owners: Owners) -> np.ndarray:
        """Theta in units of y, for an intercept's feature of 1."""
        theta = theta * self._half_width
        if self.fit_intercept:
            theta[-1] *= owners.row_norm
        return theta

    def fit(
        self, X: object, y: object = None, owners: object = None, groups: object = None, **more: object
    ) -> Self:
        """Fit the model privately to the records of several owners.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The records of all owners. Not changed.
        y : array-like of shape (n_samples,)
            Targets.
        owners : array-like of shape (n_samples,) or OwnRecords, default=None
            Which owner holds each record. None means that one owner holds all. How many units each owner has is
            public, except with ``unit="owner"``. `skdp.multiparty.OwnRecords` says that this process holds the
            records of one owner only, and that an engine adds the records of the others.
        groups : array-like of shape (n_samples,), default=None
            Who each record is about; needed by, and allowed with, ``unit="group"`` only.
        **more : dict
            ``sample_weight=None`` or nothing: the multi-party estimators have no weighted form.

        Returns
        -------
        self : estimator

        Raises
        ------
        TypeError, ValueError
            If a parameter or the data are not as described. No budget is spent.
        UnsupportedAccounting
            With ``adjacency="add-remove"``.
        PrivacyBudgetExceeded
            If the accountant does not hold (epsilon, delta). Nothing was read.
        """
        return super().fit(X, y, groups=groups, owners=owners, **more)

    # ---------------------------------------------------------------- before the data

    @property
    def _pure_possible(self) -> bool:  # type: ignore[override]
        return self.noise == "laplace"

    def _check_before_data(self, groups: object) -> None:
        check_choice("unit", self.unit, UNITS)  # before `_session_unit` translates it
        if self.adjacency == "add-remove":
            raise UnsupportedAccounting(
                "adjacency='add-remove' makes the owners' sizes private, but they divide the sums and stand in "
                "the owners' plan: use adjacency='replace-one' or 'zero-out'"
            )
        if self.unit == "owner" and groups is not None:
            raise ValueError(
                "groups= was given but unit='owner' protects all records of an owner; use unit='group'"
            )
        super()._check_before_data(groups)

    def _check_parameters(self) -> None:
        if self.unit == "owner" and self.weighting == "record":
            raise ValueError(
                "weighting='record' divides by the owners' sizes, which are private with unit='owner': use "
                "weighting='owner'"
            )
        check_engine(self.engine, self.noise, self.delta)
        super()._check_parameters()

    # ---------------------------------------------------------------- the fit

    def _penalty(self, owners: Owners) -> float:
        """The weight of ``||theta||^2 / 2`` that is `alpha` where rows are measured in units of ``row_norm``."""
        return float(self.alpha) * float(owners.row_norm) ** 2

    # ---------------------------------------------------------------- the plan, warnings and report

    def _n_values(self, problem: Problem) -> int:
        """How many numbers a release opens."""
        return math.prod(parameter_shape(problem.records, problem.loss))

    def _steps(self, session: PrivacySession, releases: int) -> tuple[Step, ...]:
        """The whole budget in equal releases of the noise that was asked for."""
        if self.noise == "gaussian":
            return gaussian_steps(session, ("steps", 1.0, releases))
        return (Step("steps", 1.0, releases),)

    def _sizes(self, problem: Problem) -> dict[str, object]:
        """Sizes that every plan of several owners shows."""
        owners = owners_of(problem)
        return {
            "n_owners": owners.n_owners,
            "smallest_owner": min(owners.sizes),
            "n_parameters": self._n_values(problem),
            "row_norm": owners.row_norm,
        }

    def _advice(self, session: PrivacySession, problem: Problem) -> tuple[Advice, ...]:
        owners = self._owner_facts(session, problem)
        return utility_warnings(replace(self._facts(session, problem), release=self._held, owners=owners))

    def _owner_facts(self, session: PrivacySession, problem: Problem) -> OwnerFacts:
        owners = owners_of(problem)
        made: OwnersDecision = problem.decision
        return OwnerFacts(
            unit=self.unit,
            part=1.0 if session.exact else self._part(problem),
            smallest=min(owners.sizes),
            weights_owners=declares(self, "weighting"),
            noise=0.0 if session.exact else made.prediction_noise,
            half_width=self._half_width,
            alpha=self.alpha,
            penalised=made.penalised,
            penalty=made.penalty,
        )

    def _part(self, problem: Problem) -> float:
        """The number of units that the noise is as small as for, over their real number."""
        owners = owners_of(problem)
        return float(owners.divisor / owners.shape.n_units)

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        owners = owners_of(problem)
        return {
            **super()._public_facts(problem),
            "n_owners": owners.n_owners,
            "smallest_owner": min(owners.sizes),
            "largest_owner": max(owners.sizes),
            "weighting": self.weighting,
            "alpha": float(self.alpha),
            "row_norm": owners.row_norm,
        }

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        owners = owners_of(problem)
        lines = [f"rows longer than {owners.row_norm:g} were scaled to it"]
        if self.unit == "owner":
            lines.append("the unit is the owner: all records of one owner may change, and their number is private")
        else:
            lines.append(f"every owner's number of {self.unit}s is public, and no {self.unit} changes its owner")
        lines.append(self._several_owners())
        if is_plain(self.engine):
            lines.append("the owners' data and the noise are in one process, which everybody must trust")
        return tuple(lines)

    def _several_owners(self) -> str:
        """The claim for a person with records at several owners."""
        line = f"a person with records at h owners is protected as h {self.unit}s"
        if math.isinf(self.epsilon):
            return line
        if self.delta == 0:
            return f"{line}: h times epsilon"
        mu = accounting.gaussian_mu(self.epsilon, self.delta)
        twice = accounting.gaussian_epsilon(2 * mu, self.delta)
        return f"{line}: h times mu, so h = 2 has epsilon {twice:.4g} at the same delta"

    # ---------------------------------------------------------------- records of several owners

    def _records(
        self, X: Matrix, y: np.ndarray, groups: object, weights: dict[str, object],
        n_classes: int | None = None, of_label: np.ndarray | None = None,
    ) -> PrivateRecords:  # fmt: skip
        owners = weights.pop("owners", None)
        clipped_arguments(self, weights, X.shape[0])  # refuses others
        if isinstance(owners, OwnRecords):
            self._check_own_process()
        return cast("PrivateRecords", self._owners(X.get() if is_cupy(X) else X, y, owners, groups, n_classes))

    def _imagined(self, shape: PublicShape) -> Problem:
        """The problem of a process that holds nobody's records."""
        problem, row = super()._imagined(shape), np.zeros((1, shape.n_features))
        shape = problem.records.shape
        records = self._owners(
            sp.csr_matrix(row) if shape.container == "csr" else row,
            np.zeros(1),
            OwnRecords(cast("OwnersShape", shape).sizes, None),
            [0] if self.unit == "group" else None,
            shape.n_classes,
        )
        return replace(problem, records=cast("PrivateRecords", records))

    def _owners(self, X: Matrix, y: np.ndarray, owners: object, groups: object, n_classes: int | None) -> Owners:
        return Owners(
            X, y, owners=owners, groups=groups, unit=self.unit, weighting=self.weighting,
            row_norm=self._row_norm(X.shape[1]), fit_intercept=self.fit_intercept, n_classes=n_classes,
            pooled=self._pooled and is_plain(self.engine),
        )  # fmt: skip

    def _row_norm(self, n_features: int) -> float:
        """The length to which rows are scaled: the length of a standardized row, if it is not given."""
        return math.sqrt(n_features) if isinstance(self.row_norm, str) else float(self.row_norm)

    def _check_own_process(self) -> None:
        """Refuse settings with which the processes of several owners would not agree."""
        if isinstance(self.engine, str):
            raise ValueError(
                "the records of other owners are in other processes: give an engine= that reaches them"
            )
        if math.isinf(self.epsilon):
            raise ValueError("epsilon=inf adds nothing of the owners in other processes")

    def _fitted(self, problem: Problem, solution: Solution) -> dict[str, object]:
        owners = owners_of(problem)
        return {**super()._fitted(problem, solution), "row_norm_": owners.row_norm}

    def _scores_of(self, X: Matrix) -> np.ndarray:
        """Scores, with a warning if most rows are longer than any row of the fit could be."""
        if not is_cupy(X) and X.shape[0]:
            square = X.multiply(X).sum(axis=1) if issparse(X) else np.einsum("ij,ij->i", X, X)
            if np.median(np.asarray(square)) > (LONG_ROWS_RATIO * self.row_norm_) ** 2:
                warn_user(
                    f"most rows of X are longer than row_norm={self.row_norm_:g}, to which the fit scales long "
                    "rows: predictions for them are too large. Standardize the columns by public numbers "
                    "(PublicScaler), or give the length of usual rows as row_norm=",
                    UtilityWarning,
                )
        return super()._scores_of(X)


class MultipartyClassifier(MultipartyFit, LabelModel, PrivateFit[Problem]):
    """Logistic and softmax regression of several owners."""

    class_weight: None = fixed(default=None)

    def _check_own_process(self) -> None:
        super()._check_own_process()
        if self.classes is None:
            raise ValueError("declare classes=: labels of one owner say nothing of the others'")


def _check_y_bounds(name: str, given: object) -> None:
    if given is None:
        return
    found = np.asarray(given, dtype=object)
    if found.shape != (2,) or not all(isinstance(bound, Real) for bound in found):
        raise TypeError(f"{name} must be two numbers (low, high), public ones")
    low, high = map(float, found)
    if not -1e50 <= low < high <= 1e50:
        raise ValueError(f"{name} must be (low, high) with low < high, both between -1e50 and 1e50, got {given!r}")
    if not 0.5 * high - 0.5 * low >= 2.0**-40 * max(abs(low), abs(high)):
        raise ValueError(f"{name} are too close to each other for float64, got {given!r}")


class MultipartyRegressor(MultipartyFit, NumberModel, PrivateFit[Problem]):
    """Linear regression of several owners with targets in a public range."""

    alpha = changed(more="It penalises coefficients for targets in [-1, 1].")
    loss: Literal["squared", "huber"] = parameter(
        choice("squared", "huber"), "Huber's loss is linear beyond ``huber_threshold``.", default="squared"
    )
    huber_threshold: float = parameters.HUBER_THRESHOLD
    y_bounds: tuple[float, float] | None = parameter(
        described("tuple of (float, float)", _check_y_bounds),
        "Public range (low, high) to which targets are clipped. None is (-1, 1), and warns.",
        default=None,
    )
    prediction_bounds_: tuple[float, float] = fitted(
        "tuple of (float, float)",
        "The bounds (low, high) to which `predict` is cut: ``y_bounds``, or infinite with ``bounded=False``.",
    )
    target_center_: float = fitted(is_set=False)
    target_scale_: float = fitted(is_set=False)
    shrinkage_: float = fitted(is_set=False)

    _record_checks = "finite, numeric; targets were clipped to y_bounds"

    @property
    def _bounds(self) -> tuple[float, float]:
        return (-1.0, 1.0) if self.y_bounds is None else self.y_bounds

    def _given_bounds(self) -> tuple[float, float]:
        low, high = map(float, self._bounds)
        return low, high

    def _owner_facts(self, session: PrivacySession, problem: Problem) -> OwnerFacts:
        facts = super()._owner_facts(session, problem)
        huber = float(self.huber_threshold) if self.loss == "huber" else None
        return replace(facts, default_range=self.y_bounds is None, huber_threshold=huber)

    @property
    def _center(self) -> float:
        """The middle of the range, which an intercept can stand for."""
        low, high = map(float, self._bounds)
        return 0.5 * low + 0.5 * high if self.fit_intercept else 0.0

    @property
    def _half_width(self) -> float:  # type: ignore[override]
        """The largest distance of a clipped target from the centre."""
        low, high = map(float, self._bounds)
        return max(high - self._center, self._center - low)

    def _records(self, X: Matrix, y: np.ndarray, *args: Any, **options: Any) -> PrivateRecords:
        low, high = map(float, self._bounds)
        scaled = (np.clip(y, low, high) - self._center) / self._half_width
        return super()._records(X, scaled, *args, **options)

    def _loss_of(self, y: np.ndarray) -> tuple[Loss, tuple[str, ...]]:
        """The loss of targets in [-1, 1]."""
        if self.loss == "huber":
            return HuberLoss(float(self.huber_threshold) / self._half_width), ()
        return SquaredLoss(), ()

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        return {**super()._public_facts(problem), "y_bounds": [float(bound) for bound in self._bounds]}

    def _rescaled(self, theta: np.ndarray, owners: Owners) -> np.ndarray:
        """Coefficients in units of y."""
        theta = super()._rescaled(theta, owners)
        if self.fit_intercept:
            theta[-1] += self._center
        return theta
