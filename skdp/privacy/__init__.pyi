# Written by tools/make_stubs.py.

from skdp.privacy import accounting as accounting
from skdp.privacy import noise as noise
from skdp.privacy.batches import BatchGroup as BatchGroup
from skdp.privacy.bounded import Bounded as Bounded
from skdp.privacy.budget import BudgetAccountant as BudgetAccountant
from skdp.privacy.records import PrivateRecords as PrivateRecords
from skdp.privacy.report import PrivacyReport as PrivacyReport
from skdp.privacy.session import PrivacySession as PrivacySession
from skdp.privacy.shape import PublicShape as PublicShape
from skdp.privacy.statistics.vertices import VertexScores as VertexScores
