# Written by tools/make_stubs.py.

from skdp.multiparty.party.model import load_model as load_model
