"""Fetch data sets: downloads from their public addresses, and verified copies of local files.

Nothing takes the place of a file before it has been verified, so a refused download or copy leaves
what was there as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fspll._common.errors import DataError, InputError
from fspll._common.files import no_empty_folder, remove_stale, write_beside
from fspll.datasets.base import DataSet, Download
from fspll.datasets.download import PartialFile, Progress, download
from fspll.datasets.registry import DATASETS

_COPY_BLOCK = 2**20


@dataclass(frozen=True)
class Fetched:
    """What became of :func:`get_dataset`.

    Attributes
    ----------
    folder : Path or None
        Where the data set is; None when it is drawn by code.
    written : tuple of Path
        The files that are new; empty when everything was there and sound.
    summary : str
        What is there, in a few words.
    """

    folder: Path | None
    written: tuple[Path, ...]
    summary: str


def get_dataset(
    name: str,
    source: str | Path | Sequence[str | Path] | None = None,
    root: Path | str | None = None,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Fetched:
    """Put a data set in its place, unless it is there and sound.

    Parameters
    ----------
    name : str
        A name of :data:`~fspll.datasets.registry.DATASETS`.
    source : str, path or sequence of paths, optional
        A folder or the files themselves on this machine, or the address of a folder that holds
        the files; by default the data set's public address, whose files must have their known
        checksums. From anywhere else they are accepted by their content.
    root : path, optional
        The folder to put it in; by default its place in the data folder.
    force : bool
        Fetch it even if it is there and sound.
    progress : callable, optional
        See :data:`~fspll.datasets.download.Progress`.

    Examples
    --------
    >>> get_dataset("glyphs").summary
    'drawn by code, nothing to fetch'
    """
    dataset = DATASETS.get(name)
    state = dataset.state(root, thorough=not force)
    if state.folder is None or (state.sound and not force):
        return Fetched(state.folder, (), state.detail)
    if source is None or (isinstance(source, str) and "://" in source):
        written = _download_files(dataset, source, state.folder, force, progress)
    else:
        paths = [source] if isinstance(source, (str, Path)) else source
        written = _copy_files(
            dataset, [Path(path).expanduser() for path in paths], state.folder, progress
        )
    state = dataset.state(root, thorough=True)
    if not state.sound:
        raise DataError(f"{dataset.name} is not usable: {state.detail}")
    return Fetched(state.folder, written, state.detail)


def _download_files(
    dataset: DataSet, base: str | None, folder: Path, force: bool, progress: Progress | None
) -> tuple[Path, ...]:
    """Download what is missing or damaged, from ``base`` or from the public address."""
    if not dataset.downloads:
        raise InputError(f"{dataset.name} is {dataset.advice.format(folder=folder)}")
    if base is not None and base.endswith(".zip"):
        raise InputError(f"{base} is one file; give the address of the folder that holds it")
    written = []
    for file in dataset.downloads:
        target = folder / file.name
        if not force and _is_sound(dataset, target, file):
            continue
        written.append(
            download(
                file.url if base is None else f"{base.rstrip('/')}/{file.name}",
                target,
                max_bytes=file.max_bytes,
                md5=file.md5 if base is None else None,
                check=partial(dataset.check_download, file=file),
                progress=progress,
            )
        )
    return tuple(written)


def _is_sound(dataset: DataSet, path: Path, file: Download) -> bool:
    try:
        if not path.is_file():
            return False
        dataset.check_download(path, file)
    except DataError:
        return False
    return True


def _copy_files(
    dataset: DataSet, paths: list[Path], folder: Path, progress: Progress | None
) -> tuple[Path, ...]:
    """Verify local files together, then copy them; either all of them change or none does."""
    given = _name_files(dataset, paths)
    already, _ = dataset.find_files(folder)
    files: dict[str, Path] = {}
    for names in dataset.files:
        for known in (given, already):
            name = next((name for name in names.split("|") if name in known), None)
            if name is not None:
                files[name] = known[name]
                break
        else:
            where = " and ".join(map(str, paths))
            wanted = names.replace("|", " or ")
            raise InputError(f"{where} has no {wanted}, which is a part of {dataset.name}")
    dataset.inspect(files, True)
    new = {folder / name: path for name, path in files.items() if path != already.get(name)}
    for path in new.values():
        if path.is_dir():
            raise InputError(
                f"{path} is a folder; place it in {folder} by hand, only files are copied"
            )
    with no_empty_folder(folder), ExitStack() as stack:
        for target, path in new.items():
            remove_stale(folder, target.name)
            if not (target.exists() and target.samefile(path)):
                _copy(path, stack.enter_context(write_beside(target)), target.name, progress)
    for target in new:
        PartialFile(target, "").remove()  # what an earlier, broken download may have left
    return tuple(new)


def _name_files(dataset: DataSet, paths: list[Path]) -> dict[str, Path]:
    """Return the files that were given, one by one or by their folder, by name."""
    given: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            # The folder itself, or a data folder that holds it.
            inner = path / dataset.folder
            more = dataset.find_files(inner if inner.is_dir() else path)[0]
        elif path.is_file():
            more = {path.name: path}
        else:
            raise InputError(f"{path} does not exist")
        for name in given.keys() & more.keys():
            if not given[name].samefile(more[name]):
                raise InputError(
                    f"{given[name]} and {more[name]} are two files for one place; give one of them"
                )
        given |= more
    return given


def _copy(path: Path, target: Path, name: str, progress: Progress | None) -> None:
    total, done = path.stat().st_size, 0
    with path.open("rb") as old, target.open("wb") as new:
        while block := old.read(_COPY_BLOCK):
            new.write(block)
            done += len(block)
            if progress is not None:
                progress(name, done, total)
