"""A folder as a person with own data has one: drawn pictures and a table of candidate names.

``fspll demo`` writes it and labels it. Everything is drawn by code, so the truth is known, and kept
in a file of its own that nothing else reads. As with real annotators, two names are never told
apart: wherever one stands in the table, the other does, too.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image

from fspll._common.errors import DataError
from fspll._common.files import write_beside
from fspll.annotations.writing import join_candidates, write_table
from fspll.candidates.corruption import corrupt_mask
from fspll.datasets.glyphs.drawing import load_glyphs

README, NETWORK, PICTURES, TABLE, TRUTH, RESULT = (
    "README.txt",
    "model.safetensors",
    "pictures",
    "labels.csv",
    "truth.csv",
    "result",
)
CLASSES = ("ba", "da", "fu", "ga", "ka", "lo", "mi", "pu", "ru", "tu")
CONFUSED = ("pu", "ru")
N_CANDIDATES = 3
_N_DRAWINGS = 6  # of each class
_FIRST_CLASS = 320  # of the meta-test characters, whose first 200 `fspll demo` uses before
_SIZE = 84  # pixels of a side: enough to look good on a page
_MARK = "This folder was written by fspll demo, which replaces its files when it runs again.\n"
_WHAT = {
    f"{PICTURES}/": f"drawings of {len(CLASSES)} invented characters",
    TABLE: f"{N_CANDIDATES} candidate names for each picture, one of them right",
    TRUTH: "what each picture shows, known only because it was drawn by code",
    NETWORK: "the network that was trained; the option --encoder takes it",
    f"{RESULT}/": "what came out; begin with report.html",
}


def check_example_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than an earlier example."""
    if folder.is_dir() and not is_example(folder) and any(folder.iterdir()):
        raise DataError(f"{folder} holds other things than an earlier demo; choose another folder")


def is_example(folder: Path) -> bool:
    """Tell whether a folder was begun by :func:`begin_example`."""
    with suppress(OSError, UnicodeDecodeError):
        return (folder / README).read_text(encoding="utf-8").startswith(_MARK)
    return False


def begin_example(folder: Path) -> None:
    """Write what the folder is for; from then on it may be written again."""
    lines = [f"{name:20}{what}\n" for name, what in _WHAT.items()]
    with write_beside(folder / README) as beside:
        beside.write_text(_MARK + "Copy what you want to keep.\n\n" + "".join(lines), "utf-8")


def write_example(folder: Path, seed: int = 0) -> dict[str, str]:
    """Draw the pictures and write the table of candidates and the truth.

    Parameters
    ----------
    folder : Path
        An earlier example there is replaced; other files stay.
    seed : int
        Of the candidates and of the order of the pictures, which does not give the truth away.

    Returns
    -------
    dict of str to str
        The true name of every picture, in the order of the table.
    """
    drawn = load_glyphs(
        len(CLASSES), _N_DRAWINGS, split="test", first_class=_FIRST_CLASS, size=_SIZE
    )
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random(len(drawn.labels)), kind="stable")
    labels = drawn.labels[order]
    mask = corrupt_mask(labels, len(CLASSES), p=1.0, r=N_CANDIDATES - 1, rng=rng)
    _confuse(mask, labels)
    names = [f"drawing_{number:02d}.png" for number in range(1, len(labels) + 1)]
    for name, image in zip(names, drawn.images[order], strict=True):
        with write_beside(folder / PICTURES / name) as beside:
            Image.fromarray(255 - image).save(beside, format="PNG")  # dark ink on white paper
    truth = dict(zip(names, (CLASSES[one] for one in labels), strict=True))
    sets = [[CLASSES[one] for one in np.flatnonzero(row)] for row in mask]
    cells = zip(names, join_candidates(sets), strict=True)
    write_table(folder / TABLE, ("file", "candidates"), cells)
    write_table(folder / TRUTH, ("file", "truth"), truth.items())
    return truth


def _confuse(mask: np.ndarray, labels: np.ndarray) -> None:
    """Put both confused names into every set that has one of them, in place of another name."""
    pair = [CLASSES.index(name) for name in CONFUSED]
    for row in np.flatnonzero(mask[:, pair].sum(axis=1) == 1):
        dropped = next(one for one in np.flatnonzero(mask[row]) if one not in (*pair, labels[row]))
        mask[row, dropped] = False
        mask[row, pair] = True
