# Written by tools/make_stubs.py.

from skdp.fitting.optimizers import Adam as Adam
from skdp.fitting.optimizers import SGD as SGD
from skdp.text.word2vec import DPWord2Vec as DPWord2Vec
