"""Ledger rows as events of dp-accounting, which is imported only when a function of this module is called.

skdp's multiplier is z = std / sensitivity under the adjacency that is claimed. The RDP accountant takes the same.
Under replace-one the PLD accountant doubles the sensitivity by itself, so it takes std / clip norm = 2z. Rows
without a proof raise `UnsupportedAccounting`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting.amplification import FULL_BATCH
from skdp.privacy.accounting.releases import Release, Row, releases_of
from skdp.privacy.accounting.sampled import require_supported

if TYPE_CHECKING:
    from dp_accounting import DpEvent


def event_for(rows: Sequence[Row] | None, accountant: str, adjacency: str) -> "DpEvent":
    """The rows as a `dp_accounting.DpEvent` for that accountant under that adjacency.

    Parameters
    ----------
    rows : sequence of dict, or None
        None is a fit without a guarantee. Kinds, parameters and counts must have been fixed before the data were
        touched: of a fit ask `PrivacyReport.event_for`, which gives its plan.
    accountant : {"pld", "rdp"}
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The accountant must be made with the same neighbouring relation (zero-out is REPLACE_SPECIAL).

    Raises
    ------
    UnsupportedAccounting
        If dp-accounting has no event with a valid meaning: pure releases and selections for the PLD accountant.
    """
    require_supported(FULL_BATCH, adjacency, [], accountant)
    import dp_accounting

    if rows is None:
        return dp_accounting.NonPrivateDpEvent()
    releases = [release for release in releases_of(rows) if release.count]
    return dp_accounting.ComposedDpEvent([_event(r, accountant, adjacency) for r in releases])


def _event(release: Release, accountant: str, adjacency: str) -> "DpEvent":
    import dp_accounting

    if not release.accountants:
        raise UnsupportedAccounting(
            f"No curve of {release.name!r} releases is proven, so dp-accounting has no event for them. Add their "
            "epsilon and delta to the sums of the other releases"
        )
    sampling = release.sampling if release.on_sample else FULL_BATCH
    require_supported(sampling, adjacency, [release.name], accountant)
    return dp_accounting.SelfComposedDpEvent(release.event(accountant, adjacency), release.count)
