"""Lists of callers, steps and splitters around a fit that are known to be safe; a warning names all others.

A fit is private for the table that it gets. Wrappers, steps before it and splitters decide the rows of that table
that one record changes. The classes on the lists of `callers`, `steps` and `splitters` are known to be safe, for a
reason that stands there. All else is named by a `PrivacyLeakWarning` before anything is spent, and by a line in
the report.
"""

from skdp.around.calls import carried, forget, hand_on, lines_around, notice, paid_before
from skdp.around.kinds import spends_budget

__all__ = ["carried", "forget", "hand_on", "lines_around", "notice", "paid_before", "spends_budget"]
