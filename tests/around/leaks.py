"""What the tests of this folder share: the warnings of leaks that a call gives."""

import warnings

from skdp.exceptions import PrivacyLeakWarning


def leak_warnings(call):
    """The warnings about leaks, in their order, without the warning of a seed that an ensemble sets."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    found = [w for w in found if issubclass(w.category, PrivacyLeakWarning)]
    return [w for w in found if not str(w.message).startswith("random_state is a seed")]


def leaks(call):
    """Their messages."""
    return [str(w.message) for w in leak_warnings(call)]
