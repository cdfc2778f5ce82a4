"""``skdp demo``: accuracy against epsilon on real health-insurance records, for rows and persons.

The first line is printed before anything heavy is imported. Everything runs on all training rows.
"""

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, Literal

from skdp._version import __version__
from skdp.cli._text import BadInput, Failed, dumps, rounded_up

# Public numbers, chosen for this demonstration. On private records choose them without looking.
EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
REPEATS = 5  # fits of each line, with different noise
Unit = Literal["record", "group"]
# unit -> (who is protected, what that means)
UNITS: dict[Unit, tuple[str, str]] = {
    "record": (
        "person-year",
        "one year of one person. With that year replaced, about the same model would have come\n"
        "    out; a person with five years in the data is protected only year by year.",
    ),
    "group": (
        "person",
        "one whole person, all years together. With that person replaced, about the same model\n"
        "    would have come out. This is the promise that most people expect.",
    ),
}


def demo(arguments: argparse.Namespace) -> None:
    """Train, print, draw."""
    started = time.perf_counter()
    # With --json standard output is for the document alone.
    out = sys.stderr if arguments.json else sys.stdout

    def say(text: str) -> None:
        print(text, file=out, flush=True)

    say(f"skdp {__version__} demo: private models on the RAND Health Insurance Experiment")
    picture = _picture_path(arguments.out)
    if arguments.seed is not None:
        say("seeded: for testing only, to repeat this demo (who knows the seed can subtract the noise)")
    data = _load(arguments.seed)
    say(_describe(data))
    with warnings.catch_warnings():
        # The warning about the seed: printed once above.
        warnings.filterwarnings("ignore", "random_state is a seed")
        results, report = _train(data, arguments.seed, say)
    say(_explain())
    say(f"\nThe report of one of these models, as in model.privacy_:\n\n{report!r}\n")
    drawn = _draw(results, picture) if find_spec("matplotlib") else None
    say(f"AUC against epsilon: {drawn}" if drawn else _NO_PICTURE)
    seconds = time.perf_counter() - started
    say(f"done in {seconds:.0f} s")
    if arguments.json:
        document = {
            "version": __version__,
            "seed": arguments.seed,
            "data": {key: value for key, value in data.items() if key.startswith("n_")},
            "baseline_accuracy": data["baseline"],
            "fits": results,
            "report": report.to_dict(),
            "picture": drawn,
            "seconds": seconds,
        }
        print(dumps(document))


def _train(data: dict[str, Any], seed: int | None, say: Callable[[str], None]) -> tuple[list[dict[str, Any]], Any]:
    """Fit and print every line of the table; also the report of one person-level model."""
    results, report = [], None
    say(_line("protects", "epsilon", "accuracy", "AUC", "seconds"))
    for unit, epsilon, seeds in _plan(seed):
        result, model = _row(data, unit, epsilon, seeds)
        results.append(result)
        say(_line(*_cells(result)))
        if unit == "group" and epsilon <= 1.0:
            report = model.privacy_
    say(f"({REPEATS} fits a line: mean, +- std over the noise; seconds of the median fit)")
    return results, report


_NO_PICTURE = (
    "No picture: matplotlib is not installed. For the picture of AUC against epsilon,\n"
    '  pip install ".[plot]"   (in the checkout; or: pip install matplotlib)   and run this again.'
)


def _picture_path(folder: str) -> Path:
    """Path of the picture, checked before the work starts."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        path = Path(folder, "skdp_demo.png")
        path.open("ab").close()
        if path.stat().st_size == 0:
            path.unlink()
    except OSError as error:
        raise BadInput(f"argument --out: cannot write to {folder!r}: {error}") from error
    return path


def _load(seed: int | None) -> dict[str, object]:
    from sklearn.model_selection import GroupShuffleSplit

    from skdp.datasets import load_rand_hie

    hie = load_rand_hie()
    splitter = GroupShuffleSplit(n_splits=1, test_size=0.25, random_state=seed)
    train, test = next(splitter.split(hie.data, hie.target, groups=hie.person))
    return {
        "train": (hie.data[train], hie.target[train], hie.person[train]),
        "test": (hie.data[test], hie.target[test]),
        "n_train_rows": len(train),
        "n_train_persons": len(set(hie.person[train].tolist())),
        "n_test_rows": len(test),
        "n_test_persons": len(set(hie.person[test].tolist())),
        "n_features": hie.data.shape[1],
        # Accuracy of the majority class on the test rows.
        "baseline": float(max(hie.target[test].mean(), 1 - hie.target[test].mean())),
    }


def _describe(data: dict[str, object]) -> str:
    return (
        "Question: did this person see a physician this year?\n"
        f"Train: {data['n_train_rows']:,} person-years of {data['n_train_persons']:,} people. "
        f"Test: {data['n_test_rows']:,} person-years of {data['n_test_persons']:,} other people.\n"
        f"Model: logistic, of {data['n_features']} columns as they are, with missing values; defaults untuned, "
        f"delta = {DELTA:g}.\n"
        f'Always answering "yes" is right for {data["baseline"]:.3f} of the test rows.\n'
    )


def _plan(seed: int | None) -> list[tuple[Unit | None, float, list[int | None]]]:
    """(unit, epsilon, a seed for each fit) of every line; the one without privacy first."""
    cells = [(unit, epsilon) for unit in UNITS for epsilon in EPSILONS]
    plan: list[tuple[Unit | None, float, list[int | None]]] = [(None, math.inf, [None] * REPEATS)]
    if seed is None:
        return plan + [(*cell, [None] * REPEATS) for cell in cells]
    import numpy as np

    # A seed for each fit: one seed for all would give all the same noise.
    words = np.random.SeedSequence(seed).generate_state(len(cells) * REPEATS).tolist()
    return plan + [(*cell, words[place * REPEATS : (place + 1) * REPEATS]) for place, cell in enumerate(cells)]


def _row(
    data: dict[str, Any], unit: Unit | None, epsilon: float, seeds: Sequence[int | None]
) -> tuple[dict[str, Any], Any]:
    """One line of the table, and the model of its last fit."""
    from sklearn.metrics import accuracy_score, roc_auc_score

    X, y = data["test"]
    accuracies, aucs, seconds = [], [], []
    for seed in seeds:
        model, took = _fit(data, unit, epsilon, seed)
        accuracies.append(float(accuracy_score(y, model.predict(X))))
        aucs.append(float(roc_auc_score(y, model.decision_function(X))))
        seconds.append(took)
    result = {
        "unit": unit,
        "protects": None if unit is None else UNITS[unit][0],
        "epsilon": epsilon,
        "delta": None if unit is None else DELTA,
        "n_fits": len(aucs),
        "accuracy": mean(accuracies),
        "auc": mean(aucs),
        "auc_std": stdev(aucs),
        "seconds": median(seconds),
    }
    return result, model


def _fit(data: dict[str, Any], unit: Unit | None, epsilon: float, seed: int | None) -> tuple[Any, float]:
    """Fit one model on all training rows: the model and its seconds."""
    X, y, person = data["train"]
    start = time.perf_counter()
    if unit is None:
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        free = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000))
        return free.fit(X, y), time.perf_counter() - start
    from skdp import DPLogisticRegression

    model = DPLogisticRegression(epsilon=epsilon, delta=DELTA, unit=unit, classes=[0, 1], random_state=seed)
    model.fit(X, y, **({"groups": person} if unit == "group" else {}))
    return model, time.perf_counter() - start


def _line(*cells: str) -> str:
    widths = (11, 8, 10, 17, 9)
    first, *others = cells
    return first.ljust(widths[0]) + "".join(f"{c:>{w}}" for c, w in zip(others, widths[1:]))


def _cells(result: dict[str, Any]) -> list[str]:
    spread = f" +- {result['auc_std']:.3f}" if result["unit"] else " " * 9
    return [
        result["protects"] or "nobody",
        f"{result['epsilon']:g}",
        f"{result['accuracy']:.3f}",
        f"{result['auc']:.3f}{spread}",
        f"{result['seconds']:.2f}",
    ]


def _explain() -> str:
    lines = ['\nWhom each line protects (epsilon says how close "about the same" is):']
    for name, text in UNITS.values():
        lines.append(f"  {name}: {text}")
    lines.append(
        "Each epsilon is the cost of one model. Publishing several models of the same people costs\n"
        f"more: one of each of these {len(EPSILONS)} together, epsilon {rounded_up(_together(), 3)}."
    )
    return "\n".join(lines)


def _together() -> float:
    """Epsilon of the models of one kind together, at the same delta."""
    from skdp.privacy.accounting import compose_mu, gaussian_epsilon, gaussian_mu

    return gaussian_epsilon(compose_mu(gaussian_mu(e, DELTA) for e in EPSILONS), DELTA)


def _draw(results: list[dict[str, Any]], path: Path) -> str:
    """AUC against epsilon for both units, beside the model without privacy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    axes = figure.add_subplot()
    exact = results[0]["auc"]
    axes.axhline(exact, color="0.35", linestyle="--", linewidth=1.2)
    axes.annotate(
        f"without privacy: {exact:.3f}",
        (EPSILONS[0], exact),
        xytext=(0, 4),
        textcoords="offset points",
        color="0.35",
    )
    for (unit, (name, _)), colour, marker in zip(UNITS.items(), ("#1b6ca8", "#c8553d"), "os"):
        points = [(r["epsilon"], r["auc"], r["auc_std"]) for r in results if r["unit"] == unit]
        epsilons, aucs, spreads = zip(*points)
        label = f"protects one {name}"
        axes.errorbar(epsilons, aucs, yerr=spreads, color=colour, marker=marker, capsize=3, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.set_xlabel(f"epsilon of one model (delta = {DELTA:g}); smaller is more private")
    axes.set_ylabel(f"AUC on other people (mean and std of {REPEATS} fits)")
    axes.set_title("Who saw a physician this year? RAND Health Insurance Experiment")
    axes.grid(alpha=0.25)
    axes.legend(loc="lower right", frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise Failed(f"the picture could not be written: {error}") from error
    return str(path)
