"""What is observed about labels: candidate sets in any shape, validated once, and votes."""

from fspll.candidates.corruption import check_ambiguity, corrupt, corrupt_mask
from fspll.candidates.observed import Observed
from fspll.candidates.sets import Candidates
from fspll.candidates.summary import Summary

__all__ = ["Candidates", "Observed", "Summary", "check_ambiguity", "corrupt", "corrupt_mask"]
