"""Draw a Mermaid flowchart of boxes and arrows as SVG, without a browser or a script.

Only what ``docs/draw_architecture.py`` writes about fspll is understood: ``name["text"]`` and
``one --> other``. Boxes stand in rows; an arrow always leads to a lower row.
"""

from __future__ import annotations

import re
from html import escape

WIDTH, HEIGHT, GAP, ROW = 118, 30, 18, 74  # of a box, between boxes, from row to row


def draw_flowchart(source: str) -> str:
    """Return a flowchart as an SVG element that takes the page's text color."""
    texts = dict(re.findall(r'^\s*(\w+)\["([^"]*)"\]', source, re.MULTILINE))
    arrows = re.findall(r"^\s*(\w+) --> (\w+)", source, re.MULTILINE)
    rows = _rows(texts, arrows)
    widest = max(map(len, rows)) * (WIDTH + GAP)
    height = len(rows) * ROW
    places = {
        name: ((column + 0.5) * widest / len(row), height - (number + 0.5) * ROW)
        for number, row in enumerate(rows)
        for column, name in enumerate(row)
    }
    parts = [
        f'<path d="M{x1:.0f} {y1 + HEIGHT / 2:.0f} C{x1:.0f} {y1 + ROW / 2:.0f}, '
        f'{x2:.0f} {y2 - ROW / 2:.0f}, {x2:.0f} {y2 - HEIGHT / 2:.0f}" marker-end="url(#tip)"/>'
        for (x1, y1), (x2, y2) in ((places[one], places[other]) for one, other in arrows)
    ]
    for name, (x, y) in places.items():
        parts.append(
            f'<rect x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{WIDTH}" '
            f'height="{HEIGHT}" rx="5"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}">{escape(texts[name])}</text>'
        )
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
    )
    return (
        f'<svg viewBox="0 0 {widest:.0f} {height}" role="img" aria-label="Who imports whom">'
        f"{tip}{''.join(parts)}</svg>"
    )


def _rows(texts: dict[str, str], arrows: list[tuple[str, str]]) -> list[list[str]]:
    """Return the names by row, from the bottom: each above all that its arrows lead to."""
    below = {name: [to for start, to in arrows if start == name] for name in texts}
    level: dict[str, int] = {}

    def rank(name: str) -> int:
        if name not in level:
            level[name] = max((rank(to) + 1 for to in below[name]), default=0)
        return level[name]

    rows: list[list[str]] = [[] for _ in range(max(map(rank, texts)) + 1)]
    for name in texts:
        rows[level[name]].append(name)
    # A name stands over the middle of what it leads to, so that few arrows cross.
    spot = {name: (i + 0.5) / len(row) for row in rows for i, name in enumerate(row)}
    for row in rows[1:]:
        row.sort(key=lambda name: sum(spot[to] for to in below[name]) / len(below[name]))
        spot |= {name: (i + 0.5) / len(row) for i, name in enumerate(row)}
    return rows
