"""Cases of nets and of vectors of words: a few steps on a few rows."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import is_classifier

import skdp
from skdp import nn
from tests.golden.seen import Seen, build, has, of_model

N = 120
NAMES = [name for name in nn.__all__ if name.startswith("DP")]
IDS = 30  # words of the texts
COMMON = {"random_state": 7, "delta": 1e-3, "epsilon": 2.0}
SEQUENCES = {"vocabulary_size": IDS, "max_length": 6, "n_features": 4, "n_units": 3}
# What an estimator has in every case.
OWN: dict[str, dict[str, Any]] = {
    "DPMLPClassifier": {"hidden_layer_sizes": (6,)},
    "DPMLPRegressor": {"hidden_layer_sizes": (6,)},
    "DPCNNClassifier": {"image_shape": (6, 6, 1)},
    "DPLSTMClassifier": SEQUENCES,
    "DPNetworkClassifier": {"network": nn.Sequential([nn.Dense(5), nn.Tanh(), nn.Dense(2)])},
    "DPNetworkRegressor": {"network": nn.Sequential([nn.Dense(5), nn.LayerNorm(), nn.ReLU(), nn.Dense(1)])},
}
STEPS = {"max_iter": 4, "batch_size": 30}
# Parameters beside STEPS, which None takes out. "data" is what is done to the rows.
CASES: dict[str, dict[str, Any]] = {
    "default": {"max_iter": None, "batch_size": None},
    "epochs": {"max_iter": None, "batch_size": None, "n_epochs": 2},
    "steps": {},
    "full batch": {"batch_size": N},
    "auto batch": {"batch_size": None},
    "pixels": {"input_range": (-2.0, 2.0)},
    "clip norm": {"clip_norm": 0.5},
    "learning rate": {"learning_rate": 0.05},
    "materialized": {"clipping": "materialized"},
    "ghost": {"clipping": "ghost"},
    "microbatch": {"clipping": "microbatch", "microbatch_size": 4},
    "microbatch default": {"clipping": "microbatch"},
    "one by one": {"clipping": "one-by-one"},
    "projections": {"clipping": "projections", "n_projections": 24},
    "projections default": {"clipping": "projections"},
    "projections epochs": {"clipping": "projections", "max_iter": None, "n_epochs": 1},
    "adam": {"solver": "adam", "learning_rate": 0.01},
    "adam auto": {"solver": "adam"},
    "adam momentum": {"solver": "adam", "momentum": 0.5},
    "no momentum": {"momentum": 0.0},
    "some momentum": {"momentum": 0.5},
    "cosine": {"schedule": "cosine"},
    "constant": {"schedule": "constant"},
    "partition": {"sampling": "partition"},
    "partition epochs": {"sampling": "partition", "max_iter": None, "n_epochs": 2},
    "partition ghost": {"sampling": "partition", "clipping": "ghost"},
    "smoothing": {"smoothing": 1.0},
    "smoothing adam": {"smoothing": 0.5, "solver": "adam"},
    "average": {"average": 2.0},
    "average plain": {"average": 0.0, "momentum": 0.0, "schedule": "constant"},
    "recursive": {"recursive": nn.RecursiveMomentum(), "momentum": 0.0},
    "recursive second momentum": {"recursive": nn.RecursiveMomentum(momentum=0.3)},
    "recursive sizes": {
        "recursive": nn.RecursiveMomentum(clip_diff_norm=0.2, initial_batch_size=60),
        "momentum": 0.0,
        "clip_norm": 0.4,
    },
    "recursive adam": {"recursive": nn.RecursiveMomentum(), "solver": "adam"},
    "recursive ghost": {"recursive": nn.RecursiveMomentum(), "clipping": "ghost"},
    "recursive average": {"recursive": nn.RecursiveMomentum(), "average": 1.0, "momentum": 0.0},
    "recursive partition": {"recursive": nn.RecursiveMomentum(), "sampling": "partition"},
    "sparsified": {"sparsification": nn.RandomSparsification(0.5)},
    "sparsified ranked": {"sparsification": nn.RandomSparsification(0.6, ranked=True)},
    "sparsified constant": {"sparsification": nn.RandomSparsification(0.5, cooling=False)},
    "sparsified adam": {"sparsification": nn.RandomSparsification(0.5), "solver": "adam"},
    "sparsified microbatch": {"sparsification": nn.RandomSparsification(0.5), "clipping": "microbatch"},
    "selected": {"select": nn.SparseSelection(0.2)},
    "selected uniform": {"select": nn.SparseSelection(0.2, "uniform")},
    "selected clips": {
        "select": nn.SparseSelection(0.3, score_clip=0.05, value_clip=0.5, share=0.4),
        "clip_norm": 0.5,
    },
    "selected local": {"select": nn.SparseSelection(0.2), "momentum": 0.0},
    "selected ghost": {"select": nn.SparseSelection(0.2), "clipping": "ghost"},
    "selected full batch": {"select": nn.SparseSelection(0.2), "batch_size": N},
    "rows of tables": {"select": nn.AdaFEST()},
    "rows of tables local": {"select": nn.AdaFEST(1.0, share=0.3), "momentum": 0.0},
    "groups": {"unit": "group", "batch_size": 10},
    "groups most rows": {"unit": "group", "batch_size": 10, "max_rows_per_group": 2},
    "groups microbatch": {"unit": "group", "batch_size": 10, "clipping": "microbatch"},
    "groups one by one": {"unit": "group", "batch_size": 10, "clipping": "one-by-one"},
    "groups ghost": {"unit": "group", "batch_size": 10, "clipping": "ghost"},
    "groups recursive": {"unit": "group", "batch_size": 10, "recursive": nn.RecursiveMomentum()},
    "groups partition": {"unit": "group", "batch_size": 10, "sampling": "partition"},
    "groups add-remove": {"unit": "group", "batch_size": 10, "adjacency": "add-remove", "n_public": 30},
    "replace-one": {"adjacency": "replace-one"},
    "replace-one full batch": {"adjacency": "replace-one", "batch_size": N},
    "add-remove": {"adjacency": "add-remove", "n_public": 110},
    "public n": {"n_public": 110},
    "validation": {"data": "validation"},
    "exact": {"epsilon": float("inf")},
    "exact adam": {"epsilon": float("inf"), "solver": "adam"},
    "pure": {"delta": 0.0},
    "low epsilon": {"epsilon": 0.05},
    "high epsilon": {"epsilon": 20.0, "max_iter": 6},
    "csr": {"data": "csr"},
    "csr pixels": {"data": "csr", "input_range": (-2.0, 2.0)},
    "float32": {"data": "float32"},
    "uneven scales": {"data": "uneven"},
    "frame": {"data": "frame"},
    "missing": {"data": "missing"},
    "few": {"data": "few", "batch_size": 10},
    "inferred": {"classes": None},
    "three classes": {"classes": (0, 1, 2)},
    "three classes default": {"classes": (0, 1, 2), "max_iter": None, "batch_size": None},
    "string labels": {"data": "strings", "classes": ("b", "a")},
    "targets": {"y_bounds": (-4.0, 4.0)},
    "start": {"data": "start"},
    "start pixels": {"data": "start", "input_range": (-2.0, 2.0)},
    "tanh": {"activation": "tanh"},
    "two hidden layers": {"hidden_layer_sizes": (5, 4)},
    "no hidden layer": {"hidden_layer_sizes": ()},
    "one direction": {"bidirectional": False},
    "hidden after words": {"hidden_layer_sizes": (4,)},
    "tutorial": {"architecture": "tf-tutorial", "image_shape": (28, 28, 1)},
    "small net for images": {"architecture": "dp-cnn-s", "image_shape": (28, 28, 1)},
    "scattered": {"architecture": "h-cnn-s", "image_shape": (7, 7, 81)},
    "automatic for large images": {"image_shape": (16, 16, 1)},
    "channels": {"image_shape": (6, 6, 3)},
}
LAYERS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "layers of images": (
        [nn.Conv2D(3, 3, padding="same"), nn.GroupNorm(3), nn.ReLU(), nn.AvgPool2D(2), nn.Flatten()],
        {"image_shape": (6, 6, 1)},
    ),
    "layers of pools": (
        [nn.Conv2D(2, 3, stride=2), nn.ScaledTanh(), nn.MaxPool2D(2, stride=1), nn.Flatten()],
        {"image_shape": (6, 6, 1)},
    ),
    "layers of reshapes": (
        [nn.Rescaling(2.0, 0.5), nn.Reshape((6, 6, 1)), nn.Flatten(), nn.Dense(4), nn.Tanh()],
        {},
    ),
    "layers of words": ([nn.Embedding(IDS + 1, 3), nn.MaskedMeanPool()], {"data": "words"}),
    "layers of words selected": (
        [nn.Embedding(IDS + 1, 3), nn.MaskedMeanPool()],
        {"data": "words", "select": nn.AdaFEST(), "momentum": 0.0},
    ),
    "layers of words recursive": (
        [nn.Embedding(IDS + 1, 3), nn.LSTM(3), nn.MaskedMeanPool()],
        {"data": "words", "recursive": nn.RecursiveMomentum()},
    ),
}


def data_of(name: str, kind: str, n_columns: int, classes: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    n = 40 if kind == "few" else N
    X: Any = rng.normal(size=(n, n_columns))
    score = X[:, : min(3, n_columns)].sum(axis=1)
    y: Any = score + 0.3 * rng.normal(size=n)
    if classes is not None:
        y = np.digitize(score, [-0.8, 0.8]) if len(classes) == 3 else (score > 0).astype(int)
    if kind == "strings":
        y = np.where(y == 1, "b", "a")
    if name == "DPLSTMClassifier" or kind == "words":
        X = 1 + np.floor(np.abs(X) * 1000) % IDS
    if kind == "csr":
        X = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    if kind == "float32":
        X = X.astype(np.float32)
    if kind == "uneven":
        X = X * np.logspace(-2, 3, n_columns)
    if kind == "frame":
        X = pd.DataFrame(X, columns=[f"column {i}" for i in range(n_columns)])
    if kind == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def fit(cls: type, case: str) -> Seen:
    """The fit of a case."""
    name = cls.__name__
    classifier = is_classifier(cls())
    outputs = 1 if not classifier else 2
    if case in LAYERS:
        layers, settings = LAYERS[case]
        settings = {"network": nn.Sequential([*layers, nn.Dense(outputs)]), **settings}
    else:
        settings = dict(CASES[case])
    settings = {**OWN[name], **STEPS, **settings}
    kind = settings.pop("data", "")
    params = {key: value for key, value in settings.items() if value is not None or key == "classes"}
    classes = params.setdefault("classes", (0, 1)) if classifier else None
    if len(classes or ()) == 3 and name == "DPNetworkClassifier":
        params["network"] = nn.Sequential([nn.Dense(5), nn.Tanh(), nn.Dense(3)])
    n_columns = int(np.prod(settings.get("image_shape") or {"DPLSTMClassifier": 6}.get(name, 36)))
    X, y = data_of(name, kind, n_columns, (0, 1) if classifier and not classes else classes)
    if kind == "validation":
        params["validation"] = (X[:30], y[:30])
    if kind == "start":
        public = build(cls, {**params, "epsilon": float("inf")}, COMMON)
        params["parameters_init"] = public.fit(X[::3], y[::3]).parameters_
    groups = np.arange(X.shape[0]) // 3 if params.get("unit") == "group" else None
    model = build(cls, params, COMMON).fit(X, y, **({} if groups is None else {"groups": groups}))
    return of_model(model, X)


def cases() -> dict[str, Callable[[], Seen]]:
    """All of them by their keys, by today's signatures."""
    found = {}
    for name in NAMES:
        cls = getattr(skdp, name)
        for case, settings in CASES.items():
            if has(cls, settings.keys() - {"data"}):
                found[f"{name} | {case}"] = functools.partial(fit, cls, case)
        if has(cls, {"network"}):
            for case in LAYERS:
                found[f"{name} | {case}"] = functools.partial(fit, cls, case)
    return found
