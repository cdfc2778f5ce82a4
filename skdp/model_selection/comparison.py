"""A handful of models on one hold-out, each paid for: all scores may be looked at."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from skdp._compat import no_warnings
from skdp._docs import document
from skdp.base.cells import check_collected
from skdp.base.declare import parameter, positional
from skdp.base.kinds import described, flag, share
from skdp.base.problem import Solution
from skdp.metrics.evaluation import NAMES, Evaluation, table_html
from skdp.metrics.models import kind_of
from skdp.metrics.released_score import ReleasedScore
from skdp.model_selection.composed import SCORING, ComposedFit, ComposedRows, UserTable, check_scoring
from skdp.model_selection.inner import InnerEstimator
from skdp.privacy import ComposedSession, InnerFits, PrivacyReport
from skdp.statistics.calls import Budget, takes_budget
from skdp.statistics.released_tables import claim_text, shown, table_text

if TYPE_CHECKING:
    import pandas as pd

MOST_MODELS = 20
# The least is best; of a mean error the nearest to 0.
LOSSES = frozenset(
    {
        "log_loss",
        "brier_score",
        "mean_squared_error",
        "root_mean_squared_error",
        "mean_absolute_error",
        "mean_error",
    }
)


class Comparison(Mapping[str, Evaluation]):
    """Released scores of several models on one part of the records: a mapping from the name of a model to them.

    Attributes
    ----------
    estimators_ : dict of {str: estimator}
        The fitted models by their names.
    privacy_ : PrivacyReport
        The cost of all fits and evaluations together. The report of a single model has its cost alone.
    """

    def __init__(
        self,
        evaluations: dict[str, Evaluation],
        estimators: dict[str, object],
        privacy: PrivacyReport,
        scoring: tuple[str, ...] | None,
    ) -> None:
        self._evaluations, self.estimators_, self.privacy_ = evaluations, estimators, privacy
        self._names = scoring

    def __getitem__(self, name: str) -> Evaluation:
        try:
            return self._evaluations[name]
        except KeyError:
            raise KeyError(f"no model {name!r}; there are {', '.join(self._evaluations)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._evaluations)

    def __len__(self) -> int:
        return len(self._evaluations)

    @property
    def _listed(self) -> list[str]:
        """Scores that are shown: the scores of ``scoring``, or all."""
        if self._names is not None:
            return list(self._names)
        return list(dict.fromkeys(name for e in self._evaluations.values() for name in e))

    def best(self, scoring: str) -> str:
        """Return the name of the model whose released score is best; it costs no privacy.

        Parameters
        ----------
        scoring : str
            Name of a score. Of a loss or an error the least is best, of a mean error the nearest to 0.

        Returns
        -------
        str
            The first one if several are equal. The best of noisy scores is one that the noise favoured: see
            `best_score`.
        """
        return max(self._evaluations, key=lambda name: _goodness(self._evaluations[name], scoring))

    def best_score(self, scoring: str) -> ReleasedScore:
        """Return the score of the best model, without intervals.

        Parameters
        ----------
        scoring : str

        Returns
        -------
        ReleasedScore
            The score of a winner is too good on average (the winner's curse), and no interval holds for it.
            Evaluate the winner on another part of the records.
        """
        score = self[self.best(scoring)][scoring]
        return replace(score, noise_interval=None, interval=None)

    def to_frame(self) -> "pd.DataFrame":
        """Return all scores as a data frame; needs pandas.

        Returns
        -------
        DataFrame
            Index ``model`` and ``metric``; columns ``value``, ``noise_std``, ``noise_low``, ``noise_high``,
            ``low`` and ``high``. The intervals hold for a model that was chosen before looking at the scores.
        """
        frames = {name: evaluation.to_frame() for name, evaluation in self._evaluations.items()}
        import pandas as pd  # there: each frame needs it

        frames = {
            name: frame if self._names is None else frame.reindex(list(self._names))
            for name, frame in frames.items()
        }
        return pd.concat(frames, names=["model"]).rename_axis(["model", "metric"])

    def _table(self) -> list[list[str]]:
        rows = [["", *(NAMES.get(name, name) for name in self._listed)]]
        for model, evaluation in self._evaluations.items():
            scores = [evaluation.get(name) for name in self._listed]
            cells = ["-" if s is None else shown(s.value, s.noise_std) for s in scores]
            rows.append([model, *cells])
        return rows

    def _about(self) -> str:
        models = "1 model" if len(self) == 1 else f"{len(self)} models"
        return (
            f"Comparison of {models}, {claim_text(self.privacy_)}. ±: standard deviation of the "
            "noise; the best of them looks better than it is"
        )

    def __repr__(self) -> str:
        rows = self._table()
        # The longer of models and scores goes down, so that lines stay short.
        turned = rows if len(self) > len(self._listed) else [list(cells) for cells in zip(*rows)]
        return f"{table_text(turned)}\n<{self._about()}>"

    def _repr_html_(self) -> str:
        return table_html(self._table(), self._about())


def _goodness(evaluation: Evaluation, scoring: str) -> float:
    value = float(evaluation[scoring].value)
    return -abs(value) if scoring in LOSSES else value


def named(models: object) -> dict[str, object]:
    """The models by name: of a dict, of (name, estimator) pairs, or of a list of estimators."""
    if isinstance(models, Mapping):
        pairs = list(models.items())
    elif isinstance(models, list | tuple) and models:
        if all(isinstance(m, tuple) and len(m) == 2 for m in models):
            pairs = list(models)
        else:
            kinds = [_name_of(model) for model in models]
            pairs = [
                (kind if kinds.count(kind) == 1 else f"{kind}-{kinds[: i + 1].count(kind)}", model)
                for i, (kind, model) in enumerate(zip(kinds, models))
            ]
    else:
        raise TypeError(
            "models must be a list of estimators, a list of (name, estimator) pairs or a dict of them, got "
            f"{type(models).__name__}"
        )
    names = [name for name, _ in pairs]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("names of models must be different strings")
    if not 1 <= len(names) <= MOST_MODELS:
        raise ValueError(f"models must be 1 to {MOST_MODELS} estimators, got {len(names)}")
    return dict(pairs)


def _name_of(model: object) -> str:
    last = model.steps[-1][1] if isinstance(model, Pipeline) and model.steps else model
    return type(last).__name__.lower()


class Comparing(ComposedFit):
    """k fits on one part of the units, and k evaluations on the other."""

    models: object = positional(described("list or dict of estimators"), "What is compared.")
    test_size: float = parameter(share(), "Share of the units that models are evaluated on.", default=0.25)
    scoring: object = SCORING
    prefit: bool = parameter(flag(), "Whether the models are fitted already.", default=False)
    test: tuple[object, object, object] | None = parameter(
        described("tuple of (X, y, groups)"), "Rows to evaluate on.", default=None, releases=False
    )

    _called = "compare"

    def _candidates(self) -> tuple[InnerEstimator, ...]:
        if self.prefit:
            return ()
        return tuple(InnerEstimator(f"models[{n!r}]", m) for n, m in named(self.models).items())

    def _inner(self) -> InnerFits:
        k, candidates = len(named(self.models)), self._candidates()
        evaluations = ("evaluation",) * k
        if self.prefit:
            return InnerFits(evaluations, (1.0 / k,) * k, (tuple(range(k)),), (1,) * k)
        return InnerFits(
            purposes=("fit",) * k + evaluations,
            shares=(1.0 / k,) * (2 * k),
            positions=(tuple(range(k)), tuple(range(k, 2 * k))),
            charges=(*(len(candidate.parts) for candidate in candidates), *(1,) * k),
        )

    def _fitted_with(self, index: int) -> int:
        return index

    def _part_of_fits(self) -> float:
        return 1.0 if self.test is not None else 1.0 - self.test_size

    def _check_parameters(self) -> None:
        models = list(named(self.models).values())
        super()._check_parameters()
        if self.prefit:
            if self.test is not None:
                raise ValueError(
                    "X_test is for models that are fitted here: with prefit=True give the rows as X, y"
                )
            for model in models:
                kind_of(model)
        if len({bool(is_regressor(model)) for model in models}) > 1:
            raise ValueError("models must be all classifiers or all regressors")
        if self.test is not None and self.n_public is not None:
            raise ValueError(
                "X_test has no public number of its own: with n_public give all rows as X, which are split here"
            )
        self._names = check_scoring(self.scoring, models)

    def read(self, X: object, y: object = None, groups: object = None) -> ComposedRows:
        problem = super().read(X, y, groups)
        if self.test is not None:
            self._test = self._checked_test(problem.records)
        return problem

    def _check_units(self, n_units: int) -> None:
        if self.test is None and not self.prefit and n_units < 2:
            raise ValueError(f"a training and a test part need at least two {self.unit}s")

    def _checked_test(self, train: UserTable) -> UserTable:
        """The rows of X_test, checked like X: errors are raised before anything is spent."""
        test = self._table(*(self.test or ()))
        if test.shape.n_features != train.shape.n_features:
            raise ValueError("X_test must have the columns of X")
        terms = self._terms(1.0)
        for candidate, budget in self._budgets(self._inner()):
            with no_warnings(Warning):  # the rows of X have had them
                candidate.look(budget, terms, test.X, test.y, test.groups)
        return test

    def _split(self, session: ComposedSession, table: UserTable) -> tuple[UserTable, UserTable]:
        if self.test is not None:
            test = self._test
            del self._test
            return table, test
        place = session.positions(table.n_units, (1.0 - self.test_size, self.test_size))
        return table.rows(place == 0), table.rows(place == 1)

    def solve(self, session: Any, problem: ComposedRows) -> Solution:
        """Fit all, then evaluate all."""
        given, k = named(self.models), len(named(self.models))
        if self.prefit:
            fitted, test, share, first = given, problem.records, 1.0, 0
        else:
            train, test = self._split(session, problem.records)
            share, first = 1.0 if self.test is not None else self.test_size, k
            fitted = {
                name: self._fit_inside(session, i, candidate, train, self._part_of_fits())
                for i, (name, candidate) in enumerate(zip(given, self._candidates()))
            }
        found = {
            name: self._evaluate_inside(session, first + i, model, test, share)
            for i, (name, model) in enumerate(fitted.items())
        }
        return Solution(n_iter=k, attributes={"models_": fitted, "evaluations_": found})

    def _assumptions(self, problem: ComposedRows) -> tuple[str, ...]:
        own = super()._assumptions(problem)
        if self.test is None:
            return own
        how = (
            ""
            if self.adjacency == "zero-out"
            else ", and which rows are in X_test was decided without looking at values"
        )
        return (*own, f"no record, and no group, has rows in X and in X_test{how}")

    def result(self) -> Comparison:
        """The result of `compare`."""
        return Comparison(self.evaluations_, self.models_, self.privacy_, self._names)


@document()
@takes_budget()
def compare(
    models: object,
    X: object,
    y: object,
    *,
    groups: object = None,
    test_size: float = 0.25,
    scoring: object = None,
    prefit: bool = False,
    X_test: object = None,
    y_test: object = None,
    groups_test: object = None,
    **budget: Unpack[Budget],
) -> Comparison:
    """Fit and evaluate a handful of private models, each paid for, so that all scores may be looked at.

    Each of k models gets ``mu / sqrt(k)``: .71 mu for two, .58 for three, .5 for four. For more, and where only
    the best is wanted, `DPRandomizedSearch` costs less.

    Parameters
    ----------
    models : list of estimators, list of (str, estimator) pairs, or dict
        Private classifiers or regressors, or Pipelines that end in one; at most 20, not changed. Their
        ``epsilon``, ``delta``, ``adjacency``, ``unit``, ``n_public`` and ``random_state`` are replaced. Names of a
        plain list are the names of the classes in lower case.
    X : array-like, CSR matrix or data frame of shape (n_samples, n_features)
        Not changed.
    y : array-like of shape (n_samples,)
        Labels or targets.
    groups : array-like of shape (n_samples,), default=None
        Who each row belongs to; needed by, and allowed with, ``unit="group"`` only. All rows of a group are
        in one part.
    test_size : float in (0, 1), default=0.25
        Share of the records (or groups) that the models are evaluated on, drawn afresh.
    scoring : str or sequence of str, default=None
        Which scores of `skdp.metrics.evaluate` are shown. None shows all. It changes no release.
    prefit : bool, default=False
        Whether the models are fitted already, and released, or were fitted to other people. Then all rows are for
        their evaluation, and the models need not be private.
    X_test, y_test, groups_test : as X, y and groups, default=None
        A test part of your own, from `train_test_split`. All of ``X`` is then for the fits.
    n_public : int, default=None
        Public number of records (or groups) of the whole table; needed under add-remove. Fits and evaluations get
        their shares of it.

    Returns
    -------
    Comparison
        A mapping from the names of the models to `skdp.metrics.Evaluation`, with ``estimators_``, ``privacy_``,
        `Comparison.best` and `Comparison.to_frame`.

    Raises
    ------
    TypeError, ValueError
        If a parameter or the data are not as described. No budget is spent.
    PrivacyBudgetExceeded
        If the accountant does not hold (epsilon, delta). Nothing was read.
    RuntimeError
        If a fit fails after something was released. The budget stays spent, and the message does not say why.

    See Also
    --------
    cross_validate : One model on all folds of a table.
    skdp.metrics.evaluate : Scores of one model.

    Notes
    -----
    **Privacy.** A record of the training part is in k fits of ``mu / sqrt(k)`` each, which compose to mu
    ([Dong2022]_), and in no evaluation. A record of the test part is in k evaluations of ``mu / sqrt(k)``, and in
    no fit. Two neighbouring tables differ in one part only, so the dearer part is claimed, and not the sum. The
    whole is charged at once, before a value is read.

    Why in one part. *Replace-one, zero-out:* the number of records (or groups) is public, and the test part is the
    end of a uniformly random order, of public size. Match the record that is replaced with its successor, and a
    group with the one in its stead, whatever its label and its number of rows: the image of a uniform order is
    uniform, so both are in the same part, and all others where they were. Releases of the other part have the same
    law on both tables: they are public randomness. *Add-remove:* each record (or group) tosses a coin of its own,
    and who is in both tables has the same coin in both. Sizes of the parts are private, so fits and evaluations
    get ``n_public`` times their share. With ``X_test`` the parts are your promise, and the report says so.

    If a fit has no mu (minibatches, perturbed minima), (epsilon, delta) are divided evenly and add up (basic
    composition), and the accountant is charged without a mu.

    The score of the best model is too good on average (the winner's curse). Intervals hold for a model that was
    chosen before looking.

    {privacy.unprotected}

    References
    ----------
    .. [Dong2022]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPIGHTClassifier, DPLogisticRegression
    >>> from skdp.model_selection import compare
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 3))
    >>> y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    >>> models = {"front": DPLogisticRegression(classes=(0, 1)), "sparse": DPIGHTClassifier(classes=(0, 1))}
    >>> found = compare(models, X, y, epsilon=2.0, scoring=["accuracy", "roc_auc"])
    >>> list(found), found.best("accuracy") in models, found.best_score("accuracy").interval
    (['front', 'sparse'], True, None)
    """
    check_collected(X_test=X_test, y_test=y_test, groups_test=groups_test)
    test = None
    if X_test is not None or y_test is not None or groups_test is not None:
        if X_test is None or y_test is None or (groups is None) != (groups_test is None):
            raise ValueError("X_test needs y_test, and groups_test where groups are given")
        test = (X_test, y_test, groups_test)
    fit = Comparing(models=models, test_size=test_size, scoring=scoring, prefit=prefit, test=test, **budget)
    return fit.fit(X, y, groups=groups).result()
