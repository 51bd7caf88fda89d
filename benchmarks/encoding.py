"""Photos per second of one thread: the encoder now, as it was before, and the package's network.

    python benchmarks/encoding.py [--repeats 25] [--threads 1]

All encode the same decoded pictures, 64x64 and 224x224, in one run and in turn, because other work
on the machine slows all of them alike. On one thread the time is that of the processor, not of the
clock on the wall. Results go to results/encoding.json and .md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from fspll import __version__
from fspll.embeddings import prepare_images
from fspll.embeddings.encoders.photo_network import fused_kernels_work
from fspll.embeddings.encoders.photos import (
    LITE0,
    LITE2,
    load_model,
    photo_encoder,
    prepare_photos,
)

RESULTS = Path(__file__).parents[1] / "results"
N_PICTURES = 32
BEFORE, NOW = "before", "now"


def padded(convolution: Any, norm: Any, active: bool) -> nn.Sequential:
    """Return padding, a convolution with the batch norm in it, and a ReLU6, one by one."""
    folded: Any = fuse_conv_bn_eval(*(deepcopy(p).double() for p in (convolution, norm))).float()
    left, right, top, bottom = getattr(folded.static_padding, "padding", (0, 0, 0, 0))
    if left == right and top == bottom:
        folded.padding, folded.static_padding = (top, left), nn.Identity()
    return nn.Sequential(folded, *([nn.ReLU6(inplace=True)] if active else []))


class Before(nn.Module):
    """The network as it was: an operation of its own for each step, 8 photos at a time."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.stem = padded(model._conv_stem, model._bn0, True)
        self.head = padded(model._conv_head, model._bn1, True)
        self.blocks = nn.ModuleList()
        self.adds = []
        for block in model._blocks:
            steps = [padded(block._depthwise_conv, block._bn1, True)]
            steps.append(padded(block._project_conv, block._bn2, False))
            if hasattr(block, "_expand_conv"):
                steps.insert(0, padded(block._expand_conv, block._bn0, True))
            self.blocks.append(nn.Sequential(*steps))
            same_width = steps[0][0].in_channels == steps[-1][0].out_channels
            self.adds.append(same_width and max(block._depthwise_conv.stride) == 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        images = images.contiguous(memory_format=torch.channels_last)
        return torch.cat([self.embed(part) for part in images.split(8)])

    def embed(self, images: Tensor) -> Tensor:
        maps = self.stem((images - 127 / 255) / (128 / 255))
        for block, adds in zip(self.blocks, self.adds, strict=True):
            maps = block(maps).add_(maps) if adds else block(maps)
        return self.head(maps).mean(dim=(2, 3))


def contenders() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Return functions from uint8 pictures (n, H, W, 3) to features (n, 1280)."""
    model = load_model(LITE0)
    before = Before(model)

    @torch.inference_mode()
    def as_before(pictures: np.ndarray) -> np.ndarray:
        # Photos were checked and scaled twice.
        return before(prepare_images(prepare_photos(pictures), LITE0.spec)).numpy()

    @torch.inference_mode()
    def as_packaged(pictures: np.ndarray) -> np.ndarray:
        images = (prepare_photos(pictures) * 255 - 127) / 128
        return model.extract_features(images).mean(dim=(2, 3)).numpy()

    return {
        BEFORE: as_before,
        NOW: photo_encoder(LITE0, device="cpu").encode,
        "package": as_packaged,
        "Lite2": photo_encoder(LITE2, device="cpu").encode,
    }


def measure(side: int, repeats: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Return times, ratios and differences for pictures of one size."""
    coarse = np.random.default_rng(0).integers(0, 256, (N_PICTURES, 8, 8, 3), dtype=np.uint8)
    pictures = coarse.repeat(side // 8, axis=1).repeat(side // 8, axis=2)
    functions = contenders()
    features = {name: function(pictures) for name, function in functions.items()}
    preparing = partial(prepare_photos, pictures)
    times: dict[str, list[float]] = {name: [] for name in (*functions, "preparing")}
    for _ in range(repeats):
        for name, run in ({n: partial(f, pictures) for n, f in functions.items()}).items():
            times[name].append(timed(run, clock))
        times["preparing"].append(timed(preparing, clock))
    medians = {name: float(np.median(found)) for name, found in times.items()}
    return {
        "side": side,
        "milliseconds_per_picture": {n: 1000 * t / N_PICTURES for n, t in medians.items()},
        "pictures_per_second": {n: N_PICTURES / t for n, t in medians.items()},
        "times_as_fast_as_before": {
            name: float(np.median(np.divide(times[BEFORE], found))) for name, found in times.items()
        },
        "largest_difference_from_before": float(np.abs(features[NOW] - features[BEFORE]).max()),
        "largest_feature": float(np.abs(features[BEFORE]).max()),
    }


def timed(run: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    run()
    return clock() - start


def markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["| pictures | | ms per picture | per second | times as fast as before |"]
    lines.append("|---:|---|---:|---:|---:|")
    titles = {BEFORE: "Lite0, before", NOW: "Lite0, now", "package": "Lite0, the package's network"}
    titles |= {"Lite2": "Lite2", "preparing": "of these, preparing (Lite0)"}
    for row in rows:
        for name, title in titles.items():
            time_, rate = row["milliseconds_per_picture"][name], row["pictures_per_second"][name]
            ratio = "" if name == "preparing" else f"{row['times_as_fast_as_before'][name]:.2f}"
            rate_ = "" if name == "preparing" else f"{rate:.0f}"
            cells = [f"{row['side']}×{row['side']}", title, f"{time_:.2f}", rate_, ratio]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clock = time.process_time if args.threads == 1 else time.perf_counter
    rows = [measure(side, args.repeats, clock) for side in (64, 224)]
    about = {
        "threads": args.threads,
        "repeats": args.repeats,
        "fused_kernels": fused_kernels_work(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "fspll": __version__,
        "torch": torch.__version__,
        "rows": rows,
    }
    (RESULTS / "encoding.json").write_text(json.dumps(about, indent=1) + "\n")
    (RESULTS / "encoding.md").write_text(markdown(rows))
    print(markdown(rows), [row["largest_difference_from_before"] for row in rows])


if __name__ == "__main__":
    main()
