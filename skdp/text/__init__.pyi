# Written by tools/make_stubs.py.

from skdp.text.word2vec import DPWord2Vec as DPWord2Vec
