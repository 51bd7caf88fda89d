"""Pictures whose labels come from Label Studio, in a folder of the user's own."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from fspll import label
from fspll.annotations.answers import Answer, Answers
from fspll.labeling.answering import follow_answers
from fspll.labeling.new_samples import read_new_table
from fspll.labeling.samples import find_files

UPLOAD = "/data/upload/3/2dce645f-IMG_507.jpg"
OTHER = "/data/upload/3/1c1e966d-my_cat_1_%C3%A9.jpg"


@pytest.fixture
def folder(tmp_path):
    """Return a function that makes empty files in a folder."""

    def folder(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        return tmp_path

    return folder


def found(written, images):
    paths, missing = find_files(written, images)
    return [path.relative_to(images).as_posix() for path in paths], missing


def test_an_upload_is_found_under_the_name_that_it_had(folder):
    images = folder("IMG_507.jpg", "cats/my cat (1) é.jpg", "0badcafe-x.jpg", "x.jpg", "y.jpg")
    written = [UPLOAD, OTHER, "0badcafe-x.jpg", "photos/12345678-y.jpg"]
    assert found(written, images) == (
        ["IMG_507.jpg", "cats/my cat (1) é.jpg", "0badcafe-x.jpg", "y.jpg"],
        {},
    )


def test_the_file_as_it_is_written_comes_first(folder):
    images = folder("upload/3/2dce645f-IMG_507.jpg", "IMG_507.jpg", "1c1e966d-my_cat_1_é.jpg")
    assert found([UPLOAD, OTHER], images) == (
        ["upload/3/2dce645f-IMG_507.jpg", "1c1e966d-my_cat_1_é.jpg"],
        {},
    )


def test_what_cannot_be_told_is_not_guessed(folder):
    images = folder("x.jpg", "a b.jpg", "sub/a (b).jpg")
    written = ["/data/upload/3/aaaaaaaa-x.jpg", "/data/upload/3/bbbbbbbb-x.jpg"]
    _, missing = find_files(written, images)
    assert missing == dict.fromkeys((0, 1), f"is not in {images}")
    _, missing = find_files(["/data/upload/3/aaaaaaaa-a_b.jpg"], images)
    assert missing[0].startswith("may be any of a b.jpg, sub/a (b).jpg in ")
    _, missing = find_files([UPLOAD], None)
    assert missing == {0: "does not exist (say where the pictures are: images=FOLDER)"}


def test_without_a_folder_the_working_directory_counts(folder, monkeypatch):
    monkeypatch.chdir(folder("IMG_507.jpg"))
    paths, missing = find_files([UPLOAD], None)
    assert ([path.as_posix() for path in paths], missing) == (["IMG_507.jpg"], {})


def test_a_note_says_how_many(annotate, tmp_path):
    shades = np.random.default_rng(0).integers(0, 255, (4, 8, 8), dtype=np.uint8)
    for number, picture in enumerate(shades):
        Image.fromarray(picture).save(tmp_path / f"{number}.png")
    files = (*(f"/data/upload/1/0000000{n}-{n}.png" for n in range(3)), "3.png")
    data = annotate([["a"], ["a", "b"], ["b"], ["b"]], files=files)
    result = label(data, encoder=_mean, images=tmp_path, cache=False, progress=False)
    assert "3 pictures found without the prefix of a Label Studio upload" in result.notes
    assert result.files == files
    (tmp_path / "new.csv").write_text("file\n00000001-1.png\n3.png\n")
    assert read_new_table(tmp_path / "new.csv", images=tmp_path).understood == (
        "new.csv: 2 samples, 1 picture found without the prefix of a Label Studio upload, "
        "pictures from 'file'"
    )


def _mean(pictures):
    return np.array([[np.asarray(Image.open(one), dtype=float).mean()] for one in pictures])


def test_answers_under_addresses_find_their_samples():
    names, contents = ("IMG_507.jpg", "b.jpg"), ("", "")
    answers = Answers((Answer(UPLOAD, "cat"), Answer("b.jpg", "dog")))
    followed = follow_answers([answers], names, contents)
    assert followed.labels == {"IMG_507.jpg": "cat", "b.jpg": "dog"}
    assert followed.notes() == [f"1 answer moved with its sample: {UPLOAD!r} is 'IMG_507.jpg' now"]
    kept = follow_answers([answers], (UPLOAD, "b.jpg"), contents)
    assert kept.labels == {UPLOAD: "cat", "b.jpg": "dog"}
