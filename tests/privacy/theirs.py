"""Composition of ledger rows by dp-accounting, to compare ours with: all as PLDs or all as RDP curves."""

import math

import numpy as np

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting import gaussian_epsilon, rows_mu
from skdp.privacy.accounting.adapter import event_for
from skdp.privacy.accounting.sampled import require_supported

POISSON, WITHOUT_REPLACEMENT = "Poisson", "without replacement"
PURE = ("laplace", "above_threshold", "sampled_pure")
# Tail masses and FFT errors of a composed PLD are about 1e-15: below this delta it says nothing.
_SMALLEST_PLD_DELTA = 1e-11
_ORDERS = np.concatenate([1.0 + np.arange(1, 100) / 10.0, np.geomspace(11.0, 1e6, 160)])


def relation_of(adjacency):
    """The neighbouring relation of dp-accounting for an adjacency."""
    import dp_accounting

    names = {"replace-one": "REPLACE_ONE", "zero-out": "REPLACE_SPECIAL", "add-remove": "ADD_OR_REMOVE_ONE"}
    return dp_accounting.NeighboringRelation[names[adjacency]]


def _read(row):
    key = "noise_multiplier" if row["name"] == "gaussian" else "epsilon"
    return row["name"], float(row[key]), int(row.get("count", 1))


def _sampling(row):
    sampling = row.get("sampling", "full batch")
    return "full batch" if sampling == "fresh uniform" else sampling


def composed_epsilon(rows, delta, *, accountant, adjacency):
    """Epsilon of all rows together by one accountant: all as PLDs or all as RDP curves.

    Parameters
    ----------
    rows : sequence of dict
        Sampled Gaussian rows say `sampling="Poisson"` and `sampling_rate`. The counts must have
        been fixed before the data were touched: composition of PLDs is no filter.
    delta : float in (0, 1)
    accountant : {"pld", "rdp"}
        As PLDs, a pure row (Laplace, AboveThreshold, sampled) is randomised response and a
        selection the envelope of all bounded-range mechanisms (loss density
        exp((l - e)/2) / (2 (1 - exp(-e))) on [-e, e]).
    adjacency : {"replace-one", "zero-out", "add-remove"}

    Returns
    -------
    float
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be in (0, 1), got {delta!r}")
    for row in rows:
        name, parameter, _ = _read(row)
        require_supported(_sampling(row), adjacency, [name], accountant)
        if name == "gaussian" and parameter == 0.0:
            return math.inf
    if accountant == "rdp":
        return _rdp_epsilon(rows, delta, adjacency)
    if delta < _SMALLEST_PLD_DELTA:
        raise UnsupportedAccounting(f"A PLD says nothing below delta={_SMALLEST_PLD_DELTA:g}.")
    full = [row for row in rows if _sampling(row) == "full batch"]
    sampled = [row for row in rows if _sampling(row) == POISSON]

    def evaluate(grid):
        parts = [*_full_batch_plds(full, grid), *_poisson_plds(sampled, adjacency, grid)]
        return _composed(parts, delta)

    return _refine(evaluate, _first_grid(full, sampled))


def _rdp_epsilon(rows, delta, adjacency):
    from dp_accounting import rdp

    sampled = any(_sampling(row) != "full batch" for row in rows)
    # Full-batch curves do not depend on the relation; replace-one has the tighter pure event.
    relation = adjacency if sampled else "replace-one"
    orders = None if sampled else _ORDERS
    accountant = rdp.RdpAccountant(orders=orders, neighboring_relation=relation_of(relation))
    accountant.compose(event_for(rows, "rdp", relation))
    return float(accountant.get_epsilon(delta))


def _first_grid(full, sampled):
    """A loss grid that resolves the rows together and each pure one, with few cells a step."""
    grid = 1e-3
    for row in sampled:
        # The largest loss of a step is about mu^2/2 + 10 mu + log(rate).
        mu = 1.0 / row["noise_multiplier"]
        grid = max(grid, (0.5 * mu * mu + 10.0 * mu + math.log(row["sampling_rate"])) / 5000.0)
    mu = rows_mu(full)
    if mu > 0.0:
        grid = min(grid, mu / 100.0) if mu < 10.0 else mu / 1000.0
    pure = [parameter for name, parameter, _ in map(_read, full) if name != "gaussian"]
    smallest = min((epsilon for epsilon in pure if epsilon > 0.0), default=math.inf)
    if smallest < math.inf:
        grid = smallest / math.ceil(max(10.0, smallest / grid))
    return grid


def _refine(evaluate, grid, rtol=1e-3):
    """Epsilon on finer and finer grids until its error is below rtol; each value is an upper bound.

    The error falls with the square of the grid: after a refinement by three the error left is an
    eighth of the gain.
    """
    best = evaluate(grid)
    for _ in range(7):
        grid /= 3.0
        before, best = best, min(best, evaluate(grid))
        if before - best <= 8.0 * rtol * best:
            break
    return best


def _composed(parts, delta):
    if not parts:
        return 0.0
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return max(0.0, float(total.get_epsilon_for_delta(delta)))


def _full_batch_plds(rows, grid):
    from dp_accounting.pld import privacy_loss_distribution

    parts = []
    mu = rows_mu([row for row in rows if row["name"] == "gaussian"])
    if mu > 0.0:
        parts.append(
            privacy_loss_distribution.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=grid)
        )
    for name, epsilon, count in map(_read, rows):
        if name == "gaussian" or epsilon == 0.0 or count == 0:
            continue
        make = _randomised_response_pmf if name in PURE else _bounded_range_pmf
        pld = privacy_loss_distribution.PrivacyLossDistribution(make(epsilon, grid))
        parts.append(pld.self_compose(count) if count > 1 else pld)
    return parts


def _poisson_plds(rows, adjacency, grid):
    parts = []
    for row in rows:
        _, z, count = _read(row)
        pld = _poisson_pld(z, row["sampling_rate"], adjacency, grid)
        parts.append(pld.self_compose(count) if count > 1 else pld)
    return parts


def _poisson_pld(z, rate, adjacency, grid):
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.from_gaussian_mechanism(
        2.0 * z if adjacency == "replace-one" else z,
        value_discretization_interval=grid,
        sampling_prob=rate,
        neighboring_relation=relation_of(adjacency),
    )


def _create_pmf(first, masses, grid):
    from dp_accounting.pld import pld_pmf

    cells = range(first, first + masses.size)
    return pld_pmf.create_pmf(dict(zip(cells, masses.tolist())), grid, 0.0, True)


def _randomised_response_pmf(epsilon, grid):
    """Losses +-epsilon moved to the grid so that mass and E e^-loss stay: a dominating pair."""
    low = math.floor(epsilon / grid * (1.0 - 1e-12))
    masses = np.zeros(2 * low + 4)
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    for loss, total_weight in ((epsilon, likely), (-epsilon, math.exp(-epsilon) * likely)):
        cell = math.floor(loss / grid * (1.0 - math.copysign(1e-12, loss)))
        up = min(1.0, max(0.0, math.expm1(-(loss - cell * grid)) / math.expm1(-grid)))
        masses[cell + low + 2] += total_weight * (1.0 - up)
        if up > 0.0:
            masses[cell + low + 3] += total_weight * up
    return _create_pmf(-low - 2, masses, grid)


def _bounded_range_pmf(epsilon, grid):
    """The envelope of bounded-range pairs, range rounded up to the grid, masses in closed form."""
    cells = math.ceil(epsilon / grid * (1.0 - 1e-12))
    epsilon = cells * grid
    loss = np.arange(-cells, cells + 1) * grid
    masses = np.exp(0.5 * (loss - epsilon)) * 2.0 * math.tanh(0.25 * grid) / -math.expm1(-epsilon)
    masses[[0, -1]] *= 0.5
    return _create_pmf(-cells, masses, grid)


# ---------------------------------------------------------------------- sampled steps


def poisson_epsilon(noise_multiplier, sampling_rate, steps, delta, *, adjacency, accountant="pld"):
    """Epsilon of `steps` Gaussian releases, each on a fresh Poisson sample of the records.

    Parameters
    ----------
    noise_multiplier : float > 0
        std / sensitivity under the adjacency: std / (2C) under replace-one, std / C otherwise. Each
        record must lie in the C-ball and the divisor must be a constant.
    sampling_rate : float in (0, 1]
    steps : int >= 1
    delta : float in (0, 1)
    adjacency : {"replace-one", "zero-out", "add-remove"}
    accountant : {"pld", "rdp"}, default="pld"
        RDP has no proof under replace-one.

    Returns
    -------
    float
    """
    row = {"name": "gaussian", "noise_multiplier": noise_multiplier, "count": steps}
    if not 0.0 < sampling_rate <= 1.0:
        raise ValueError(f"sampling_rate must be in (0, 1], got {sampling_rate!r}")
    require_supported(POISSON, adjacency, ["gaussian"], accountant)
    if sampling_rate == 1.0 and accountant == "pld":
        return gaussian_epsilon(rows_mu([row]), delta)
    sampled = {**row, "sampling": POISSON, "sampling_rate": sampling_rate}
    return composed_epsilon([sampled], delta, accountant=accountant, adjacency=adjacency)


def wor_epsilon(noise_multiplier, n_records, batch_size, steps, delta):
    """Epsilon of Gaussian releases on fixed-size batches without replacement, under replace-one.

    The RDP bound of Wang, Balle and Kasiviswanathan (2019). Fixed-size batches are really worse
    than Poisson batches, not only accounted more loosely: with all other records at -C the pair is
    the Poisson add-remove pair of multiplier std / (2C).

    Parameters
    ----------
    noise_multiplier : float > 0
        std / (2C).
    n_records, batch_size, steps : int
    delta : float in (0, 1)

    Returns
    -------
    float
    """
    row = {
        "name": "gaussian",
        "noise_multiplier": noise_multiplier,
        "count": steps,
        "sampling": WITHOUT_REPLACEMENT,
        "sampling_rate": batch_size / n_records,
        "n_records": n_records,
        "batch_size": batch_size,
    }
    return composed_epsilon([row], delta, accountant="rdp", adjacency="replace-one")
