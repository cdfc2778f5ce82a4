from .optimizers import SGD as SGD
from .optimizers import Adam as Adam
from .word2vec import DPWord2Vec as DPWord2Vec
