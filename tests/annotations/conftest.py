"""Files made on the spot, and a short way to look at what was read."""

from __future__ import annotations

import json

import pytest

from fspll.annotations import Annotations


@pytest.fixture
def make(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(name, content, encoding="utf-8"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list | dict):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


@pytest.fixture
def votes_of():
    """Return a function that turns annotations into {name: {label: votes}}."""

    def look(found: Annotations) -> dict[str, dict[str, float]]:
        dense = found.votes.toarray()
        assert (dense > 0).any(axis=1).all()
        assert (dense > 0).any(axis=0).all()
        assert list(found.classes) == sorted(found.classes)
        assert len(set(found.names)) == len(found) == len(found.origins)
        return {
            name: {c: count for c, count in zip(found.classes, row, strict=True) if count}
            for name, row in zip(found.names, dense, strict=True)
        }

    return look
