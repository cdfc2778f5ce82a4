"""
Comparison of sparse methods
============================

This script runs every sparse method of skdp with default parameters. It tabulates utility against epsilon, support
recovery where the truth is known, and seconds. It also runs the published DP-IGHT, with the noise that its claim
needs, and the non-private fit. Nothing of skdp's is tuned; ``n_nonzero_coefs``, delta and the data's scale are
public choices.

The published method (constant step, T steps, clip norm G) takes step, T and G from a grid **by the true error** on
two other instances (one at n = 5000). No user could do that; it flatters the method.

The documentation does not run the script. Results go to a JSON cache as they come, and a second run goes on where
the first ended. ``--tables`` writes the cache as the CSV files that the page includes::

    python examples/compare_sparse_methods.py synthetic-regression-1000 --seeds 10
    python examples/compare_sparse_methods.py imdb-classification --methods DP-IGHT DP-AMP
    python examples/compare_sparse_methods.py --tables

Real data are read from the folder that ``SKDP_DATA`` names, see ``skdp data list``. RCV1 and E2006 run only if
their files are there.
"""

import argparse
import csv
import itertools
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score
from sparse_settings import SETTINGS

import skdp
from skdp.privacy.accounting import gaussian_mu

# Each seeded fit warns. Seeds make these figures repeatable, and have no other use.
warnings.filterwarnings("ignore", "random_state is a seed")

# Name in the tables: base name of the estimators, and parameters other than the defaults.
METHODS = {
    "DP-IGHT": ("DPIGHT", {}),
    "DP-IGHT, 100 steps": ("DPIGHT", {"max_iter": 100}),
    "DPSL-KT": ("DPSLKT", {}),
    "DPSL-KT, ridge teacher": ("DPSLKT", {"teacher": "ridge"}),
    "Frank-Wolfe": ("DPFrankWolfe", {}),
    "two stage": ("DPTwoStage", {}),
    "sparse ERM": ("DPSparseERM", {}),
    "AMP": ("DPAMP", {}),
    "AdaSSP": ("DPAdaSSP", {}),
}
PUBLISHED = "published DP-IGHT, valid noise, tuned on the truth"
NOT_PRIVATE = "IGHT, not private"
DENSE = "ridge / logistic regression, not private"
RECOVERY = ("precision", "recall", "f1")
LARGEST_SQUARE = 2000  # features at which a d x d matrix is still formed
TABLES = Path(__file__).resolve().parent.parent / "docs" / "tables" / "comparison"
# Files of the settings whose table has another name.
FILES = {
    "imdb-classification": "imdb-2000",
    "imdb-classification-100": "imdb-100",
    "imdb-classification-all": "imdb-all",
    "imdb-ratings": "ratings-2000",
    "imdb-ratings-100": "ratings-100",
    "farm_ads": "farm-ads",
}

# ---------------------------------------------------------------- the published method

STEPS = (1, 3, 10, 30)
RATES = {"regression": (0.1, 0.3, 0.6), "classification": (0.3, 1.0, 3.0)}
CLIPS = {"regression": (0.3, 1.0, 3.0), "classification": (0.5, 1.0)}  # times the row norm


def published_dp_ight(task, X, y, s, mu, point, rng):
    """DP-IGHT of Wang (2021) with the noise that mu-GDP needs: the sensitivity is 2 G / n."""
    n_steps, rate, clip = point
    n, d = X.shape
    sigma = math.sqrt(n_steps) / mu * 2 * clip / n
    norms = np.linalg.norm(X, axis=1)
    theta = np.zeros(d)
    for _ in range(n_steps):
        z = X @ theta
        slope = z - y if task == "regression" else expit(z) - y
        slope = slope * np.minimum(1.0, clip / np.maximum(np.abs(slope) * norms, 1e-300))
        theta = theta - rate * (X.T @ slope / n + rng.normal(0.0, sigma, d))
        theta[np.argpartition(np.abs(theta), d - s)[: d - s]] = 0.0
    return theta


def best_on_grid(setting, epsilon):
    """The grid point of least true error on instances that are not used again."""
    mu, task, s = gaussian_mu(epsilon, setting.delta), setting.task, setting.n_nonzero_coefs
    problems = [setting.load(1000)]
    if len(problems[0].y) <= 1000:
        problems.append(setting.load(1001))
    longest = max(float(np.median(np.linalg.norm(p.X, axis=1))) for p in problems)

    def error(point):
        rng = np.random.default_rng(7)
        fits = [(published_dp_ight(task, p.X, p.y, s, mu, point, rng), p.truth) for p in problems]
        return sum(relative_error(theta, truth) for theta, truth in fits)

    grid = itertools.product(STEPS, RATES[task], [factor * longest for factor in CLIPS[task]])
    return min(grid, key=error)


# ---------------------------------------------------------------- measures


def relative_error(theta, truth):
    """Distance to the truth over its norm."""
    return float(np.linalg.norm(theta - truth) / np.linalg.norm(truth))


def recovery(theta, truth):
    """Precision, recall and F1 of the support; of a dense fit the s* largest coefficients are the support."""
    wanted = np.flatnonzero(truth)
    found = np.argsort(-np.abs(theta), kind="stable")[: len(wanted)]
    found = found[theta[found] != 0]
    hits = len(np.intersect1d(found, wanted))
    precision, recall = hits / max(1, len(found)), hits / len(wanted)
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(precision + recall, 1e-300),
    }


def measured(setting, problem, theta, predict):
    """The setting's measures of one fit."""
    if problem.truth is not None:
        return {"value": relative_error(theta, problem.truth), **recovery(theta, problem.truth)}
    predicted = predict(problem.X_test)
    if setting.task == "regression":
        return {"value": float(np.mean((predicted - problem.y_test) ** 2) / 2)}
    error = float(np.mean(predicted != problem.y_test))
    balanced = 1 - float(balanced_accuracy_score(problem.y_test, predicted))
    value = balanced if setting.metric == "balanced error" else error
    return {"value": value, "error": error, "balanced": balanced}


# ---------------------------------------------------------------- fits


def estimator_class(base, task):
    """The class, or None where skdp has none for the task."""
    name = base + ("Regressor" if task == "regression" else "Classifier")
    return getattr(skdp, name, None) if name in skdp.__all__ else None


def private_model(setting, problem, method, epsilon, seed):
    """An estimator with default parameters, or None where the method does not apply."""
    base, settings = METHODS[method]
    cls = estimator_class(base, setting.task)
    if cls is None or (base == "DPAdaSSP" and problem.X.shape[1] > LARGEST_SQUARE):
        return None
    model = cls(
        epsilon=epsilon, delta=setting.delta, fit_intercept=setting.fit_intercept, random_state=seed, **settings
    )
    offered = model.get_params()
    if "n_nonzero_coefs" in offered:
        model.set_params(n_nonzero_coefs=setting.n_nonzero_coefs)
    if "classes" in offered:
        model.set_params(classes=sorted(set(problem.y.tolist())))
    return model


def exact_model(setting, method):
    """A fit without privacy."""
    regression = setting.task == "regression"
    if method == DENSE:
        return Ridge(alpha=1.0) if regression else LogisticRegression(max_iter=2000)
    cls = skdp.IGHTRegressor if regression else skdp.IGHTClassifier
    return cls(n_nonzero_coefs=setting.n_nonzero_coefs, fit_intercept=setting.fit_intercept)


def one_fit(setting, problem, method, epsilon, seed, points):
    """Measures and seconds of one fit; None where the method does not apply."""
    start = time.perf_counter()
    if method == PUBLISHED:
        if problem.truth is None:
            return None
        mu, rng = gaussian_mu(epsilon, setting.delta), np.random.default_rng(seed)
        theta = published_dp_ight(
            setting.task, problem.X, problem.y, setting.n_nonzero_coefs, mu, points[epsilon], rng
        )
        predict = None
    else:
        exact = method in (NOT_PRIVATE, DENSE)
        if method == DENSE and problem.truth is not None:
            return None
        model = exact_model(setting, method) if exact else private_model(setting, problem, method, epsilon, seed)
        if model is None:
            return None
        model.fit(problem.X, problem.y)
        theta, predict = np.ravel(model.coef_), model.predict
    seconds = time.perf_counter() - start
    return {**measured(setting, problem, theta, predict), "seconds": seconds}


class Cache:
    """Results in a JSON file, by setting, method, epsilon and seed."""

    def __init__(self, path):
        self._path = Path(path)
        self.results = json.loads(self._path.read_text()) if self._path.exists() else {}

    def cell(self, setting, method, epsilon):
        """Results of all seeds."""
        return self.results.setdefault(setting, {}).setdefault(f"{method}|{epsilon:g}", {})

    def save(self):
        """Write the file anew."""
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self.results, indent=0))
        part.replace(self._path)


def run(name, methods, seeds, limit, cache):
    """Fill the cache for one setting.

    A method whose fits take longer than ``limit`` seconds stops after two seeds.
    """
    setting, points, slow = SETTINGS[name], {}, set()
    for seed in range(seeds):
        try:
            problem = setting.load(seed)
        except OSError as error:
            print(f"{name}: not run, the data are not at hand: {error}")
            return
        for method, epsilon in itertools.product(methods, setting.epsilons):
            exact = method in (NOT_PRIVATE, DENSE)
            if exact and (epsilon != setting.epsilons[0] or (seed and problem.truth is None)):
                continue
            cell = cache.cell(name, method, math.inf if exact else epsilon)
            if str(seed) in cell or (seed >= 2 and method in slow):
                continue
            if method == PUBLISHED and problem.truth is not None and epsilon not in points:
                points[epsilon] = best_on_grid(setting, epsilon)
            found = one_fit(setting, problem, method, epsilon, seed, points)
            if found is None:
                continue
            if found["seconds"] > limit:
                slow.add(method)
            cell[str(seed)] = found
            cache.save()
        print(f"{name}: seed {seed} done", flush=True)


# ---------------------------------------------------------------- tables


def shown(results):
    """Mean and standard error over the seeds as text."""
    values = [found["value"] for found in results.values()]
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.3f}"


def shown_recovery(results):
    """Mean precision, recall and F1 of the support as text."""
    found = [cell for cell in results.values() if "f1" in cell]
    if not found:
        return ""
    return " / ".join(f"{np.mean([f[key] for f in found]):.2f}" for key in RECOVERY)


def shown_seconds(cells):
    """Median seconds of all fits of a method."""
    seconds = [found["seconds"] for cell in cells for found in cell.values()]
    return f"{np.median(seconds):.2g}" if seconds else ""


def write_csv(path, header, rows):
    """Write a table and print its path."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    print(path)


def write_tables(name, cache, folder):
    """The tables of one setting: metric and seconds, and the support's recovery where the truth is known."""
    setting, results = SETTINGS[name], cache.results[name]
    methods = list(dict.fromkeys(key.split("|")[0] for key, cell in results.items() if cell))
    header = ["method", *(f"ε = {epsilon:g}" for epsilon in setting.epsilons)]
    values, recovered = [], []
    for method in methods:
        exact = method in (NOT_PRIVATE, DENSE)
        epsilons = ["inf" if exact else f"{e:g}" for e in setting.epsilons]
        cells = [results.get(f"{method}|{e}", {}) for e in epsilons]
        seeds = max(map(len, cells))
        values.append([method, *map(shown, cells), shown_seconds(cells), seeds])
        recovered.append([method, *map(shown_recovery, cells)])
    for method, by_epsilon in setting.published.items():
        figures = [f"{by_epsilon[e]:g}" if e in by_epsilon else "" for e in setting.epsilons]
        values.append([f"{method} (published figure)", *figures, "", ""])
    stem = FILES.get(name, name.removeprefix("synthetic-").removeprefix("transfer-"))
    write_csv(folder / f"{stem}.csv", [*header, "seconds", "seeds"], values)
    if setting.metric == "relative error":
        write_csv(folder / f"{stem}-support.csv", header, recovered)


def main():
    """Run settings, or write the tables of the cache."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("settings", nargs="*", metavar="setting", help=", ".join(SETTINGS))
    parser.add_argument("--methods", nargs="*", default=[*METHODS, PUBLISHED, NOT_PRIVATE, DENSE])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds of a slow fit")
    parser.add_argument("--cache", default="compare_sparse_methods.json")
    parser.add_argument("--tables", action="store_true", help="write the CSV files")
    parser.add_argument("--folder", type=Path, default=TABLES, help="folder of the CSV files")
    arguments = parser.parse_args()
    # The published delta is above 1/n, which skdp warns about at every fit.
    warnings.filterwarnings("ignore", message="delta=0.01 is not below")
    cache = Cache(arguments.cache)
    for name in arguments.settings:
        run(name, arguments.methods, arguments.seeds, arguments.limit, cache)
    if arguments.tables:
        for name in arguments.settings or [n for n in SETTINGS if n in cache.results]:
            write_tables(name, cache, arguments.folder)


if __name__ == "__main__":
    main()
