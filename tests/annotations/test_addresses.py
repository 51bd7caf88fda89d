"""Pictures under the addresses that Label Studio gives them."""

from __future__ import annotations

import json

import pytest

from fspll.annotations import read_annotations
from fspll.annotations.addresses import original_names, path_of, read_addresses, stored_name

UPLOAD = "/data/upload/3/2dce645f-IMG_507.jpg"
OTHER = "/data/upload/3/1c1e966d-my_cat_1_%C3%A9.jpg"
LOCAL = "/data/local-files/?d=set%201/b%2Bc.png"


@pytest.mark.parametrize(
    ("address", "path"),
    [
        (UPLOAD, "2dce645f-IMG_507.jpg"),
        (f"http://localhost:8080{UPLOAD}", "2dce645f-IMG_507.jpg"),
        (f"https://example.org/label-studio{OTHER}", "1c1e966d-my_cat_1_é.jpg"),
        ("/data/upload/2dce645f-a.jpg", "2dce645f-a.jpg"),
        (LOCAL, "set 1/b+c.png"),
        (f"http://localhost:8080{LOCAL}", "set 1/b+c.png"),
        ("/data/local-files?d=a.png", "a.png"),
        ("https://example.org/pets/a%20b.png?width=7#top", "pets/a b.png"),
        ("s3://bucket/pets/a.png", "pets/a.png"),
        # What is no address stays.
        ("/data/upload/3/1f-a.png", "/data/upload/3/1f-a.png"),
        ("/data/upload/3/2DCE645F-a.png", "/data/upload/3/2DCE645F-a.png"),
        ("/data/local-files/?x=a.png", "/data/local-files/?x=a.png"),
        ("photos/100%25.png", "photos/100%25.png"),
        ("http://[", "http://["),
        ("C:\\pets\\a.png", "C:\\pets\\a.png"),
    ],
)
def test_the_path_in_an_address(address, path):
    assert path_of(address) == path


def test_names_that_two_files_would_share_stay():
    first, second = "/data/upload/3/aaaaaaaa-x.jpg", "/data/upload/3/bbbbbbbb-x.jpg"
    assert original_names([first, first, UPLOAD]) == {first: "x.jpg", UPLOAD: "IMG_507.jpg"}
    assert original_names([first, second, UPLOAD]) == {UPLOAD: "IMG_507.jpg"}
    assert original_names([first, "pets/x.jpg"]) == {}
    assert original_names(["deadbeef-", "deadbee-x.jpg", "cat-x.jpg"]) == {}
    names, files, said = read_addresses([first, second, UPLOAD], [first, second, UPLOAD])
    assert names == [first, second, "IMG_507.jpg"]
    assert files == [first, second, UPLOAD]
    assert said == (
        "1 upload named without Label Studio's prefix",
        "2 with it, as names would not differ",
    )


def test_names_as_label_studio_stores_them():
    # What Label Studio 1.23 made of these names.
    assert stored_name("my cat (1) é.jpg") == "my_cat_1_é.jpg"
    assert stored_name("IMG_507.jpg") == "IMG_507.jpg"


# -------------------------------------------------------------------- exports


def full(*images):
    return [
        {
            "id": number,
            "data": {"image": image},
            "annotations": [
                {
                    "completed_by": 1,
                    "was_cancelled": False,
                    "result": [{"from_name": "label", "value": {"choices": [label]}}],
                }
            ],
        }
        for number, (image, label) in enumerate(zip(images, "xyz", strict=False), start=1)
    ]


def flat(*images):
    return [
        {"image": image, "id": number, "label": label, "annotator": 1, "annotation_id": number}
        for number, (image, label) in enumerate(zip(images, "xyz", strict=False), start=1)
    ]


def table(*images):
    lines = ['"annotation_id","annotator","id","image","label"']
    lines += [
        f'{n},"1",{n},"{image}","{label}"'
        for n, (image, label) in enumerate(zip(images, "xyz", strict=False))
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("name", "export"), [("e.json", full), ("min.json", flat), ("e.csv", table)]
)
def test_every_export_is_read_without_addresses(make, votes_of, name, export):
    content = export(UPLOAD, LOCAL, OTHER)
    found = read_annotations(make(name, content))
    assert votes_of(found) == {
        "IMG_507.jpg": {"x": 1},
        "set 1/b+c.png": {"y": 1},
        "my_cat_1_é.jpg": {"z": 1},
    }
    assert found.files == (UPLOAD, "set 1/b+c.png", OTHER)
    assert "2 uploads named without Label Studio's prefix" in found.summary
    same = read_annotations(make(name, export("a.jpg", "b.jpg")))
    assert "Label Studio's prefix" not in same.summary


def test_annotations_of_one_upload_are_votes_for_one_sample(make, votes_of):
    found = read_annotations(make("min.json", flat(UPLOAD, UPLOAD, LOCAL)))
    assert votes_of(found) == {"IMG_507.jpg": {"x": 1, "y": 1}, "set 1/b+c.png": {"z": 1}}


def test_uploads_of_one_name_are_two_samples(make):
    first, second = "/data/upload/3/aaaaaaaa-x.jpg", "/data/upload/3/bbbbbbbb-x.jpg"
    found = read_annotations(make("e.json", json.dumps(full(first, second))))
    assert found.names == (first, second)
    assert "0 uploads named without Label Studio's prefix, 2 with it" in found.summary
