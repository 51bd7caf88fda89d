"""Meta-training: regimes, objectives, the trainer, MAML.

>>> from fspll.metalearning import REGIMES
>>> REGIMES.get("FsPLL").about
"the paper's FsPLL"
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fspll._common.lazy import lazy_names
from fspll._common.registry import Registry

if TYPE_CHECKING:
    from fspll.metalearning.plan import TrainingPlan
    from fspll.metalearning.regimes import Regime
    from fspll.metalearning.trainer import train

_REGIMES = "fspll.metalearning.regimes"
REGIMES: Registry[Regime] = Registry(
    "regime",
    "fspll.regimes",
    {
        "fspll": f"{_REGIMES}:FSPLL",
        "fspll-nm": f"{_REGIMES}:FSPLL_NM",
        "pn": f"{_REGIMES}:PN",
        "pn-average": f"{_REGIMES}:PN_AVERAGE",
        "precise": f"{_REGIMES}:PRECISE",
        "leave-one-out": f"{_REGIMES}:LEAVE_ONE_OUT",
        "query-candidates": f"{_REGIMES}:QUERY_CANDIDATES",
        "all-candidates": f"{_REGIMES}:ALL_CANDIDATES",
        "maml": f"{_REGIMES}:MAML",
        "maml+": f"{_REGIMES}:MAML_PLUS",
        "maml-total": f"{_REGIMES}:MAML_TOTAL",
    },
    expected="a Regime",
    accepts=lambda thing: isinstance(thing, import_module(_REGIMES).Regime),
)
"""Every known regime; other packages add theirs through the group ``fspll.regimes``."""

# So that the command line does not wait for torch.
__getattr__, __dir__ = lazy_names(
    __name__,
    {"plan": "TrainingPlan", "regimes": "Regime", "trainer": "train"},
    "REGIMES",
)

__all__ = ["REGIMES", "Regime", "TrainingPlan", "train"]
