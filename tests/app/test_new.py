"""The page New: files in, how they were read, corrected, labeled; and the command's own result."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from functools import partial

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra 'app' is not installed")

from PIL import Image
from starlette.testclient import TestClient
from typer.main import get_command
from typer.testing import CliRunner

from fspll.app.fields import FIELDS
from fspll.app.reading_options import ENCODINGS
from fspll.app.server import make_app
from fspll.app.workspaces import Workspaces
from fspll.cli.console import with_option_names
from fspll.cli.main import app as command
from fspll.datasets.glyphs.drawing import load_glyphs

SCRIPT = "<script>alert(1)</script>"
pytestmark = pytest.mark.usefixtures("one_thread")


class Browser:
    """What the page does, in one upload."""

    def __init__(self, client):
        self.client = client
        self.key = client.post("/token/new/start").json()["upload"]

    def send(self, name, content):
        data = content if isinstance(content, bytes) else content.encode()
        return self.post("upload", data, name=name)

    def post(self, what, given, **params):
        kind = {"content": given} if isinstance(given, bytes) else {"json": given}
        return self.client.post(f"/token/new/{self.key}/{what}", params=params, **kind)

    def read(self, **options):
        answer = self.post("reading", options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def run(self, **options):
        """Label; return the home of the workspace."""
        answer = self.post("run", options)
        assert answer.status_code == 200, answer.text
        return f"/token/w/{answer.json()['workspace']}/"

    def wait(self, home, idle=True):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            status = self.client.get(f"{home}api/status").json()
            if status["state"] == "failed" or (
                status["state"] == "ready" and not (idle and status["updating"])
            ):
                return status
            time.sleep(0.02)
        raise AssertionError(f"still {status}")


@pytest.fixture
def client():
    speak = partial(with_option_names, command=get_command(command).commands["label"])
    app = make_app(Workspaces(), "token", speak=speak)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def browser(client):
    return Browser(client)


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def drawings():
    """Return 24 drawings of four characters by name, and their table, in a column of its own name.

    Two labels differ by their case, so that there is a note.
    """
    found = load_glyphs(4, 6, split="test", size=28)
    files, lines = {}, ["file,which,page"]
    for row, one in enumerate(found.labels.tolist()):
        files[f"{row:02}.png"] = png(255 - np.asarray(found.images[row]).reshape(28, 28))
        other = (one + 1 + row % 3) % 4
        labels = {"abcd"[one] + "-sign", "abcd"[other] + "-sign"}
        text = "|".join(sorted(labels)).replace("a-sign", "A-sign" if row == 0 else "a-sign")
        lines.append(f"{row:02}.png,{text},{row // 8}")
    return files, "\n".join(lines) + "\n"


def vectors(n=20):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 2
    file = io.BytesIO()
    np.save(file, rng.normal(size=(n, 3)) + 4.0 * truth[:, None])
    sets = ["a|b" if row % 5 == 0 else "ab"[one] for row, one in enumerate(truth)]
    lines = ["sample,candidates", *(f"s{row},{one}" for row, one in enumerate(sets))]
    return file.getvalue(), "\n".join(lines) + "\n"


# -------------------------------------------------------------------- the whole way


def test_the_result_is_the_commands_to_the_byte(browser, drawings, tmp_path, monkeypatch):
    files, table = drawings
    files = {**files, "05.png": files["05.png"][:60]}  # damaged
    del files["07.png"]  # missing
    for name, content in files.items():
        assert browser.send(name, content).status_code == 200
    browser.send("labels.csv", table)
    assert "say which with “Candidates”" in browser.read()["problem"]
    found = browser.read(candidates=["which"])
    assert found["problem"] == ""
    assert found["encoder"] == "omniglot-conv4"
    options = {"candidates": ["which"], "skip_bad": True}
    home = browser.run(**options)
    assert browser.wait(home)["state"] == "ready"
    queue = browser.client.get(f"{home}api/queue").json()
    for label in ("b-sign", "c-sign"):
        number = queue["next"]["id"]
        given = {"id": number, "label": label, "who": "Ada"}
        queue = browser.client.post(f"{home}api/answer", json=given).json()
    before = browser.client.get(f"{home}api/status").json()["version"]
    browser.client.post(f"{home}api/save", json={"audit": 3})
    while browser.wait(home)["saved"] < before:
        time.sleep(0.02)

    def download(name):
        answer = browser.client.get(f"{home}download/{name}")
        assert answer.status_code == 200
        return answer.content

    # The same files of the same names, with nothing in the cache, in a folder of another name.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another-cache"))
    (tmp_path / "data" / "pictures").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "data")
    for name, content in files.items():
        (tmp_path / "data" / "pictures" / name).write_bytes(content)
    (tmp_path / "data" / "labels.csv").write_text(table)
    (tmp_path / "answers.csv").write_bytes(download("answers.csv"))
    given = "label labels.csv --images pictures --encoder omniglot-conv4 --candidates which"
    given += " --skip-bad --audit 3 --out out --answers ../answers.csv"
    done = CliRunner().invoke(command, given.split(), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    names = ["labels.csv", "review.csv", "answers.csv", "audit.csv", "model.fspll", "report.html"]
    for name in names:
        assert download(name) == (tmp_path / "data" / "out" / name).read_bytes(), name
    assert download("answers.csv").count(b",Ada") == 2
    # What could not be read is in the report, without the folder of the upload.
    assert b"pictures/05.png (labels.csv, row 7)" in download("report.html")
    assert b"is not in pictures" in download("report.html")
    assert b"--merge-similar makes them one" in download("report.html")
    assert b"fspll-upload-" not in b"".join(map(download, names))
    assert b"fspll-upload-" not in download("label-studio.json")
    with zipfile.ZipFile(io.BytesIO(download("everything.zip"))) as archive:
        assert {*names} <= {*archive.namelist()}
        assert archive.read("model.fspll") == download("model.fspll")


def test_a_zip_with_the_table_in_it(browser, drawings):
    files, table = drawings
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"set/{'ab'[name < '12.png']}/{name}", content)
        archive.writestr("set/labels.csv", table)
        archive.writestr("set/readme.md", "no table, no picture")
    answer = browser.send("set.zip", file.getvalue())
    assert answer.json() == {"files": ["labels.csv"], "pictures": 24}
    found = browser.read(candidates=["which"])
    assert (found["n_samples"], found["missing"], found["left_out"]) == (24, 0, 1)
    assert found["first"][1]["candidates"] == [
        {"label": "a-sign", "votes": 1},
        {"label": "c-sign", "votes": 1},
    ]
    picture = browser.client.get(f"/token/new/{browser.key}/picture/3")
    assert picture.headers["content-type"] == "image/png"
    assert browser.client.get(f"/token/new/{browser.key}/picture/24").status_code == 404
    home = browser.run(candidates=["which"])
    status = browser.wait(home)
    assert (status["state"], status["progress"]["samples"]) == ("ready", 24)


def test_vectors_and_their_table(browser):
    X, table = vectors()
    browser.send("X.npy", X)
    browser.send("labels.csv", table)
    found = browser.read()
    assert (found["samples"], found["features"], found["encoder"]) == (
        "vectors",
        "X.npy",
        "features",
    )
    assert "3 features from X.npy" in found["summary"]
    assert found["diagnosis"][0].startswith("20 samples, 2 classes")
    home = browser.run()
    assert browser.wait(home)["state"] == "ready"


def test_texts_are_a_column(browser):
    browser.send("t.csv", "id,text,labels\n1,so good,glad|calm\n2,so bad,sad\n3,fine,calm\n")
    found = browser.read()
    assert (found["samples"], found["text"], found["encoder"]) == ("texts", "text", "text")
    assert found["first"][0]["text"] == "so good"
    assert [one["label"] for one in found["first"][0]["candidates"]] == ["calm", "glad"]
    assert browser.read(samples="texts", text="id")["first"][0]["text"] == "1"


def test_vectors_in_columns(browser):
    lines = ["sample,label,x1,x2", *(f"s{n},{'ab'[n % 2]},{n % 2},{n}" for n in range(6))]
    browser.send("t.csv", "\n".join(lines))
    assert "say what the samples are" in browser.read()["problem"]
    found = browser.read(features_columns="x1:x2")
    assert (found["samples"], found["problem"]) == ("vectors", "")
    assert "there are no vectors" in browser.read(samples="vectors")["problem"]


@pytest.mark.parametrize(
    ("options", "candidates"),
    [
        ({"delimiter": ""}, [["a;b"], ["a"], ["B"]]),
        ({"merge_similar": True, "delimiter": ";"}, [["B", "a"], ["a"], ["B"]]),
        ({"candidates": ["other"]}, [["x"], ["y"], ["y"]]),
        ({"rename": "names.csv", "delimiter": ";"}, [["alpha", "b"], ["alpha"], ["B"]]),
        ({"excluded": "other", "candidates": ["labels"], "delimiter": ";"}, None),
    ],
)
def test_corrections(browser, options, candidates):
    browser.send("t.csv", "sample,labels,other\n1,a;b,x\n2,a,y\n3,B,y\n")
    browser.send("names.csv", "from,to\na,alpha\n")
    found = browser.read(table="t.csv", **options)
    if candidates is None:
        assert "exclusions from 'other'" in found["summary"]
    else:
        shown = [[one["label"] for one in sample["candidates"]] for sample in found["first"]]
        assert shown == candidates


def test_a_label_studio_export_and_a_spreadsheet(browser):
    openpyxl = pytest.importorskip("openpyxl")
    tasks = [
        {
            "data": {"text": f"text {n}"},
            "annotations": [
                {"result": [{"from_name": name, "value": {"choices": [label]}}]}
                for name, label in (("mood", "glad"), ("topic", "food"))
            ],
        }
        for n in range(3)
    ]
    browser.send("export.json", json.dumps(tasks))
    found = browser.read()
    assert (found["columns"], found["choices"]) == (["text"], ["mood", "topic"])
    assert "export.json has several <Choices>: 'mood', 'topic'" in found["problem"]
    assert browser.read(candidates=["topic"])["n_classes"] == 1
    book = openpyxl.Workbook()
    book.active.append(["nothing", "here"])
    book.create_sheet("second").append(["sample", "label"])
    book["second"].append(["1", "a"])
    file = io.BytesIO()
    book.save(file)
    browser.send("book.xlsx", file.getvalue())
    found = browser.read(table="book.xlsx")
    assert found["sheets"] == ["Sheet", "second"]
    assert browser.read(table="book.xlsx", sheet="second")["n_samples"] == 1


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"table": "../labels.csv"}, "there is no uploaded file '../labels.csv'"),
        ({"features": "/etc/passwd", "samples": "vectors"}, "no uploaded file '/etc/passwd'"),
        ({"rename": "/etc/passwd"}, "there is no uploaded file '/etc/passwd'"),
        ({"encoder": "/etc/model.safetensors"}, "'/etc/model.safetensors' is no encoder of"),
        ({"encoder": "text", "samples": "vectors"}, "'text' is no encoder of vectors"),
        ({"encoder": "omniglot-conv4"}, "'omniglot-conv4' is no encoder of vectors"),
        ({"encoding": "idna"}, "“Encoding” is one of utf-8, utf-16"),
        ({"format": "folder"}, "there is no option 'format'"),
        ({"images": "/etc"}, "there is no option 'images'"),
        ({"samples": "sounds"}, "samples are pictures, texts or vectors, not 'sounds'"),
        ({"samples": "texts"}, "choose the column of the texts"),
        ({"skip_bad": "yes"}, "is true or false, not 'yes'"),
        ({"marks": 1}, "is true or false, not 1"),
        ({"table": 3}, "is a text, not 3"),
        ({"candidates": [1]}, "candidates must be a list of texts"),
        ({"candidates": ["nothing"]}, "labels.csv has no column 'nothing'"),
        ({"unlabeled": "burn"}, "unlabeled must be 'skip', 'use' or 'error'"),
    ],
)
def test_no_path_from_a_request_is_opened(browser, options, sentence):
    X, table = vectors()
    browser.send("X.npy", X)
    browser.send("labels.csv", table)
    answer = browser.post("run", options)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]


@pytest.mark.parametrize("name", ["table", "samples", *FIELDS])
def test_options_of_another_kind_get_a_sentence(browser, name):
    X, table = vectors()
    browser.send("X.npy", X)
    browser.send("labels.csv", table)
    for value in (5, [1], {"a": 1}, ["a", None], "x", True, "é" * 5000):
        answer = browser.post("reading", {name: value})  # raises what the server does not expect
        found = answer.json()
        assert answer.status_code == (400 if "error" in found else 200)
        if isinstance(value, dict):
            assert "not {'a': 1}" in found["error"]


def test_every_encoding_that_is_offered_is_one():
    assert [b"a".decode(one, errors="replace") for one in ENCODINGS]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("l.csv", b"", "l.csv is empty"),
        ("l.csv", b"file,candidates\nb.png,caf\xe9\n", 'give “Encoding” "cp1252"'),
        ("l.csv", b"a,b\n1,2\n", "say which with “Candidates”"),
        ("l.csv", b"file,label\nx.png,a\nx.png,b\n", "(“Annotator”) or say how to combine them"),
        ("l.json", b"{", "l.json, line 1, column 2: this is not JSON"),
        ("l.xlsx", b"no zip", "l.xlsx is no spreadsheet"),
        ("l.parquet", b"PAR1", "l.parquet cannot be read"),
    ],
)
def test_a_bad_table_gets_its_sentence(browser, name, content, sentence):
    browser.send(name, content)
    problem = browser.read()["problem"]
    assert sentence in problem
    assert "fspll-upload-" not in problem
    answer = browser.post("run", {})
    assert (answer.status_code, answer.json()["error"]) == (400, problem)


def test_missing_pictures_are_named_before_anything_is_learned(browser, drawings):
    files, table = drawings
    browser.send("labels.csv", table.replace("which", "label"))
    assert "say what the samples are" in browser.read()["problem"]
    browser.send("77.png", files["01.png"])
    assert "none of the pictures that the table names" in browser.read()["problem"]
    for name in list(files)[:-2]:
        browser.send(name, files[name])
    found = browser.read()
    assert (found["missing"], found["unused"], found["problem"]) == (2, 1, "")
    assert browser.post("run", {}).json()["error"] == (
        "2 pictures of 24 cannot be found: 22.png, 23.png; add them, or leave them out with "
        "“Leave out samples that cannot be read”"
    )


def test_photos_and_drawings_get_their_encoders(browser, drawings):
    files, _ = drawings
    rng = np.random.default_rng(0)
    color = rng.integers(0, 256, (40, 40, 3)).astype(np.uint8)
    gray = np.tile(np.linspace(0, 255, 40).astype(np.uint8), (40, 1))
    shown = {}
    for name, content in {"ink": files["00.png"], "color": png(color), "gray": png(gray)}.items():
        browser.send(f"{name}.png", content)
        browser.send("l.csv", f"file,label\n{name}.png,a\n")
        shown[name] = browser.read()["encoder"]
        browser.post("remove", {"name": "l.csv"})
    photos = "efficientnet-lite0"
    assert shown == {"ink": "omniglot-conv4", "color": photos, "gray": photos}


def test_a_package_that_is_missing_is_named_before_anything_is_learned(browser, monkeypatch):
    from fspll._common.errors import MissingPackageError

    missing = MissingPackageError("the_package", "text", "the encoder 'text'")
    monkeypatch.setattr("fspll.app.encoder_choice.list_encoders", lambda: [_text_encoder(missing)])
    browser.send("t.csv", "id,text,labels\n1,so good,glad|calm\n2,so bad,sad\n")
    (choice, _) = browser.read()["encoders"]
    assert "pip install 'fspll[text]'" in choice["missing"]
    assert browser.post("run", {}).json()["error"] == choice["missing"]


def _text_encoder(missing):
    from fspll.embeddings.registry import EncoderInfo

    return EncoderInfo("text", "net", "short texts", "much", missing, "text")


def test_a_table_cannot_name_a_picture_outside(browser, drawings, tmp_path):
    files, _ = drawings
    secret = tmp_path / "secret.png"
    secret.write_bytes(files["00.png"])
    up = "../" * 20 + str(secret).lstrip("/")
    inside = "b.png,b\n"
    for name in (str(secret), up, f"x/{up}"):
        browser.send("l.csv", f"file,label\n{name},a\n{inside}")
        if name == str(secret):
            browser.send("b.png", files["01.png"])
        found = browser.read()
        assert (found["missing"], found["missing_names"]) == (1, [name])
        assert browser.client.get(f"/token/new/{browser.key}/picture/0").status_code == 404
        assert "1 picture of 2 cannot be found" in browser.post("run", {}).json()["error"]
        browser.post("remove", {"name": "l.csv"})
    # A path of this machine in the table: the picture of that name that was sent is meant.
    browser.send("secret.png", files["02.png"])
    browser.send("l.csv", f"file,label\n{secret},a\n{inside}")
    assert browser.read()["missing"] == 0
    home = browser.run()
    assert browser.wait(home)["state"] == "ready"
    session = browser.client.app.app.state.workspaces.session(home.split("/")[3])
    assert session.pictures[0].read_bytes() == files["02.png"]


def test_eps_in_the_coat_of_png_is_refused_by_the_decoder(browser, drawings):
    files, _ = drawings
    browser.send("a.png", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n")
    browser.send("b.png", files["01.png"])
    browser.send("l.csv", "file,label\na.png,a\nb.png,b\n")
    assert browser.read()["missing"] == 0
    shown = browser.client.get(f"/token/new/{browser.key}/picture/0")
    assert shown.json()["error"].startswith("pictures/a.png is not a picture file of a format")
    status = browser.wait(browser.run())
    assert status["state"] == "failed"
    assert status["message"].startswith("1 of 2 samples cannot be read: pictures/a.png (l.csv, row")
    assert status["message"].endswith("leave it out with “Leave out samples that cannot be read”")
    # Corrected, and run again.
    home = browser.run(skip_bad=True)
    assert browser.wait(home)["state"] == "ready"
    for what, given in (("run", {}), ("remove", {"pictures": True}), ("upload", b"")):
        answer = browser.post(what, given)
        assert answer.json()["error"].startswith("this data set is being labeled already")


# -------------------------------------------------------------------- who sees what


def test_script_in_names_and_labels_is_text(browser):
    X, table = vectors()
    browser.send("<img src=x onerror=alert(1)>.npy", X)
    browser.send("l.csv", table.replace("candidates", SCRIPT).replace("b", SCRIPT))
    answer = browser.post("reading", {"candidates": [SCRIPT], "samples": "vectors"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["problem"] == ""
    assert SCRIPT in answer.json()["columns"]
    page = browser.client.get("/token/new")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    scripts = re.findall(r"<script[^>]*>[^<]*", page.text)
    assert scripts == ['<script type="module" src="/token/static/new.js">']
    assert not re.search(r'\son\w+="|\sstyle="', page.text)
    home = browser.run(candidates=[SCRIPT])
    assert browser.wait(home)["state"] == "ready"
    report = browser.client.get(f"{home}download/report.html")
    assert SCRIPT not in report.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in report.text


def test_scripts_put_data_into_pages_as_text_only(client):
    for name in ("new.js", "sending.js"):
        script = client.get(f"/token/static/{name}").text
        assert "innerHTML" not in script
        assert "insertAdjacentHTML" not in script


def test_two_uploads_do_not_see_each_other(client):
    one, other = Browser(client), Browser(client)
    assert one.key != other.key
    assert len(one.key) >= 32
    X, table = vectors()
    one.send("X.npy", X)
    one.send("labels.csv", table)
    assert other.read()["files"] == []
    assert "no uploaded file" in other.post("run", {"table": "labels.csv"}).json()["error"]
    home = one.run()
    one.wait(home)
    assert client.get(f"/token/new/{other.key}/state").json()["workspace"] == ""
    assert client.get(f"/token/w/{other.key}/api/status").status_code == 404
    assert client.get(f"/token/w/{one.key}/api/status").status_code == 404  # not the same secret
    assert other.post("close", {}).status_code == 200
    assert client.get(f"{home}api/status").json()["state"] == "ready"


@pytest.mark.parametrize("what", ["upload", "reading", "run", "remove", "close"])
def test_an_unknown_upload(client, what):
    for key in ("nobody", "..", "%2e%2e", "start"):
        answer = client.post(f"/token/new/{key}/{what}", json={})
        assert answer.status_code in (404, 405), key
        assert "there is no" in answer.json()["error"]
    assert client.get("/token/new/nobody/state").status_code == 404
    assert client.get("/token/new/nobody/picture/0").status_code == 404


def test_requests_of_another_site_are_refused(client):
    for what in ("start", "x/upload", "x/run"):
        answer = client.post(f"/token/new/{what}", headers={"origin": "http://evil.example"})
        assert answer.status_code == 403


def test_what_is_deleted_is_gone(browser):
    X, table = vectors()
    browser.send("X.npy", X)
    browser.send("labels.csv", table)
    home = browser.run()
    browser.wait(home)
    upload = browser.client.app.app.state.uploads.get(browser.key)
    assert (upload.folder / "result" / "labels.csv").exists()
    assert browser.post("close", {}).status_code == 200
    assert not upload.folder.exists()
    assert browser.client.get(f"{home}api/status").status_code == 404
    assert browser.client.get(f"{home}download/labels.csv").status_code == 404
    assert browser.client.get(f"/token/new/{browser.key}/state").status_code == 404


def test_a_run_stops_when_its_upload_is_deleted(browser, monkeypatch):
    import threading

    begun, go_on = threading.Event(), threading.Event()

    def slow(self, annotations, *, progress, **options):
        begun.set()
        go_on.wait(30)
        progress(1, 2)
        raise AssertionError("it went on")

    monkeypatch.setattr("fspll.labeling.run.Run.label", slow)
    X, table = vectors()
    browser.send("X.npy", X)
    browser.send("labels.csv", table)
    home = browser.run()
    upload = browser.client.app.app.state.uploads.get(browser.key)
    session = browser.client.app.app.state.workspaces.session(home.split("/")[3])
    assert begun.wait(30)
    threading.Timer(0.2, go_on.set).start()
    browser.post("close", {})
    assert session.message == "this upload was deleted"
    assert not upload.folder.exists()


def test_everything_is_removed_when_the_server_stops():
    with TestClient(make_app(Workspaces(), "token"), base_url="http://127.0.0.1") as client:
        browser = Browser(client)
        browser.send("a.csv", "sample,label\n1,a\n")
        folder = client.app.app.state.uploads.get(browser.key).folder
        assert (folder / "a.csv").exists()
    assert not folder.exists()
