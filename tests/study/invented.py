"""Reports of arms that nobody has run, to try tables, claims and pages on."""

import math
import random
from pathlib import Path
from typing import Any

from litebert.core.files import write_json
from litebert.study.arms import ArmRun, list_ancestors
from litebert.study.identity import Texts, describe_measures, fingerprint
from litebert.study.place import FORMAT_VERSION, report_file

CORPORA = {
    "main": {
        "fingerprint": "f" * 64,
        "documents": 38_000,
        "tokens": 15_800_000,
        "held_out_documents": 2_000,
        "held_out_tokens": 800_000,
        "vocab_size": 8000,
        "tokenizer": "e" * 64,
        "files": 9,
        "file_names": [f"wiki_{number:02}.gz" for number in range(9)],
        "valid_share": 0.05,
        "first_sentences": None,
    }
}
MACHINE = {
    "cores": 2,
    "threads": 1,
    "processor": "x86_64",
    "device": "cpu",
    "litebert": "0.1.0",
    "torch": "2.13.0",
    "python": "3.11.2",
}


def invent_report(run: ArmRun, values: dict[str, float], **changes: Any) -> dict[str, Any]:
    """A report as `run_arm` writes it, of given values."""
    return {
        "format": FORMAT_VERSION,
        "study": run.study.name,
        "scale": run.scale,
        "arm": run.arm,
        "seed": run.seed,
        "fingerprint": fingerprint(run, Texts(CORPORA, {})),
        "words": list(run.words),
        "measures": describe_measures(run),
        "corpora": CORPORA,
        "task_data": {},
        "tokens": 17_000_000,
        "values": values,
        "intervals": {},
        "counts": {},
        "levels": {},
        "series": {},
        "matrices": {},
        "recipe": run.recipe.to_toml(),
        "ancestors": {name: recipe.to_toml() for name, recipe in list_ancestors(run).items()},
        "timed": {"hours": 0.5, "measuring_hours": 0.1},
        "machine": MACHINE,
        **changes,
    }


def write_invented(folder: Path, run: ArmRun, values: dict[str, float], **changes: Any) -> Path:
    path = report_file(folder, run)
    write_json(path, invent_report(run, values, **changes))
    return path


def invent_everything(run: ArmRun) -> dict[str, Any]:
    """Changes that fill a report with values, curves and matrices of the paper's shape, somewhat noisy."""
    rng = random.Random(f"{run.study.name} {run.arm} {run.seed}")
    names = [*run.study.columns, "tokens_per_second"]
    published = run.spec.published
    values = {
        name: round(published.get(name, 50.0) * 0.6 + rng.gauss(0, 0.4), 3) for name in names if name != "speedup"
    }
    timed = {name: abs(values.pop(name)) + 1 for name in ("tokens_per_second", "hours") if name in values}
    layers = [float(layer) for layer in range(1, 9)]
    is_smooth = run.arm in ("albert", "sop", "with")
    l2 = [6 / (1 + 0.3 * x) + 3 + (0 if is_smooth else rng.gauss(0, 1.2)) for x in layers]
    steps = [float(step) for step in range(250, 9001, 250)]
    mlm = [
        30 * (1 - math.exp(-step / 3000)) + rng.gauss(0, 0.3) + (1.5 if step > 6000 and not is_smooth else 0)
        for step in steps
    ]
    matrix = [[1.0 if i == j else 0.9 - 0.08 * abs(i - j) for j in range(8)] for i in range(8)]
    return {
        "values": values,
        "timed": timed,
        "intervals": {name: [value - 1.1, value + 1.1] for name, value in values.items()},
        "levels": {"mlm": 4.5, "sop": 54.6, "sop_inner": 50.1, "nsp": 77.0},
        "series": {
            "l2": {"x": layers, "y": l2},
            "degrees": {"x": layers, "y": [3 * value for value in l2]},
            "mlm": {"x": steps, "y": mlm},
        },
        "matrices": {"layer_weights": matrix, "layer_function": matrix},
    }
