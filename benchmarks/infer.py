"""Inference: our engines compared with transformers, onnxruntime and OpenVINO as their users run them.

    python benchmarks/infer.py [--preset albert-base-v2] [--lengths 16,32,128,384] [--rounds 5] [--tokens 4096]
                               [--cases sst-2,squad] [--threads N] [--only NAME,...] [--memory] [--json out.json]

A classifier of the preset's shape with random weights, the same for all: they do not affect speed. First single texts
of each length, then texts of SST-2's and SQuAD's lengths (from $LITEBERT_DATA, or sampled from similar distributions).
Contenders take turns; results are medians, with ratios to the best of ours in the same run, in wall-clock and
processor time: on a busy machine trust the latter. All contenders get token ids in arrays. Memory (--memory) is the
additional memory of a separate process after loading and answering; imported libraries are not counted for anyone.

    transformers pipeline    one text at a time, the default of `pipeline()`
    transformers padded      batches of 32 in the given order, padded to the longest
    transformers bucketed    the same, sorted by length
    ort float                torch's exporter, onnxruntime, bucketed
    ort int8 documented      that file through quantize_dynamic
    ort int8 un-hidden       our float file through quantize_dynamic, which can see the shared weights
    openvino int8            nncf.quantize of the torch model, bucketed
    ours torch | onnx | onnx int8 | openvino
    ours ... early           the same with a patience of nearly half the layers: with random weights, some texts exit
                             as early as possible and skip half of them, others never do; use
                             `litebert evaluate --exit-curve` to measure a model trained for early exit
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import torch
from finetune import CASES, read_lengths, save_theirs

from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.core.errors import ConfigError
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.inference.engines.graphs import BatchEngine, CheckpointGraphs, OneGraph, load_arrays
from litebert.inference.engines.onnx_engine import OnnxEngine
from litebert.inference.engines.openvino_engine import import_in_silence, import_openvino
from litebert.inference.engines.threads import count_cores
from litebert.inference.predictor import build_engine
from litebert.inference.session import Session, plan_batches
from litebert.model.config import HeadSpec
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.tasks.catalog import task_facts
from litebert.tasks.groups import Group, TokenSequence
from litebert.tasks.kinds.classification import Classification
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

TASK = Classification("sst-2", ("0", "1"))
BATCH_SIZE = 32
Ids = np.ndarray  # the token ids of a text
Answer = Callable[[Sequence[Ids]], Any]
Feed = dict[str, np.ndarray]


class Room:
    """The model for all contenders, as a litebert checkpoint and as a transformers folder."""

    def __init__(self, folder: Path, name: str, threads: int) -> None:
        self.folder, self.threads = folder, threads
        self.config = preset(name)
        self.ours, self.theirs = folder / "ours", folder / "theirs"
        if not self.ours.exists():
            model = build_model(self.config, [HeadSpec("classification", 2)])
            tokenizer = train_tokenizer(["any words will do"] * 9, VocabularyOptions(kind="wordpiece", vocab_size=30))
            facts = CheckpointContent(step=0, task=task_facts(TASK, max_length=512))
            save_checkpoint(self.ours, model, tokenizer, facts)
            save_theirs(self.theirs, model)

    def their_model(self) -> Any:
        import transformers

        return transformers.AutoModelForSequenceClassification.from_pretrained(self.theirs).eval()

    def graphs(self) -> CheckpointGraphs:
        from litebert.checkpoint import load_checkpoint

        return CheckpointGraphs(load_checkpoint(self.ours), mask_id=4)

    @property
    def patience(self) -> int:
        """A patience with which texts that never change their answer skip about half of the layers."""
        return max(1, self.config.num_layers // 2 - 1)


def ours(engine: BatchEngine, patience: int = 0) -> Answer:
    """A function from token ids to outputs, including batching by length."""
    session = Session(engine, 0, patience)

    def answer(texts: Sequence[Ids]) -> Any:
        return session.predict(TASK, [Group((TokenSequence(ids, len(ids)),)) for ids in texts])

    return answer


def ours_by_name(name: str, *, is_early: bool = False) -> Callable[[Room], Answer]:
    def build(room: Room) -> Answer:
        graphs = room.graphs()
        runtime = choose_runtime(RuntimeOptions(device="cpu", num_threads=room.threads))
        engine = build_engine(name, graphs.checkpoint, runtime, graphs, room.threads)  # type: ignore[arg-type]
        return ours(engine, room.patience if is_early else 0)

    return build


def ours_int8(*, is_early: bool = False) -> Callable[[Room], Answer]:
    def build(room: Room) -> Answer:
        file = room.folder / f"our-int8{'-loop' * is_early}.onnx"
        if not file.exists():  # already written by another process if memory is measured
            file.write_bytes(write_int8(room, has_exits=is_early))
        graph = OneGraph(file, "classification", room.config.max_positions, is_loop=is_early)
        engine = OnnxEngine(graph, room.threads)
        return ours(engine, room.patience if is_early else 0)

    return build


def write_int8(room: Room, *, has_exits: bool) -> bytes:
    from litebert.graph.model import build_graph
    from litebert.graph.precision import Precision

    precision = Precision(is_int8=True)
    weights = load_arrays(room.graphs().checkpoint)
    graph = build_graph(room.config, weights, "classification", mask_id=4, precision=precision, has_exits=has_exits)
    content: bytes = graph.SerializeToString()
    return content


def transformers_eager(way: str) -> Callable[[Room], Answer]:
    def build(room: Room) -> Answer:
        torch.set_num_threads(room.threads)
        model = room.their_model()

        @torch.inference_mode()
        def answer(texts: Sequence[Ids]) -> Any:
            size = 1 if way == "pipeline" else BATCH_SIZE
            ordered = sorted(texts, key=len) if way == "bucketed" else texts
            for start in range(0, len(ordered), size):
                model(**{key: torch.from_numpy(value) for key, value in pad(ordered[start : start + size]).items()})

        return answer

    return build


def onnxruntime_file(name: str) -> Callable[[Room], Answer]:
    def build(room: Room) -> Answer:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = room.threads, 3
        file = {"float": their_float, "documented": documented_int8, "un-hidden": unhidden_int8}[name](room)
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        return bucketed(lambda feed: session.run(None, feed))

    return build


def their_float(room: Room) -> Path:
    """The float model from torch's own exporter."""
    file = room.folder / "their-float.onnx"
    if not file.exists():
        feed = {key: torch.from_numpy(value) for key, value in pad([np.full(16, 5), np.full(12, 6)]).items()}
        model = room.their_model()
        model.config.return_dict = False
        # the exporter whose files quantize_dynamic can read: it fails on the shapes that the newer one writes
        torch.onnx.export(
            model,
            (feed,),
            str(file),
            input_names=list(feed),
            output_names=["logits"],
            dynamic_axes={key: {0: "batch", 1: "length"} for key in feed},
            opset_version=17,
            dynamo=False,
        )
    return file


def documented_int8(room: Room) -> Path:
    return quantize(their_float(room), room.folder / "documented.onnx")


def unhidden_int8(room: Room) -> Path:
    with room.graphs().open("classification", has_exits=False) as source:
        return quantize(source, room.folder / "un-hidden.onnx")


def quantize(source: Path, file: Path) -> Path:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    if not file.exists():
        quantize_dynamic(str(source), str(file), weight_type=QuantType.QInt8, per_channel=True)
    return file


def openvino_int8(room: Room) -> Answer:
    openvino, file = import_openvino(), room.folder / "openvino-int8.xml"
    if not file.exists():
        openvino.save_model(quantize_for_openvino(room), str(file))
    settings = {"INFERENCE_NUM_THREADS": room.threads, "PERFORMANCE_HINT": "LATENCY"}
    request = openvino.Core().compile_model(str(file), "CPU", settings).create_infer_request()
    return bucketed(lambda feed: request.infer(feed))


def quantize_for_openvino(room: Room) -> Any:
    openvino, nncf = import_openvino(), import_in_silence("nncf")
    model = room.their_model()
    feed = {key: torch.from_numpy(value) for key, value in pad([np.full(16, 5), np.full(12, 6)]).items()}
    converted = openvino.convert_model(model, example_input=feed)
    rng = np.random.default_rng(0)
    samples = [pad([rng.integers(5, 30, n)]) for n in rng.integers(8, 64, 32)]
    return nncf.quantize(
        converted, nncf.Dataset(samples), model_type=nncf.ModelType.TRANSFORMER, subset_size=len(samples)
    )


def bucketed(run: Callable[[Feed], Any]) -> Answer:
    """Texts sorted by length, in batches of the same size as ours."""

    def answer(texts: Sequence[Ids]) -> Any:
        groups = [Group((TokenSequence(ids, len(ids)),)) for ids in texts]
        for numbers in plan_batches(groups, 4096, OnnxEngine.batch_cost):
            run(pad([texts[number] for number in numbers]))

    return answer


def pad(texts: Sequence[Ids]) -> Feed:
    lengths = np.array([len(ids) for ids in texts])
    is_real = np.arange(lengths.max()) < lengths[:, None]
    token_ids = np.zeros(is_real.shape, dtype=np.int64)
    token_ids[is_real] = np.concatenate(texts)
    mask = is_real.astype(np.int64)
    return {"input_ids": token_ids, "attention_mask": mask, "token_type_ids": np.zeros_like(token_ids)}


CONTENDERS: dict[str, Callable[[Room], Answer]] = {
    "ours torch": ours_by_name("torch"),
    "ours onnx": ours_by_name("onnx"),
    "ours onnx int8": ours_int8(),
    "ours openvino": ours_by_name("openvino"),
    "ours torch early": ours_by_name("torch", is_early=True),
    "ours onnx early": ours_by_name("onnx", is_early=True),
    "ours onnx int8 early": ours_int8(is_early=True),
    "transformers pipeline": transformers_eager("pipeline"),
    "transformers padded": transformers_eager("padded"),
    "transformers bucketed": transformers_eager("bucketed"),
    "ort float": onnxruntime_file("float"),
    "ort int8 documented": onnxruntime_file("documented"),
    "ort int8 un-hidden": onnxruntime_file("un-hidden"),
    "openvino int8": openvino_int8,
}


def iter_built(room: Room, names: Sequence[str]) -> Iterator[tuple[str, Answer]]:
    for name in names:
        try:
            yield name, CONTENDERS[name](room)
        except (ImportError, ConfigError) as error:  # our error names the package and how to install it
            print(f"{name}: left out ({error})", flush=True)


class Spent(NamedTuple):
    """Wall-clock seconds and processor seconds."""

    by_clock: float
    by_processor: float


def measure(answers: dict[str, Answer], texts: Sequence[Ids], rounds: int) -> dict[str, Spent]:
    """The median seconds of each contender; they take turns."""
    spent: dict[str, list[Spent]] = {name: [] for name in answers}
    for number in range(1 + rounds):
        for name, answer in answers.items():
            began = time.perf_counter(), time.process_time()
            answer(texts)
            if number:  # the first round is a warm-up
                spent[name].append(Spent(time.perf_counter() - began[0], time.process_time() - began[1]))
    return {name: Spent(*map(statistics.median, zip(*values, strict=True))) for name, values in spent.items()}


def invent_texts(lengths: Sequence[int]) -> list[Ids]:
    rng = np.random.default_rng(2)
    return [rng.integers(5, 30, length, dtype=np.int32) for length in lengths]


def show(title: str, spent: dict[str, Spent], count: int) -> dict[str, Any]:
    ours = [value for name, value in spent.items() if name.startswith("ours") and "early" not in name]
    ours = ours or list(spent.values())
    best = Spent(min(one.by_clock for one in ours), min(one.by_processor for one in ours))
    print(f"\n{title}: time, and times the best of ours by the clock and by processor time")
    for name, value in sorted(spent.items(), key=lambda item: item[1]):
        per = f"{1000 * value.by_clock:9.1f} ms" if count == 1 else f"{count / value.by_clock:9.1f} texts/s"
        ratios = f"{value.by_clock / best.by_clock:6.2f} {value.by_processor / best.by_processor:6.2f}"
        print(f"  {name:24} {per} {ratios}", flush=True)
    return {"case": title, "seconds": {name: value._asdict() for name, value in spent.items()}, "count": count}


def measure_memory(room: Room, options: argparse.Namespace, names: Sequence[str]) -> None:
    """The memory that a process gains by loading a model and answering once."""
    print("\nadded memory, MB")
    for name in names:
        words = [
            "--child",
            name,
            "--preset",
            options.preset,
            "--folder",
            str(room.folder),
            "--threads",
            str(room.threads),
        ]
        done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=False)
        print(f"  {name:24} {done.stdout.strip() or done.stderr.strip().splitlines()[-1]}", flush=True)


def import_onnxruntime() -> None:
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401


def import_transformers() -> None:
    from transformers import AutoModelForSequenceClassification  # noqa: F401
    from transformers.models.albert import modeling_albert  # noqa: F401


LIBRARIES: dict[str, Callable[[], object]] = {
    "ours onnx": import_onnxruntime,
    "ours openvino": import_openvino,
    "ort": import_onnxruntime,
    "openvino": import_openvino,
    "transformers": import_transformers,
}


def run_child(name: str, room: Room) -> None:
    for library in LIBRARIES:  # import them first, so that neither they nor their dependencies are counted
        if name.startswith(library):
            LIBRARIES[library]()
    held = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6  # noqa: E731
    before = held()
    CONTENDERS[name](room)(invent_texts([32]))
    print(f"{held() - before:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="albert-base-v2")
    parser.add_argument("--lengths", default="16,32,128,384")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=4096, help="of all the texts together, where many are answered")
    parser.add_argument("--cases", default=",".join(case.name for case in CASES))
    parser.add_argument("--threads", type=int, default=count_cores())
    parser.add_argument("--only", default="")
    parser.add_argument("--memory", action="store_true", help="also the memory of each, in processes of their own")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        room = Room(options.folder or Path(folder), options.preset, options.threads)
        if options.child:
            return run_child(options.child, room)
        names = options.only.split(",") if options.only else list(CONTENDERS)
        answers = dict(iter_built(room, names))
        results = []
        for length in [int(word) for word in options.lengths.split(",") if word]:
            texts = invent_texts([length])
            # short and easily disturbed, hence more rounds
            results.append(show(f"one text of {length} tokens", measure(answers, texts, 3 * options.rounds), 1))
        for case in (case for case in CASES if case.name in options.cases.split(",")):
            lengths = read_lengths(case)
            lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), options.tokens))]
            seconds = measure(answers, invent_texts(lengths), options.rounds)
            results.append(show(f"{len(lengths)} texts of {case.name}'s lengths", seconds, len(lengths)))
        if options.memory:
            measure_memory(room, options, names)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    return None


if __name__ == "__main__":
    main()
