# Written by tools/make_stubs.py.

from skdp.preprocessing._public_bins import PublicBinsEncoder as PublicBinsEncoder
