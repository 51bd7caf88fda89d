"""Run the notebooks of the tutorial in empty folders, and store their outputs: make notebooks.

What differs from run to run (times, the versions of Python and of the kernel) is not stored, and
of what commands of fspll print, neither colors nor progress bars.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "tutorial"  # of notebooks that use fspll


def tidy(outputs: list) -> list:
    """Return the outputs of a cell without warnings of the kernel; one for all that was printed."""
    printed = "".join(out.text for out in outputs if out.get("name") == "stdout")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed).replace("\r\n", "\n")
    lines = [line.rstrip() for line in plain.splitlines() if "━" not in line]
    text = re.sub(r"\n{2,}(?=\d+ samples,)", "\n", "\n".join(lines)).strip() + "\n"
    shown = [out for out in outputs if out.output_type not in ("stream", "error")]
    if not printed:
        return shown
    return [nbformat.v4.new_output("stream", name="stdout", text=text), *shown]


def run(path: Path) -> None:
    """Run one notebook and write it back."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            timeout=600,
            record_timing=False,
            store_widget_state=False,
            resources={"metadata": {"path": folder}},
        ).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = tidy(cell.outputs)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    # Commands in cells are those of this Python, whether its environment is activated or not.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for chosen in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(FOLDER.glob("*.ipynb")):
        print(chosen)
        run(chosen)
