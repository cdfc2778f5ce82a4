"""Cases of what is no supervised estimator: scalers, encoders, words, statistics, scores, searches, sessions."""

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import loguniform
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

import skdp
from skdp import metrics, model_selection, nn, statistics
from skdp.losses import LogisticLoss, SquaredLoss
from skdp.privacy import BatchGroup, BoundedStatistic, BudgetAccountant, Choices, PrivacySession, PrivateRecords
from tests.golden.seen import Seen, attributes, build, of_model

SEED = {"random_state": 7}
N = 400
Case = Callable[[], Seen]
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(50, 10, N), RNG.lognormal(0, 1, N), RNG.integers(0, 5, N) * 1.0])
Y = X[:, 0] / 10 + RNG.normal(size=N)
LABELS = (Y > 5).astype(int)
THREE = np.digitize(Y, [4.5, 5.5])
MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
BOUNDS = ([0, 0, 0], [100, 20, 4])
PERSONS = np.arange(N) // 4
FRAME = pd.DataFrame(
    {
        "age": X[:, 0],
        "dose": X[:, 1].astype(np.float32),
        "bmi": MISSING[:, 0] / 2,
        "ill": LABELS == 1,
        "sex": np.where(RNG.random(N) < 0.5, "f", "m"),
        "kind": pd.Categorical(RNG.choice(["a", "b", "c"], N)),
    }
)
# Who is protected, and how; of functions that take unit, groups, adjacency and n_public.
UNITS: dict[str, dict[str, Any]] = {
    "": {},
    "csr": {"data": "csr"},
    "exact": {"epsilon": float("inf")},
    "zero-out": {"adjacency": "zero-out"},
    "add-remove": {"adjacency": "add-remove", "n_public": 390},
    "groups": {"unit": "group"},
    "groups add-remove": {"unit": "group", "adjacency": "add-remove", "n_public": 95},
}
REFUSED: dict[str, dict[str, Any]] = {"pure": {"delta": 0.0}}  # of one case of each function


def protected(unit: str) -> tuple[dict[str, Any], str]:
    """Options of a function, and what is done to the table."""
    options = dict((UNITS | REFUSED)[unit])
    kind = options.pop("data", "")
    if options.get("unit") == "group":
        options["groups"] = PERSONS
    return {"epsilon": 2.0, **SEED, **options}, kind


# ------------------------------------------------------------------ transformers


SCALERS: dict[str, list[dict[str, Any]]] = {
    "DPStandardScaler": [
        {}, {"bounds": BOUNDS}, {"with_mean": False}, {"with_std": False}, {"clip": False},
    ],
    "DPQuantileScaler": [{}, {"bounds": BOUNDS}, {"quantile": 0.9}, {"with_centering": False}],
    "PublicScaler": [{}, {"center": [1.0, 2.0, 3.0], "scale": 2.0}, {"bounds": BOUNDS}],
    "PublicBinsEncoder": [
        {},
        {"bins": [0.0, 1.0, 40.0]},
        {"bins": {0: [40.0, 60.0], 1: [1.0]}, "categories": {2: [0, 1, 2]}, "crosses": [(0, 2)]},
        {"sparse_output": False},
    ],
}  # fmt: skip


def transformer(name: str, number: int, unit: str, kind: str) -> Seen:
    cls = getattr(skdp, name)
    options, found = protected(unit)
    groups = {"groups": options.pop("groups")} if "groups" in options else {}
    table = {
        "": X, "csr": sp.csr_matrix(X), "missing": MISSING, "float32": X.astype(np.float32),
        "frame": pd.DataFrame(X, columns=["age", "dose", "code"]),
    }[kind or found]  # fmt: skip
    private = name.startswith("DP")
    model = build(cls, {**SCALERS[name][number], **(options if private else {})})
    return of_model(model.fit(table, **groups), table)


def of_transformers() -> dict[str, Case]:
    found = {}
    for name, settings in SCALERS.items():
        for number, given in enumerate(settings):
            for kind in ("", "csr", "missing", "frame", "float32")[: 5 if number == 0 else 2]:
                key = f"{name} | {given} {kind}"
                found[key] = functools.partial(transformer, name, number, "", kind)
        if name.startswith("DP"):
            for unit in UNITS:
                found[f"{name} | {unit} by default"] = functools.partial(transformer, name, 0, unit, "")
                found[f"{name} | {unit} with bounds"] = functools.partial(transformer, name, 1, unit, "")
    for case, params in {
        "default": {},
        "first order": {"J": 1, "L": 4, "normalize": "l2"},
        "plain": {"J": 2, "L": 4, "normalize": None},
        "few groups": {"J": 2, "L": 3, "n_groups": 9},
        "shape": {"J": 1, "L": 2, "image_shape": (8, 8)},
    }.items():
        found[f"ScatteringTransform | {case}"] = functools.partial(scattered, params)
    return found


def scattered(params: dict[str, Any]) -> Seen:
    images = np.random.default_rng(3).uniform(size=(5, 64 if "image_shape" in params else 256))
    if "image_shape" not in params:
        images = images.reshape(5, 16, 16)
    return of_model(build(skdp.ScatteringTransform, params).fit(images), images)


# ------------------------------------------------------------------ words


TOPICS = [["sun", "moon", "star"], ["oak", "elm", "ash"]]
WORDS = [word for topic in TOPICS for word in topic]
SENTENCES = [RNG.choice([*TOPICS[i % 2], "rare"], 8).tolist() for i in range(N)]
WORD_CASES: dict[str, dict[str, Any]] = {
    "default": {"max_iter": None, "epsilon": 8.0},
    "public vocabulary": {"vocabulary": WORDS},
    "windows": {"vocabulary": WORDS, "unit": "record"},
    "tied": {"vocabulary": WORDS, "tied": True},
    "private vocabulary": {"max_vocabulary_size": 5, "vocabulary_share": 0.3},
    "one negative": {"vocabulary": WORDS, "negative": 1, "window": 1},
    "weights of negatives": {"vocabulary": WORDS, "negative_weights": [1.0, 2, 3, 1, 2, 3]},
    "adam": {"vocabulary": WORDS, "solver": "adam"},
    "cosine": {"vocabulary": WORDS, "schedule": "cosine", "momentum": 0.0},
    "constant": {"vocabulary": WORDS, "schedule": "constant", "learning_rate": 0.5},
    "clip norm": {"vocabulary": WORDS, "clip_norm": 0.3, "batch_size": 40},
    "epochs": {"vocabulary": WORDS, "max_iter": None, "n_epochs": 1},
    "selected rows": {"vocabulary": WORDS, "select": nn.AdaFEST(), "unit": "record"},
    "selected rows of groups": {"vocabulary": WORDS, "select": nn.AdaFEST()},
    "selected": {"vocabulary": WORDS, "select": nn.SparseSelection(0.2)},
    "replace-one": {"vocabulary": WORDS, "adjacency": "replace-one"},
    "add-remove": {"vocabulary": WORDS, "adjacency": "add-remove", "n_public": 130},
    "few words of a group": {"vocabulary": WORDS, "max_words_per_group": 8},
    "exact": {"vocabulary": WORDS, "epsilon": float("inf")},
    "pure": {"vocabulary": WORDS, "delta": 0.0},
}


def words(case: str) -> Seen:
    given = {"epsilon": 4.0, "delta": 1e-3, "vector_size": 3, "max_iter": 4, **WORD_CASES[case]}
    params = {key: value for key, value in given.items() if value is not None}
    groups = {} if params.get("unit") == "record" else {"groups": np.arange(N) // 3}
    model = build(skdp.DPWord2Vec, params, SEED).fit(SENTENCES, **groups)
    return Seen(attributes(model), {}, model.privacy_)


# ------------------------------------------------------------------ statistics and scores


def public(item: Any) -> dict[str, Any]:
    """Public fields and computed attributes of a result, but for its report."""
    names = [name for name in dir(type(item)) if isinstance(getattr(type(item), name), property)]
    held = {**getattr(item, "__dict__", {}), **{name: getattr(item, name) for name in names}}
    return {k: v for k, v in held.items() if not k.startswith("_") and k != "privacy_"}


def of_result(item: Any) -> Seen:
    numbers = public(item)
    if isinstance(item, metrics.Evaluation):
        numbers |= {name: public(score) for name, score in item.items()}
    return Seen(numbers, {}, item.privacy_)


STATISTICS: dict[str, tuple[str, dict[str, Any]]] = {
    "mean": ("mean", {"bounds": BOUNDS}),
    "mean searched": ("mean", {}),
    "mean of what is there": ("mean", {"skipna": True, "data": "missing"}),
    "quantile": ("quantile", {"bounds": BOUNDS}),
    "quantile searched": ("quantile", {"q": 0.8}),
    "quantiles": ("quantile", {"q": [0.7, 0.2], "bounds": BOUNDS}),
    "var": ("var", {"bounds": BOUNDS}),
    "std": ("std", {}),
    "count": ("count", {"bounds": (1, float("inf"))}),
    "histogram": ("histogram", {"bins": [0, 1, 10, 100]}),
    "histogram searched": ("histogram", {"bins": 5}),
}


def statistic(case: str, unit: str) -> Seen:
    name, given = STATISTICS[case]
    options, kind = protected(unit)
    given = dict(given)
    kind = given.pop("data", kind)
    table = {"": X, "csr": sp.csr_matrix(X), "missing": MISSING}[kind]
    return of_result(getattr(statistics, name)(table, **given, **options))


DESCRIBED: dict[str, dict[str, Any]] = {
    "numbers": {"columns": ["age", "dose", "bmi", "ill"]},
    "bounds": {"bounds": {"age": (0, 120), "dose": (0, 50)}, "columns": ["age", "dose", "bmi"]},
    "categories": {"categories": {"sex": ["f", "m"], "kind": ["a", "b"]}},
    "by": {"by": "sex", "categories": {"sex": ["f", "m"], "kind": ["a", "b"]}},
    "categories left out": {"categories": {"sex": ["f", "m"]}},
}


def described(case: str, unit: str) -> Seen:
    options, _ = protected(unit)
    given = dict(DESCRIBED[case])
    columns = given.pop("columns", list(FRAME.columns))
    found = statistics.describe(FRAME[columns], **given, **options)
    tables = {name: public(table) for name, table in (("all", found.table), ("by", found.by_table))}
    numbers = {**tables, "bounds": found.bounds, "level_noise_std": found.level_noise_std}
    return Seen(numbers, {}, found.privacy_)


def crossed(unit: str) -> Seen:
    options, _ = protected(unit)
    table = statistics.crosstab(FRAME["sex"], FRAME["kind"], categories=(["f", "m"], ["a", "b"]), **options)
    return of_result(table)


HALF = slice(None, None, 2)
PREDICTED = (X[:, 0] > 52).astype(int)
PROBABLE = 1 / (1 + np.exp(-(X[:, 0] - 50) / 10))
SCORES: dict[str, tuple[str, Any, Any, dict[str, Any]]] = {
    "accuracy": ("accuracy_score", LABELS, PREDICTED, {}),
    "balanced accuracy": ("balanced_accuracy_score", LABELS, PREDICTED, {"labels": (0, 1)}),
    "brier": ("brier_score_loss", LABELS, PROBABLE, {}),
    "confusion matrix": ("confusion_matrix", LABELS, PREDICTED, {"labels": (0, 1)}),
    "log loss": ("log_loss", LABELS, PROBABLE, {}),
    "absolute error": ("mean_absolute_error", Y, X[:, 0] / 10, {}),
    "absolute error bounds": ("mean_absolute_error", Y, X[:, 0] / 10, {"y_bounds": (0.0, 10.0)}),
    "squared error": ("mean_squared_error", Y, X[:, 0] / 10, {}),
    "r2": ("r2_score", Y, X[:, 0] / 10, {"y_bounds": (0.0, 10.0)}),
    "auc": ("roc_auc_score", LABELS, PROBABLE, {}),
    "auc few bins": ("roc_auc_score", LABELS, PROBABLE, {"bins": 16}),
}


def score(case: str, unit: str) -> Seen:
    name, y, predicted, given = SCORES[case]
    return of_result(getattr(metrics, name)(y, predicted, **given, **protected(unit)[0]))


EVALUATED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "two classes": (LogisticRegression, LABELS, {}),
    "two classes bins": (LogisticRegression, LABELS, {"bins": 16}),
    "two classes threshold": (LogisticRegression, LABELS, {"threshold": 0.3}),
    "three classes": (LogisticRegression, THREE, {}),
    "three classes one against others": (LogisticRegression, THREE, {"ovr": True}),
    "regression": (LinearRegression, Y, {}),
    "regression bounds": (LinearRegression, Y, {"y_bounds": (0.0, 10.0)}),
}


def evaluated(case: str, unit: str) -> Seen:
    cls, y, given = EVALUATED[case]
    scaled = (X - X.mean(axis=0)) / 10
    model = cls().fit(scaled[HALF], y[HALF])
    return of_result(metrics.evaluate(model, scaled, y, **given, **protected(unit)[0]))


# ------------------------------------------------------------------ searches


def base(name: str = "DPIGHTClassifier", **more: Any) -> Any:
    sparse = {} if "SGD" in name else {"n_nonzero_coefs": 2}
    steps = {"clip_norm": 1.0, "max_iter": 4, **sparse, **more}
    if name.endswith("Classifier"):
        steps["classes"] = (0, 1)
    return build(getattr(skdp, name), steps)


SCALED = (X - [50, 1, 2]) / [10, 2, 2]
RATES = {"learning_rate": loguniform(0.01, 1.0), "max_iter": [3, 6]}


def search(case: str) -> Seen:
    options, _ = protected({"searched": "", "search of regressors": ""}.get(case, case))
    groups = {"groups": options.pop("groups")} if "groups" in options else {}
    name, y = ("DPIGHTRegressor", Y) if "regressors" in case else ("DPIGHTClassifier", LABELS)
    model = model_selection.DPRandomizedSearch(base(name), RATES, mean_trials=3, **options)
    return of_model(model.fit(SCALED, y, **groups), SCALED)


def threshold(case: str) -> Seen:
    costs = {"costs": {"fp": 1, "fn": 9}} if case == "costs" else {}
    options, _ = protected({"costs": "", "minibatches": ""}.get(case, case))
    groups = {"groups": options.pop("groups")} if "groups" in options else {}
    inner = base() if case != "minibatches" else base("DPSGDClassifier")
    model = model_selection.DPTunedThresholdClassifier(inner, **costs, **options)
    return of_model(model.fit(SCALED, LABELS, **groups), SCALED)


def compared(case: str) -> Seen:
    options, _ = protected({"regressors": ""}.get(case, case))
    name, y = ("DPIGHTRegressor", Y) if case == "regressors" else ("DPIGHTClassifier", LABELS)
    models = {"one": base(name), "two": base(name, max_iter=8)}
    found = model_selection.compare(models, SCALED, y, **options)
    numbers = {
        key: {name: public(score) for name, score in evaluation.items()} for key, evaluation in found.items()
    }
    fits = {key: attributes(model) for key, model in found.estimators_.items()}
    return Seen(numbers, fits, found.privacy_)


def validated(case: str) -> Seen:
    options, _ = protected(case)
    found = model_selection.cross_validate(base(), SCALED, LABELS, cv=3, **options)
    report = found.pop("privacy")
    fits = {"fits": [attributes(model) for model in found.pop("estimator")]}
    return Seen({k: public(v) if hasattr(v, "value") else v for k, v in found.items()}, fits, report)


def divided(case: str) -> Seen:
    options, _ = protected(case)
    names = ("adjacency", "n_public", "groups", "random_state")
    given = {key: value for key, value in options.items() if key in names}
    parts = model_selection.train_test_split(SCALED, LABELS, test_size=0.25, **given)
    return Seen({str(i): part for i, part in enumerate(parts)})


def accounted() -> Seen:
    """Several fits of one accountant, one of them refused."""
    numbers: dict[str, Any] = {}
    with BudgetAccountant(4.0, 1e-4, allow_seeded=True) as accountant:
        first = base(epsilon=1.0, **SEED).fit(SCALED, LABELS)
        make_pipeline(skdp.DPStandardScaler(epsilon=1.0, **SEED), base(epsilon=1.0, **SEED)).fit(SCALED, LABELS)
        statistics.mean(X, epsilon=0.5, **SEED)
        try:
            base(epsilon=10.0, **SEED).fit(SCALED, LABELS)
        except skdp.exceptions.PrivacyBudgetExceeded as error:
            numbers["refused"] = str(error)
    numbers["lines"] = [
        {k: line[k] for k in ("estimator", "epsilon", "delta", "adjacency", "unit", "state")}
        for line in accountant.ledger()
    ]
    numbers["coef_"] = first.coef_
    return Seen(numbers, {}, first.privacy_)


# ------------------------------------------------------------------ sessions


def opened(records: Any = None, **more: Any) -> PrivacySession:
    return PrivacySession(records, **{"epsilon": 2.0, "delta": 1e-5, **SEED, **more})


def table(**more: Any) -> PrivateRecords:
    return PrivateRecords(SCALED, Y / 10, **more)


def gaussian(adjacency: str) -> Seen:
    public_n = {"n_public": 390} if adjacency == "add-remove" else {}
    records = table(**public_n)
    session = opened(records, adjacency=adjacency)
    plan = session.plan_gaussian(3, share=0.6, purpose="gradients")
    other = session.plan_gaussian(2, share=0.4)
    theta = np.zeros(records.n_features)
    numbers = {
        "squared": session.gaussian(records.mean_gradient(SquaredLoss(), theta, 1.0), plan),
        "logistic": session.gaussian(records.mean_gradient(LogisticLoss(), theta + 1, 0.5), plan),
        "sums": session.gaussian(records.column_sums(np.zeros(3), np.ones(3)), other),
        "vector": session.gaussian(BoundedStatistic([120.0, 80.0], l2=1.0), other),
        "above": session.gaussian_above(BoundedStatistic(np.arange(9.0) / 9, l2=1.0), plan, 0.5),
    }
    return Seen(numbers, {}, session.report())


def laplace(delta: float) -> Seen:
    session = opened(delta=delta)
    scores = BoundedStatistic(np.arange(20.0), linf=1.0)
    numbers = {
        "laplace": session.laplace(BoundedStatistic([3.0, 5.0], l1=1.0), epsilon=0.3),
        "again": session.laplace(BoundedStatistic(np.zeros(50), l1=2.0), epsilon=0.2, purpose="zeros"),
        "best": session.gumbel_top_k(scores, 1, 0.2),
        "three": session.gumbel_top_k(scores, 3, 0.1),
    }
    return Seen(numbers, {}, session.report())


def sparse_vector(case: str) -> Seen:
    more: dict[str, Any] = {
        "optimal": {}, "published": {"split": "published"}, "pure": {}, "rate": {"rate": 0.1},
        "parts": {"parts": 2}, "size": {"size": 60},
    }[case]  # fmt: skip
    session = opened(delta=0.0 if case == "pure" else 1e-5, epsilon=8.0)
    plan = session.plan_numeric_sparse(3, 4, **more)
    values = BoundedStatistic(np.concatenate([np.full(5, 40.0), np.zeros(55)]), linf=1.0)
    found = [session.numeric_sparse(values, plan, 20.0) for _ in range(3)]
    scales = session.numeric_sparse_scales(values, plan)
    return Seen({"found": found, "scales": scales}, {}, session.report())


def batches(case: str) -> Seen:
    settings: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
        "Poisson": ({}, {}, {}),
        "Poisson zero-out": ({"adjacency": "zero-out"}, {}, {}),
        "Poisson groups": ({"unit": "group"}, {}, {}),
        "without replacement": ({}, {"sampling": "without replacement"}, {}),
        "partition": ({}, {"sampling": "partition"}, {}),
        "full batch": ({}, {}, {"batch_size": N}),
        "weights": ({}, {}, {"weight": 2.0}),
        "beside others": ({}, {"share": 0.7}, {}),
    }
    of_session, of_plan, of_group = settings[case]
    groups = {"groups": PERSONS} if "unit" in of_session else {}
    records = table(**groups)
    session = opened(records, minibatches=True, **of_session)
    made = [BatchGroup(4, **{"batch_size": 40, **of_group})]
    if case != "partition":
        made.append(BatchGroup(2, 60))
    plans = session.plan_batches(made, n_units=records.n_units, **of_plan)
    other = session.plan_gaussian(1, share=0.3) if case == "beside others" else None
    theta = np.zeros(records.n_features)
    steps = []
    for plan in plans:
        for _ in range(2):
            batch = session.draw(plan, records)
            mean = records.mean_gradient(SquaredLoss(), theta, 1.0, batch=batch)
            theta = theta - session.gaussian(mean, plan)
            steps.append(theta)
    if other is not None:
        steps.append(session.gaussian(BoundedStatistic([1.0], l2=1.0), other))
    return Seen({"steps": steps}, {}, session.report())


def chosen(clips: dict[str, float]) -> Seen:
    records = table()
    session = opened(records, adjacency="zero-out", minibatches=True)
    (plan,) = session.plan_batches([BatchGroup(2, 50, extra=Choices(2))], n_units=records.n_units)
    found = []
    for _ in range(2):
        batch = session.draw(plan, records)
        total = records.clipped_sum(lambda X, y: X, 1.0, size=3, batch=batch)
        found.append(session.selected_gaussian(total * (1 / plan.batch_size), plan, **clips))
    return Seen({"found": found}, {}, session.report())


def best_of(shape: int) -> Seen:
    session = opened(best_of=True)
    plan = session.plan_best_of(4.0, shape=shape)
    count = iter(range(1000))
    winner = session.best_of(plan, lambda: (float(next(count) % 3), next(count)))
    numbers = {"winner": winner, "base": [plan.base_epsilon, plan.base_delta, plan.base_mu]}
    return Seen(numbers, {}, session.report())


def order() -> Seen:
    session = opened()
    numbers = {
        "permutation": session.permutation(30),
        "some": session.permutation(1000, 7),
        "integers": session.integers(10**6, 9),
        "released": session.laplace(BoundedStatistic([1.0], l1=1.0), epsilon=0.1),
    }
    return Seen(numbers, {}, session.report())


SPLITS = ("optimal", "published", "pure", "rate", "parts", "size")
BATCHES = (
    "Poisson", "Poisson zero-out", "Poisson groups", "without replacement", "partition",
    "full batch", "weights", "beside others",
)  # fmt: skip


def of_sessions() -> dict[str, Case]:
    run = functools.partial
    return {
        **{f"Gaussian {a}": run(gaussian, a) for a in ("replace-one", "zero-out", "add-remove")},
        **{f"Laplace delta={delta}": run(laplace, delta) for delta in (0.0, 1e-5)},
        **{f"sparse vector {case}": run(sparse_vector, case) for case in SPLITS},
        **{f"batches {case}": run(batches, case) for case in BATCHES},
        "chosen": run(chosen, {}),
        "chosen with clips": run(chosen, {"score_clip": 0.01, "value_clip": 0.02}),
        "chosen above a threshold": run(chosen, {"threshold": 0.005}),
        **{f"best of shape {shape}": run(best_of, shape) for shape in (0, 1)},
        "order": order,
    }


def cases() -> dict[str, Case]:
    """All of them by their keys."""
    run = functools.partial
    found = of_transformers()
    found |= {f"DPWord2Vec | {case}": run(words, case) for case in WORD_CASES}
    for unit in UNITS:
        if unit != "csr":
            found |= {f"metrics | {case} {unit}": run(score, case, unit) for case in SCORES}
            found |= {f"evaluate | {case} {unit}": run(evaluated, case, unit) for case in EVALUATED}
            found |= {f"describe | {case} {unit}": run(described, case, unit) for case in DESCRIBED}
            found[f"describe | crosstab {unit}"] = run(crossed, unit)
            found[f"train_test_split | {unit}"] = run(divided, unit)
            found[f"cross_validate | {unit}"] = run(validated, unit)
            found[f"compare | {unit}"] = run(compared, unit)
            found[f"DPTunedThresholdClassifier | {unit}"] = run(threshold, unit)
            found[f"DPRandomizedSearch | {unit}"] = run(search, unit)
        found |= {f"statistics | {case} {unit}": run(statistic, case, unit) for case in STATISTICS}
    found |= {
        "statistics | mean pure": run(statistic, "mean", "pure"),
        "statistics | count pure": run(statistic, "count", "pure"),
        "metrics | auc pure": run(score, "auc", "pure"),
        "evaluate | regression pure": run(evaluated, "regression", "pure"),
        "describe | numbers pure": run(described, "numbers", "pure"),
        "DPRandomizedSearch | pure": run(search, "pure"),
        "DPStandardScaler | pure": run(transformer, "DPStandardScaler", 0, "pure", ""),
    }
    found["compare | regressors"] = run(compared, "regressors")
    found["DPTunedThresholdClassifier | costs"] = run(threshold, "costs")
    found["DPTunedThresholdClassifier | minibatches"] = run(threshold, "minibatches")
    found["DPRandomizedSearch | search of regressors"] = run(search, "search of regressors")
    found["BudgetAccountant | ambient"] = accounted
    found |= {f"PrivacySession | {key}": case for key, case in of_sessions().items()}
    return {re.sub(" *$", "", re.sub(r"\| $", "| default", key)): case for key, case in found.items()}
