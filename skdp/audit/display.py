"""The result of an audit of a text model: ranks of canaries, their histograms, and bounds on epsilon."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

from skdp.audit.ranks import chi_squared, exposures, lowest_epsilon
from skdp.base import check_choice, check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTE = "A low figure is no proof of privacy: another attack may find more."


class SecretSharerDisplay:
    """Ranks of canaries among random phrases, as `secret_sharer` returns them.

    A histogram that leans to high ranks shows that the model has memorised canaries. One that looks uniform is no
    proof that it has not memorised anything: another attack may find more.

    Parameters
    ----------
    ranks : dict of int to ndarray of shape (n_canaries,)
        For each number of insertions the ranks of the canaries, from 0 to ``n_references``. The phrase with the
        lowest perplexity has the highest rank.
    outside_ranks : dict of int to ndarray of shape (n_canaries,)
        The same for phrases that are not in the text.
    n_references : int
        Number of random phrases among which each phrase was ranked.
    n_bins : int, default=10
        Number of bins of the histograms. The published p-values are for ten bins.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        After `plot`.
    figure_ : matplotlib Figure
        After `plot`.

    See Also
    --------
    secret_sharer : Make it from a way to train a model.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import SecretSharerDisplay
    >>> ranks = {3: np.arange(0, 1000, 10), 15: np.arange(900, 1000)}
    >>> outside = {3: np.arange(5, 1000, 10), 15: np.arange(5, 1000, 10)}
    >>> display = SecretSharerDisplay(ranks, outside, n_references=999)
    >>> display.chi_squared(3)[0], display.chi_squared(15)[0]
    (0.0, 9.0)
    """

    def __init__(
        self,
        ranks: Mapping[int, np.ndarray],
        outside_ranks: Mapping[int, np.ndarray],
        *,
        n_references: int,
        n_bins: int = 10,
    ) -> None:
        check_number("n_references", n_references, Integral, low=1)
        check_number("n_bins", n_bins, Integral, low=2, high=n_references + 1)
        if not ranks or list(ranks) != list(outside_ranks):
            raise ValueError("ranks and outside_ranks must have the same numbers of insertions, at least one")
        self.ranks = {n: _checked(found, n_references) for n, found in ranks.items()}
        self.outside_ranks = {n: _checked(found, n_references) for n, found in outside_ranks.items()}
        self.n_references = n_references
        self.n_bins = n_bins

    # ------------------------------------------------------------------ figures

    def exposures(self, n_insertions: int, *, outside: bool = False) -> np.ndarray:
        """Return the exposure of each canary, in bits.

        It is log2 of the number of phrases, the canary among them, minus log2 of the canary's place, where place 1
        has the lowest perplexity. Without memorisation its mean is about 1.44.

        Parameters
        ----------
        n_insertions : int
            How often each canary was inserted.
        outside : bool, default=False
            Of the phrases that are not in the text instead of the canaries.

        Returns
        -------
        ndarray of shape (n_canaries,)
        """
        ranks = self._of(self.outside_ranks if outside else self.ranks, n_insertions)
        return exposures(ranks, self.n_references)

    def chi_squared(self, n_insertions: int, *, outside: bool = False) -> tuple[float, float]:
        """Return Pearson's chi-squared distance of the histogram from uniform, and the p-value of the test.

        Parameters
        ----------
        n_insertions : int
            How often each canary was inserted.
        outside : bool, default=False
            Of the phrases that are not in the text instead of the canaries.

        Returns
        -------
        distance : float
            The statistic of the test, divided by the number of canaries: from 0 to about ``n_bins`` - 1. Without
            memorisation its mean is (``n_bins`` - 1) / n_canaries.
        p_value : float
            By the chi-squared distribution with ``n_bins`` - 1 degrees of freedom. It is an approximation, good
            where there are at least five canaries a bin.
        """
        ranks = self._of(self.outside_ranks if outside else self.ranks, n_insertions)
        return chi_squared(ranks, self.n_references, self.n_bins)

    def epsilon_lower_bound(
        self,
        n_insertions: int,
        *,
        units_per_insertion: int = 1,
        adjacency: str = "replace-one",
        top: float = 0.1,
        confidence: float = 0.95,
    ) -> float:
        """Return an empirical lower bound of epsilon, by the group property.

        Parameters
        ----------
        n_insertions : int
            How often each canary was inserted.
        units_per_insertion : int, default=1
            Number of units of the claim in which one inserted phrase takes part. A unit that is a sentence or a
            document has 1. Where it is a window of words, count the windows.
        adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
            The adjacency of the claim. To exchange a unit costs epsilon under the first, and 2 epsilon under the
            others: one leaves, another comes.
        top : float, default=0.1
            A canary is counted if its rank is among this share of the highest ranks. Choose it before
            you see ranks.
        confidence : float, default=0.95
            Probability with which the bound holds, for one number of insertions.

        Returns
        -------
        float
            A training that satisfies pure epsilon-DP with a smaller epsilon gives such ranks with a probability of
            at most 1 - ``confidence``. A claim with delta > 0 is not refuted by it: where an exchange of many
            units is concerned, its delta grows with exp(epsilon). A result of 0 is no proof of privacy.

        Notes
        -----
        An exchange of a canary changes k = ``n_insertions`` * ``units_per_insertion`` units, so its epsilon is at
        most k times the epsilon of a unit. All canaries of one training count, although they are trained together:
        see the proof in ``skdp/audit/ranks.py``. The paper's empirical epsilon of 0.07 to 0.11 is another figure.
        It is 1 / n for the numbers of insertions n = 15 and 9 between which its histograms stop to look uniform,
        without a confidence.
        """
        check_number("units_per_insertion", units_per_insertion, Integral, low=1)
        check_choice("adjacency", adjacency, ("replace-one", "zero-out", "add-remove"))
        check_number("top", top, Real, low=0.0, high=0.5, strict=True)
        check_number("confidence", confidence, Real, low=0.5, high=1.0 - 1e-12)
        ranks = self._of(self.ranks, n_insertions)
        exchanges = n_insertions * units_per_insertion * (1 if adjacency == "replace-one" else 2)
        return lowest_epsilon(ranks, self.n_references, top, confidence) / exchanges

    def _of(self, ranks: dict[int, np.ndarray], n_insertions: int) -> np.ndarray:
        if n_insertions not in ranks:
            raise ValueError(f"n_insertions must be one of {list(ranks)}, got {n_insertions!r}")
        return ranks[n_insertions]

    # ------------------------------------------------------------------ other forms

    def as_dict(self) -> dict[str, object]:
        """Return the figures in built-in types, ready for JSON.

        Returns
        -------
        dict
            ``n_references``, ``n_bins``, ``note`` and a list ``insertions`` with a dict for each number of
            insertions: ``n_insertions``, ``n_canaries``, ``chi_squared_distance``, ``p_value``, ``mean_exposure``,
            ``median_exposure``, ``epsilon_lower_bound``, ``outside_chi_squared_distance`` and ``outside_p_value``.
        """
        return {
            "n_references": int(self.n_references),
            "n_bins": int(self.n_bins),
            "note": NOTE,
            "insertions": [self._figures(n) for n in self.ranks],
        }

    def _figures(self, n_insertions: int) -> dict[str, float | int]:
        distance, p_value = self.chi_squared(n_insertions)
        outside_distance, outside_p_value = self.chi_squared(n_insertions, outside=True)
        found = self.exposures(n_insertions)
        return {
            "n_insertions": int(n_insertions),
            "n_canaries": len(found),
            "chi_squared_distance": distance,
            "p_value": p_value,
            "mean_exposure": float(found.mean()),
            "median_exposure": float(np.median(found)),
            "epsilon_lower_bound": self.epsilon_lower_bound(n_insertions),
            "outside_chi_squared_distance": outside_distance,
            "outside_p_value": outside_p_value,
        }

    def __repr__(self) -> str:
        lines = [
            f"Canaries were ranked among {self.n_references} random phrases, which measures memorisation and is "
            "no proof of privacy."
        ]
        for found in map(self._figures, self.ranks):
            lines.append(
                f"Inserted {found['n_insertions']} times each, {found['n_canaries']} canaries have a chi-squared "
                f"distance of {found['chi_squared_distance']:.3g} from uniform ranks (p = {found['p_value']:.2g}) "
                f"and a median exposure of {found['median_exposure']:.3g} bits, which is no proof."
            )
            lines.append(
                f"Phrases outside the text have a distance of {found['outside_chi_squared_distance']:.3g} (p = "
                f"{found['outside_p_value']:.2g}), which checks the ranks and is no proof."
            )
        return "\n".join([*lines, NOTE])

    # ------------------------------------------------------------------ pictures

    def plot(self, ax: "Axes | np.ndarray | None" = None) -> "SecretSharerDisplay":
        """Draw a histogram of the canaries' ranks for each number of insertions.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            One for each number of insertions. By default a figure is made.

        Returns
        -------
        SecretSharerDisplay
            The object, with ``axes_`` and ``figure_``.
        """
        axes = _axes(ax, len(self.ranks), 1)
        self._draw(axes[:, 0], "canaries", outside=False)
        return self._keep(axes)

    @staticmethod
    def plot_many(displays: Mapping[str, "SecretSharerDisplay"], ax: "np.ndarray | None" = None) -> np.ndarray:
        """Draw the histograms of several models side by side, with the phrases outside the text last.

        Parameters
        ----------
        displays : dict of str to SecretSharerDisplay
            Results by the name of the model, all with the same numbers of insertions. The phrases outside the text
            are taken from the first.
        ax : ndarray of matplotlib Axes, default=None
            A row for each number of insertions, a column for each model and one more. By default a figure is made.

        Returns
        -------
        ndarray of matplotlib Axes of shape (number of insertions, number of models + 1)
        """
        if not displays or len({tuple(one.ranks) for one in displays.values()}) != 1:
            raise ValueError("displays must have the same numbers of insertions, and there must be one at least")
        first = next(iter(displays.values()))
        axes = _axes(ax, len(first.ranks), len(displays) + 1)
        for column, (name, display) in zip(axes.T, displays.items()):
            display._draw(column, name, outside=False)
            display._keep(axes)
        first._draw(axes[:, -1], "outside the text", outside=True)
        return axes

    def _draw(self, axes: np.ndarray, name: str, outside: bool) -> None:
        """One column: a histogram for each number of insertions, and the height of a uniform one."""
        for one, n in zip(axes, self.ranks):
            ranks = self.outside_ranks[n] if outside else self.ranks[n]
            positions = (ranks + 0.5) / (self.n_references + 1)
            one.hist(positions, bins=self.n_bins, range=(0.0, 1.0), color="C7" if outside else "C0")
            one.axhline(len(ranks) / self.n_bins, color="0.3", linestyle="--", linewidth=1.0)
            distance, p_value = self.chi_squared(n, outside=outside)
            one.set_title(f"{name}, {n} times\ndistance {distance:.2g} (p = {p_value:.2g})", fontsize="small")

    def _keep(self, axes: np.ndarray) -> "SecretSharerDisplay":
        for one in axes[-1]:
            one.set_xlabel("rank / number of phrases")
        for one in axes[:, 0]:
            one.set_ylabel("phrases")
        self.axes_ = axes
        self.figure_ = axes.flat[0].figure
        return self


def _checked(ranks: object, n_references: int) -> np.ndarray:
    """Ranks as an array of integers in their range."""
    found = np.asarray(ranks)
    if found.ndim != 1 or found.size == 0 or found.dtype.kind not in "iu":
        raise ValueError(f"ranks must be a row of integers, got {found.dtype} of shape {found.shape}")
    if found.min() < 0 or found.max() > n_references:
        raise ValueError(f"ranks must be from 0 to n_references = {n_references}")
    return found.astype(np.int64)


def _axes(ax: "Axes | np.ndarray | None", n_rows: int, n_columns: int) -> np.ndarray:
    """Axes as a matrix: the given ones, or the axes of a new figure, whose title states the method's limit."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError('SecretSharerDisplay.plot needs matplotlib: pip install "skdp[plot]"') from error
        size = (2.2 * n_columns + 1.2, 1.9 * n_rows + 0.8)
        figure, ax = pyplot.subplots(n_rows, n_columns, figsize=size, sharex=True, layout="constrained")
        figure.suptitle("High ranks are memorised; a flat histogram is no proof of privacy", fontsize="medium")
    axes = np.ravel(np.asarray(ax, dtype=object))
    if axes.size != n_rows * n_columns:
        raise ValueError(f"ax must be {n_rows * n_columns} Axes, got {axes.size}")
    return axes.reshape(n_rows, n_columns)
