"""What is observed about labels: candidate sets in any shape, validated once, and who said what."""

from fspll.candidates.corruption import check_ambiguity, corrupt, corrupt_mask
from fspll.candidates.judgments import Judgments
from fspll.candidates.observed import Observed
from fspll.candidates.sets import Candidates
from fspll.candidates.summary import Summary

__all__ = [
    "Candidates",
    "Judgments",
    "Observed",
    "Summary",
    "check_ambiguity",
    "corrupt",
    "corrupt_mask",
]
