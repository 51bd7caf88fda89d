"""The names that users import: where they are, and that each explains itself by an example."""

from __future__ import annotations

from importlib import import_module

import pytest

PUBLIC = {
    "fspll": [
        "Candidates",
        "FsPLLClassifier",
        "FsPLLError",
        "TaskSettings",
        "TaskSource",
        "corrupt",
        "diagnose",
        "infer_labels",
        "label",
        "read_annotations",
        "rectify",
    ],
    "fspll.rectifiers": ["EvidenceRule", "FsPLLRule", "PrototypeRectifier", "make_rectifier"],
    "fspll.metalearning": ["Regime", "TrainingPlan", "train"],
    "fspll.experiments": ["evaluate"],
    "fspll.datasets": ["load_glyphs", "load_images", "load_image_folder", "load_omniglot"],
    "fspll.embeddings": ["load_embedding", "list_encoders", "build_network"],
    "fspll.baselines": ["CC", "PALOC", "PLAGGD", "PLECOC", "PLKNN", "PLLEAF", "POP", "PRODEN"],
}
REGISTRIES = [  # module, name, entry-point group
    ("fspll.rectifiers", "RECTIFIERS", "fspll.rectifiers"),
    ("fspll.metalearning", "REGIMES", "fspll.regimes"),
    ("fspll.datasets", "DATASETS", "fspll.datasets"),
    ("fspll.embeddings", "ENCODERS", "fspll.encoders"),
    ("fspll.baselines", "BASELINES", "fspll.baselines"),
]


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in PUBLIC.items() for n in names])
def test_a_public_name_has_an_example_that_the_doctests_run(module, name):
    home = import_module(module)
    assert name in home.__all__
    assert ">>> " in (getattr(home, name).__doc__ or "")


@pytest.mark.parametrize(("module", "name", "group"), REGISTRIES)
def test_every_registered_name_can_be_loaded(module, name, group):
    registry = getattr(import_module(module), name)
    assert registry.group == group
    assert registry.names()
    for known in registry:
        assert registry.get(known) is registry.get(known.upper().replace("-", "_"))
