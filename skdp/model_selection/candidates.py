"""The candidates of a search: independent draws, with replacement, from lists and distributions."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from skdp.base.fit import PrivateFit

# Most combinations that are checked before a search; a choice. Of more, each entry of a list is in one at least.
MOST_CHECKED = 500


@dataclass(frozen=True)
class Candidate:
    """An estimator and the parameters that were drawn for it."""

    estimator: BaseEstimator
    params: dict[str, object]

    def model(self) -> BaseEstimator:
        """An unfitted copy with copies of these parameters: trials share no object that a fit could change."""
        params = {name: clone(value, safe=False) for name, value in self.params.items()}
        return clone(self.estimator).set_params(**params)


def is_distribution(values: object) -> bool:
    """Whether values are drawn by their method ``rvs``."""
    return hasattr(values, "rvs")


class Candidates:
    """The candidates that a search draws from.

    Parameters
    ----------
    estimator : estimator, or list of them
    param_distributions : dict, list of dict, or None
        As in scikit-learn's ``RandomizedSearchCV``. With a list of estimators: one entry for each, a dict or None.

    Notes
    -----
    A draw chooses an estimator with equal probabilities, then one of its dicts, then a value of each
    parameter. It depends on nothing else, and draws are independent: also of a grid, which scikit-learn draws
    without replacement.
    """

    def __init__(self, estimator: BaseEstimator | Sequence[BaseEstimator], param_distributions: object) -> None:
        several = isinstance(estimator, list | tuple)
        self.estimators: list[BaseEstimator] = list(estimator) if several else [estimator]
        if not self.estimators:
            raise ValueError("estimator must be a private estimator, or a list of at least one")
        for each in self.estimators:
            if not isinstance(each, PrivateFit):
                raise TypeError(
                    "estimator must be a private estimator of skdp, or a list of them, got "
                    f"{type(each).__name__}; apply public steps such as PublicScaler to X before the search"
                )
        given = param_distributions
        if several:
            given = [None] * len(self.estimators) if given is None else given
            if not isinstance(given, list | tuple) or len(given) != len(self.estimators):
                raise ValueError(
                    "with a list of estimators param_distributions must be None, or a list with one entry (a dict "
                    "or None) for each of them"
                )
            self.spaces = [[_space(entry or {})] for entry in given]
        else:
            entries = given if isinstance(given, list | tuple) else [given]
            self.spaces = [[_space(entry) for entry in entries]]
        if sum(len(spaces) for spaces in self.spaces) == 0 or (not several and not any(self.spaces[0])):
            raise ValueError("param_distributions must name at least one parameter to choose")

    def draw(self, random_numbers: np.random.RandomState) -> Candidate:
        """One candidate."""
        which = random_numbers.randint(len(self.estimators))
        spaces = self.spaces[which]
        space = spaces[random_numbers.randint(len(spaces))]
        params = {
            name: values.rvs(random_state=random_numbers)
            if is_distribution(values)
            else values[random_numbers.randint(len(values))]
            for name, values in space.items()
        }
        return Candidate(self.estimators[which], params)

    def to_check(self) -> Iterator[Candidate]:
        """Candidates whose parameters are checked before a search: all of small grids, and every entry of a list.

        Of a distribution it is a draw with a public seed.
        """
        order = random.Random(0)
        return self._chosen(self.spaces, lambda sizes: _positions(sizes, order))

    def to_read(self) -> Iterator[Candidate]:
        """Candidates that read the data before a search: few, but every entry of a list is in one of them.

        The checks of each record by a candidate may depend on a parameter, such as the loss. Of a list of numbers
        the smallest and the largest one are in a candidate: one of them asks for most.
        """
        spaces = [
            [{name: _ends(values) for name, values in space.items()} for space in of_one] for of_one in self.spaces
        ]
        return self._chosen(
            spaces,
            lambda sizes: (
                {name: place % size for name, size in sizes.items()}
                for place in range(max(sizes.values(), default=1))
            ),
        )

    def _chosen(
        self,
        spaces: list[list[dict[str, Any]]],
        positions_of: Callable[[dict[str, int]], Iterator[dict[str, int]]],
    ) -> Iterator[Candidate]:
        fixed = np.random.RandomState(0)
        for estimator, of_one in zip(self.estimators, spaces):
            for space in of_one:
                sizes = {name: 1 if is_distribution(values) else len(values) for name, values in space.items()}
                for positions in positions_of(sizes):
                    params = {
                        name: values.rvs(random_state=fixed)
                        if is_distribution(values)
                        else values[positions[name]]
                        for name, values in space.items()
                    }
                    yield Candidate(estimator, params)


def _positions(sizes: dict[str, int], order: random.Random) -> Iterator[dict[str, int]]:
    """Positions in lists of these sizes: all combinations, or some in which every entry occurs."""
    number = 1
    for size in sizes.values():
        number *= size
    if number <= MOST_CHECKED:
        for place in range(number):
            found = {}
            for name, size in sizes.items():
                place, found[name] = divmod(place, size)
            yield found
        return
    mixed = {name: order.sample(range(size), size) for name, size in sizes.items()}
    for place in range(max(MOST_CHECKED, *sizes.values())):
        yield {name: mixed[name][place] if place < size else order.randrange(size) for name, size in sizes.items()}


def _ends(values: Any) -> Any:
    """The smallest and the largest of a list of numbers; all other lists, and distributions, as they are."""
    if is_distribution(values) or not all(isinstance(value, Real) for value in values):
        return values
    return [min(values), max(values)] if len(values) > 1 else values


def _check_source(name: str, values: Any) -> None:
    """Refuse numbers that do not come from ``random_state``: their own source would show how many were drawn."""
    drawn = [values.rvs(random_state=np.random.RandomState(0)) for _ in range(2)]
    if isinstance(drawn[0], Real | str) and drawn[0] != drawn[1]:
        raise ValueError(
            f"param_distributions[{name!r}] does not draw from random_state: two draws of one seed differ. How "
            "many numbers its own source gave would show how many trials there were, which is secret"
        )


def _space(entry: object) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise TypeError(f"param_distributions must be a dict, or a list of dicts, got {type(entry).__name__}")
    space: dict[str, object] = {}
    for name, values in sorted(entry.items()):
        if is_distribution(values):
            _check_source(name, values)
            space[name] = values
        elif isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise TypeError(
                f"param_distributions[{name!r}] must be a list or a distribution with a method rvs, got "
                f"{type(values).__name__}"
            )
        elif len(values) == 0:
            raise ValueError(f"param_distributions[{name!r}] is empty")
        else:
            space[name] = values
    return space
