"""How far labels can be trusted, in sentences for the terminal and the report."""

from __future__ import annotations

from fspll._common.words import beginning, counted, percent
from fspll.labeling.result import Labeling
from fspll.labeling.samples import FEATURES

_LACKING = 0.005  # share of sets without their true label that is worth a word
_WORDS = 50  # characters of a text that tell it from others
_ALL = 0.95  # share of labels that are candidates, from which there is nothing to separate


def understood(result: Labeling) -> str:
    """Return how the file of labels was understood, and how many pictures were read."""
    return ", ".join(filter(None, (result.understood, pictures_read(result))))


def sample_name(result: Labeling, row: int) -> str:
    """Return what a person knows a sample by: its name, with the first words of its text."""
    name = result.names[row]
    if result.texts is None or result.texts[row] == name:
        return name
    return f"{name}: {beginning(result.texts[row], _WORDS)}"


def pictures_read(result: Labeling) -> str:
    """Return "90 of 90 pictures read"; empty where samples are no picture files."""
    if result.pictures is None:
        return ""
    total = len(result) + len(result.unreadable)
    return f"{len(result):,} of {counted(total, 'picture')} read"


def expectation(result: Labeling) -> str:
    """Return how many labels to expect right, and on what condition: "expect 97% of the ..."."""
    share = percent(result.expected_accuracy)
    if not result.calibrated:  # scores order labels, but do not say how many are right
        return f"mean score of the labels: {share}"
    on = condition(result)
    return f"expect {share} of the labels to be right{on and ' ' + on}"


def condition(result: Labeling) -> str:
    """Return on what condition confidences are probabilities; empty where there is none."""
    if (result.answered.size and result.answered.all()) or len(result.classes) == 1:
        return ""
    if result.audit is not None and result.audit.n_answers:
        return "(by the audit)"
    if result.observed is not None and result.observed.judgments is not None:
        return "unless people and features make the same mistakes"
    lacking = float(result.missing.mean()) if result.missing.size else 0.0
    if lacking >= _LACKING:
        return f"(about {percent(lacking, 0)} of the candidate sets seem to lack their true label)"
    return "if every candidate set contains its true label"


def audit_sentence(result: Labeling) -> str | None:
    """Return what a person found among labels drawn at random; None without an answer."""
    audit = result.audit
    if audit is None or not audit.n_answers:
        return None
    low, high = audit.interval
    return (
        f"Audit: of {counted(audit.n_answers, 'label')} drawn at random {audit.n_right:,} "
        f"{'was' if audit.n_right == 1 else 'were'} right, {percent(audit.share, 0)} "
        f"(95% interval {percent(low, 0)} to {percent(high, 0)})."
    )


def check_sentence(result: Labeling) -> str | None:
    """Return what held-out samples say about the labels; None where none were held out."""
    check = result.check
    if check is None:
        return None
    said = (
        f"Check without true labels: of {counted(check.n_samples, 'held-out sample')} "
        f"{percent(check.hits, 0)} had their most probable label among their candidates "
        f"(expected {percent(check.expected, 0)}, at random {percent(check.chance, 0)})."
    )
    if not check.decides:
        said += " These are too few to tell whether the features separate your labels."
    return said


def separation_warning(result: Labeling) -> str | None:
    """Return a warning where the features tell nothing about the labels, otherwise None."""
    check = result.check
    # Where nearly every label is a candidate of every sample, no features could tell anything.
    if check is None or check.separates or check.chance > _ALL:
        return None
    question = (
        "are these the right features?"
        if result.encoder == FEATURES
        else f"is `{result.encoder}` the right encoder?"
    )
    return f"These features do not separate your labels: {question}"
