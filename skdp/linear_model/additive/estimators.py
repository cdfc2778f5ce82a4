"""`DPAdditiveClassifier` and `DPAdditiveRegressor`."""

import math
from typing import Any

from skdp._docs import document
from skdp.linear_model.additive.frame import AdditiveFit
from skdp.linear_model.additive.search import OF_CLASSES, OF_NUMBERS
from skdp.linear_model.front import classification, regression
from skdp.linear_model.front.estimators import FrontClassifier, FrontRegressor

__all__ = ["DPAdditiveClassifier", "DPAdditiveRegressor"]


@document()
class DPAdditiveClassifier(AdditiveFit, FrontClassifier):
    """Additive model of classes that is differentially private."""

    l1_ratio = 0.0
    _linear_estimator = "DPLogisticRegression"
    _parts = OF_CLASSES
    _of_moments = classification.MOMENTS

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        C=math.inf,
        interactions=8,
        monotone=None,
        categories=None,
        class_weight=None,
        feature_bounds=None,
        classes=None,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        accountant=None,
        random_state=None,
        verbose=False,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.interactions = interactions
        self.monotone = monotone
        self.categories = categories
        self.class_weight = class_weight
        self.feature_bounds = feature_bounds
        self.classes = classes
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose


@document(DPAdditiveClassifier)
class DPAdditiveRegressor(AdditiveFit, FrontRegressor):
    """Additive model of numbers that is differentially private."""

    _linear_estimator = "DPLinearRegression"
    _parts = OF_NUMBERS
    _of_moments = regression.MOMENTS

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        C=math.inf,
        interactions=8,
        monotone=None,
        categories=None,
        feature_bounds=None,
        y_bounds=None,
        bounded=True,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        accountant=None,
        random_state=None,
        verbose=False,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.interactions = interactions
        self.monotone = monotone
        self.categories = categories
        self.feature_bounds = feature_bounds
        self.y_bounds = y_bounds
        self.bounded = bounded
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
