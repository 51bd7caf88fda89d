"""What is observed about labels: candidate sets in any shape, validated once."""

from fspll.candidates.ambiguity import Summary, check_ambiguity, corrupt_mask
from fspll.candidates.sets import Candidates, corrupt

__all__ = ["Candidates", "Summary", "check_ambiguity", "corrupt", "corrupt_mask"]
