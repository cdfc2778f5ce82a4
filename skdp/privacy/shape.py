"""PublicShape: the public facts about the data of a fit, in one object.

Plans, grids, batch rules, warnings, exceptions, memory decisions, reports and reprs read this object and nothing
else of the data. The real number of rows serves sums and samplers only.

Whether the number of rows is public depends on the claim. With the record as the unit it is public under
replace-one and zero-out, because a neighbouring data set has as many. With groups it is private under every
adjacency, because the group that is replaced may have any number of rows; only the number of groups is public.
Under add-remove both are private, and ``n_public`` is used in their place. If the user gives ``n_public``, only
that is used.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skdp.kernels.protocols import Matrix

# Largest number of records: the targets alone would fill 128 TiB.
MOST_UNITS = 2**44
# Sums are laid out for this multiple of n_public units, if only n_public is known; a choice, not tuned.
MOST_PER_PUBLIC = 16


@dataclass(frozen=True)
class PublicShape:
    """The public facts about the data of one fit.

    Two neighbouring data sets have equal shapes, so a decision that reads nothing else is public.

    Attributes
    ----------
    unit : {"record", "group"}
    n_units : int
        What means divide by: ``n_public`` where it is given, else the number of records (or groups).
    n_features : int
    n_public : int or None
        As the user gave it.
    n_classes : int or None
        Number of declared classes; None where there are none.
    container : {"dense", "csr"}
        How X is stored. Neither the number of stored entries nor their density is public.
    dtype : str
        Of the values of X.
    device : {"cpu", "cuda"}
    fit_intercept : bool
        Whether a last feature that is the same in every record takes part.
    intercept_value : float
        That feature; public or released.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import PrivateRecords
    >>> PrivateRecords(np.zeros((5, 2)), np.zeros(5)).shape.n_rows
    5
    >>> print(PrivateRecords(np.zeros((5, 2)), np.zeros(5), groups=[0, 0, 0, 1, 1]).shape.n_rows)
    None
    """

    unit: str
    n_units: int
    n_features: int
    n_public: int | None = None
    n_classes: int | None = None
    container: str = "dense"
    dtype: str = "float64"
    device: str = "cpu"
    fit_intercept: bool = False
    intercept_value: float = 1.0

    @classmethod
    def of(
        cls, X: "Matrix", *, n_groups: int | None, n_public: int | None, n_classes: int | None = None,
        fit_intercept: bool = False, intercept_value: float = 1.0,
    ) -> "PublicShape":  # fmt: skip
        """Take the public facts about X; the one place where a number of rows becomes public.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
        n_groups : int or None
            None means that the record is the unit.
        n_public : int or None
        n_classes : int, default=None
        fit_intercept : bool, default=False
        intercept_value : float, default=1.0
        """
        from skdp.kernels import is_cupy

        unit = "record" if n_groups is None else "group"
        counted = X.shape[0] if n_groups is None else n_groups
        return cls(
            unit=unit,
            n_units=int(counted if n_public is None else n_public),
            n_features=int(X.shape[1]),
            n_public=None if n_public is None else int(n_public),
            n_classes=n_classes,
            container="csr" if hasattr(X, "indptr") else "dense",
            dtype=str(getattr(X, "dtype", "float64")),
            device="cuda" if is_cupy(X) else "cpu",
            fit_intercept=bool(fit_intercept),
            intercept_value=float(intercept_value),
        )

    def of_sizes(self, sizes: tuple[int, ...]) -> "PublicShape":
        """Return the shape of so many units, at one owner or at several."""
        return replace(self, n_units=sum(sizes))

    def with_features(self, n_features: int) -> "PublicShape":
        """Return the shape of the same records with another number of features."""
        return replace(self, n_features=int(n_features))

    @property
    def n_parameters(self) -> int:
        """Number of features, and one more for the intercept."""
        return self.n_features + self.fit_intercept

    @property
    def intercept(self) -> float | None:
        """The intercept's feature, or None where it takes no part."""
        return self.intercept_value if self.fit_intercept else None

    @property
    def n_records(self) -> int | None:
        """Number of records, where the record is the unit and ``n_public`` was not given; else None."""
        return self.n_units if self.unit == "record" and self.n_public is None else None

    n_rows = n_records

    @property
    def n_groups(self) -> int | None:
        """Number of groups, where the group is the unit and ``n_public`` was not given; else None."""
        return self.n_units if self.unit == "group" and self.n_public is None else None

    @property
    def most_units(self) -> int:
        """A bound on the number of units of all data sets of this shape."""
        return self.n_units if self.n_public is None else max(self.n_units, MOST_UNITS)

    @property
    def usual_units(self) -> int:
        """A number of units for which sums are laid out.

        A data set of more than 16 ``n_public`` units may make a sum wrap around in 64 bits. Noise is added
        modulo 2^64 too, so the release is then a function of the exact noisy sum: wrong, and as private.
        """
        return self.n_units if self.n_public is None else MOST_PER_PUBLIC * self.n_units

    @property
    def total_weight(self) -> float:
        """Largest sum of the units' weights 1 / ``n_units``, where at most 16 ``n_public`` units are assumed."""
        return 1.0 if self.n_public is None else float(MOST_PER_PUBLIC)

    def counted(self) -> str:
        """The number of units in words, for messages.

        Examples
        --------
        >>> from skdp.privacy.shape import PublicShape
        >>> PublicShape("group", 1, 2).counted(), PublicShape("record", 7, 2, n_public=7).counted()
        ('1 group', 'n_public=7 records')
        """
        kind = self.unit if self.n_units == 1 else f"{self.unit}s"
        return f"{'n_public=' if self.n_public is not None else ''}{self.n_units} {kind}"
