"""Small fine-tuning runs of every kind of task, and hashes of what they write: a refactoring changes none of them.

Also of an ensemble, an int8 export, and a server's answers. Run it before and after with the same FOLDER, which must
be new, and compare the output:

    python -m tests.task_runs FOLDER
"""

import hashlib
import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # sums depend on the number of threads

import litebert
from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.model.model import build_model
from litebert.tasks.catalog import read_dataset
from litebert.tasks.ensemble import make_ensemble
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer
from tests.conftest import invent_documents
from tests.small_configs import TINY
from tests.small_tasks import ANIMALS, PLACES, find, find_animal, invent_rows, split_pairs, tag_words, write_rows
from tests.tasks.star_ratings import StarRatings

QUICK = {"seed": 3, "train.steps": 12, "train.evaluations": 3, "train.batch_size": 8, "train.max_length": 32}
SHORT = {"passage.stride": 8, "passage.max_question_length": 8}
ROWS = invent_rows()
PASSAGES = [
    {"context": row["text"], "question": "which animal", "choices": list(ANIMALS), "label": ANIMALS.index(row["label"])}
    for row in ROWS
]
# name: task, rows, overrides, inputs to predict
RUNS: dict[str, tuple[Any, list[dict[str, Any]], dict[str, Any], list[Any]]] = {
    "classification": ("classification", ROWS, {}, ["the old cat", "a bird"]),
    "pairs": ("classification", split_pairs(ROWS), {}, [("the old", "cat tree"), ("a", "bird house")]),
    "early-exit": ("classification", ROWS, {"exit.enabled": True}, ["the old cat", "a bird"]),
    "regression": ("regression", invent_rows(lambda w: float(len(w))), {}, ["the old cat", "a bird"]),
    "multi-label": (
        "multi-label",
        invent_rows(lambda w: [find_animal(w), find(w, PLACES)]),
        {},
        ["the old cat", "a bird near the tree"],
    ),
    "tags": ("tags", tag_words(ROWS), {}, [["the", "old", "cat"], ["a", "bird"]]),
    "choice": ("choice", PASSAGES, {"passage.max_choice_length": 12}, [("the cat", "which animal", list(ANIMALS))]),
    "own-task": (StarRatings(), invent_rows(lambda w: 1 + len(w) % 5), {}, ["the old cat", "a bird"]),
    "squad-v1": ("squad-v1", [], SHORT, [("which animal", "the old cat sees a tree")]),
    "squad-v2": ("squad-v2", [], SHORT, [("which animal", "the old cat sees a tree")]),
}


def write_squad(folder: Path, version: str) -> Path:
    """Which animal a text has; in version 2.0 every fourth question has no answer."""
    questions = []
    for number, row in enumerate(ROWS):
        is_unanswerable = version == "2.0" and number % 4 == 0
        answers = [] if is_unanswerable else [{"text": row["label"], "answer_start": row["text"].index(row["label"])}]
        one = {"id": f"q{number}", "question": "which animal", "answers": answers, "is_impossible": is_unanswerable}
        questions.append({"context": row["text"], "qas": [one]})
    folder.mkdir(parents=True, exist_ok=True)
    number = "2.0" if version == "2.0" else "1.1"
    for split in ("train", "dev"):
        content = {"version": number, "data": [{"title": "animals", "paragraphs": questions}]}
        (folder / f"{split}-v{number}.json").write_text(json.dumps(content))
    return folder


def make_start(folder: Path) -> Path:
    """A model of random weights that every run starts from."""
    sentences = [sentence for document in invent_documents(100, seed=1) for sentence in document]
    tokenizer = train_tokenizer(sentences, VocabularyOptions(kind="wordpiece", vocab_size=100))
    save_checkpoint(folder / "start", build_model(TINY, ["mlm", "sentence"]), tokenizer, CheckpointContent(step=0))
    return folder / "start"


def main(folder: Path) -> None:
    make_start(folder)
    for name, (task, rows, changes, inputs) in RUNS.items():
        version = "2.0" if task == "squad-v2" else "1.1"
        data = write_rows(folder / f"{name}-data", rows) if rows else write_squad(folder / f"{name}-data", version)
        run = litebert.finetune(folder / "start", task, data, {**QUICK, **changes}, out=folder / name)
        scores = litebert.evaluate(run, data)
        answers = litebert.predict(run, inputs)
        (folder / name / "evaluated.json").write_text(json.dumps(scores.report, indent=1))
        (folder / name / "predicted.json").write_text(json.dumps(answers, indent=1))
        (folder / name / "served.json").write_text(json.dumps(ask_server(folder / name, name), indent=1))
    write_ensemble(folder)
    litebert.export(folder / "classification", folder / "int8", int8=True)
    (folder / "int8" / "predicted.json").write_text(json.dumps(litebert.predict(folder / "int8", ["a bird"])))


def ask_server(run: Path, name: str) -> list[Any]:
    """The answer of each function that the server offers for a model, to the function's own example."""
    from fastapi.testclient import TestClient

    from litebert.server.app import build_app
    from litebert.server.functions import FUNCTIONS, show_request
    from litebert.server.models import NamedModel
    from litebert.server.options import ServeOptions

    model = NamedModel.of(name, litebert.load(run))
    with TestClient(build_app([model], ServeOptions())) as client:
        asked = {one: show_request(FUNCTIONS[one], model.predictor) for one in model.functions}
        return [client.post(f"/v1/{one}", json=body).json() for one, body in asked.items()]


def write_ensemble(folder: Path) -> None:
    changes = {**QUICK, "seed": 4}
    litebert.finetune(folder / "start", "classification", folder / "classification-data", changes, out=folder / "other")
    dataset = read_dataset("classification", folder / "classification-data")
    make_ensemble([folder / "classification", folder / "other"], dataset, folder / "ensemble", selects=True)


def print_hashes(folder: Path) -> None:
    for file in sorted(folder.rglob("*.*")):
        # checkpoints and timing.jsonl also hold seconds
        if file.is_file() and "checkpoints" not in file.parts and file.name != "timing.jsonl":
            print(hashlib.sha256(file.read_bytes()).hexdigest()[:16], file.relative_to(folder))


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        main(Path(sys.argv[1]))
    print_hashes(Path(sys.argv[1]))
