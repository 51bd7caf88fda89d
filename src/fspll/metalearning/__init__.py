"""Meta-training: regimes, objectives, the trainer, MAML.

>>> from fspll.metalearning import REGIMES
>>> REGIMES.get("FsPLL").about
"the paper's FsPLL"
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    },
    expected="a Regime",
    accepts=lambda thing: isinstance(thing, import_module(_REGIMES).Regime),
)

# Where the other public names live. They are imported when first used, so that the command line
# does not wait for torch.
_HOME = {
    "Regime": "fspll.metalearning.regimes",
    "TrainingPlan": "fspll.metalearning.plan",
    "train": "fspll.metalearning.trainer",
}

__all__ = ["REGIMES", "Regime", "TrainingPlan", "train"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fspll.metalearning' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
