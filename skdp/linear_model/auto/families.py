"""The methods of the automatic fit for classes and for numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from skdp.base.plan import BudgetSplit, Step
from skdp.base.problem import Solution
from skdp.fitting.targets import Problem
from skdp.linear_model.auto.choice import only_a_constant, only_frequencies
from skdp.linear_model.auto.classification import classification_steps, moment_classification
from skdp.linear_model.auto.moments_method import MomentsMethod
from skdp.linear_model.auto.regression import moment_regression, regression_steps
from skdp.linear_model.auto.steps import Growth
from skdp.privacy import PrivacySession, PrivateRecords


@dataclass(frozen=True)
class Family:
    """The method of moments and the other solvers for one kind of targets.

    Attributes
    ----------
    is_constant : callable
        Of a session and records: whether so few records leave the method of moments a constant only; public
        numbers decide.
    steps : callable
        Of a budget, records and a plan: the parts of the budget of the method of moments.
    moments : callable
        The method of moments, of a session, a problem, a plan, and the `Growth` that adds features on the way.
    solvers : mapping
        Names in `skdp.linear_model` by the words of ``solver``.
    """

    is_constant: Callable[[PrivacySession, PrivateRecords], bool]
    steps: Callable[[BudgetSplit, PrivateRecords, MomentsMethod], tuple[Step, ...]]
    moments: Callable[[PrivacySession, Problem, MomentsMethod, Growth | None], Solution]
    solvers: Mapping[str, str]


def _is_frequencies(session: PrivacySession, records: PrivateRecords) -> bool:
    return only_frequencies(records.shape, session.epsilon, session.delta)


def _is_mean(session: PrivacySession, records: PrivateRecords) -> bool:
    return records.shape.fit_intercept and only_a_constant(records.shape, session.epsilon, session.delta)


def _classes(session: PrivacySession, problem: Problem, plan: MomentsMethod, growth: Growth | None) -> Solution:
    n_classes = np.asarray(problem.fitted["classes_"]).size
    return moment_classification(session, problem.records, problem.loss, n_classes, plan, growth)


def _numbers(session: PrivacySession, problem: Problem, plan: MomentsMethod, growth: Growth | None) -> Solution:
    return moment_regression(session, problem.records, plan, growth)


OF_CLASSES = Family(
    _is_frequencies, classification_steps, _classes, {"ight": "DPIGHTClassifier", "lssgd": "DPLSSGDClassifier"}
)
OF_NUMBERS = Family(_is_mean, regression_steps, _numbers, {"ight": "DPIGHTRegressor", "lssgd": "DPLSSGDRegressor"})
