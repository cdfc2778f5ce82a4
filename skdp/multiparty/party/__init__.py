"""One process of several data owners: a public plan, pinned keys, mutual TLS, and a ledger of its own.

Steps of ``skdp party``, in this order:

1. `plan.read_plan` reads and checks the TOML file that the parties agreed on: a `Plan`.
2. `planned.planned_opening` fits the plan's estimator to nobody's records. It ends at its first opening: the
   noise, the grid and the number of rounds are then known. ``skdp party check`` prints them.
3. `run.run` checks the key, opens the ledger and connects. All parties compare the hashes of their plans, and only
   then does `table.read_own_records` read this party's table.
4. ``run._fit`` makes the plan a fit: `Plan.make_estimator`, with an engine that reaches the others and this
   party's ledger, and its usual ``fit`` with `Plan.own_records` as ``owners``. From here on it is the fit of any
   estimator (`skdp.base.fit`): it reserves the budget, reads, makes its own plan of public numbers
   (`skdp.base.plan.FitPlan`, the same at every party), and solves.
5. At every opening `engine.NetworkEngine` adds the sums of all parties and the servers' noise. At the first one
   the parties compare their `terms.PlanTerms`, and the ledger commits the charge.
6. ``run._write`` writes `model.model_document` and the report; `model.load_model` reads the model back.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
