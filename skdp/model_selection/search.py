"""A search among private models that pays for itself: the best of a random number of trials, and nothing else.

The number of trials is drawn and stays secret; only the best model leaves. `skdp.privacy.mechanisms.best_of.bound`
proves the cost, after Papernot and Steinke (2022) and Koskela, Redberg and Wang (2024).
"""

import math
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self, Unpack, cast

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils import Tags, get_tags, indexable

from skdp._docs import document
from skdp.base.declare import fitted, parameter, positional
from skdp.base.fit import PrivateFit, SessionOptions
from skdp.base.kinds import check_choice, check_number, described, share
from skdp.base.plan import Decision, FitPlan, NoRecords, Step
from skdp.base.problem import Solution
from skdp.base.user_tables import encode_groups
from skdp.metrics import ReleasedScore
from skdp.model_selection.best import BestEstimatorMixin
from skdp.model_selection.candidates import Candidate, Candidates
from skdp.model_selection.scores import (
    CLASSIFIER_SCORES,
    REGRESSOR_SCORES,
    ScoreTerms,
    default_score,
    released_score,
)
from skdp.model_selection.trial import Parts, SearchProblem, Winner, check_claim, check_frame, quiet
from skdp.model_selection.unit_split import PartSizes, divided, part_sizes
from skdp.privacy import (
    BudgetAccountant,
    PrivacyReport,
    PrivacySession,
    PublicShape,
    TrialCount,
    fit_to_first_release,
)

# Parameters that the search sets in every candidate: they fix the cost and the unit of a fit.
_OWN = ("epsilon", "delta", "adjacency", "unit", "n_public", "accountant", "random_state")
_SHOWN = ("verbose", "callback")  # parameters that show a running fit, and so the number of fits
_SEEDS = 2**31 - 1
# Standard deviations of its noise by which a score is lowered before trials are compared. Noise differs between
# trials where bounds are released, and of equally good ones the noisiest would win. A choice, not tuned.
_STDS_BELOW = 3.0


def _check_mean_trials(name: str, value: object) -> None:
    check_number(name, value, Real)
    TrialCount(cast("float", value))


def _check_shape(name: str, value: object) -> None:
    check_number(name, value, Integral)
    TrialCount(2.0, cast("int", value))


class SearchDecision(NamedTuple):
    """The sizes of the parts, and the largest cost of a trial: the session's plan."""

    parts: PartSizes
    plan: Any


@document()
class DPRandomizedSearch(BestEstimatorMixin, MetaEstimatorMixin, PrivateFit[SearchProblem]):
    """Choose among private models by a random number of trials, ``mean_trials`` on the average.

    A trial draws a candidate, fits it to one part of the records and scores it on the other part, with noise. Only
    the best one leaves. How many trials there are is random and secret. `privacy_` is the cost of all of it, the
    choice included.

    Raises
    ------
    RuntimeError
        If every trial failed. The budget is spent.

    Notes
    -----
    **Privacy.** Records (or whole groups) are divided once, by fresh randomness that does not read them. A unit is
    in one part: if it is in the part to fit on, the fit differs and the score of the released model does not read
    it; if it is in the other, only the score does. One trial therefore costs a fit *or* a score,
    ``base_epsilon_``, and not both. Trials are independent and have one law. The best of K of them, K random and
    never shown, costs (epsilon, delta) in all: `skdp.privacy.mechanisms.best_of.bound` has the proof. Ties are
    broken at random, and a trial that fails has the worst score. There is no ``cv_results_``, no number of trials,
    and no line, warning or output of single trials, since any of them would show more than the proof allows. **The
    running time shows about how many trials there were**, and is not protected; nor are files of compiled kernels,
    where candidates need different ones.

    The search has no mu. An accountant takes it as the first fit of a ledger, or beside others of its kind. Where
    a candidate has no mu itself (it draws minibatches, or perturbs minima), nothing but its (epsilon, delta) is
    used, and ``base_epsilon_`` is smaller: at epsilon = 1 and 10 trials 0.38 in place of 0.64. A candidate from a
    distribution is not known beforehand: if only such a candidate has no mu, its trials have no result.

    **When it pays.** A search costs about half of the records: one fifth is scored on, and a fit gets about two
    thirds of mu. Over tuned defaults it never paid where it was measured: in 0 of 42 cells (six data sets, three
    epsilons, two scores; and nets). It can pay where no default is tuned, from four candidates on. Two candidates
    at mu / sqrt(2) each are cheaper than a search, and both scores are shown.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Renyi differential privacy" (2022).
    Koskela, Redberg and Wang, "Privacy profiles for private selection" (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPIGHTClassifier, DPLogisticRegression
    >>> from skdp.model_selection import DPRandomizedSearch
    >>> X = np.random.default_rng(0).normal(size=(2000, 4))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> models = [DPLogisticRegression(classes=(0, 1)), DPIGHTClassifier(classes=(0, 1))]
    >>> grids = [{"fit_intercept": [True, False]}, {"n_nonzero_coefs": [1, 2, 4]}]
    >>> search = DPRandomizedSearch(models, grids, epsilon=2.0).fit(X, y)
    >>> round(search.base_epsilon_, 2), search.privacy_.epsilon
    (1.31, 2.0)
    """

    _no_blocks: ClassVar[str | None] = "it divides the rows into parts by random numbers"
    _record_checks = "those of every candidate"
    estimator: Any = positional(
        described("private estimator, or list of them"),
        """Not one that fits models inside, such as `DPTunedThresholdClassifier`. Its ``epsilon``, ``delta``,
        ``adjacency``, ``unit``, ``n_public``, ``accountant`` and ``random_state`` are set by the search. Give
        ``classes`` to classifiers.""",
    )
    param_distributions: object = positional(
        described("dict, list of dict, or None"),
        """Parameter names with lists, or with distributions that have a method ``rvs`` and draw from its
        ``random_state``, as in scikit-learn's ``RandomizedSearchCV``. With a list of estimators: None, or one
        entry (a dict or None) for each of them. Candidates are drawn independently, with replacement, also from
        lists: so ten trials of 13 candidates miss the best one about half of the time.""",
        default=None,
    )
    mean_trials: float = parameter(
        described("float", _check_mean_trials),
        """Expected number of trials, above 1 and at most 1000. A larger one leaves less budget for each.""",
        default=10,
    )
    shape: Literal[0, 1] = parameter(
        described("{0, 1}", _check_shape),
        """Of the law of their number: 1 is geometric; 0 is logarithmic, with more single trials and more
        long searches.""",
        default=1,
    )
    scoring: str | None = parameter(
        described("str"),
        """Of classifiers "accuracy" (default) or "neg_log_loss", where probabilities below 0.001 count as
        0.001. Of regressors "neg_mean_squared_error" (default; it orders models as R^2 does) or
        "neg_mean_absolute_error", within bounds that each trial releases for 40 % of its score's budget; they
        are compared less three standard deviations of their noise, which depends on these bounds.""",
        default=None,
    )
    test_size: float = parameter(share(), "Part of the records (or groups) to score on.", default=0.2)
    best_estimator_: Any = fitted(
        "estimator",
        "Fitted to the part of ``1 - test_size`` of the records. Its `privacy_` is the report of the search.",
    )
    best_params_: dict[str, Any] = fitted("dict", "The parameters that were drawn for it.")
    best_score_: ReleasedScore = fitted(
        "skdp.metrics.ReleasedScore",
        """Its released score, without intervals: the best of several noisy scores is too good (the winner's
        curse), and no estimate of the error on new records.""",
    )
    base_epsilon_: float = fitted("float", "The cost of a fit or a score of one trial.")
    classes_: np.ndarray = fitted("ndarray of shape (n_classes,)", "Of classifiers.")
    n_features_in_: int = fitted()

    def fit(self, X: object, y: object = None, *, groups: object = None, **more: object) -> Self:
        """Search, and keep the best model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The records, as the estimators take them. Not changed.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), default=None
            Who each record belongs to; needed by, and allowed with, ``unit="group"`` only.
        **more : dict
            Nothing: weights of records are not taken.

        Returns
        -------
        self : estimator

        Raises
        ------
        TypeError, ValueError
            If a parameter, an entry of ``param_distributions`` or the data are not as described. No
            budget is spent.
        PrivacyBudgetExceeded
            If the accountant does not hold (epsilon, delta). Nothing was read.
        RuntimeError
            If every trial failed. The budget is spent.
        """
        return super().fit(X, y, groups=groups, **more)

    # ---------------------------------------------------------------- before the data

    @property
    def _first(self) -> BaseEstimator:
        """One of the estimators; all of them are of one task."""
        given = self.estimator
        return given[0] if isinstance(given, list | tuple) and given else given

    def _check_parameters(self) -> None:
        super()._check_parameters()
        candidates = Candidates(self.estimator, self.param_distributions)
        tasks = {is_classifier(each) for each in candidates.estimators}
        if len(tasks) > 1:
            raise ValueError("estimator lists classifiers and regressors: search among one kind")
        known = CLASSIFIER_SCORES if tasks == {True} else REGRESSOR_SCORES
        if self.scoring is not None:
            check_choice("scoring", self.scoring, tuple(known))
        needed = known[self._scoring].needs
        for each in candidates.estimators:
            check_frame(each)
            if not hasattr(each, needed):
                raise ValueError(
                    f"scoring={self._scoring!r} needs {needed}, which {type(each).__name__} does not have"
                )
        for candidate in candidates.to_check():
            self._check_candidate(candidate)

    def _check_candidate(self, candidate: Candidate) -> None:
        """Refuse parameters that are not public choices of a fit, before anything is read."""
        owned = sorted(set(candidate.params) & set(_OWN))
        if owned:
            raise ValueError(f"param_distributions cannot hold {owned[0]!r}: the search sets it")
        model = self._prepared(candidate, self.epsilon, self.delta, self.n_public, None)
        given = model.get_params(deep=False)
        shown = [name for name in _SHOWN if given.get(name) or name in candidate.params]
        if shown:
            raise ValueError(
                f"{shown[0]}= of a candidate would show how many trials there are, which is secret: leave it out"
            )
        for name in ("adjacency", "unit", "n_public"):
            if getattr(model, name, None) != getattr(self, name):
                raise ValueError(
                    f"{type(model).__name__} cannot be searched with {name}={getattr(self, name)!r}: it has no "
                    f"such parameter, and {getattr(model, name, None)!r} instead"
                )
        with quiet():
            model._check_before_data(groups=() if self.unit == "group" else None)
        if model._unproven:
            raise ValueError(
                f"{type(model).__name__} with these parameters has no valid privacy proof, so no search can pay "
                "for it"
            )

    def _prepared(
        self, candidate: Candidate, epsilon: float, delta: float, n_public: int | None, seed: object
    ) -> BaseEstimator:
        """An unfitted copy of a candidate that costs this, and charges no accountant."""
        model = candidate.model()
        own = dict(zip(_OWN, (epsilon, delta, self.adjacency, self.unit, n_public, False, seed), strict=True))
        known = model.get_params(deep=False)
        return model.set_params(**{name: own[name] for name in own if name in known})

    @property
    def _scoring(self) -> str:
        return self.scoring or default_score(is_classifier(self._first))

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        options["best_of"] = True
        return super()._open_session(n_units, **options)

    # ---------------------------------------------------------------- the data

    def read(self, X: object, y: Any = None, groups: object = None) -> SearchProblem:
        """Check the data as every estimator of the search does, with every value of a list. In a trial a record
        that a candidate refuses would decide whether the candidate has a result. A parameter that does not fit
        the data's public shape would make all its trials fail, after they were paid for."""
        problem, leaks = None, list[str]()
        classes = None
        for candidate in Candidates(self.estimator, self.param_distributions).to_read():
            model = self._prepared(candidate, self.epsilon, self.delta, self.n_public, None)
            if classes is not None and getattr(model, "classes", None) is None:
                model.set_params(classes=classes)
            problem = model.read(X, y, groups)
            if not math.isinf(self.epsilon):
                self._try(model, X, y, groups)
            leaks += [line for line in problem.leaks if line not in leaks]
            found = problem.fitted.get("classes_")
            if classes is not None and not np.array_equal(classes, found):
                raise ValueError("the estimators have different classes: give all the same")
            classes = found
        assert problem is not None
        X, y = indexable(X, y)
        count = y.shape[0] if hasattr(y, "shape") else len(y)
        units = np.arange(count) if groups is None else encode_groups(groups, count)
        self._check_units(int(units.max(initial=-1)) + 1)
        kept = ("classes_", "n_features_in_", "feature_names_in_")
        fitted = {name: problem.fitted[name] for name in kept if name in problem.fitted}
        return SearchProblem(problem.records, fitted, tuple(leaks), X, y, units)

    @staticmethod
    def _try(model: BaseEstimator, X: object, y: object, groups: object) -> None:
        """Fit a candidate up to its first release; its warnings are given where parameters are checked."""
        given = {} if groups is None else {"groups": groups}

        def fit(accountant: BudgetAccountant) -> None:
            model.set_params(accountant=accountant).fit(X, y, **given)

        with quiet():
            fit_to_first_release(fit)

    def _check_units(self, n_units: int) -> None:
        if self.adjacency != "add-remove" and n_units < 2:
            got = f", got n_samples = {n_units}" if self.unit == "record" else ""
            raise ValueError(f"a search needs at least 2 {self.unit}s, one to fit on and one to score on{got}")

    def _imagined(self, shape: PublicShape) -> SearchProblem:
        self._check_units(shape.n_units)
        return SearchProblem(NoRecords(shape), {}, (), None, None, None)

    def _plans_inside(self, made: FitPlan) -> tuple[FitPlan, ...]:
        """Of the candidates that `read` takes: few, with the smallest and the largest of each list of numbers."""
        shape, decision = made.shape, cast("SearchDecision", made.decision.details)
        plan, public = decision.plan, decision.parts.fit_public
        n = {f"n_{shape.unit}s": part_sizes(shape.n_units, self.test_size, None, self.adjacency).n_units}
        return tuple(
            self._prepared(candidate, plan.base_epsilon, plan.base_delta, public, None).plan(
                n_features=shape.n_features, n_classes=shape.n_classes, sparse=shape.container == "csr", **n
            )
            for candidate in Candidates(self.estimator, self.param_distributions).to_read()
        )

    def _decide(self, session: PrivacySession, problem: SearchProblem) -> Decision:
        counts = self.unit == "record" and self.adjacency != "add-remove"
        n_units = problem.records.shape.n_units if counts else None
        parts = part_sizes(n_units, self.test_size, self.n_public, self.adjacency)
        plan = session.plan_best_of(self.mean_trials, shape=self.shape, gaussian=self._all_have_mu(parts))
        return Decision(
            sizes={"mean_trials": self.mean_trials, "base_epsilon": plan.base_epsilon},
            steps=(Step("search", 1.0),),
            details=SearchDecision(parts, plan),
        )

    def solve(self, session: PrivacySession, problem: SearchProblem) -> Solution:
        """Make the trials; release the best."""
        parts, plan = cast("SearchDecision", problem.decision.details)
        limits = (plan.base_epsilon, plan.base_delta, plan.base_mu)
        candidates = Candidates(self.estimator, self.param_distributions)
        drawn = np.random.RandomState(session.integers(2**32, 8).astype(np.uint32))
        data = Parts.of(problem, *divided(session, problem.units, self.test_size), self.unit)
        classes = problem.fitted.get("classes_")

        def seed() -> int | None:
            return None if self.random_state is None else int(session.integers(_SEEDS, 1)[0])

        def trial() -> tuple[float, Winner]:
            candidate = candidates.draw(drawn)
            model = self._prepared(candidate, *limits[:2], parts.fit_public, seed())
            if classes is not None:
                model.set_params(classes=classes)
            model.fit(data.fit_X, data.fit_y, **data.fit_groups)
            check_claim(model.privacy_, limits)
            terms = ScoreTerms(
                *limits[:2], self.adjacency, self.unit, parts.score_public, parts.score_least, seed()
            )
            score, noise = released_score(
                self._scoring, model, data.score_X, data.score_y, data.score_groups, terms
            )
            return score - _STDS_BELOW * noise, Winner(candidate, model, score, noise)

        winner = session.best_of(plan, trial)
        return Solution(attributes=self._of_winner(winner, plan.base_epsilon))

    def _all_have_mu(self, parts: PartSizes) -> bool:
        """Whether the fits of all candidates that are checked are Gaussian-DP; from public numbers."""
        for candidate in Candidates(self.estimator, self.param_distributions).to_check():
            model = self._prepared(candidate, self.epsilon, self.delta, parts.fit_public, None)
            with quiet(), model._open_session(parts.n_units) as session:
                if not session.has_mu:
                    return False
        return True

    def _of_winner(self, winner: Winner, base_epsilon: float) -> dict[str, object]:
        model, given = winner.model, winner.candidate.estimator.get_params(deep=False)
        # A later fit of a copy is a fit of its own: it is charged, and draws its own key.
        later = {"accountant": given.get("accountant"), "random_state": given.get("random_state")}
        model.set_params(**{name: later[name] for name in later if name in given})
        return {
            "best_estimator_": model,
            "best_params_": winner.candidate.params,
            "best_score_": (winner.score, winner.noise_std),  # `_report` adds its cost
            "base_epsilon_": base_epsilon,
        }

    # ---------------------------------------------------------------- report and attributes

    def _fitted(self, problem: SearchProblem, solution: Solution) -> dict[str, object]:
        return {**problem.fitted, **solution.attributes}

    def _public_facts(self, problem: SearchProblem) -> dict[str, object]:
        return {"test_size": float(self.test_size), "scoring": self._scoring}

    def _assumptions(self, problem: SearchProblem) -> tuple[str, ...]:
        lines: tuple[str, ...] = (
            "how long the search took is not known: it shows the number of trials",
            "a prediction for a row does not depend on the other rows that are predicted with it",
        )
        if self.adjacency == "add-remove":
            lines += (f"each part holds at least one {self.unit}; each is in the part to score on by a coin",)
        return (*super()._assumptions(problem), *lines)

    def _report(self, session: PrivacySession, problem: SearchProblem, solution: Solution) -> PrivacyReport:
        report = super()._report(session, problem, solution)
        # The winner's own claim is not its cost, because it was chosen. Its score has no intervals for the same
        # reason.
        attributes = cast("dict[str, Any]", solution.attributes)
        attributes["best_estimator_"].privacy_ = report
        score, noise = attributes["best_score_"]
        known = {**CLASSIFIER_SCORES, **REGRESSOR_SCORES}[self._scoring]
        attributes["best_score_"] = ReleasedScore(known.held(score), noise, report)
        return report

    def __sklearn_tags__(self) -> Tags:
        tags, own = super().__sklearn_tags__(), get_tags(self._first)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "input_tags", "target_tags"):
            setattr(tags, name, getattr(own, name))
        return tags
