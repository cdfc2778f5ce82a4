# Written by tools/make_stubs.py.

from skdp.statistics.description import crosstab as crosstab
from skdp.statistics.description import describe as describe
from skdp.statistics.functions import count as count
from skdp.statistics.functions import histogram as histogram
from skdp.statistics.functions import mean as mean
from skdp.statistics.functions import quantile as quantile
from skdp.statistics.released import Released as Released
from skdp.statistics.spread import std as std
from skdp.statistics.spread import var as var
from skdp.statistics.tables import Description as Description
from skdp.statistics.tables import ReleasedTable as ReleasedTable
