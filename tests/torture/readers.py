"""The formats that litebert reads, in one table: an example file of each, and how it is read.

`build_formats` writes the examples once; each reader gets a folder of its own, in which one file is mutated.
"""

import gzip
import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import zstandard
from pyarrow import parquet

from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.checkpoint import load_checkpoint as load_ours
from litebert.core.errors import DataError
from litebert.core.files import atomic_directory
from litebert.core.runlog import read_log
from litebert.core.sealed import CHECKSUM, read_sealed, write_sealed
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.corpus.chunks import Limits
from litebert.corpus.documents import Document, ReadOptions, iter_documents
from litebert.corpus.shards import open_corpus
from litebert.corpus.unfinished import read_sources
from litebert.exporters.onnx_folder import export_onnx
from litebert.exporters.web import RUNTIME_FILES, export_web
from litebert.finetuning.recipe import load_finetune_recipe
from litebert.inference.export_folder import open_export
from litebert.inference.predictor import load
from litebert.interop.convert import ConvertOptions, convert
from litebert.interop.google_names import name_table
from litebert.interop.opening import TRIALS_FILE, load_checkpoint
from litebert.interop.sentence_folder import PROMPTS_FILE
from litebert.model.config import HeadSpec
from litebert.model.model import build_model
from litebert.plan.devices import load_device
from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.recipe import build_recipe, load_recipe, with_paths
from litebert.search.build import IndexOptions, build_index
from litebert.search.index import SearchIndex
from litebert.study.place import read_arm_report
from litebert.study.spec import load_study
from litebert.tasks.catalog import read_dataset, task_facts
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.predictions import read_predictions
from litebert.tasks.report import read_report, write_report
from litebert.tasks.seen_texts import SEEN_FILE, find_seen_texts, write_seen_texts
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer
from litebert.verify import verify
from tests.interop.bundles import BundleOptions, write_bundle
from tests.small_configs import NARROW
from tests.small_runs import make_recipe
from tests.torture.materials import RECIPE, STUDY
from tests.torture.reader import Reader
from tests.torture.task_readers import invent_article, invent_squad, list_task_readers, write_task_files

TEXT = "A cat sees the old house. The dog, near a large tree; and 1,234 birds."
PROGRESS = "unfinished/progress.json"


def list_readers() -> list[Reader]:
    """All of them, ours first."""
    return [*_list_ours(), *_list_texts(), *list_task_readers(), *_list_models()]


def build_formats(materials: Path, folder: Path) -> Path:
    """Write an example of every format into a folder, unless it is there already."""
    if folder.exists():
        return folder
    with atomic_directory(folder) as made:
        tokenizer = load_tokenizer(materials / "tokenizer")
        sentences = [line for file in sorted((materials / "text").iterdir()) for line in file.read_text().split("\n")]
        _write_ours(materials, made, tokenizer, sentences)
        _write_texts(made, sentences)
        write_task_files(made)
        _write_models(materials, made, tokenizer, sentences)
    return folder


# --- ours ---


def _list_ours() -> list[Reader]:
    shard = "shards/train-00000.safetensors"
    checkpoint = [f"checkpoint/{name}" for name in ("litebert.json", "model.safetensors", "optimizer.safetensors")]
    checkpoint += ["checkpoint/config.json", "checkpoint/recipe.toml", "checkpoint/tokenizer/tokenizer.json"]
    export = [f"export/{name}" for name in ("export.json", "model.onnx", "config.json", "tokenizer/tokenizer.json")]
    hashed = lambda folder, file, read: Reader(f"{folder}/{file}", folder, file, read, is_hashed=True)  # noqa: E731
    return [
        *(hashed("corpus", file, _read_corpus) for file in ("manifest.json", shard)),
        *(hashed("corpus", file, _verified(file)) for file in ("tokenizer/manifest.json", "tokenizer/tokenizer.json")),
        hashed("corpus", "sources.jsonl", read_sources),
        *(hashed(kind, file, _read_tokenizer) for kind in KINDS for file in ("manifest.json", KINDS[kind])),
        *(hashed(*name.split("/", 1), _read_checkpoint) for name in checkpoint),
        *(hashed(*name.split("/", 1), _read_export) for name in export),
        hashed("tuned", "report.json", _read_answers),
        hashed("tuned", "predictions/dev.jsonl", _verified("predictions/dev.jsonl")),
        hashed("tuned", SEEN_FILE, find_seen_texts),
        hashed("several", TRIALS_FILE, lambda folder: load_checkpoint(folder).path.parent.name),
        Reader("tuned/predictions", "tuned", "predictions/dev.jsonl", _read_predictions),
        Reader("run/log", "run", "metrics.jsonl", lambda folder: read_log(folder / "metrics.jsonl")),
        hashed("run", "metrics.jsonl", _verified("metrics.jsonl")),
        hashed("run", "recipe.toml", _verified("recipe.toml")),
        Reader("study/report", "study", "arm-seed-1.json", lambda folder: read_arm_report(folder / "arm-seed-1.json")),
        Reader("stopped/part", "stopped", "unfinished/part", _read_stopped, is_hashed=True, share=0.1),
        Reader("stopped/progress.json", "stopped", PROGRESS, _read_stopped, is_hashed=True, share=0.1),
        Reader("stopped/plan.json", "stopped", "unfinished/plan.json", _read_stopped, is_hashed=True, share=0.1),
        *(hashed("index", file, _search_index) for file in ("index.json", "000001.vectors", "000001.jsonl")),
        hashed("web", "facts.json", _verified("facts.json")),
        hashed("web", "model.onnx", _verified("model.onnx")),
        Reader("recipe", "recipes", "pretrain.toml", lambda folder: load_recipe(folder / "pretrain.toml").values),
        Reader("recipe/sparse", "recipes", "sparse.toml", lambda folder: load_recipe(folder / "sparse.toml").values),
        Reader("device", "recipes", "device.toml", lambda folder: load_device(str(folder / "device.toml"))),
        Reader("recipe/finetune", "recipes", "finetune.toml", _read_finetune_recipe),
        Reader("study", "recipes", "study.toml", lambda folder: repr(load_study(folder / "study.toml"))),
    ]


REPORT = {"task": "SST-2", "metric": "accuracy", "facts": {"labels": ["no", "yes"]}, "dev": {}, "test": {}}
KINDS = {"wordpiece": "tokenizer.json", "unigram": "spiece.model", "bpe": "tokenizer.json"}


def _write_ours(materials: Path, made: Path, tokenizer: Tokenizer, sentences: list[str]) -> None:
    shutil.copytree(materials / "corpus", made / "corpus")
    for kind in KINDS:
        size = {"unigram": 78, "wordpiece": 100, "bpe": 300}[kind]
        options = VocabularyOptions(kind, vocab_size=size, input_sentence_size=0)  # type: ignore[arg-type]
        train_tokenizer(sentences, options).save(made / kind)
    last = pretrain(make_recipe(materials / "corpus", train__steps=2), made / "run")
    shutil.copytree(last, made / "checkpoint")
    export_onnx(load_ours(last), made / "export", head="mlm")
    (made / "tuned" / "predictions").mkdir(parents=True)
    lines = [{"id": str(n), "answer": "no", "output": [0.25, 0.75], "label": "yes"} for n in range(9)]
    (made / "tuned" / "predictions" / "dev.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_seen_texts(made / "tuned", read_dataset("classification", materials / "rows"))
    write_report(made / "tuned", REPORT)
    for seed in (1, 2):
        shutil.copytree(last, made / "several" / f"seed-{seed}" / "model")
    write_sealed(made / "several" / TRIALS_FILE, {"metric": "accuracy", "best_run": "seed-1"})
    (made / "study").mkdir()
    report = sorted(Path("docs/studies/table-5").glob("*-seed-1.json"))[0]
    shutil.copyfile(report, made / "study" / "arm-seed-1.json")
    documents = [Document(f"{n}.txt:1", tuple(sentences[n : n + 4])) for n in range(0, 80, 4)]
    build_index(documents, made / "index", load(last), IndexOptions(passage_tokens=16), title="checkpoint")
    (made / "runtime").mkdir()
    for name in RUNTIME_FILES:
        (made / "runtime" / name).write_text("// onnxruntime-web\n")
    export_web(load_ours(last), made / "web", head="mlm", runtime=made / "runtime")
    (made / "recipes").mkdir()
    for name, shipped in (("sparse", "pretraining/recipes/cpu-small-4k"), ("device", "devices/a100-40g")):
        shutil.copyfile(f"litebert/{shipped}.toml", made / "recipes" / f"{name}.toml")
    (made / "recipes" / "pretrain.toml").write_text(RECIPE.format(corpus=materials / "corpus"))
    (made / "recipes" / "finetune.toml").write_text("[train]\nepochs = 2.0\nbatch_size = 8\nmax_length = 32\n")
    (made / "recipes" / "study.toml").write_text(STUDY)
    _write_stopped(made / "stopped", materials / "stopped.txt", tokenizer)


LIMITS = Limits(chunk=2000, shard=6000, line=4000, whole_file=4000)
SKIPPING = BuildOptions(
    read=ReadOptions(format="lines", limits=LIMITS, on_error="skip"), valid_share=0.2, is_quiet=True
)


def _write_stopped(folder: Path, source: Path, tokenizer: Tokenizer) -> None:
    """A corpus whose building stopped at bad input in its source."""
    folder.mkdir()
    text = "".join(f"a small cat near the house {n}.\nit follows the bird {n}.\n\n" for n in range(320)).encode()
    source.write_bytes(text + b"the \xff dog.\n\n")
    (folder / "source").write_text(str(source))
    tokenizer.save(folder / "tokenizer")
    failing = BuildOptions(read=ReadOptions(format="lines", limits=LIMITS), valid_share=0.2, is_quiet=True)
    try:
        build_corpus([source], tokenizer, folder / "corpus", failing)
    except DataError:
        (folder / "unfinished").mkdir()
        last = sorted((folder / "corpus" / "unfinished").glob("part-*"))[-1]
        shutil.copyfile(last, folder / "unfinished" / "part")
        for name in ("progress.json", "plan.json"):
            shutil.copyfile(folder / "corpus" / "unfinished" / name, folder / "unfinished" / name)
        return
    raise AssertionError("the building did not stop")


def _read_stopped(folder: Path) -> object:
    """Continue the build in a copy, in which the mutated files have been put."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "corpus", copy)
    last = sorted((copy / "unfinished").glob("part-*"))[-1]
    shutil.copyfile(folder / "unfinished" / "part", last)
    for name in ("progress.json", "plan.json"):
        shutil.copyfile(folder / "unfinished" / name, copy / "unfinished" / name)
    source = (folder / "source").read_text()
    build_corpus([source], load_tokenizer(folder / "tokenizer"), copy, SKIPPING)
    return [path.read_bytes() for path in (copy / "manifest.json", *sorted((copy / "shards").iterdir()))]


def _read_corpus(folder: Path) -> object:
    contents = [shard.content() for split in ("train", "valid") for shard in open_corpus(folder, split).shards]  # type: ignore[arg-type]
    return [[array.tobytes() for array in content] for content in contents]


def _read_tokenizer(folder: Path) -> object:
    tokenizer = load_tokenizer(folder)
    special = [tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id, tokenizer.unk_id]
    return special, tokenizer.vocab_size, tokenizer.encode(TEXT), tokenizer.decode(tokenizer.encode(TEXT))


def _read_weights(path: Path) -> object:
    checkpoint = load_checkpoint(path)
    weights = {name: tensor.numpy().tobytes() for name, tensor in checkpoint.load_weights().items()}
    return repr(checkpoint.config), repr(checkpoint.task), repr(checkpoint.embedding), weights


def _read_checkpoint(folder: Path) -> object:
    checkpoint = load_ours(folder)
    moments = {name: tensor.numpy().tobytes() for name, tensor in checkpoint.load_optimizer().items()}
    tokens = checkpoint.load_tokenizer().encode(TEXT)
    return _read_weights(folder), moments, checkpoint.recipe_toml, checkpoint.state, tokens


def _search_index(folder: Path) -> object:
    index = SearchIndex(folder)
    vectors = np.eye(2, len(index.record.probe), dtype=np.float32)
    return index.record, index.search_vectors(vectors, 1000), list(index.iter_passages())


def _read_export(folder: Path) -> object:
    export = open_export(folder)
    facts = repr((export.head, export.has_exits, export.is_int8, export.checkpoint.config, export.checkpoint.task))
    return facts, export.graph_file.read_bytes(), export.checkpoint.load_tokenizer().encode(TEXT)


def _read_answers(folder: Path) -> object:
    report = read_report(folder)
    return {name: report[name] for name in REPORT}


def _read_predictions(folder: Path) -> object:
    return repr(read_predictions(folder / "predictions" / "dev.jsonl"))


def _read_finetune_recipe(folder: Path) -> object:
    return load_finetune_recipe("classification", str(folder / "finetune.toml")).values


def _verified(file: str) -> Callable[[Path], object]:
    """`litebert verify`, which must find what changes the meaning of a file."""

    def read(folder: Path) -> object:
        problems = [problem for found in verify(folder) for problem in found.problems]
        if problems:
            raise DataError("corrupt-file", problems[0])
        if file.endswith(".toml"):  # paths may change: runs move
            return with_paths(build_recipe(tomllib.loads((folder / file).read_text("utf-8"))), lambda _: "")
        if file.endswith(".json"):  # with a key that nobody reads, when the checksum was renamed
            return {key: value for key, value in read_sealed(folder / file).items() if not key.startswith(CHECKSUM)}
        return (folder / file).read_bytes()

    return read


# --- text ---

TEXTS = ("lines.txt", "prose.txt", "wrapped.txt", "wiki.txt", "book.txt", "rows.jsonl", "race.jsonl", "squad.json")
PACKED = ("lines.txt.gz", "lines.txt.zst", "rows.parquet", "rows.parquet.gz")


def _list_texts() -> list[Reader]:
    return [Reader(f"text/{name}", "texts", name, _documents_of(name)) for name in (*TEXTS, *PACKED)]


def _documents_of(name: str) -> Callable[[Path], object]:
    return lambda folder: [tuple(document) for document in iter_documents([folder / name])]


def _write_texts(made: Path, sentences: list[str]) -> None:
    folder = made / "texts"
    folder.mkdir()
    lines = "\n".join(sentences[:60])
    paragraphs = [" ".join(sentences[n : n + 5]) for n in range(0, 60, 5)]
    wiki = "".join(
        f'<doc id="{n}" url="" title="T {n}">\nT {n}\n\n{text}\n\n</doc>\n' for n, text in enumerate(paragraphs)
    )
    book = "\n\n".join(text.replace(" ", "\n", 3) for text in paragraphs)
    mark = "*** {} OF THE PROJECT GUTENBERG EBOOK A CAT ***"
    squad = invent_squad(paragraphs)
    contents = {
        "lines.txt": lines,
        "prose.txt": "\n".join(paragraphs),
        "wrapped.txt": book,
        "wiki.txt": wiki,
        "book.txt": f"Character set encoding: UTF-8\n\n{mark.format('START')}\n\n{book}\n\n{mark.format('END')}\n",
        "rows.jsonl": "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(paragraphs)),
        "race.jsonl": "".join(json.dumps(invent_article(text)) + "\n" for text in paragraphs),
        "squad.json": json.dumps(squad),
    }
    for name, content in contents.items():
        (folder / name).write_text(content, "utf-8")
    (folder / "lines.txt.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    (folder / "lines.txt.zst").write_bytes(zstandard.ZstdCompressor(write_checksum=True).compress(lines.encode()))
    parquet.write_table(pa.table({"text": paragraphs}), folder / "rows.parquet")
    (folder / "rows.parquet.gz").write_bytes(gzip.compress((folder / "rows.parquet").read_bytes(), mtime=0))


# --- other people's models and tokenizers ---

ALBERT = NARROW
HEADS = (HeadSpec("mlm"), HeadSpec("sentence"))
GOOGLE = ("albert_config.json", "vocab.txt", "model.ckpt-1.index", "model.ckpt-1.data-00000-of-00001")
SENTENCES = ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json", PROMPTS_FILE)
FOREIGN_TOKENIZERS = {"wordpiece-json": "tokenizer.json", "spiece": "spiece.model", "vocab": "vocab.txt"}


def _list_models() -> list[Reader]:
    reads = lambda folder, file: Reader(f"{folder}/{file}", folder, file, _read_weights)  # noqa: E731
    tokenizers = {**FOREIGN_TOKENIZERS, "byte-level/v": "vocab.json", "byte-level/m": "merges.txt"}
    return [
        *(reads("huggingface", name) for name in ("config.json", "model.safetensors")),
        reads("classifier", "config.json"),
        *(reads("pickled", name) for name in ("config.json", "pytorch_model.bin")),
        reads("old-pickle", "pytorch_model.bin"),
        *(reads("sharded", name) for name in ("model.safetensors.index.json", "one.safetensors")),
        *(reads("sentences", name) for name in SENTENCES),
        *(reads("google", name) for name in GOOGLE),
        *(
            Reader(f"foreign/{name}/{file}", f"foreign-{name.split('/')[0]}", file, _read_tokenizer)
            for name, file in tokenizers.items()
        ),
        Reader("huggingface/tokenizer.json", "huggingface", "tokenizer.json", _read_tokenizer),
    ]


def _write_models(materials: Path, made: Path, tokenizer: Tokenizer, sentences: list[str]) -> None:
    model = build_model(ALBERT, HEADS)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(4)))
    save_checkpoint(made / "small", model, tokenizer, CheckpointContent(step=0))
    convert(made / "small", made / "huggingface", ConvertOptions(to="huggingface"))
    weights = load_checkpoint(made / "huggingface")
    tensors = _load_tensors(made / "huggingface" / "model.safetensors")
    for name, is_zip in (("pickled", True), ("old-pickle", False)):
        shutil.copytree(made / "huggingface", made / name)
        (made / name / "model.safetensors").unlink()
        torch.save(tensors, made / name / "pytorch_model.bin", _use_new_zipfile_serialization=is_zip)
    _write_sharded(made / "huggingface", made / "sharded", tensors)
    _write_sentences(made / "huggingface", made / "sentences")
    _write_google(made / "google", model, tokenizer)
    task = Classification("classification", ("bird", "cat", "dog"))
    content = CheckpointContent(step=1, task=task_facts(task, max_length=16))
    save_checkpoint(made / "tuned-small", build_model(ALBERT, task.heads), tokenizer, content)
    convert(made / "tuned-small", made / "classifier", ConvertOptions(to="huggingface"))
    shutil.rmtree(made / "small")
    shutil.rmtree(made / "tuned-small")
    assert weights.config.hidden_size == ALBERT.hidden_size
    for name in (*FOREIGN_TOKENIZERS, "byte-level"):
        (made / f"foreign-{name}").mkdir()
    (made / "foreign-wordpiece-json" / "tokenizer.json").write_bytes(tokenizer.model)
    (made / "foreign-vocab" / "vocab.txt").write_text("\n".join(tokenizer.pieces(range(100))) + "\n")
    shutil.copyfile(made / "unigram" / "spiece.model", made / "foreign-spiece" / "spiece.model")
    facts = json.loads((made / "bpe" / "tokenizer.json").read_text())["model"]
    (made / "foreign-byte-level" / "vocab.json").write_text(json.dumps(facts["vocab"]))
    pairs = [merge if isinstance(merge, str) else " ".join(merge) for merge in facts["merges"]]
    (made / "foreign-byte-level" / "merges.txt").write_text("\n".join(["#version: 0.2", *pairs]) + "\n")
    del materials, sentences


def _load_tensors(file: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    tensors: dict[str, Any] = load_file(file)
    return tensors


def _write_sharded(source: Path, folder: Path, tensors: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    shutil.copytree(source, folder)
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    halves = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for file, members in halves.items():
        save_file({name: tensors[name] for name in members}, folder / file, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, members in halves.items() for name in members}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _write_sentences(source: Path, folder: Path) -> None:
    shutil.copytree(source, folder)
    paths = {"Transformer": "", "Pooling": "1_Pooling"}
    listed = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (kind, path) in enumerate(paths.items())
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 9, "do_lower_case": False}))
    (folder / PROMPTS_FILE).write_text(json.dumps({"prompts": {"query": "find: "}, "default_prompt_name": "query"}))


def _write_google(folder: Path, model: Any, tokenizer: Tokenizer) -> None:
    ours = model.state_dict()
    table = name_table("albert", ALBERT, HEADS, None)
    variables = {v.name: ours[n].t().contiguous() if v.is_transposed else ours[n] for n, v in table.items()}
    write_bundle(folder / "model.ckpt-1", variables, BundleOptions(block_size=500))
    (folder / "vocab.txt").write_text("\n".join(tokenizer.pieces(range(100))) + "\n")
    values = {"vocab_size": 100, "embedding_size": 8, "hidden_size": 16, "intermediate_size": 24}
    values |= {"num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 32, "type_vocab_size": 2}
    values |= {"num_hidden_groups": 1, "inner_group_num": 1, "net_structure_type": 0, "layers_to_keep": []}
    facts = {**values, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "albert_config.json").write_text(json.dumps({**facts, "initializer_range": np.float64(0.02).item()}))
