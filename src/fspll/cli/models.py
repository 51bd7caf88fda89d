"""``fspll models``: the embeddings that can be named."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from fspll.cli.console import out


def models() -> None:
    """List the packaged and installed embeddings."""
    from fspll.embeddings.registry import list_encoders

    found = list_encoders()
    table = Table(box=SIMPLE)
    for heading in ("name", "network", "takes", "trained on"):
        table.add_column(heading, no_wrap=heading in ("name", "network"))
    for one in found:
        if one.missing is None:
            table.add_row(*map(escape, (one.name, one.network, one.takes, one.trained_on)))
    out.print(table)
    for one in found:
        if one.missing is not None:
            out.print(escape(f"{one.takes}: {one.missing}"), soft_wrap=True)
    out.print(
        "Use one by its name: fspll label --encoder NAME, fspll evaluate NAME, or in Python "
        "FsPLLClassifier(embedding=NAME); 'photos' is short for efficientnet-lite0.",
        soft_wrap=True,
    )
