"""Fitted models as scikit-learn's own, for places where skdp is not installed."""

import pickle
from collections.abc import Callable, Iterable
from copy import deepcopy
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


def to_sklearn(model: object) -> Any:
    """Return a fitted model as one of scikit-learn, with the same predictions.

    What replaces skdp's steps holds released and public numbers only; scikit-learn's own steps are copied with all
    that they learnt. Nothing in it needs skdp: pickle it and use it where skdp is not installed. Do not fit it
    again on private records; that fit would not be private.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skdp that has a method ``to_sklearn``: the linear models, the scalers, public bins
        and nets of dense layers. Or a ``Pipeline``, ``FeatureUnion``, ``ColumnTransformer`` or
        ``TransformedTargetRegressor`` of them and of scikit-learn's estimators, or a fitted search over one, of
        which the best estimator is taken. A choice of ``set_output`` is not kept in the steps that are replaced.

    Returns
    -------
    estimator
        A fitted estimator of scikit-learn.

    Raises
    ------
    NotFittedError
        If an estimator of skdp is not fitted.
    TypeError
        If the model is no estimator, if a step has no equal in scikit-learn, as `ScatteringTransform` and
        convolutional nets, if another estimator holds one of skdp, or if something cannot be pickled.

    Examples
    --------
    >>> import numpy as np
    >>> import skdp
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).uniform(18, 90, size=(2000, 2))
    >>> y = (X[:, 0] > 50).astype(int)
    >>> model = make_pipeline(skdp.PublicScaler(bounds=(18, 90)), skdp.DPIGHTClassifier(classes=(0, 1)))
    >>> plain = skdp.to_sklearn(model.fit(X, y))
    >>> [type(step).__name__ for step in plain]
    ['StandardScaler', 'LogisticRegression']
    >>> bool(np.all(plain.predict(X) == model.predict(X)))
    True
    """
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise TypeError(f"model must be a fitted estimator, got {type(model).__name__}")
    made = _converted(model)
    found = _parts_of_skdp(made)
    if found:
        raise TypeError(
            f"{type(model).__name__} holds {', '.join(found)} of skdp, which scikit-learn has no equal of, or "
            "which stands in an estimator that to_sklearn does not look into: export the models alone by their "
            "own to_sklearn(), and build the rest around them"
        )
    return made


def _converted(model: BaseEstimator) -> BaseEstimator:
    """The model with everything of skdp replaced that can be found in it."""
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.pipeline import FeatureUnion, Pipeline

    if hasattr(model, "to_sklearn"):
        return model.to_sklearn()
    if hasattr(model, "best_estimator_"):
        return _converted(model.best_estimator_)
    pairs: list[tuple[BaseEstimator, BaseEstimator]] = []
    if type(model) is Pipeline:
        pairs = [(step, _converted(step)) for _, step in model.steps]
    elif type(model) is FeatureUnion:
        pairs = [(part, _converted(part)) for _, part in model.transformer_list]
    elif type(model) is ColumnTransformer and hasattr(model, "transformers_"):
        made = {name: (part, _converted(part)) for name, part, _ in model.transformers_}
        # Its parameters are unfitted estimators, which need skdp too: they become the fitted ones.
        given = {**{name: part for name, part, _ in model.transformers}, "remainder": model.remainder}
        pairs = [*made.values(), *((part, made[name][1]) for name, part in given.items() if name in made)]
    elif type(model) is TransformedTargetRegressor and hasattr(model, "regressor_"):
        made = _converted(model.regressor_)
        pairs = [(model.regressor_, made), (model.regressor, clone(made))]
    return deepcopy(model, {id(old): new for old, new in pairs if not isinstance(old, str)})


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, data: bytes) -> int:
        return len(data)


class _Inspector(pickle.Pickler):
    """Sees every object that a pickle holds."""

    def __init__(self) -> None:
        super().__init__(_Nowhere())
        self.found: dict[str, None] = {}

    def persistent_id(self, obj: object) -> None:
        kinds: Iterable[object] = obj.__mro__ if isinstance(obj, type) else (obj, *type(obj).__mro__)
        for kind in kinds:
            if str(getattr(kind, "__module__", "")).partition(".")[0] == "skdp":
                named = obj if hasattr(obj, "__qualname__") else type(obj)
                self.found[named.__qualname__] = None
                return


def _parts_of_skdp(model: object) -> list[str]:
    """Names of the classes and functions of skdp, or derived from them, that a pickle of the model needs."""
    inspector = _Inspector()
    try:
        inspector.dump(model)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise TypeError(
            f"{type(model).__name__} cannot be pickled, so it could not be used elsewhere: {error}. Functions in "
            "it must be defined at the top of a module"
        ) from error
    return list(inspector.found)


# ---------------------------------------------------------------- parts that exports are made of


def logistic_regression(model: BaseEstimator, coef: object, intercept: np.ndarray) -> BaseEstimator:
    """A fitted ``LogisticRegression`` with the labels of a fitted classifier."""
    from sklearn.linear_model import LogisticRegression

    made = LogisticRegression(fit_intercept=bool(model.fit_intercept))
    made.classes_ = np.array(model.classes_)
    made.coef_ = coef
    made.intercept_ = np.array(intercept, dtype=np.float64)
    made.n_iter_ = np.array([model.n_iter_], dtype=np.int32)
    return made


def linear_regression(model: BaseEstimator, coef: object, intercept: float) -> BaseEstimator:
    """A fitted ``LinearRegression``."""
    from sklearn.linear_model import LinearRegression

    made = LinearRegression(fit_intercept=bool(model.fit_intercept))
    made.coef_ = np.array(coef, dtype=np.float64).ravel()
    made.intercept_ = float(intercept)
    return made


def name_features(made: BaseEstimator, model: BaseEstimator) -> BaseEstimator:
    """Give ``made`` the number and the names of the columns that ``model`` saw; return it."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            value = getattr(model, name)
            setattr(made, name, value.copy() if isinstance(value, np.ndarray) else value)
    return made


def shifted_and_divided(center: np.ndarray, scale: np.ndarray) -> BaseEstimator:
    """A fitted ``StandardScaler`` that computes ``(x - center) / scale``."""
    from sklearn.preprocessing import StandardScaler

    made = StandardScaler(with_mean=bool(np.any(center))).set_output(transform="default")
    made.mean_, made.scale_ = np.array(center, dtype=float), np.array(scale, dtype=float)
    with np.errstate(over="ignore", under="ignore"):  # of columns on an extreme scale; never used
        made.var_ = made.scale_**2
    made.n_features_in_ = made.scale_.size
    return made


def filler(values: np.ndarray) -> BaseEstimator:
    """A fitted ``SimpleImputer`` that puts a value of its column in the place of a missing one."""
    from sklearn.impute import SimpleImputer

    # The mean of one number is this number.
    made = SimpleImputer(keep_empty_features=True).set_output(transform="default")
    return made.fit(values.reshape(1, -1))


def clipper(low: object, high: object, n_features: int) -> BaseEstimator:
    """A fitted transformer that clips the columns of a dense table."""
    from sklearn.preprocessing import FunctionTransformer

    ends = {"a_min": low, "a_max": high}
    clip: Callable[..., object] = np.clip
    made = FunctionTransformer(clip, kw_args=ends, validate=True, feature_names_out="one-to-one")
    return made.set_output(transform="default").fit(np.zeros((1, n_features)))


def clipped_regressor(made: BaseEstimator, low: float, high: float) -> BaseEstimator:
    """A fitted ``TransformedTargetRegressor`` that cuts the predictions of the fitted regressor ``made``."""
    from sklearn.base import clone
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.frozen import FrozenEstimator
    from sklearn.preprocessing import FunctionTransformer

    ends = {"a_min": low, "a_max": high}
    cut = FunctionTransformer(inverse_func=np.clip, inv_kw_args=ends, check_inverse=False)
    cut.set_output(transform="default")
    # A frozen regressor learns nothing from the row of zeros, which only brings the rest to a fitted state.
    around = TransformedTargetRegressor(FrozenEstimator(made), transformer=cut, check_inverse=False)
    around.fit(np.zeros((1, made.n_features_in_)), np.zeros(1))
    around.regressor_ = made
    return around.set_params(regressor=clone(made))


def scale_clipper(center: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]) -> BaseEstimator | None:
    """A fitted ``MaxAbsScaler`` that divides by the upper bounds and clips, also CSR matrices.

    None where columns are centred, where bounds are not symmetric about 0, or in versions that cannot clip.
    """
    from sklearn.preprocessing import MaxAbsScaler

    low, high = bounds
    if "clip" not in signature(MaxAbsScaler).parameters or np.any(center) or np.any(low != -high):
        return None
    made = MaxAbsScaler(clip=True).set_output(transform="default").fit(np.zeros((1, high.size)))
    made.scale_ = made.max_abs_ = np.array(high, dtype=float)
    return made


def with_columns(made: BaseEstimator, model: BaseEstimator) -> BaseEstimator:
    """A linear model of scikit-learn with the columns that the fit saw.

    Where a model takes missing values, steps that fill in and cut come before it, as no record may decide that.
    """
    from sklearn.pipeline import make_pipeline

    fill = getattr(model, "fill_values_", None)
    if fill is None:
        return name_features(made, model)
    steps = [name_features(filler(fill), model)]
    made.n_features_in_ = fill.size
    if np.isfinite(model.feature_bounds_).any():
        steps.append(_window_clipper(made, *model.feature_bounds_))
    return make_pipeline(*steps, made)


def _window_clipper(made: BaseEstimator, low: np.ndarray, high: np.ndarray) -> BaseEstimator:
    """The step that cuts columns; where windows lie about 0, one that takes CSR matrices, and divides."""
    whole = np.where(np.isfinite(high), high, 1.0)
    ends = np.where(np.isfinite(low), low, -1.0), whole
    scaled = scale_clipper(np.zeros_like(high), ends)
    if scaled is None:
        return clipper(low, high, high.size)
    made.coef_ = made.coef_.multiply(whole).tocsr() if hasattr(made.coef_, "tocsr") else made.coef_ * whole
    return scaled
