# Written by tools/make_stubs.py.

from skdp.statistics.functions import count as count
from skdp.statistics.functions import histogram as histogram
from skdp.statistics.functions import mean as mean
from skdp.statistics.functions import quantile as quantile
from skdp.statistics.released import Released as Released
