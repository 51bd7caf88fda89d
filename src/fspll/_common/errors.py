"""The errors this package raises on purpose, each with one plain sentence.

Every class also derives from the built-in exception that scikit-learn and NumPy users expect, so
``except ValueError`` keeps working. The command line turns any :class:`FsPLLError` into one line
and exit code 2; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations


class FsPLLError(Exception):
    """Base of every deliberate error of the package.

    >>> from fspll import Candidates, FsPLLError
    >>> try:
    ...     Candidates.read([{"cat"}, set()])
    ... except FsPLLError as error:
    ...     print(error)
    row 1 of candidates is empty; every sample needs at least one candidate label
    """


class InputError(FsPLLError, ValueError):
    """A value that cannot be used: what was expected, what arrived, and where."""


class InputTypeError(FsPLLError, TypeError):
    """An object of a kind that cannot be used."""


class CandidateError(InputError):
    """Candidate sets that contradict what a candidate set is."""


class TaskError(InputError):
    """An N-way K-shot task that the data cannot provide."""


class DataError(InputError):
    """A data file that is missing, damaged, or not what its name says."""


class CheckpointError(InputError):
    """A model file that is missing, damaged, or of another kind."""


class RankError(FsPLLError, RuntimeError):
    """Another process of a run on several processes has ended before its time."""


class MissingPackageError(FsPLLError, ImportError):
    """An optional package is absent; the message says how to install it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.extra = extra
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed; "
            f"install it with: pip install 'fspll[{extra}]'"
        )
