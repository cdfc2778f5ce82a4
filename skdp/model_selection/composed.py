"""The frame of fits that fit and evaluate estimators inside them, for one charge."""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from skdp._compat import no_warnings
from skdp.base.declare import parameter
from skdp.base.fit import STEPS_ARE_CLEAN, PrivateFit, SessionOptions
from skdp.base.kinds import described
from skdp.base.plan import Decision, FitPlan, Step
from skdp.base.problem import Problem
from skdp.base.user_tables import encode_groups
from skdp.exceptions import PrivacyAccountingError, PrivacyLeakWarning
from skdp.kernels.protocols import is_cupy
from skdp.metrics.evaluation import NAMES, Evaluation
from skdp.metrics.fits import MODEL_IS_PUBLIC
from skdp.metrics.functions import evaluate
from skdp.metrics.models import count_rows
from skdp.model_selection.inner import InnerEstimator, InnerTerms
from skdp.privacy import ComposedSession, InnerFits, PrivacySession, PublicShape, seed_context

T = TypeVar("T")

FAILED = (
    "a fit or an evaluation inside failed after something was released, so the budget stays spent. Its message is "
    "withheld, because it may tell of the records. Fit the estimator by itself to find the cause: on public or "
    "generated rows of the same kind"
)
# Names of scores by the kind of model.
REGRESSION = (
    "r2", "mean_squared_error", "root_mean_squared_error", "mean_absolute_error", "mean_error",
)  # fmt: skip
CLASSIFICATION = (*(name for name in NAMES if name not in REGRESSION), "f1_macro")


@dataclass(frozen=True)
class UserTable:
    """The rows of the user, as they are, and their public facts.

    Attributes
    ----------
    X, y, groups : array-like
    units : ndarray of shape (n_rows,)
        The number of the unit of each row, from 0 on.
    shape : PublicShape
    """

    X: Any
    y: object
    groups: object
    units: NDArray[np.intp]
    shape: PublicShape

    @property
    def n_units(self) -> int:
        """How many units there are; private under add-remove."""
        return int(self.units.max(initial=-1)) + 1

    def rows(self, chosen: NDArray[np.bool_]) -> "UserTable":
        """Chosen units with all their rows, in the order of the table."""
        at = np.flatnonzero(chosen[self.units])
        parts = [None if a is None else _safe_indexing(a, at) for a in (self.X, self.y, self.groups)]
        return replace(self, X=parts[0], y=parts[1], groups=parts[2], units=self.units[at])


@dataclass(frozen=True)
class ComposedRows(Problem):
    """A validated table for fits inside a fit."""

    records: UserTable


def check_scoring(scoring: Any, models: Sequence[object]) -> tuple[str, ...] | None:
    """Names of scores, or None for all; an unknown one raises."""
    from sklearn.base import is_regressor

    if scoring is None:
        return None
    names = (scoring,) if isinstance(scoring, str) else tuple(scoring)
    for model in models:
        known = REGRESSION if is_regressor(model) else CLASSIFICATION
        for name in names:
            if name not in known:
                raise ValueError(f"scoring must be None or names out of {list(known)}, got {name!r}")
    if not names:
        raise ValueError("scoring must be None or name at least one score")
    return names


SCORING: object = parameter(
    described("str or sequence of str"), "Names of the scores to show; None shows all.", default=None
)


class ComposedFit(PrivateFit[ComposedRows]):
    """A fit that releases through the fits and evaluations inside it alone."""

    _no_blocks: ClassVar[str | None] = "it divides the rows into parts by random numbers"
    _record_checks = "accepted by the estimators"
    _leaks_name_steps = True
    _called: str | None = None  # the function of the user, for the ledger and the report

    @abstractmethod
    def _candidates(self) -> tuple[InnerEstimator, ...]:
        """The estimators that are fitted inside; none where fitted models are evaluated."""

    @abstractmethod
    def _inner(self) -> InnerFits:
        """All fits inside, in mu^2."""

    @abstractmethod
    def _fitted_with(self, index: int) -> int:
        """The number of the fit inside whose budget estimator ``index`` gets; the first of several."""

    @abstractmethod
    def _part_of_fits(self) -> float:
        """The share of the units that each estimator is fitted on."""

    # ---------------------------------------------------------------- before the data

    def _terms(self, share: float) -> InnerTerms:
        n_public = None if self.n_public is None else max(1, round(share * self.n_public))
        return InnerTerms(self.adjacency, self.unit, n_public)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for candidate in self._candidates():
            candidate.check(self._terms(self._part_of_fits()))

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        return ComposedSession(
            inner=self._asked(n_units),
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            unit=self.unit,
            accountant=self._payer(),
            random_state=self.random_state,
            estimator=self._called or type(self).__name__,
            context=b"" if self.random_state is None else seed_context(self._noise_parameters()),
        )

    def _budgets(self, inner: InnerFits) -> list[tuple[InnerEstimator, tuple[float, float]]]:
        """The estimators inside, and the (epsilon, delta) of each."""
        at = enumerate(self._candidates())
        return [(c, inner.budget(self._fitted_with(i), self.epsilon, self.delta)) for i, c in at]

    def _fitted_on(self, n_units: int) -> int:
        """How many of the units each estimator is fitted on."""
        return max(1, int(self._part_of_fits() * n_units + 1e-9))  # the shares of tenths are no floats

    def _asked(self, n_units: int | None) -> InnerFits:
        """The fits inside, by mu^2 if all have a mu, else by basic composition; each was asked for its charge."""
        inner = self._inner()
        if np.isinf(self.epsilon):
            return inner
        terms = self._terms(self._part_of_fits())
        n_rows = self._fitted_on(n_units) if n_units else 1

        def errors(inner: InnerFits) -> list[float]:
            return [c.noise_error(b, terms, n_rows) for c, b in self._budgets(inner)]

        found = errors(inner)  # all are asked, as each checks its parameters
        if np.inf in found:
            inner = replace(inner, basic=True)
            with no_warnings(Warning):  # all of them were given above
                errors(inner)  # checks that depend on (epsilon, delta) are made at the budgets of the fits
        elif not inner.holds_errors(self.epsilon, self.delta, found):
            raise ValueError(
                "the fits inside keep more of the budget for the errors of drawn noise than is left for them, as "
                "they have several private fits inside themselves: give the estimators inside them instead"
            )
        return inner

    # ---------------------------------------------------------------- the data

    def _check_units(self, n_units: int) -> None:
        """Refuse fewer units than there are parts; not under add-remove, where their number is private."""

    def _imagined(self, shape: PublicShape) -> ComposedRows:
        if self.adjacency != "add-remove":
            self._check_units(shape.n_units)
        return ComposedRows(UserTable(None, None, None, np.empty(0, np.intp), shape), {}, ())

    def _decide(self, session: PrivacySession, problem: ComposedRows) -> Decision:
        inner = cast("ComposedSession", session).inner
        # Places with the same kinds of fits pay the same for each kind.
        positions = {tuple(Counter(inner.purposes[i] for i in place).items()): place for place in inner.positions}
        steps: list[Step] = []
        for words, place in positions.items():
            others = " of other records" if steps else ""
            for what, n in words:
                share = math.fsum(inner.shares[i] for i in place if inner.purposes[i] == what)
                steps.append(Step(f"{n} {what}{'s' * (n > 1)}{others}", share, None))
        counts = {f"n_{what}s": n for what, n in Counter(inner.purposes).items()}
        return Decision(sizes=counts, steps=tuple(steps), details=inner)

    def _plans_inside(self, made: FitPlan) -> tuple[FitPlan, ...]:
        inner, shape = cast("InnerFits", made.decision.details), made.shape
        terms, n = self._terms(self._part_of_fits()), self._fitted_on(shape.n_units)
        return tuple(c.plan(b, terms, replace(shape, n_units=n)) for c, b in self._budgets(inner))

    def read(self, X: object, y: object = None, groups: object = None) -> ComposedRows:
        """Check the rows as the fits inside will; nothing is released."""
        table = self._table(X, y, groups)
        leaks: dict[str, None] = {}
        terms = self._terms(self._part_of_fits())
        for candidate, budget in self._budgets(self._inner()):
            leaks.update(dict.fromkeys(candidate.lines(hasattr(X, "indptr"))))
            self._check_fitted(candidate.look(budget, terms, X, y, groups))
        if self.adjacency != "add-remove":
            self._check_units(table.n_units)
        return ComposedRows(table, {}, tuple(leaks))

    def _check_fitted(self, fitted: Mapping[str, object]) -> None:
        """Refuse public attributes of a model to be, such as its classes."""

    def _table(self, X: Any, y: object, groups: object) -> UserTable:
        for name, given in (("X", X), ("y", y), ("groups", groups)):
            if is_cupy(given):
                raise TypeError(
                    f"{name} must be in the memory of the host here, got a CuPy array: use {name}.get()"
                )
        n = count_rows(X, y)
        units = np.arange(n) if groups is None else encode_groups(groups, n)
        n_units = self.n_public if self.n_public is not None else int(units.max()) + 1
        width = X.shape[1] if len(getattr(X, "shape", ())) == 2 else np.size(X[0])
        shape = PublicShape(
            self.unit, int(n_units), int(width), self.n_public,
            container="csr" if hasattr(X, "indptr") else "dense",
        )  # fmt: skip
        return UserTable(X, y, groups, units, shape)

    # ---------------------------------------------------------------- inside

    def _inside(self, session: ComposedSession, work: Callable[[], T]) -> T:
        """Run a fit or an evaluation; once something is released, a failure says nothing but that it failed."""
        try:
            # Warnings of leaks come before: from `read`, and from the session if there is a seed.
            with no_warnings(PrivacyLeakWarning):
                return work()
        except PrivacyAccountingError:
            raise
        except Exception:
            if not session.committed:
                raise
        raise RuntimeError(FAILED)

    def _fit_inside(
        self, session: ComposedSession, index: int, candidate: InnerEstimator, table: UserTable, share: float
    ) -> BaseEstimator:
        """Fit a copy of a candidate as fit ``index``."""
        budget, terms = session.budget(index), self._terms(share)

        def work() -> BaseEstimator:
            copy = candidate.paid(budget, terms, session.payer(index), session.seed())
            return candidate.fit(copy, table.X, table.y, table.groups)

        fitted = self._inside(session, work)
        session.add(index, candidate.reports(fitted), met=(STEPS_ARE_CLEAN,))
        return candidate.restored(fitted)

    def _evaluate_inside(
        self,
        session: ComposedSession,
        index: int,
        model: BaseEstimator,
        table: UserTable,
        share: float,
        **how: Any,
    ) -> Evaluation:
        """Evaluate a fitted model as fit ``index``."""
        epsilon, delta = session.budget(index)
        terms = self._terms(share)

        def work() -> Evaluation:
            payer: Any = session.payer(index)
            return evaluate(
                model, table.X, table.y, epsilon=epsilon, delta=delta, unit=terms.unit,
                groups=table.groups, adjacency=terms.adjacency, n_public=terms.n_public,
                accountant=payer, random_state=session.seed(), **how,
            )  # fmt: skip

        found = self._inside(session, work)
        met = (STEPS_ARE_CLEAN, *((MODEL_IS_PUBLIC,) if self._candidates() else ()))
        session.add(index, [found.privacy_], met=met)
        return found

    # ---------------------------------------------------------------- report

    def _public_facts(self, problem: ComposedRows) -> dict[str, object]:
        inner = self._inner()
        positions = [Counter(inner.purposes[i] for i in place) for place in inner.positions]
        words = [" and ".join(f"{n} {what}{'s' * (n > 1)}" for what, n in p.items()) for p in positions]
        each = " or in ".join(dict.fromkeys(words))
        listed = "; releases of the dearest are listed" if len(set(words)) > 1 else ""
        return {**super()._public_facts(problem), "each record": f"in {each}{listed}"}

    def _assumptions(self, problem: ComposedRows) -> tuple[str, ...]:
        own = super()._assumptions(problem)
        if self.adjacency == "add-remove":
            own = (*own, "at least one record or group remains in each part")
        return own
