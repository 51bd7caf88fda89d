"""Fetch data sets: downloads from their public homes, and verified copies of local files.

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
from fspll._common.files import write_beside
from fspll.datasets.catalog import DataSet, find_dataset, look_up
from fspll.datasets.checks import Archive, check_archive
from fspll.datasets.download import Progress, download
from fspll.datasets.parts import Part, no_empty_folder, remove_stale

MAX_ARCHIVE_BYTES = 64 * 2**20  # the largest zip of Omniglot has 10 MB
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
        A name of the catalog.
    source : str, path or sequence of paths, optional
        A folder or the files themselves on this machine, or the address of a folder that holds
        the files; by default the data set's public home, whose files must have their known
        checksums. From anywhere else they are accepted by their content.
    root : path, optional
        The folder to put it in; by default its place in the data folder.
    force : bool
        Fetch it even if it is there and sound.
    progress : callable, optional
        See :data:`~fspll.datasets.download.Progress`.
    """
    dataset = find_dataset(name)
    state = look_up(dataset, root, thorough=not force)
    if state.folder is None or (state.sound and not force):
        return Fetched(state.folder, (), state.detail)
    if source is None or (isinstance(source, str) and "://" in source):
        written = _download_archives(dataset, source, state.folder, force, progress)
    else:
        paths = [source] if isinstance(source, (str, Path)) else source
        written = _copy_files(
            dataset, [Path(path).expanduser() for path in paths], state.folder, progress
        )
    state = look_up(dataset, root, thorough=True)
    if not state.sound:
        raise DataError(f"{name} is not usable: {state.detail}")
    return Fetched(state.folder, written, state.detail)


def _download_archives(
    dataset: DataSet, base: str | None, home: Path, force: bool, progress: Progress | None
) -> tuple[Path, ...]:
    """Download what is missing or damaged, from ``base`` or from the public home."""
    if not dataset.archives:
        raise InputError(f"{dataset.name} is {dataset.advice.format(home=home)}")
    if base is not None and base.endswith(".zip"):
        raise InputError(f"{base} is one file; give the address of the folder that holds it")
    written = []
    for archive in dataset.archives:
        target = home / archive.name
        if not force and _is_sound(target, archive):
            continue
        url = archive.url if base is None else f"{base.rstrip('/')}/{archive.name}"
        written.append(
            download(
                url,
                target,
                max_bytes=MAX_ARCHIVE_BYTES,
                md5=archive.md5 if base is None else None,
                check=partial(check_archive, archive=archive),
                progress=progress,
            )
        )
    return tuple(written)


def _is_sound(path: Path, archive: Archive) -> bool:
    try:
        return path.is_file() and check_archive(path, archive) > 0
    except DataError:
        return False


def _copy_files(
    dataset: DataSet, paths: list[Path], home: Path, progress: Progress | None
) -> tuple[Path, ...]:
    """Verify local files together, then copy them; either all of them change or none does."""
    given = _name_files(dataset, paths)
    already, _ = dataset.find_files(home)
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
    new = {home / name: path for name, path in files.items() if path != already.get(name)}
    for path in new.values():
        if path.is_dir():
            raise InputError(
                f"{path} is a folder; place it in {home} by hand, only files are copied"
            )
    with no_empty_folder(home), ExitStack() as stack:
        for target, path in new.items():
            remove_stale(home, target.name)
            if not (target.exists() and target.samefile(path)):
                _copy(path, stack.enter_context(write_beside(target)), target.name, progress)
    for target in new:
        Part(target, "").remove()  # what an earlier, broken download may have left
    return tuple(new)


def _name_files(dataset: DataSet, paths: list[Path]) -> dict[str, Path]:
    """Return the files that were given, one by one or by their folder, by name."""
    given: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            # The folder itself, or a data folder that holds it.
            inner = path / dataset.folder
            given |= dataset.find_files(inner if inner.is_dir() else path)[0]
        elif path.is_file():
            given[path.name] = path
        else:
            raise InputError(f"{path} does not exist")
    return given


def _copy(path: Path, target: Path, name: str, progress: Progress | None) -> None:
    total, done = path.stat().st_size, 0
    with path.open("rb") as old, target.open("wb") as new:
        while block := old.read(_COPY_BLOCK):
            new.write(block)
            done += len(block)
            if progress is not None:
                progress(name, done, total)
