"""What Label Studio is told of a result, and what comes back: its files and requests, no HTTP."""

from fspll.labeling.label_studio.config import Control, read_config, write_config
from fspll.labeling.label_studio.events import AnnotationLog, Event, Given, read_event
from fspll.labeling.label_studio.matching import SampleIndex
from fspll.labeling.label_studio.predicting import model_version, predict_tasks, setup
from fspll.labeling.label_studio.tasks import (
    labeling_config,
    tasks_with_predictions,
    write_tasks,
)

__all__ = [
    "AnnotationLog",
    "Control",
    "Event",
    "Given",
    "SampleIndex",
    "labeling_config",
    "model_version",
    "predict_tasks",
    "read_config",
    "read_event",
    "setup",
    "tasks_with_predictions",
    "write_config",
    "write_tasks",
]
