"""What the two text encoders make of short texts in five languages.

    python benchmarks/multilingual.py

The texts (benchmarks/multilingual.json) were written for this: what customers say, 5 topics, 8
texts per topic and language. Tasks are 5-way 4-shot with 4 queries per topic. Results go to
results/multilingual.json and .md.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fspll import __version__
from fspll.embeddings import load_embedding
from fspll.experiments.methods import Samples, find_method
from fspll.experiments.statistics import summarize
from fspll.tasks import TaskSettings, TaskSource

RESULTS = Path(__file__).parents[1] / "results"
ENCODERS = ("text", "text-multilingual")
TASKS = 200


def texts_by_language() -> dict[str, tuple[list[str], np.ndarray]]:
    """Return the texts and the topics of every language, and of all of them together."""
    found = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    sets: dict[str, tuple[list[str], np.ndarray]] = {}
    for language, topics in found.items():
        texts = [text for lines in topics.values() for text in lines]
        labels = [topic for topic, lines in enumerate(topics.values()) for _ in lines]
        sets[language] = texts, np.array(labels)
    together = [text for texts, _ in sets.values() for text in texts]
    sets["all, mixed"] = together, np.concatenate([labels for _, labels in sets.values()])
    return sets


def measure(features: np.ndarray, labels: np.ndarray, r: int) -> dict[str, Any]:
    tasks = TaskSource(labels, TaskSettings(5, 4, 4, r), 0).batch(range(TASKS))
    score = find_method("adaptive").score(Samples(features=torch.from_numpy(features)), tasks)
    support = float(score.support_accuracy.mean())
    return {"queries": summarize(score.query_accuracy)._asdict(), "support": support}


def main() -> None:
    torch.set_num_threads(1)
    encoders = {name: load_embedding(name, device="cpu") for name in ENCODERS}
    sets = texts_by_language()
    rates = {}
    for name, encoder in encoders.items():
        start = time.process_time()
        encoder.encode(sets["all, mixed"][0])
        rates[name] = len(sets["all, mixed"][0]) / (time.process_time() - start)
    rows = []
    for language, (texts, labels) in sets.items():
        features = {name: encoder.encode(texts) for name, encoder in encoders.items()}
        for r in (1, 2):
            cells = {name: measure(found, labels, r) for name, found in features.items()}
            rows.append({"language": language, "r": r, **cells})
    about = {"tasks": TASKS, "seed": 0, "texts_per_second": rates, "fspll": __version__}
    path = RESULTS / "multilingual.json"
    path.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    lines = ["| language | r | queries: `text` | `text-multilingual` | support labels: `text` | "]
    lines[0] += "`text-multilingual` |"
    lines.append("|---|---:|---:|---:|---:|---:|")
    for row in rows:
        cells = [row["language"], str(row["r"])]
        for name in ENCODERS:
            found = row[name]["queries"]
            cells.append(f"{found['mean']:.3f} ± {found['half_width']:.3f}".replace("0.", "."))
        cells += [f"{row[name]['support']:.3f}".lstrip("0") for name in ENCODERS]
        lines.append(f"| {' | '.join(cells)} |")
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines), rates)


if __name__ == "__main__":
    main()
