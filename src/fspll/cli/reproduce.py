"""``fspll reproduce``: the paper's tables and figures, beside what the paper prints."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fspll._common.errors import DataError, InputError
from fspll._common.words import counted
from fspll.cli.console import note, out

if TYPE_CHECKING:
    from fspll.experiments.reproduce.jobs import Source
    from fspll.experiments.reproduce.profiles import Profile


def reproduce(
    context: typer.Context,
    what: str = typer.Argument(
        ..., help="omniglot, mini-imagenet, noise, parameters, several (a,b), or all."
    ),
    profile: str = typer.Option("quick", help="quick (minutes), cpu (hours) or paper (a GPU)."),
    folder: Path = typer.Option(
        Path("reproduction"), "--out", help="Folder for results, networks, tables and the page."
    ),
    dataset: str | None = typer.Option(
        None, help="A data set of images of: fspll data list, instead of the experiment's own."
    ),
    root: Path | None = typer.Option(None, help="Where the data set's files are."),
    rows: str | None = typer.Option(None, help="Only these rows, e.g. FsPLL,PN,MAML."),
    r: str | None = typer.Option(None, help="Only these numbers of extra labels, e.g. 1,2."),
    n_way: str | None = typer.Option(None, help="Only these N2."),
    n_shot: str | None = typer.Option(None, help="Only these K2."),
    tasks: int | None = typer.Option(None, min=2, help="Tasks per setting."),
    seed: int = typer.Option(0, min=0),
    jobs: int = typer.Option(0, min=0, help="Processes of one thread each; 0 is one per core."),
    scheduler: str | None = typer.Option(None, help="A Dask scheduler, tcp://HOST:PORT."),
    device: str = typer.Option("auto", help="Where networks are trained: auto, cpu, cuda or mps."),
    minutes: float | None = typer.Option(
        None, min=0, help="Begin nothing more after so many minutes; the same command goes on."
    ),
    only_page: bool = typer.Option(False, help="Write tables, figures and page again; run nothing"),
) -> None:
    """Reproduce the paper's experiments; stopped or killed, the same command goes on."""
    from dataclasses import replace

    from fspll.cli.options import numbers
    from fspll.cli.progress import GridBar
    from fspll.experiments.reproduce.collecting import collect
    from fspll.experiments.reproduce.figure_style import require_matplotlib
    from fspll.experiments.reproduce.grid import EXPERIMENTS, grid, missing_encoder
    from fspll.experiments.reproduce.page import check_folder, write_reproduction
    from fspll.experiments.reproduce.profiles import find_profile
    from fspll.experiments.reproduce.run import Workers, run, what_is_left

    until = None if minutes is None else time.time() + 60 * minutes
    require_matplotlib()  # before hours of work, not after
    check_folder(folder)
    chosen = find_profile(profile)
    if tasks is not None:
        chosen = replace(chosen, n_tasks=tasks, photo_tasks=tasks)
    names = EXPERIMENTS if what == "all" else tuple(what.replace("_", "-").split(","))
    for name in names:
        if name not in EXPERIMENTS:
            raise InputError(
                f"what to reproduce is one of {', '.join(EXPERIMENTS)} or all, not {name!r}"
            )
    sources = {name: _source(name, dataset, root, chosen, context) for name in names}
    grids = {
        name: grid(
            name,
            chosen,
            sources[name],
            seed=seed,
            rows=None if rows is None else rows.split(","),
            rs=None if r is None else numbers(r, "--r"),
            n_ways=None if n_way is None else numbers(n_way, "--n-way"),
            n_shots=None if n_shot is None else numbers(n_shot, "--n-shot"),
        )
        for name in names
    }
    for name in names:
        if reason := missing_encoder(name, chosen, sources[name]):
            note(f"without the rows on features of a photo encoder: {reason}", context)
    workers = Workers(jobs or os.cpu_count() or 1, scheduler, device)
    if not only_page:
        for name in names:
            with GridBar(name) as bar:
                record = {"experiment": name, "profile": profile}
                run(grids[name], folder, workers, until=until, progress=bar.show, **record)
    outcomes = [collect(name, chosen, sources[name], grids[name], folder) for name in names]
    written = write_reproduction(outcomes, folder)
    for outcome in outcomes:
        cells = counted(len(outcome.cells), "cell")
        missing = f", {counted(outcome.missing, 'cell')} missing" if outcome.missing else ""
        line = f"{outcome.experiment} on {outcome.dataset}: {cells}{missing}"
        out.print(line, soft_wrap=True, markup=False)
    page = next(path for path in written if path.suffix == ".html")
    files = counted(len(written), "file")
    out.print(f"{files} in {folder}; open {page}", soft_wrap=True, markup=False)
    left = what_is_left([cell for cells in grids.values() for cell in cells], folder)
    if left:
        out.print(f"left: {left}; the same command goes on", soft_wrap=True, markup=False)


def _source(
    experiment: str,
    dataset: str | None,
    root: Path | None,
    profile: Profile,
    context: typer.Context,
) -> Source:
    """Return what an experiment's tasks are made of; characters drawn by code if all else lacks."""
    from fspll.datasets.registry import DATASETS
    from fspll.experiments.reproduce.grid import PHOTOS
    from fspll.experiments.reproduce.jobs import Source

    name = dataset or ("mini-imagenet" if experiment in PHOTOS else "omniglot")
    where = None if root is None else str(root.expanduser().resolve())
    chosen = DATASETS.get(name)
    known = DATASETS.find(name) or name
    source = Source(known, where, profile.photo_size if chosen.kind == "photos" else None)
    if known == "omniglot" and dataset is None and profile.name == "quick":
        try:
            source.load("test")
        except DataError as error:
            note(str(error), context)
            note("trying it on glyphs instead, characters that are drawn by code", context)
            return Source("glyphs")
    return source
