"""Baselines that know who said what: majority vote, Dawid-Skene and CROWDLAB.

They are registered with the others in :data:`fspll.baselines.BASELINES`.
"""

from __future__ import annotations
