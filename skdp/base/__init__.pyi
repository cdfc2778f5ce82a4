# Written by tools/make_stubs.py.

from skdp._docs import document as document
from skdp.base.declare import changed as changed
from skdp.base.declare import fitted as fitted
from skdp.base.declare import fixed as fixed
from skdp.base.declare import parameter as parameter
from skdp.base.exact import ExactFit as ExactFit
from skdp.base.fit import PrivateFit as PrivateFit
from skdp.base.fit import solve_inside as solve_inside
from skdp.base.fit import unpaid as unpaid
from skdp.base.kinds import check_choice as check_choice
from skdp.base.kinds import check_flag as check_flag
from skdp.base.kinds import check_number as check_number
from skdp.base.kinds import choice as choice
from skdp.base.kinds import flag as flag
from skdp.base.kinds import integer as integer
from skdp.base.kinds import real as real
from skdp.base.plan import BudgetSplit as BudgetSplit
from skdp.base.plan import Decision as Decision
from skdp.base.plan import FitPlan as FitPlan
from skdp.base.plan import Step as Step
from skdp.base.problem import Problem as Problem
from skdp.base.problem import Solution as Solution
from skdp.base.tables import clipped_weights as clipped_weights
from skdp.base.tables import encode_groups as encode_groups
from skdp.base.tables import validate_table as validate_table
