# Written by tools/make_stubs.py.

from skdp.preprocessing.public_bins import PublicBinsEncoder as PublicBinsEncoder
