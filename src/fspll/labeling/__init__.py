"""A user's own ambiguous labels in; clean labels, a classifier and a review list out."""

from fspll._common.lazy import lazy_names

__all__ = [
    "Annotator",
    "Audit",
    "BaselineModel",
    "Labeling",
    "Question",
    "Rounds",
    "Run",
    "Streamed",
    "Undecided",
    "draw_audit",
    "label",
    "label_to_parquet",
    "load_model",
    "read_audit",
]

# Imported when first used: the review page starts before PyTorch is there.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "audit": "Audit read_audit",
        "auditing": "draw_audit",
        "baseline_model": "BaselineModel",
        "pipeline": "label",
        "reasons": "Undecided",
        "result": "Annotator Labeling Rounds",
        "review": "Question",
        "run": "Run",
        "saving": "load_model",
        "streaming": "Streamed label_to_parquet",
    },
)
