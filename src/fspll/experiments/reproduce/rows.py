"""The rows of the paper's tables as data: which network, which method, which labels at test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowSpec:
    """A row of a table.

    Attributes
    ----------
    name : str
        As readers know it.
    method : str
        What solves the meta-test tasks: a name of ``evaluation.METHODS`` or of
        ``baselines.BASELINES``, "MAML", or "ceiling".
    network : str
        The regime that its network was meta-trained under; "untrained"; or "" for none.
    features : str
        As in :class:`~fspll.experiments.reproduce.outcomes.Cell`.
    precise_training : bool
        Whether meta-training sees true labels, so that one network serves every r.
    precise_test : bool
        Whether the support of the meta-test tasks carries true labels.
    """

    name: str
    method: str
    network: str = ""
    features: str = ""
    precise_training: bool = False
    precise_test: bool = False


MANY_SHOT = ("PL-AGGD", "PALOC", "PL-ECOC", "PL-LEAF")
DEFAULT, CEILING = "fspll default", "ceiling"

_PLAIN = (
    RowSpec("FsPLL", "FsPLL", "fspll"),
    RowSpec("FsPLL-nM", "FsPLL-nM", "fspll-nm"),
    RowSpec("PN", "PN", "pn"),
    RowSpec("MAML", "MAML", "maml"),
    *(RowSpec(name, name, "fspll", "trained") for name in MANY_SHOT),
    *(RowSpec(name, name, "untrained", "untrained") for name in MANY_SHOT),
)
_PLUS = (
    RowSpec("FsPLL+", "FsPLL", "precise", precise_training=True),
    RowSpec("PN+", "PN", "precise", precise_training=True),
    RowSpec("MAML+", "MAML", "maml+", precise_training=True),
)
_OURS = (RowSpec(DEFAULT, "Evidence", "leave-one-out"), RowSpec(CEILING, "ceiling"))

TABLE = (*_PLAIN, *_PLUS, *_OURS)
NOISE = (
    *(row for row in TABLE if row.name in ("PN", "FsPLL", "PN+", "FsPLL+")),
    RowSpec("PN++", "PN", "precise", precise_training=True, precise_test=True),
    RowSpec("FsPLL++", "FsPLL", "precise", precise_training=True, precise_test=True),
)
PARAMETERS = (RowSpec("FsPLL", "FsPLL", "fspll"),)
