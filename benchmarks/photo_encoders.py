"""Which network, input size, filter and flips give the best features of photos, and for what time.

    python benchmarks/photo_encoders.py choose --root FOLDER
    python benchmarks/photo_encoders.py confirm --root FOLDER
    python benchmarks/photo_encoders.py scenes --root LABELME

FOLDER holds photos in miniImageNet's layout. `choose` draws tasks from 48 meta-training classes, 30
photos each: 16 of validation and 32 of training. `confirm` compares Lite2 with Lite0 on the 18
settings of `beyond.py photos`, on the test classes, and `scenes` on LabelMe's 1,000 pictures of
224x224 (LABELME holds images.zip and truth.csv). Results go to results/photo-encoders-*.
"""

from __future__ import annotations

import argparse
import csv
import json
import zipfile
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from fspll import __version__
from fspll.datasets import ImageSet, load_mini_imagenet
from fspll.embeddings import embed_images
from fspll.embeddings.encoders.photos import LITE0, LITE2, PhotoModel, photo_encoder
from fspll.experiments.methods import Samples, find_method
from fspll.experiments.statistics import summarize
from fspll.tasks import TaskSettings, TaskSource

RESULTS = Path(__file__).parents[1] / "results"
CHOOSING = [(5, 5, 2), (10, 5, 1), (20, 5, 2)]
CONFIRMING = list(product((5, 10, 20), (5, 10), (1, 2, 3)))
SCENES = list(product((5, 8), (5, 10), (1, 2)))
PER_CLASS, TRAINING_CLASSES = 30, 32
# Network, input size, filter, and whether features of the mirror image are averaged in.
VARIANTS = [
    (LITE0, 224, "bicubic", False),
    (LITE0, 224, "bicubic", True),
    (LITE0, 160, "bicubic", False),
    (LITE0, 192, "bicubic", False),
    (LITE0, 256, "bicubic", False),
    (LITE0, 224, "bilinear", False),
    (LITE2, 192, "bicubic", False),
    (LITE2, 224, "bicubic", False),
    (LITE2, 260, "bicubic", False),
    (LITE2, 192, "bilinear", False),
    (LITE2, 224, "bilinear", False),
    (LITE2, 224, "bilinear", True),
    (LITE2, 260, "bilinear", False),
]


def choosing_classes(root: Path | None) -> ImageSet:
    """Return the first photos of the classes of validation and of some of training."""
    parts = [load_mini_imagenet(split, root=root) for split in ("val", "train")]
    images, labels, names = [], [], []
    for part, n_classes in zip(parts, (None, TRAINING_CLASSES), strict=True):
        for label in np.unique(part.labels)[:n_classes]:
            rows = np.flatnonzero(part.labels == label)[:PER_CLASS]
            images.append(part.images[rows])
            labels += [len(names)] * len(rows)
            names.append(f"{part.name} {label}")
    name = f"{len(names)} meta-training classes, {PER_CLASS} photos each"
    return ImageSet(
        name, np.concatenate(images), np.array(labels), tuple(map(str, range(len(names))))
    )


def scenes(root: Path) -> ImageSet:
    """Return LabelMe's pictures with their true classes."""
    with (root / "truth.csv").open(newline="") as file:
        truth = {row["image"]: row["label"] for row in csv.DictReader(file)}
    with zipfile.ZipFile(root / "images.zip") as packed:
        files = {Path(name).name: name for name in packed.namelist()}
        pictures = [Image.open(packed.open(files[name])).convert("RGB") for name in truth]
    classes, labels = np.unique(list(truth.values()), return_inverse=True)
    return ImageSet("LabelMe", np.stack(list(map(np.asarray, pictures))), labels, tuple(classes))


def features_of(model: PhotoModel, data: ImageSet, flips: bool) -> torch.Tensor:
    """Return the features of a variant, from the cache where they are there."""
    encoder = photo_encoder(model, device="cpu")
    found = embed_images(encoder, data)
    if flips:
        mirrored = replace(data, images=np.ascontiguousarray(data.images[:, :, ::-1]))
        found = (found + embed_images(encoder, mirrored)) / 2
    return found


def score(features: torch.Tensor, data: ImageSet, setting: tuple[int, int, int]) -> Any:
    n_way, n_shot, r = setting
    source = TaskSource(data.labels, TaskSettings(n_way, n_shot, 15, r), 0)
    return find_method("adaptive").score(Samples(features=features), source.batch(range(200)))


def compare(
    data: ImageSet, variants: list[tuple[PhotoModel, int, str, bool]], settings: list[Any]
) -> list[dict[str, Any]]:
    """Return one row per variant: accuracies, and paired gains over the first variant."""
    rows: list[dict[str, Any]] = []
    first: list[Any] = []
    for model, size, resampling, flips in variants:
        features = features_of(replace(model, size=size, resampling=resampling), data, flips)
        scores = [score(features, data, setting) for setting in settings]
        first = first or scores
        cells = [
            {
                "queries": float(one.query_accuracy.mean()),
                "gain": summarize(one.query_accuracy - base.query_accuracy)._asdict(),
                "support": float(one.support_accuracy.mean()),
                "calibration": one.query_calibration,
            }
            for one, base in zip(scores, first, strict=True)
        ]
        row = {"network": model.title, "size": size, "resampling": resampling, "flips": flips}
        row |= {name: float(np.mean([c[name] for c in cells])) for name in ("queries", "support")}
        rows.append({**row, "settings": cells})
        print({name: value for name, value in rows[-1].items() if name != "settings"}, flush=True)
    return rows


def short(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def gained(cell: dict[str, Any]) -> str:
    return f"{cell['gain']['mean']:+.3f} ± {short(cell['gain']['half_width'])}"


def choice_table(rows: list[dict[str, Any]]) -> str:
    titles = [f"{n}-way {k}-shot, r = {r}" for n, k, r in CHOOSING]
    lines = [f"| network | input | filter | flips | {' | '.join(titles)} | mean | support labels |"]
    lines.append("|---|---:|---|---|" + "---:|" * (len(titles) + 2))
    for row in rows:
        cells = [row["network"], str(row["size"]), row["resampling"], "yes" if row["flips"] else ""]
        cells += [short(cell["queries"]) for cell in row["settings"]]
        lines.append(f"| {' | '.join(cells)} | {short(row['queries'])} | {short(row['support'])} |")
    return "\n".join(lines) + "\n"


def confirmation_table(rows: list[dict[str, Any]], settings: list[Any]) -> str:
    lines = [
        "| N2 | K2 | r | Lite0 | Lite2 | gain | support labels: Lite0 | Lite2 |",
        "|" + "---:|" * 8,
    ]
    for setting, old, new in zip(settings, rows[0]["settings"], rows[1]["settings"], strict=True):
        cells = [*map(str, setting), short(old["queries"]), short(new["queries"]), gained(new)]
        lines.append(f"| {' | '.join(cells)} | {short(old['support'])} | {short(new['support'])} |")
    old, new = rows
    cells = [short(old["queries"]), short(new["queries"])]
    cells.append(f"{new['queries'] - old['queries']:+.3f}")
    lines.append(
        f"| mean | | | {' | '.join(cells)} | {short(old['support'])} | {short(new['support'])} |"
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["choose", "confirm", "scenes"])
    parser.add_argument("--root", type=Path)
    args = parser.parse_args()
    if args.what == "choose":
        data, settings, variants = choosing_classes(args.root), CHOOSING, VARIANTS
    else:
        if args.what == "confirm":
            data, settings = load_mini_imagenet("test", root=args.root), CONFIRMING
        else:
            data, settings = scenes(args.root), SCENES
        variants = [(one, one.size, one.resampling, False) for one in (LITE0, LITE2)]
    rows = compare(data, variants, settings)
    table = choice_table(rows) if args.what == "choose" else confirmation_table(rows, settings)
    about = {"data": data.name, "tasks": 200, "seed": 0, "settings": settings}
    about |= {"fspll": __version__, "torch": torch.__version__, "rows": rows}
    (RESULTS / f"photo-encoders-{args.what}.json").write_text(json.dumps(about, indent=1) + "\n")
    (RESULTS / f"photo-encoders-{args.what}.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
