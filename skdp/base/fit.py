"""The frame of a private fit.

A subclass gives two methods. ``read(X, y, groups, ...)`` checks the data and returns a `Problem`: the records and
their public facts. ``solve(session, problem)`` runs the method and returns a `Solution`. An estimator of your own
plans in a third, ``releases(budget, shape)``: `FitPlan` shows the plans, and `solve` finds them in
``problem.releases``.

The order of a private fit: types of containers, parameters, the accountant's reservation, ``read``, the plan
(`_make_plan`: the family's decision in `_decide`, warnings, facts of the report), the warnings before the first
release, ``solve`` (in `_run`, with the family's steps around it), the warnings from released numbers, the recheck.
Nothing of the data is read before the reservation. Fitted attributes are set last. A failure before the first
release hands the reservation back and leaves the estimator as it was.

``read`` may look at every record. What it raises, warns of or returns in ``fitted`` must not depend on their
values, except that it refuses a record which fails its own check. No epsilon covers what ``read`` learns from the
records and puts into ``fitted``: it must warn, and name it in ``leaks``. ``solve`` sees bounded statistics of the
records only, and releases them through the session. All of it runs with floating-point warnings off, in the
caller's thread and in `skdp.kernels.run_blocks`; a subclass that starts threads of its own turns them off there.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from functools import cache
from numbers import Integral
from typing import ClassVar, Generic, Literal, Self, TypedDict, TypeVar, Unpack, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags

from skdp._compat import warn_user
from skdp.around import forget, lines_around, notice, paid_before, spends_budget
from skdp.base.blocks import Blocks, Placed, blocks_of, is_blocks
from skdp.base.cells import check_collected
from skdp.base.declare import Declared, check_parameters, fitted, parameter, parameters_of
from skdp.base.kinds import check_groups, check_number, check_privacy, choice, described, integer, real
from skdp.base.plan import Advice, BudgetSplit, Decision, FitPlan, NoRecords, steps_of
from skdp.base.problem import Problem, Solution
from skdp.base.user_tables import names_weights, taken_arguments, watch_fit
from skdp.exceptions import PrivacyAccountingError
from skdp.privacy import (
    BudgetAccountant,
    PrivacyReport,
    PrivacySession,
    PublicShape,
    carried_accountant,
    note_birth,
    note_use,
    seed_context,
    stamp_clone,
    stamped_state,
)
from skdp.privacy.partitions.client import MAX_DRAWN_UNITS

Adjacency = Literal["replace-one", "zero-out", "add-remove"]
Unit = Literal["record", "group"]

STEPS_ARE_CLEAN = "earlier pipeline steps did not learn from these records"
NOT_COUNTED = "its own cost is not counted here"
UNMEASURED = "nobody who sees the results measured the time of the fit or read its memory"
PUBLIC_NUMBER = "n_public was not computed from these records, or was paid for"


class SessionOptions(TypedDict, total=False):
    """Arguments of the session that the frame of a fit does not give; see `PrivacySession`."""

    epsilon: float
    estimator: str
    record_is: str
    set_aside: float
    minibatches: bool
    best_of: bool


ProblemT = TypeVar("ProblemT", bound=Problem)
EstimatorT = TypeVar("EstimatorT")


class FitFrame(Declared, BaseEstimator, Generic[ProblemT], metaclass=ABCMeta):  # type: ignore[explicit-any]  # of the base
    """The methods that every fit has, private or not."""

    @abstractmethod
    def read(self, X: object, y: object = None, groups: object = None) -> ProblemT:
        """Check the data of `fit`; further keyword arguments of `fit` are passed on."""

    @abstractmethod
    def solve(self, session: PrivacySession, problem: ProblemT) -> Solution:
        """Run the method: release statistics of the records through the session."""

    def _run(self, session: PrivacySession, problem: ProblemT) -> Solution:
        """Run `solve`, and the steps that a family of estimators puts around it."""
        return self.solve(session, problem)

    def _check_parameters(self) -> None:
        """Check the parameters together, before anything is read: each by itself is checked by its declaration."""

    def _decide(self, session: PrivacySession, problem: ProblemT) -> Decision:
        """Decide the fit from public numbers, and refuse a fit that cannot be done; nothing is released.

        An estimator of your own that has a method ``releases(budget, shape)`` plans its releases there; `solve`
        finds the plans in ``problem.releases``.
        """
        return decision_of(self, BudgetSplit(session), problem.records.shape)

    def _fitted(self, problem: ProblemT, solution: Solution) -> dict[str, object]:
        """Fitted attributes."""
        return {**problem.fitted, "n_iter_": solution.n_iter, **solution.attributes}


@spends_budget
class PrivateFit(FitFrame[ProblemT]):  # type: ignore[explicit-any]  # of the base
    """Base of the estimators that spend a privacy budget.

    Subclasses declare further parameters, or have a constructor of their own that stores all of them, and give
    `read`, `solve`, and ``releases(budget, shape)`` where they plan what `solve` releases.
    """

    epsilon: float = parameter(
        real(low=0, strict=True),
        "Privacy budget, > 0. ``inf`` runs the same method without noise and claims nothing.",
        default=1.0,
        place="first",
    )
    delta: float = parameter(
        real(low=0),
        "Additive term of the guarantee, in (0, 1). Choose it far below 1/n.",
        default=1e-5,
        place="first",
    )
    adjacency: Adjacency = parameter(
        choice("replace-one", "zero-out", "add-remove"),
        """What one record (or group) may do between neighbouring data sets. With "replace-one" it takes other
        values. With "zero-out" it is replaced by an absent one, which adds 0 to every sum. With "add-remove"
        it comes or goes; this needs ``n_public``.""",
        default="replace-one",
        place="last",
    )
    unit: Unit = parameter(
        choice("record", "group"),
        "Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`.",
        default="record",
        place="last",
    )
    n_public: int | None = parameter(
        integer(low=1, none=True),
        """Public number of records (or groups), which is used wherever their number is needed. None takes their
        real number, which is public except under "add-remove".""",
        default=None,
        place="last",
    )
    accountant: BudgetAccountant | Literal[False] | None = parameter(
        described("BudgetAccountant or False"),
        """Charged with (epsilon, delta) by each fit. None takes the accountant of the
        innermost ``with accountant:``. False charges none, also inside such a block.""",
        default=None,
        releases=False,
        place="last",
    )
    random_state: int | np.random.RandomState | np.random.Generator | None = parameter(
        described("None, int, RandomState or Generator"),
        """None draws a fresh key from the operating system. Anything else is for tests only: whoever knows the
        seed can subtract the noise.""",
        default=None,
        releases=False,
        place="last",
    )
    privacy_: PrivacyReport = fitted()

    # Why a fit takes no blocks of rows (`Blocks`), or None where all of its statistics are sums over blocks.
    _no_blocks: ClassVar[str | None] = "its class does not say that all of its statistics are sums over rows"
    _records_are_rows = True  # whether the records of a problem are the rows of X, and not numbers made of them
    _pure_possible = False  # whether delta=0 can be paid, by pure mechanisms alone
    _knows_width = False  # whether parameters tell the number of columns, for `plan`
    _erratum: ClassVar[str | None] = None  # of the published constant, for the report
    _unproven = False  # whether no valid proof supports the noise; the session then is exact
    _record_checks = "finite, numeric"  # what `read` asks of each record
    _start_from = "coef_init"  # the parameter that holds a released model
    _key_names_class = False  # whether classes share all parameters, and must not share the noise of one seed
    _leaks_name_steps = False  # whether the leaks of a problem are what earlier pipeline steps learnt
    _shape_type: ClassVar[type[PublicShape]] = PublicShape
    # The public numbers of the report, each with the attribute of the shape that holds it.
    _counts: ClassVar[Mapping[str, str]] = {
        name: name for name in ("n_features", "n_records", "n_groups", "n_public")
    }
    # Parameters that change no release, so that they do not enter the key of a seeded fit.
    _free = frozenset({"accountant", "random_state", "verbose", "callback"})

    def __new__(cls, *_: object, **__: object) -> Self:
        # Python runs no other method for each way to make an estimator: a constructor that a class writes itself,
        # a copy, a pickle. Without the note such an estimator would count as older than blocks that have ended,
        # and a worker's fit outside of all blocks would be charged to one of these, or refused (`left_behind`).
        watch_fit(cls)
        made = super().__new__(cls)
        note_birth(made)
        return made

    def __sklearn_tags__(self) -> Tags:
        # Meta-estimators ask for tags before they start workers, as they look at `fit`: see `watch_fit`.
        note_use(self, outside=False)
        notice(self)
        return super().__sklearn_tags__()

    def __getstate__(self) -> dict[str, object]:
        return stamped_state(self, dict(super().__getstate__() or {}))

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        stamp_clone(self, copy)
        return copy

    @names_weights
    def fit(
        self, X: object, y: object = None, *, groups: object = None, sample_weight: object = None, **more: object
    ) -> Self:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like, CSR matrix, Blocks or Dask collection of shape (n_samples, n_features)
            The records lie along the first axis. Neither copied (if it is float32 or float64) nor changed. Blocks
            are read again in each pass; estimators whose statistics are no sums over blocks refuse them.
        y : array-like of shape (n_samples,), default=None
            Targets; not beside `Blocks`, which hold them.
        groups : array-like of shape (n_samples,), default=None
            Who each record belongs to; needed by, and allowed with, ``unit="group"`` only.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, which are private and are clipped to [0, ``max_weight``]. They need this public bound in the
            constructor. The signature of an instance names them where it is declared.
        **more : dict
            Further arguments that `read` takes; none for most estimators. ``sample_weight=None`` is taken by all.

        Returns
        -------
        self : estimator

        Raises
        ------
        TypeError
            If an argument is unknown, or if the method has no weighted form and ``sample_weight`` is not None.
            No budget is spent.
        ValueError
            If a parameter or the data are not as described, or if weights come without their public bound. No
            budget is spent.
        PrivacyBudgetExceeded
            If the accountant does not hold (epsilon, delta). Nothing was read.
        PrivacyAccountingError
            If the ledger costs more than the claim, a bug in skdp, or if nothing was released through the session.
            The result is discarded.
        """
        blocks = blocks_of(X, y, groups, sample_weight)
        if blocks is None:
            check_collected(X=X, y=y, groups=groups, sample_weight=sample_weight, **more)
            self._check_before_data(groups)
        else:
            self._check_blocks(blocks, more)
            self._check_before_data(() if self._session_unit == "group" else None)
        more = taken_arguments(self, {"sample_weight": sample_weight, **more})
        _warn_without_cache()
        notice(self, fits=True)
        # A floating-point warning would tell that one record is very large, or very small.
        with np.errstate(all="ignore"), self._open_session(self._units_before(X)) as session:
            problem = self._problem_of(blocks, X, y, groups, more)
            _check_returned(problem, Problem, "read")
            self._check_shape(problem.records.shape)
            plan = self._make_plan(session, problem)
            if blocks is not None:
                self._check_drawn(session, blocks, problem.records.shape)
            problem = replace(problem, plan=plan)
            tell(plan.warnings)
            solution = self._run(session, problem)
            _check_returned(solution, Solution, "solve")
            tell(solution.warnings)
            report = self._report(session, problem, solution)
        forget(self)
        replace_fitted(self, {**self._fitted(problem, solution), "privacy_": report})
        return self

    def _problem_of(
        self, blocks: Blocks | None, X: object, y: object, groups: object, more: dict[str, object]
    ) -> ProblemT:
        """Check the data: those in blocks a block at a time."""
        if blocks is None:
            return self.read(X, y, groups, **more)
        from skdp.base.partitions import problem_of_blocks

        return cast("ProblemT", problem_of_blocks(self, blocks))

    def _read_block(self, X: object, y: object = None, groups: object = None, **more: object) -> ProblemT:
        """Check one block: `read`, unless the records of a block need what only all blocks together tell."""
        return self.read(X, y, groups, **more)

    def _of_blocks(self, problem: ProblemT) -> ProblemT:
        """The problem of all blocks, from what `_read_block` made of each."""
        return problem

    # ---------------------------------------------------------------- before the data

    def _check_blocks(self, blocks: Blocks, more: dict[str, object]) -> None:
        """Refuse data in blocks by the class and by public parameters; nothing is read."""
        if self._no_blocks is not None:
            name = getattr(self, "_called", None) or type(self).__name__
            raise TypeError(
                f"{name} takes no blocks: {self._no_blocks}. Fit data in memory; this fit spent nothing"
            )
        if self._session_unit == "group" and not blocks.places_groups:
            raise ValueError(
                "with unit='group' each group lies in one block: give groups, and group_starts= or n_buckets=, to "
                "the blocks, so that a row in another block is noticed (skdp.distributed.bucketed moves the rows "
                "of a Dask frame); this fit spent nothing"
            )
        if getattr(self, "classes", ()) is None:
            raise ValueError("give the labels in classes=: no block holds all of them; this fit spent nothing")
        unknown = [argument for argument, value in more.items() if value is not None]
        if unknown:
            raise TypeError(f"fit takes no {unknown[0]}= beside blocks; this fit spent nothing")

    def _check_drawn(self, session: PrivacySession, blocks: Blocks, shape: PublicShape) -> None:
        """Refuse batches that blocks cannot give; nothing was released."""
        kinds = session.planned_samplings
        if kinds and not isinstance(blocks, Placed):
            raise ValueError(
                "this fit draws minibatches, and each would read all blocks again: give batch_size as large as "
                "the number of records, data in memory, or a Dask collection while a distributed.Client is open"
            )
        if "partition" in kinds and shape.n_units > MAX_DRAWN_UNITS:
            raise ValueError(
                f"a random order of {shape.n_units} units takes too much memory (limit {MAX_DRAWN_UNITS}): give "
                "sampling='poisson'"
            )

    @property
    def _session_unit(self) -> str:
        """The unit in the session's words: an owner of records is a kind of group."""
        return "group" if self._of_owners else self.unit

    @property
    def _of_owners(self) -> bool:
        return str(self.unit) == "owner"

    def _check_before_data(self, groups: object) -> None:
        check_privacy(
            self.epsilon,
            self.delta,
            adjacency=self.adjacency,
            unit=self._session_unit,
            accountant=self.accountant,
            n_public=self.n_public,
        )
        check_parameters(self)
        self._check_parameters()
        check_groups(self.unit, groups)

    def _check_parameters(self) -> None:
        if self.delta == 0 and not self._pure_possible:
            raise ValueError(
                "delta=0 needs pure mechanisms, but this method adds Gaussian noise; give delta > 0, "
                "for example 1e-6"
            )

    def _units_before(self, X: object) -> int | None:
        """Public number of units before anything is read: None for groups, whose rows are private, and blocks."""
        if self.n_public is not None or self._session_unit == "group" or is_blocks(X):
            return self.n_public
        return _count_records(X)

    def _payer(self) -> BudgetAccountant | Literal[False]:
        """The accountant that a fit charges; False for none."""
        if self.accountant is not None:
            return self.accountant
        return carried_accountant(self) or False

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        """Reserve the budget; no value of the data has been read.

        The public number of units is None where it is not known yet. An override hands further options on.
        """
        options = {"epsilon": self.epsilon, "estimator": type(self).__name__, **options}
        return PrivacySession(
            delta=self.delta,
            adjacency=self.adjacency,
            unit=self._session_unit,
            group_is="owner" if self._of_owners else "group",
            accountant=self._payer(),
            random_state=self.random_state,
            context=b"" if self.random_state is None else seed_context(self._noise_parameters()),
            **options,
        )

    def _noise_parameters(self) -> dict[str, object]:
        """All parameters that change what is released: they separate the noise of two fits with one seed."""
        given = self.get_params(deep=False)
        free = self._free
        for name, declared in parameters_of(self).items():
            if not declared.changes_releases(given[name]):
                free = free | {name}
        made = {name: value for name, value in given.items() if name not in free}
        return {**made, "statistic": type(self).__name__} if self._key_names_class else made

    def _check_shape(self, shape: PublicShape) -> None:
        """Refuse records that count other units than the claim protects, or divide by another number."""
        if (shape.unit, shape.n_public) != (self._session_unit, self.n_public):
            raise ValueError(
                f"read returned records with unit={shape.unit!r} and n_public={shape.n_public}, but the "
                f"estimator has unit={self._session_unit!r} and n_public={self.n_public}: nothing was released"
            )

    # ---------------------------------------------------------------- the plan

    def _make_plan(self, session: PrivacySession, problem: ProblemT) -> FitPlan:
        """Make the plan of the fit, once."""
        shape = problem.records.shape
        made = FitPlan.of(self, shape, self._decide(session, problem))
        problem = replace(problem, plan=made)
        facts = self._public_facts(problem)
        if "classes" in facts:
            facts["classes"] = facts.pop("classes")  # they may be many, so the report lists them last
        return replace(
            made,
            epsilon=self.epsilon if self._unproven else session.epsilon,
            warnings=(*self._advice_on_delta(shape), *self._advice(session, problem)),
            facts=facts,
            assumptions=self._assumptions(problem),
        )

    def _imagined(self, shape: PublicShape) -> ProblemT:
        """Return a problem of this shape without records, for a plan that is made without data."""
        return cast("ProblemT", Problem(NoRecords(shape), {}, ()))

    def plan(
        self,
        n_records: int | Sequence[int] | None = None,
        n_features: int | None = None,
        *,
        n_groups: int | Sequence[int] | None = None,
        n_classes: int | None = None,
        sparse: bool = False,
    ) -> FitPlan:
        """Return what a fit would do with data of this shape: no record is read, and nothing is charged.

        Parameters
        ----------
        n_records : int or sequence of int, default=None
            Number of records, with ``unit="record"``; not needed where ``n_public`` is given. Estimators of
            several owners take the number of each owner, as [400, 300, 80]. `DPWord2Vec` counts windows.
        n_features : int, default=None
            Number of columns; of images, pixels times channels. Leave it out for `DPLSTMClassifier` and
            `DPWord2Vec`, whose parameters tell it.
        n_groups : int or sequence of int, default=None
            Number of groups, with ``unit="group"``; the rest as for ``n_records``.
        n_classes : int, default=None
            Number of classes of a classifier; None is the number of ``classes``, or 2.
        sparse : bool, default=False
            Whether X is a CSR matrix.

        Returns
        -------
        FitPlan
            Method and its reason, sizes, parts of the budget, warnings, facts of the report; ``print`` shows it.

        Raises
        ------
        TypeError, ValueError
            If a parameter is wrong, or the fit would refuse data of this shape.
        """
        uncharged = without_accountant(self)
        uncharged.set_params(random_state=None)
        uncharged._check_before_data(groups=() if self.unit == "group" else None)
        if n_groups is not None and self.unit != "group":
            raise ValueError(
                f"n_groups= is for unit='group', but the estimator has unit={self.unit!r}: give unit='group' to "
                "the estimator, or leave n_groups out"
            )
        counted = n_groups if self.unit == "group" else n_records
        if counted is None and self.n_public is None:
            wanted = "n_groups" if self.unit == "group" else "n_records"
            raise ValueError(f"a plan needs {wanted}=, the number of {wanted[2:]}, or the parameter n_public")
        if n_features is None and not self._knows_width:
            raise ValueError("a plan needs n_features=, the number of columns")
        width = 1 if n_features is None else n_features
        check_number("n_features", width, Integral, low=1)
        if n_classes is not None:
            check_number("n_classes", n_classes, Integral, low=2)
        shape = self._shape_type(
            self._session_unit, 1, int(width), n_public=self.n_public, n_classes=n_classes,
            container="csr" if sparse else "dense",
        )  # fmt: skip
        shape = shape.of_sizes(self._sizes_of(counted if self.n_public is None else self.n_public))
        with uncharged._open_session(shape.n_units) as session:
            made = uncharged._make_plan(session, uncharged._imagined(shape))
        return replace(made, parts=uncharged._plans_inside(made))

    def _sizes_of(self, counted: object) -> tuple[int, ...]:
        """The number of units of each owner that `plan` was given; of one, where there are no owners."""
        several = self._shape_type is not PublicShape and isinstance(counted, Iterable)
        sizes = tuple(cast("Iterable[int]", counted)) if several else (cast("int", counted),)
        if not sizes:
            raise ValueError("a plan needs the size of at least one owner, got none")
        for size in sizes:
            check_number("n_groups" if self.unit == "group" else "n_records", size, Integral, low=1)
        # The number of an owner's records is private where the owner is the unit.
        return (1,) * len(sizes) if self._of_owners else tuple(map(int, sizes))

    def _plans_inside(self, made: FitPlan) -> tuple[FitPlan, ...]:
        """Plans of the fits that this fit makes inside."""
        return ()

    # ---------------------------------------------------------------- warnings and report

    def _advice(self, session: PrivacySession, problem: ProblemT) -> Iterable[Advice]:
        """Return warnings from public numbers, before the first release."""
        return ()

    def _advice_on_delta(self, shape: PublicShape) -> Iterable[Advice]:
        if self.delta >= 1.0 / shape.n_units:
            # The largest power of ten that is at most 1 / (10 n), from the public number of units.
            small = 10.0 ** -len(str(10 * shape.n_units - 1))
            yield Advice(
                f"delta={self.delta:g} is too large for {shape.counted()}: a method that publishes one random "
                f"{shape.unit} outright satisfies this guarantee. Use delta <= {small:g}",
                UserWarning,
            )

    def _public_facts(self, problem: ProblemT) -> dict[str, object]:
        """Public quantities for the report, besides the counts of the shape."""
        return {}

    def _assumptions(self, problem: ProblemT) -> tuple[str, ...]:
        """Assumptions of the claim, besides the usual ones."""
        return ()

    def _post_processing(self, solution: Solution) -> tuple[str, ...]:
        """Lines for the report on the use of released numbers by predictions; they hold such numbers only."""
        return ()

    def _report(self, session: PrivacySession, problem: ProblemT, solution: Solution) -> PrivacyReport:
        plan = cast("FitPlan", problem.plan)
        shape, start = problem.records.shape, self._start_from
        counts = {name: getattr(shape, attribute) for name, attribute in self._counts.items()}
        public = {name: count for name, count in counts.items() if count is not None}
        around = lines_around(self)
        paid = ", ".join(paid_before(self))
        but = f", but for {paid}, whose own report has the cost" if paid else ""
        assumptions = (
            f"every record passes the per-record checks: {self._record_checks}",
            *([] if around or (self._leaks_name_steps and problem.leaks) else [f"{STEPS_ARE_CLEAN}{but}"]),
            UNMEASURED,
            *([] if self.n_public is None else [PUBLIC_NUMBER]),
            *(["at least one record or group remains"] if self.adjacency == "add-remove" else []),
            *plan.assumptions,
            *([] if getattr(self, start, None) is None else [f"{start} is a released model; {NOT_COUNTED}"]),
        )
        if not session.exact and not session.released:
            raise PrivacyAccountingError(
                "solve released nothing through the session, so no epsilon covers what it returned; release a "
                "BoundedStatistic by session.gaussian or another mechanism"
            )
        return session.report(
            public={**public, **plan.facts},
            assumptions=assumptions,
            leaks=tuple(dict.fromkeys([*problem.leaks, *around])),
            unproven=self._unproven,
            erratum=None if session.exact and not self._unproven else self._erratum,
            post_processing=self._post_processing(solution),
        )


def decision_of(estimator: object, budget: BudgetSplit, shape: PublicShape) -> Decision:
    """Return the decision of an estimator that plans its releases in a method ``releases``, or no decision."""
    releases = getattr(estimator, "releases", None)
    plans = releases(budget, shape) if callable(releases) else None
    return Decision(steps=steps_of(plans), details=plans)


def tell(advice: Iterable[Advice]) -> None:
    """Warn the user."""
    for text, category in advice:
        warn_user(text, category)


@cache  # the first fit of a process asks
def _warn_without_cache() -> None:
    """Warn before the budget is reserved.

    Under ``-W error`` a warning at the first use of a kernel could come after a release, which stays spent.
    """
    from skdp.kernels import warn_without_cache  # it loads numba, which no import of skdp does

    warn_without_cache()


def _check_returned(found: object, wanted: type, method: str) -> None:
    if not isinstance(found, wanted):
        raise TypeError(f"{method} must return a skdp.base.{wanted.__name__}, got {type(found).__name__}")


def without_accountant(estimator: EstimatorT) -> EstimatorT:
    """Return an unfitted clone whose fits charge no accountant, also inside ``with accountant:``.

    For fits inside a fit whose own session pays for their releases. Parts of a pipeline are unpaid too.
    """
    copy = clone(estimator)
    names = [name for name in copy.get_params() if name.split("__")[-1] == "accountant"]
    return copy.set_params(**dict.fromkeys(names, False))


def solve_inside(estimator: PrivateFit[ProblemT], session: PrivacySession, problem: ProblemT) -> Solution:
    """Run the method of another estimator inside a fit: its plan and its releases are this session's."""
    plan = FitPlan.of(estimator, problem.records.shape, estimator._decide(session, problem))
    return estimator._run(session, replace(problem, plan=plan))


def _count_records(X: object) -> int:
    """Number of records, as far as it can be told before validation; at least 1."""
    shape = getattr(X, "shape", None)
    if shape:
        return max(1, int(shape[0]))
    return max(1, len(X)) if isinstance(X, Sized) else 1


def replace_fitted(estimator: BaseEstimator, fitted: dict[str, object]) -> None:
    """Set the fitted attributes of a finished fit and drop the previous ones."""
    for name in [n for n in vars(estimator) if n.endswith("_") and not n.startswith("_") and n not in fitted]:
        delattr(estimator, name)
    for name, value in fitted.items():
        setattr(estimator, name, value)
