"""A running Label Studio and this package, end to end.

    label-studio start --port 8085     # with the environment of docs/label-studio.md
    python benchmarks/label_studio.py http://127.0.0.1:8085 --token TOKEN --folder PETS

draws pictures into PETS/pictures, labels them, and then does through Label Studio's interface what
a person does: make a project, import the tasks file, upload the pictures to another project,
connect the ML backend, retrieve predictions, annotate, change and delete annotations, export. Every
step is checked; the first that fails ends the script with what Label Studio said. Label Studio must
have been started with LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT=PETS, for the check of local storage.

Without --backend, the package's functions are served on a free port of this machine. With it, an
app that runs elsewhere is taken, and its answers are looked for in --answers:

    python benchmarks/label_studio.py --make-only --folder PETS
    fspll app PETS/result --label-studio
    python benchmarks/label_studio.py URL --token TOKEN --folder PETS --backend ADDRESS \
        --answers PETS/result/answers.csv

It needs httpx, starlette and uvicorn.
"""

from __future__ import annotations

import argparse
import csv
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn
from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from fspll import label
from fspll._common.errors import FsPLLError
from fspll.annotations import read_annotations, read_answers
from fspll.candidates import corrupt
from fspll.datasets import load_glyphs
from fspll.labeling import Labeling, Run
from fspll.labeling.label_studio import (
    AnnotationLog,
    SampleIndex,
    labeling_config,
    predict_tasks,
    read_event,
    setup,
    write_tasks,
)
from fspll.labeling.label_studio.tasks import order_by_doubt

NAMES = np.repeat(["alpha", "beta", "gamma", "delta"], 3)
ALL = {
    "selectedItems": {"all": True, "excluded": []},
    "filters": {"conjunction": "and", "items": []},
}


def make(folder: Path, *, save: bool = True) -> Labeling:
    """Draw pictures with names that Label Studio changes, and label them."""
    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    drawn = load_glyphs(12, 3, split="test")
    rows = np.concatenate([np.flatnonzero(drawn.labels == c) for c in range(4)])
    sets = corrupt(NAMES, p=1, r=2, rng=np.random.default_rng(2))
    lines = ["file,candidates"]
    for number, row in enumerate(rows):
        name = f"sign ({number}) é.png" if number % 2 else f"sign_{number}.png"
        Image.fromarray(drawn.images[row]).resize((224, 224)).save(pictures / name)
        lines.append(f"{name},{'|'.join(sets.names(number))}")
    (folder / "labels.csv").write_text("\n".join(lines), encoding="utf-8")
    run = Run(folder / "labels.csv", labeling={"images": pictures, "encoder": "omniglot-conv4"})
    found = run.label(run.read())
    if save:
        run.save(found, folder / "result")
    return found


# -------------------------------------------------------------------- a stand-in for the app


class StandIn:
    """The package's functions under the four paths of the protocol, on a thread."""

    def __init__(self, result: Labeling) -> None:
        self.result, self.index, self.log = result, SampleIndex(result), AnnotationLog()
        self.answers: dict[str, Any] = {}
        self.seen: Counter[str] = Counter()
        self.ignored: list[str] = []
        base = f"/{secrets.token_urlsafe(16)}/label-studio"
        routes = [Route(f"{base}/health", self.health, methods=["GET"])]
        for name, answer in {
            "setup": lambda body: setup(result, body),
            "predict": lambda body: predict_tasks(
                result, body.get("tasks"), body.get("label_config"), self.index
            ),
            "webhook": self.webhook,
        }.items():
            routes.append(Route(f"{base}/{name}", self.posted(name, answer), methods=["POST"]))
        config = uvicorn.Config(Starlette(routes=routes), port=0, log_level="warning")
        self.server = uvicorn.Server(config)
        threading.Thread(target=self.server.run, daemon=True).start()
        while not self.server.started:
            time.sleep(0.05)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}{base}"

    async def health(self, request: Request) -> JSONResponse:
        self.seen["GET health"] += 1
        return JSONResponse({"status": "UP", "model_class": "fspll"})

    def posted(self, name: str, answer: Callable[[Any], Any]) -> Callable[[Request], Any]:
        async def reply(request: Request) -> JSONResponse:
            body = await request.json()
            self.seen[f"POST {name} {body.get('action', '')}".strip()] += 1
            try:
                return JSONResponse(answer(body))
            except FsPLLError as error:
                return JSONResponse({"error": str(error)}, status_code=400)

        return reply

    def webhook(self, body: Any) -> dict[str, Any]:
        event = read_event(self.result, body, self.index)
        self.ignored += event.ignored
        for sample, given in self.log.apply(event).items():
            self.answers.pop(sample, None)
            if given is not None:
                self.answers[sample] = given
        return {}


def read_file(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        return {row["sample"]: row["answer"] for row in csv.DictReader(file)}


# -------------------------------------------------------------------- what a person does


class LabelStudio:
    """A client of Label Studio's interface; an answer that is no success ends the script."""

    def __init__(self, server: str, token: str) -> None:
        headers = {"Authorization": f"Token {token}"}
        self.client = httpx.Client(base_url=server, headers=headers, timeout=60)

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        answer = self.client.request(method, path, **more)
        if answer.is_error:
            raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer

    def ask(self, method: str, path: str, **more: Any) -> Any:
        answer = self.send(method, path, **more)
        return answer.json() if answer.content else None

    def fetch(self, path: str, **parameters: str) -> bytes:
        return self.send("GET", path, params=parameters or None).content

    def project(self, title: str, config: str) -> int:
        made = self.ask("POST", "/api/projects/", json={"title": title, "label_config": config})
        return made["id"]

    def tasks(self, project: int) -> list[dict[str, Any]]:
        asked = {"project": project, "fields": "all", "page_size": 1000}
        return self.ask("GET", "/api/tasks", params=asked)["tasks"]

    def act(self, project: int, action: str) -> Any:
        return self.ask(
            "POST", "/api/dm/actions", params={"id": action, "project": project}, json=ALL
        )


def check(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise SystemExit(f"{what}: expected {expected!r}, found {found!r}")
    print(f"ok  {what}")


def wait(what: str, look: Callable[[], Any], expected: Any) -> None:
    until = time.time() + 20
    while look() != expected and time.time() < until:
        time.sleep(0.2)
    check(what, look(), expected)


def choice(prediction: dict[str, Any]) -> str:
    return prediction["result"][0]["value"]["choices"][0]


def chosen(given: str) -> list[dict[str, Any]]:
    value = {"choices": [given]}
    return [{"from_name": "label", "to_name": "image", "type": "choices", "value": value}]


def import_tasks(studio: LabelStudio, result: Labeling, folder: Path) -> None:
    """Import the file that ``fspll label --to-label-studio`` writes."""
    path = folder / "tasks.json"
    config = write_tasks(result, path).read_text(encoding="utf-8")
    project = studio.project("fspll: tasks with predictions", config)
    storage = {"project": project, "path": str((folder / "pictures").resolve())}
    studio.ask("POST", "/api/storages/localfiles", json={**storage, "title": "pictures"})
    sent = {"file": ("tasks.json", path.read_bytes(), "application/json")}
    done = studio.ask("POST", f"/api/projects/{project}/import", files=sent)
    check("imported tasks and predictions", _counts(done), (len(result), len(result)))
    tasks = studio.tasks(project)
    labels = dict(zip(result.names, result.labels.tolist(), strict=True))
    found = {task["data"]["sample"]: choice(task["predictions"][0]) for task in tasks}
    check("predictions of the imported tasks are the labels", found, labels)
    shown = [task["data"]["sample"] for task in sorted(tasks, key=lambda one: one["id"])]
    check(
        "tasks come in the order of doubt", shown, [result.names[r] for r in order_by_doubt(result)]
    )
    picture = studio.fetch(tasks[0]["data"]["image"])
    original = (folder / "pictures" / tasks[0]["data"]["sample"]).read_bytes()
    check("pictures are shown from local storage", picture, original)
    at = f"/api/tasks/{tasks[0]['id']}/annotations/"
    studio.ask("POST", at, json={"result": chosen("gamma"), "lead_time": 2.0})
    export = folder / "answers.csv"
    export.write_bytes(studio.fetch(f"/api/projects/{project}/export", exportType="CSV"))
    answered = {tasks[0]["data"]["sample"]: "gamma"}
    check("a CSV export is a file of answers", dict(read_answers(export)), answered)


def _counts(done: dict[str, Any]) -> tuple[int, int]:
    return done["task_count"], done["prediction_count"]


def use_backend(
    studio: LabelStudio, result: Labeling, folder: Path, backend: str, answers: Callable[[], Any]
) -> None:
    """Upload the pictures, connect the backend, and answer."""
    project = studio.project(
        "fspll: ML backend", labeling_config(result).replace("$candidates", "")
    )
    for path in sorted((folder / "pictures").iterdir()):
        sent = {"file": (path.name, path.read_bytes(), "image/png")}
        studio.ask("POST", f"/api/projects/{project}/import", files=sent)
    made = studio.ask(
        "POST", "/api/ml", json={"project": project, "url": backend, "title": "fspll"}
    )
    check("the backend is connected", made["state"], "CO")
    hooks = studio.ask("GET", "/api/webhooks/", params={"project": project})
    check("Label Studio posts to", [hook["url"] for hook in hooks], [f"{backend}/webhook"])
    studio.act(project, "retrieve_tasks_predictions")
    tasks = studio.tasks(project)
    found = Counter(choice(task["predictions"][0]) for task in tasks)
    check("every upload has its prediction", found, Counter(result.labels.tolist()))
    # The name of the sample is only in the address, and there it is changed.
    name = "sign (1) é.png"
    task = next(one for one in tasks if "-sign_1_" in one["data"]["image"])
    check("the prediction is the sample's", choice(task["predictions"][0]), _label(result, name))
    before = {key: one for key, one in answers().items() if key != name}
    at = f"/api/tasks/{task['id']}/annotations/"
    given = studio.ask("POST", at, json={"result": chosen("gamma"), "lead_time": 2.0})["id"]
    wait("an annotation arrives", answers, {**before, name: "gamma"})
    studio.ask("PATCH", f"/api/annotations/{given}/", json={"result": chosen("delta")})
    wait("a changed annotation arrives", answers, {**before, name: "delta"})
    studio.ask("DELETE", f"/api/annotations/{given}/")
    wait("a deleted annotation is withdrawn", answers, before)
    studio.act(project, "predictions_to_annotations")
    time.sleep(2)
    check("predictions that nobody looked at are no answers", answers(), before)
    for kind, ending in {"JSON": "json", "JSON_MIN": "json", "CSV": "csv"}.items():
        content = studio.fetch(f"/api/projects/{project}/export", exportType=kind)
        path = folder / f"export-{kind}.{ending}"
        path.write_bytes(content)
        read = read_annotations(path)
        again = label(read, images=folder / "pictures", encoder="omniglot-conv4", progress=False)
        check(f"pictures of the {kind} export are found", len(again), len(result))


def _label(result: Labeling, name: str) -> Any:
    return result.labels[result.names.index(name)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", nargs="?", help="the address of Label Studio")
    parser.add_argument("--token", help="of Account & Settings, Legacy Token")
    parser.add_argument("--folder", type=Path, required=True, help="for pictures and results")
    parser.add_argument("--backend", help="the address of an app, instead of the stand-in")
    parser.add_argument("--answers", type=Path, help="the file to which the app writes answers")
    parser.add_argument("--make-only", action="store_true", help="draw and label, no more")
    options = parser.parse_args()
    result = make(options.folder, save=not options.backend)  # which an app holds
    if options.make_only:
        return
    studio = LabelStudio(options.server, options.token)
    print(f"Label Studio {studio.ask('GET', '/api/version')['release']}")
    import_tasks(studio, result, options.folder)
    if options.backend:
        use_backend(
            studio, result, options.folder, options.backend, lambda: read_file(options.answers)
        )
        return
    app = StandIn(result)
    use_backend(studio, result, options.folder, app.address, lambda: app.answers)
    print("requests:", ", ".join(f"{name} {count}" for name, count in sorted(app.seen.items())))


if __name__ == "__main__":
    main()
