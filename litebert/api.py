"""What litebert does, as functions: one per verb, typed, with the command line's defaults.

    import litebert
    litebert.train_tokenizer("texts/", "tokenizer")
    corpus = litebert.build_corpus("texts/", "corpus", tokenizer="tokenizer")
    run = litebert.pretrain("cpu-small", {"data.corpora": corpus}, out="runs/mine")

Text is a file, a folder or a glob (`str` or `Path`), a list of `Path`s, or Python values: a list of strings, or a
column of a pandas or `datasets` table. A `Result` can be passed wherever a folder is expected. Wrong input raises
`litebert.LitebertError` (`ConfigError`, `DataError`, `TrainingError`). Ctrl-C leaves a folder from which the same call
continues. Nothing heavy is imported before a function is called.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from litebert.core.errors import ConfigError, DataError, WorkersError

if TYPE_CHECKING:
    from litebert.inference.long_texts import LongTexts, WindowPooling
    from litebert.inference.predictor import Predictor
    from litebert.inference.records import Answered
    from litebert.interop.source import LoadOptions
    from litebert.pretraining.recipe import Recipe
    from litebert.tasks.finetuning import OwnTask

PathLike = str | os.PathLike[str]
Texts = Any  # PathLike, a list of Paths, or strings: see the module's docstring
Changes = Mapping[str, Any] | Sequence[str]  # {"train.steps": 500}, {"train": {"steps": 500}} or ["train.steps=500"]
_MODEL_FILES = ("litebert.json", "config.json", "export.json", "facts.json")  # one is in each folder we write
MAX_DROP = 1.0  # points that int8 may lose on labelled examples


@dataclass(frozen=True)
class Result:
    """What a verb has made. It can be passed wherever a path to `folder` is expected."""

    verb: str
    folder: Path | None = None  # what was written; None: nothing was
    checkpoint: Path | None = None  # the model, of verbs that make one
    metrics: Mapping[str, float] = field(default_factory=dict)  # the numbers to look at first
    report: Mapping[str, Any] = field(default_factory=dict)  # everything that is known, as JSON would hold it
    details: Any = field(default=None, compare=False)  # the library's own record behind the report

    def __fspath__(self) -> str:
        if self.folder is None:
            raise ConfigError("no-folder", f"a result of {self.verb} has no folder: it wrote nothing")
        return str(self.folder)

    def __repr__(self) -> str:
        facts = [f"folder={str(self.folder)!r}"] if self.folder else []
        facts += [f"{name}={_show(value)}" for name, value in self.metrics.items()]
        return f"<{self.verb}: {', '.join(facts)}>" if facts else f"<{self.verb}>"

    def _repr_html_(self) -> str:
        """A notebook's view: where it is, and its metrics as a table."""
        where = f" <code>{escape(str(self.folder))}</code>" if self.folder else ""
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name.replace('_', ' '))}</th><td>{escape(_show(value))}</td></tr>"
            for name, value in self.metrics.items()
        )
        return f"<b>{escape(self.verb)}</b>{where}{f'<table>{rows}</table>' if rows else ''}"


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def train_tokenizer(
    texts: Texts,
    out: PathLike,
    *,
    kind: Literal["unigram", "wordpiece", "bpe"] = "unigram",
    vocab_size: int = 30_000,
    cased: bool | None = None,
    chinese: bool = False,
    script: Literal["simplified", "traditional"] | None = None,
    coverage: float = 0.99995,
    max_sentences: int = 10_000_000,
    format: str = "auto",  # noqa: A002
    field: str = "text",
    on_error: Literal["fail", "skip"] = "fail",
    overwrite: bool = False,
) -> Result:
    """Learn a vocabulary from text; the same text always gives the same one.

    `kind` is unigram (as ALBERT), wordpiece (as BERT) or bpe (as RoBERTa). Capitals and accents are kept if `cased`; by
    default only bpe keeps them. `chinese` makes each Chinese character a piece. `script` converts Chinese characters,
    in training and wherever the tokenizer is used. A tokenizer that is already in `out` is an error unless `overwrite`.

    >>> tokenizer = litebert.train_tokenizer("texts/", "tokenizer", vocab_size=200)
    >>> tokenizer.metrics["vocab_size"]
    200
    """
    from litebert.corpus.documents import ReadOptions
    from litebert.corpus.notes import Notes
    from litebert.corpus.vocabulary import check_output, train_from_files
    from litebert.text.train_tokenizer import VocabularyOptions

    folder = Path(out)
    check_output(folder, is_replaced=overwrite)
    if chinese and kind != "wordpiece":
        raise ConfigError(
            "kind-not-chinese",
            f"kind = {kind} does not make each Chinese character a piece: use wordpiece",
            option="kind",
        )
    _check_one_of("on_error", on_error, ("fail", "skip"))
    if script is not None:
        _check_one_of("script", script, ("simplified", "traditional"))
    options = VocabularyOptions(
        kind=kind,
        vocab_size=vocab_size,
        lowercase=None if cased is None else not cased,
        words="jieba" if chinese else "pieces",
        script=script,
        character_coverage=coverage,
        input_sentence_size=max_sentences,
        max_alphabet=8_000 if chinese else VocabularyOptions.max_alphabet,
    )
    notes = Notes(on_error)
    paths, values = _find_texts(texts, field)
    tokenizer = train_from_files(paths, options, ReadOptions(format=format, field=field), notes=notes, texts=values)
    tokenizer.save(folder, replaces=overwrite)
    facts = {"kind": tokenizer.kind, "vocab_size": tokenizer.vocab_size, "fingerprint": tokenizer.fingerprint}
    report = {**facts, "skipped": notes.examples, "counts": dict(notes.counts)}
    return Result("train_tokenizer", folder, None, {"vocab_size": tokenizer.vocab_size}, report, tokenizer)


def build_corpus(
    texts: Texts,
    out: PathLike,
    *,
    tokenizer: PathLike,
    words: Literal["pieces", "jieba"] | None = None,
    script: Literal["simplified", "traditional"] | None = None,
    format: str = "auto",  # noqa: A002
    field: str = "text",
    on_error: Literal["fail", "skip"] = "fail",
    valid_share: float = 0.01,
    deduplicate: bool = False,
    first_sentences: int | None = None,
    processes: int | None = None,
) -> Result:
    """Turn text into a tokenized corpus. After a kill the same call continues; with more text the corpus grows.

    `tokenizer` is a folder of ours, an ALBERT .model, a vocab.txt or a tokenizer.json. In Chinese text, `words="jieba"`
    finds the words that are masked whole, and `script` converts characters; both are stored with the corpus. By default
    they are the tokenizer's own. `valid_share` of the documents are kept for validation. `processes` encode; by default
    one per core.

    >>> corpus = litebert.build_corpus("texts/", "corpus", tokenizer="tokenizer", valid_share=0.2)
    >>> corpus.metrics["train_documents"] > corpus.metrics["valid_documents"] > 0
    True
    """
    from litebert.core.processes import list_processors
    from litebert.corpus.build import BuildOptions
    from litebert.corpus.build import build_corpus as build
    from litebert.corpus.documents import ReadOptions
    from litebert.text.tokenizer import load_tokenizer

    _check_one_of("on_error", on_error, ("fail", "skip"))
    options = BuildOptions(
        read=ReadOptions(format, field, first_sentences, on_error),
        valid_share=valid_share,
        deduplicate=deduplicate,
        processes=processes or len(list_processors()),
    )
    folder = Path(out)
    paths, values = _find_texts(texts, field)
    for name, value, valid in (
        ("words", words, ("pieces", "jieba")),
        ("script", script, ("simplified", "traditional")),
    ):
        if value is not None:
            _check_one_of(name, value, valid)
    adapted = load_tokenizer(Path(tokenizer)).adapted(words=words, script=script)
    built = build(paths, adapted, folder, options, texts=values)
    counts = {
        f"{split}_{item}": sum(
            getattr(record, f"num_{item}") for record in built.manifest.shards if record.split == split
        )
        for split in ("train", "valid")
        for item in ("documents", "tokens")
    }
    report = {
        **counts,
        "num_known": built.num_known,
        "text_bytes": built.text_bytes,
        "elapsed_seconds": built.elapsed_seconds,
        "counts": dict(built.manifest.counts),
        "skipped": list(built.manifest.problems),
    }
    return Result("build_corpus", folder, None, counts, report, built)


def pretrain(
    recipe: "PathLike | Recipe",
    changes: Changes = (),
    *,
    out: PathLike | None = None,
    processes: int = 1,
    restarts: int = 3,
) -> Result:
    """Pre-train by a recipe (`litebert recipes list` lists them), or continue an interrupted run in the same folder.

    `changes` are keys of the recipe, such as {"train.steps": 500, "data.corpora": "corpus"}. The folder is
    runs/RECIPE unless `out` names one. More than one of `processes` share each step; one that dies is replaced
    `restarts` times.

    >>> changes = {"data.corpora": "corpus", "model.vocab_size": 200, "train.steps": 4, "schedule.warmup_steps": 1}
    >>> run = litebert.pretrain("nano", changes, out="runs/small")
    >>> run.checkpoint.name
    'step-00000004'
    """
    from litebert.checkpoint import list_checkpoints
    from litebert.core.runtime import read_ranks
    from litebert.plan.summary import announce_run
    from litebert.pretraining.pretrain import pretrain as train
    from litebert.pretraining.recipe import Recipe, load_recipe
    from litebert.training.kept_checkpoints import CHECKPOINTS

    words = list_words(changes)
    if isinstance(recipe, Recipe):
        if words:
            raise ConfigError("changes-of-recipe", "changes are for a recipe that is named: build the Recipe with them")
        name, resolved = "", recipe
    else:
        name = os.fspath(recipe)
        resolved = load_recipe(name, words)  # a mistake is found before processes are started
    folder = Path(out) if out else Path("runs") / (Path(name).stem or "pretrain")
    if processes > 1:
        _pretrain_in_processes(resolved, name, words, folder, processes, restarts)
        last = list_checkpoints(folder / CHECKPOINTS)[-1]
    else:
        if read_ranks().is_main:
            print(announce_run(name or folder.name, resolved))
        last = train(resolved, folder)
    return Result("pretrain", folder, last, *_read_metrics(folder))


def _pretrain_in_processes(
    recipe: "Recipe", name: str, words: Sequence[str], folder: Path, processes: int, restarts: int
) -> None:
    from litebert.pretraining.pretrain import check_before_launch
    from litebert.training.launcher import launch

    check_before_launch(recipe, folder, processes)
    if not name:
        raise ConfigError(
            "recipe-without-name", "several processes need a recipe that they can read: give its name or its .toml file"
        )
    command = [sys.executable, "-m", "litebert", "pretrain", name, *words, "--out", str(folder)]
    code = launch(command, processes, restarts)
    if code:
        raise WorkersError(code)


def _read_metrics(run: Path) -> tuple[dict[str, float], dict[str, Any]]:
    """The last metrics of a run (on held-out text, where it has some), and all of its log."""
    from litebert.core.runlog import METRICS_FILE, read_log

    records = read_log(run / METRICS_FILE) if (run / METRICS_FILE).is_file() else []
    measured = [record for record in records if any(name.startswith("valid_") for name in record)] or records
    last = measured[-1] if measured else {}
    return {n: v for n, v in last.items() if n.startswith("valid_") or n in ("step", "loss")}, {"history": records}


def adapt(
    model: PathLike,
    texts: Texts,
    out: PathLike,
    changes: Changes = (),
    *,
    format: str = "auto",  # noqa: A002
    field: str = "text",
    on_error: Literal["fail", "skip"] = "fail",
    valid_share: float = 0.1,
) -> Result:
    """Continue a model's pre-training on your own text, and report masked-token accuracy before and after.

    Tokenizer, shape, depth and length come from the model. `valid_share` of the documents are held out: both
    measurements are on them. Steps follow from the amount of text and the device; `changes` such as
    {"train.steps": 500} override keys of the recipe. The folder `out` is a run, from which `finetune` starts; the same
    call continues an interrupted one.

    >>> adapted = litebert.adapt("runs/small", "texts/", "runs/adapted", {"train.steps": 4})
    >>> sorted(adapted.metrics)
    ['mlm_accuracy', 'mlm_accuracy_before', 'mlm_loss', 'mlm_loss_before', 'num_masked']
    """
    from litebert.core.files import exclusive_lock, write_json
    from litebert.core.options import parse_assignments
    from litebert.core.processes import list_processors
    from litebert.corpus.build import BuildOptions
    from litebert.corpus.build import build_corpus as build
    from litebert.corpus.documents import ReadOptions
    from litebert.interop.opening import load_checkpoint
    from litebert.interop.source import FOR_TRAINING
    from litebert.plan.summary import announce_run
    from litebert.pretraining.adapt import build_adaptation, measure_adaptation
    from litebert.pretraining.pretrain import pretrain as train
    from litebert.training.kept_checkpoints import check_is_ours

    _check_one_of("on_error", on_error, ("fail", "skip"))
    folder, name = Path(out), os.fspath(model)
    source = load_checkpoint(name, FOR_TRAINING)
    paths, values = _find_texts(texts, field)
    check_is_ours(folder)
    with exclusive_lock(folder, purpose="training"):
        options = BuildOptions(
            read=ReadOptions(format, field, None, on_error), valid_share=valid_share, processes=len(list_processors())
        )
        build(paths, source.load_tokenizer(), folder / "corpus", options, texts=values)
    start = str(source.path) if Path(name).exists() else name
    recipe = build_adaptation(source, start, folder / "corpus", parse_assignments(list_words(changes)))
    print(announce_run(f"adapting {name}", recipe))
    before = measure_adaptation(start, recipe)
    last = train(recipe, folder)
    after = measure_adaptation(last, recipe)
    report = {"model": name, "before": before, "after": after}
    write_json(folder / "adaptation.json", report)
    metrics = after | {f"{key}_before": before[key] for key in ("mlm_accuracy", "mlm_loss")}
    return Result("adapt", folder, last, metrics, report)


def convert(
    model: PathLike,
    out: PathLike,
    *,
    to: Literal["litebert", "huggingface", "sentence-transformers"] = "litebert",
    allow_missing: Literal["heads"] | None = None,
    keep_slots: bool = False,
    heads: Sequence[str] | None = None,
    sharing: Literal["none", "all"] | None = None,
    dtype: Literal["float32", "float16", "bfloat16"] | None = None,
    layers: int = 0,
    max_positions: int = 0,
    new_positions: Literal["tiled", "continued"] = "continued",
    attention: Literal["full", "window", "block"] | None = None,
    attention_width: int = 0,
    classifier: Literal["classification", "tokens", "choice"] | None = None,
    tokenizer: PathLike | None = None,
    config: PathLike | None = None,
    overwrite: bool = False,
) -> Result:
    """Convert a model from anywhere exactly: nothing missing, nothing left over, or an error.

    `model` is a Hugging Face folder or hub name, a TensorFlow checkpoint, or one of ours; `to` is litebert,
    huggingface (for transformers) or sentence-transformers (the encoder and how it makes vectors). `heads`, `sharing`,
    `layers` and `dtype` change the model on the way; `tokenizer` names one that is not stored next to the weights
    ("none": the model reads ids). `max_positions` and `attention` make it read longer texts, for which it must then be
    trained.

    >>> litebert.convert("runs/small", "for-transformers", to="huggingface").report["written_as"]
    'AlbertForPreTraining'
    """
    from litebert.interop.convert import ConvertOptions
    from litebert.interop.convert import convert as convert_model
    from litebert.interop.lengthening import Lengthening

    options = ConvertOptions(
        to=to,
        keeps_slots=keep_slots,
        heads=None if heads is None else tuple(heads),
        layers=layers,
        sharing=sharing or "",
        dtype=dtype,
        lengthening=Lengthening(max_positions, new_positions, attention, attention_width),
    )
    load_options = _build_load_options(allow_missing, classifier, tokenizer, config)
    with _folder_to_write(out, overwrite=overwrite) as folder:
        done = convert_model(os.fspath(model), folder, options, load_options)
    report = {"written_as": done.written_as, "num_parameters": done.num_parameters, "notes": list(done.notes)}
    checkpoint = Path(out) if to == "litebert" else None
    return Result("convert", Path(out), checkpoint, {"num_parameters": done.num_parameters}, report, done)


def doctor(
    model: PathLike,
    *,
    allow_missing: Literal["heads"] | None = None,
    classifier: Literal["classification", "tokens", "choice"] | None = None,
    tokenizer: PathLike | None = None,
    config: PathLike | None = None,
) -> Result:
    """Find out what a checkpoint is and whether anything is wrong with it; reads everything, changes nothing.

    >>> litebert.doctor("runs/small").report["is_sound"]
    True
    """
    from litebert.interop.doctor import diagnose

    found = diagnose(os.fspath(model), _build_load_options(allow_missing, classifier, tokenizer, config))
    report = {
        "facts": dict(found.facts),
        "findings": [finding._asdict() for finding in found.findings],
        "is_sound": found.is_sound,
        "verdict": found.verdict,
    }
    levels = [finding.level for finding in found.findings]
    metrics = {"problems": levels.count("problem"), "warnings": levels.count("warning")}
    return Result("doctor", None, None, metrics, report, found)


def _build_load_options(
    allow_missing: Literal["heads"] | None,
    classifier: Literal["classification", "tokens", "choice"] | None,
    tokenizer: PathLike | None,
    config: PathLike | None,
) -> "LoadOptions":
    from litebert.interop.source import LoadOptions

    reads_ids = tokenizer is not None and os.fspath(tokenizer) == "none"
    return LoadOptions(
        allows_missing_heads=allow_missing == "heads",
        classifier=classifier,
        tokenizer=None if tokenizer is None or reads_ids else Path(tokenizer),
        needs_tokenizer=not reads_ids,
        config=None if config is None else Path(config),
    )


def evaluate_intrinsic(
    model: PathLike,
    corpus: PathLike,
    *,
    split: Literal["valid", "train"] = "valid",
    pairs: int = 4096,
    length: int | None = None,
    seed: int = 1,
    out: PathLike | None = None,
) -> Result:
    """Measure what a model knows of plain text: masked-token accuracy, sentence order and next sentences.

    The corpus was built with the model's tokenizer; `pairs` are tested for each kind of sentence pair. Every score has
    a 95 % interval and a baseline. The report is written to `out`, if it is named.

    >>> scores = litebert.evaluate_intrinsic("runs/small", "corpus", pairs=16)
    >>> 0 <= scores.metrics["mlm_accuracy"] <= 1
    True
    """
    from litebert.core.files import write_json
    from litebert.evaluation.evaluate_intrinsic import IntrinsicOptions
    from litebert.evaluation.evaluate_intrinsic import evaluate_intrinsic as measure

    options = IntrinsicOptions(split=split, pairs=pairs, length=length, seed=seed)
    found = measure(Path(model), Path(corpus), options)
    metrics = {"mlm_accuracy": found.mlm.hidden.value, "mlm_loss": found.mlm.hidden_loss} if found.mlm else {}
    for name, scores in (("sop", found.sop), ("nsp", found.nsp)):
        if scores:
            metrics |= {f"{name}_accuracy": (scores.head or scores.probe).any.value}
    if out is not None:
        write_json(Path(out), found.to_json())
    return Result("evaluate_intrinsic", None, None, metrics, found.to_json(), found)


def finetune(
    model: PathLike,
    task: "str | OwnTask",
    data: Any,
    changes: Changes = (),
    *,
    out: PathLike | None = None,
    recipe: str = "",
    seeds: int = 1,
    from_scratch: bool = False,
    answers_test: bool = True,
    dev: Any = None,
    test: Any = None,
    text: str | None = None,
    text_b: str | None = None,
    label: str | None = None,
    encoding: str = "utf-8",
    dev_share: float = 0.1,
    group: str | None = None,
    header: bool | None = None,
    max_labels: int = 500,
    choices: str | None = None,
    on_error: Literal["fail", "skip", "fix"] = "fail",
    metric: str | None = None,
    positive: str | None = None,
    balanced: bool | None = None,
) -> Result:
    """Fine-tune a model for a task, or continue an interrupted run in the same folder.

    `task` is one of GLUE's, RACE's or SQuAD's, or for your own data classification, regression, multi-label, tags or
    choice; or a task object of your own (the page "Extend litebert" has an example). `data` (and `dev`, `test`) is a
    task's folder, a table's file, or a table: a mapping of columns to lists, a list of rows, a pandas or `datasets`
    table. Without `dev`, `dev_share` of the rows are held out; columns are found by their names unless `text`, `text_b`
    and `label` name them. The recipe is chosen by the task, the model's width, the amount of data and the device; it
    and the time it takes are printed before the first step.

    >>> animals, places = ["a cat", "the dog", "one bird"], ["a house", "the river", "one tree"]
    >>> texts = [f"{thing} and {n}" for n in range(9) for thing in animals + places]
    >>> reviews = {"text": texts, "label": ["x", "x", "x", "y", "y", "y"] * 9}
    >>> tuned = litebert.finetune("runs/small", "classification", reviews, {"train.steps": 4}, out="runs/tuned")
    >>> tuned.checkpoint.as_posix(), 0 <= tuned.metrics["accuracy"] <= 1
    ('runs/tuned/model', True)
    """
    from litebert.finetuning.finetune import MODEL
    from litebert.finetuning.finetune import finetune as tune
    from litebert.finetuning.recipe import FinetuneRecipe
    from litebert.finetuning.run_folder import Job
    from litebert.finetuning.trials import plan_trials, run_trials
    from litebert.interop.opening import load_checkpoint
    from litebert.interop.source import FOR_TRAINING
    from litebert.plots.errors import draw_errors
    from litebert.tasks.catalog import read_dataset
    from litebert.tasks.files.python_tables import tables_as_files
    from litebert.tasks.files.reading import TableOptions
    from litebert.tasks.report import read_report

    folder = Path(out) if out else Path("runs") / (task if isinstance(task, str) else task.name)
    with tables_as_files(data=data, dev=dev, test=test) as files:
        options = TableOptions(
            files.get("dev"),
            files.get("test"),
            text,
            text_b,
            label,
            encoding,
            dev_share,
            is_balanced=balanced,
            group=group,
            has_header=header,
            max_labels=max_labels,
            choices=choices,
            on_error=on_error,
            metric=metric,
            positive=positive,
        )
        source = load_checkpoint(model, FOR_TRAINING)
        dataset = read_dataset(task, files["data"], options)
    job = Job(source, dataset, FinetuneRecipe(), from_scratch, answers_test)
    trials = plan_trials(job, recipe, list_words(changes), seeds)
    if len(trials) > 1:
        summary = run_trials(trials, folder)
        for run in summary["runs"]:
            draw_errors(read_report(folder / run["folder"]), folder / run["folder"])
        best = max(summary["combinations"], key=lambda one: float(one["median"]))
        metrics = {key: best[key] for key in ("median", "deviation", "lowest", "highest")}
        return Result("finetune", folder, folder / summary["best_run"] / MODEL, metrics, summary)
    report = tune(trials[0].job, folder)
    draw_errors(report, folder)
    scores = next(iter(report["dev"].values()))["scores"]
    return Result("finetune", folder, folder / MODEL, {**scores, "best_step": report["best_step"]}, report)


def distill(
    teacher: "PathLike | Predictor",
    student: PathLike,
    corpus: PathLike,
    out: PathLike,
    changes: Changes = (),
    *,
    passages: int = 100_000,
    cache: PathLike | None = None,
    start: Literal["random", "teacher"] = "random",
    recipe: str = "",
    engine: Literal["auto", "torch", "onnx", "openvino"] | None = None,
    threads: int = 0,
) -> Result:
    """Teach a small model the sentence vectors of a larger one, on the text of a corpus.

    `teacher` is any model that makes vectors, such as a folder of sentence-transformers. `student` is a model, or the
    name of a preset or recipe for a new one that reads the corpus's tokens; shorter vectors than the teacher's are its
    principal components. A new student may `start` from its teacher's layers, if their shapes agree. The teacher embeds
    `passages` texts once; they are kept in `cache` (next to the corpus by default) for other students. `changes`
    override keys of the fine-tuning recipe. The same call continues an interrupted run.

    >>> taught = litebert.distill("runs/small", "runs/small", "corpus", "runs/taught", {"train.steps": 4}, passages=50)
    >>> taught.metrics["cosine"] > 0.9  # the teacher itself
    True
    """
    from litebert.distillation.distill import Lesson
    from litebert.distillation.distill import distill as teach
    from litebert.finetuning.finetune import MODEL
    from litebert.inference.predictor import Predictor, load

    _check_one_of("start", start, ("random", "teacher"))
    if passages < 1:
        raise ConfigError("out-of-range", f"passages must be at least 1, got {passages}", option="passages")
    loaded = teacher if isinstance(teacher, Predictor) else load(teacher, engine=engine, threads=threads)
    folder = Path(out)
    lesson = Lesson(
        loaded,
        os.fspath(student),
        Path(corpus),
        passages,
        None if cache is None else Path(cache),
        start,
        recipe,
        tuple(list_words(changes)),
    )
    report = teach(lesson, folder)
    scores = next(iter(report["dev"].values()))["scores"]
    return Result("distill", folder, folder / MODEL, {**scores, "best_step": report["best_step"]}, report)


def evaluate(
    model: PathLike,
    data: Any,
    *,
    task: str | None = None,
    split: str = "",
    out: PathLike | None = None,
    text: str | None = None,
    text_b: str | None = None,
    label: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
    group: str | None = None,
    choices: str | None = None,
    on_error: Literal["fail", "skip", "fix"] = "fail",
    engine: Literal["auto", "torch", "onnx", "openvino"] | None = None,
    threads: int = 0,
    patience: int = 0,
    layers: int = 0,
) -> Result:
    """Score a fine-tuned model on labelled data, with intervals, next to chance and a baseline.

    `data` is what `finetune` takes; of a task's folder `split` names the part (dev by default), of a file or table all
    rows count. Answers are written to `out`, if it is named: as JSON lines, or as SQuAD's object if it ends in .json.

    >>> low, high = litebert.evaluate("runs/tuned", reviews).report["intervals"]["accuracy"]
    >>> 0 <= low <= high <= 1
    True
    """
    from litebert.core.files import write_json
    from litebert.core.progress import ProgressBar
    from litebert.inference.evaluation import evaluate as score
    from litebert.inference.task_request import TaskRequest
    from litebert.tasks.files.python_tables import tables_as_files
    from litebert.tasks.leaderboard.answer_sheets import to_sheet
    from litebert.tasks.predictions import predict_answers, write_predictions
    from litebert.tasks.report import is_labelled

    answers = None if out is None else Path(out)
    if answers and answers.is_dir():
        raise ConfigError("is-a-folder", f"{answers} is a folder: name a file in it", option="out")
    columns = {"text": text, "text_b": text_b, "label": label, "encoding": encoding, "has_header": header}
    columns |= {"group": group, "choices": choices, "on_error": on_error}
    computing = {"engine": engine, "threads": threads, "patience": patience, "layers": layers}
    with tables_as_files(data=data) as files:
        request = TaskRequest(model, task, files["data"], split, columns, computing)
        predictor = request.load()
        dataset, chosen = request.read(predictor)
    if not (answers or is_labelled(chosen.examples)):
        what = f"{request.data}: {chosen.split} has no labels to score by"
        raise DataError("no-labels", f"{what}; its answers can be written to a file", option="out")
    with ProgressBar("evaluating", total=len(chosen.examples), unit="examples", scale=1) as progress:
        facts, outputs = score(predictor, dataset, chosen.examples, progress.move_to, to_learn=chosen.to_learn)
    if answers:
        found = predict_answers(predictor.task, outputs, chosen.examples)
        write_json(answers, to_sheet(found)) if answers.suffix == ".json" else write_predictions(answers, found)
    known = {"split": chosen.split, "num_trained_on": chosen.num_trained}
    report = {**known, **facts} if facts else {}
    return Result("evaluate", answers, None, facts.get("scores", {}), report, chosen)


def predict(
    model: "PathLike | Predictor",
    texts: Any,
    *,
    text: str | None = None,
    text_b: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
    choices: str | None = None,
    long: "LongTexts" = "truncate",
    window_pooling: "WindowPooling" = "mean",
    engine: Literal["auto", "torch", "onnx", "openvino"] | None = None,
    threads: int = 0,
    patience: int = 0,
    layers: int = 0,
) -> list[dict[str, Any]]:
    """What a model answers: a record per text, as `litebert predict` prints it.

    `texts` is a list or column of texts (or of pairs, for a model of pairs), a table as `finetune` takes it, or files.
    A model that was only pre-trained guesses the tokens at [MASK]. `litebert.load` keeps a model in memory between
    calls.

    >>> [record["answer"] in ("x", "y") for record in litebert.predict("runs/tuned", ["a cat sees 1", "one tree"])]
    [True, True]
    """
    answers = iter_answers(
        model,
        texts,
        text=text,
        text_b=text_b,
        encoding=encoding,
        header=header,
        choices=choices,
        long=long,
        window_pooling=window_pooling,
        engine=engine,
        threads=threads,
        patience=patience,
        layers=layers,
    )
    return [one.record for one in answers]


def build_index(
    texts: Texts,
    out: PathLike,
    *,
    model: "PathLike | Predictor",
    precision: Literal["int8", "float32"] = "int8",
    passage_tokens: int | None = None,
    format: str = "auto",  # noqa: A002
    field: str = "text",
    on_error: Literal["fail", "skip"] = "fail",
    engine: Literal["auto", "torch", "onnx", "openvino"] | None = None,
    threads: int = 0,
) -> Result:
    """Embed the passages of texts for `litebert.SearchIndex`, or bring an index up to date with them.

    What is new is embedded, what is gone is removed. After a kill the same call continues. Passages are whole sentences
    of up to `passage_tokens` tokens: 128, or what the model reads if that is less.

    >>> index = litebert.build_index("texts/", "index", model="runs/small")
    >>> len(litebert.SearchIndex(index).search("a cat", k=3))
    3
    """
    from litebert.core.progress import ProgressBar
    from litebert.corpus.documents import ReadOptions, iter_documents
    from litebert.corpus.notes import Notes
    from litebert.inference.predictor import Predictor, load
    from litebert.search.build import IndexOptions
    from litebert.search.build import build_index as build

    _check_one_of("on_error", on_error, ("fail", "skip"))
    _check_one_of("precision", precision, ("int8", "float32"))
    loaded = model if isinstance(model, Predictor) else load(model, engine=engine, threads=threads)
    notes = Notes(on_error)
    paths, values = _find_texts(texts, field)
    with ProgressBar("reading and embedding", total=100, unit="%", scale=1) as progress:
        documents = iter_documents(
            paths,
            ReadOptions(format=format, field=field, on_error=on_error),
            notes=notes,
            texts=values,
            report=lambda share: progress.move_to(100 * share),
        )
        options = IndexOptions(precision, passage_tokens)
        built = build(documents, Path(out), loaded, options, title=str(loaded.checkpoint.path))
    facts = {
        "passages": built.record.num_passages,
        "documents": built.num_documents,
        "new": built.num_new,
        "removed": built.num_removed,
        "size": sum(file.stat().st_size for file in Path(out).iterdir()),
    }
    report = {
        **facts,
        "elapsed_seconds": built.elapsed_seconds,
        "skipped": notes.examples,
        "counts": dict(notes.counts),
    }
    return Result("build_index", Path(out), None, facts, report, built)


def iter_answers(
    model: "PathLike | Predictor",
    texts: Any,
    *,
    text: str | None,
    text_b: str | None,
    encoding: str,
    header: bool | None,
    choices: str | None,
    long: "LongTexts" = "truncate",
    window_pooling: "WindowPooling" = "mean",
    **computing: Any,
) -> "Iterator[Answered]":
    """`predict` as answers are computed, each as a record and as the row of a table; without texts, standard input."""
    from litebert.inference.predictor import Predictor, load
    from litebert.inference.records import iter_records, read_inputs, to_inputs
    from litebert.tasks.files.python_tables import tables_as_files
    from litebert.tasks.files.reading import TableOptions

    predictor = model if isinstance(model, Predictor) else load(model, **computing)
    if long != "truncate":
        predictor = predictor.with_long(long, window_pooling)
    options = TableOptions(text=text, text_b=text_b, encoding=encoding, has_header=header, choices=choices)
    if isinstance(texts, str | os.PathLike):
        texts = [Path(texts)]
    elif hasattr(texts, "tolist"):  # a column of a pandas table, or an array
        texts = texts.tolist()
    elif isinstance(texts, Sequence):  # also a column of `datasets`
        texts = list(texts)
    if isinstance(texts, list) and all(isinstance(one, Path) for one in texts):
        examples = read_inputs(predictor, texts, options)
        return iter_records(predictor, examples, names_files=len(texts) > 1)
    if isinstance(texts, list | tuple) and not all(isinstance(one, Mapping) for one in texts):
        return iter_records(predictor, to_inputs(predictor, texts))
    with tables_as_files(texts=texts) as files:
        examples = read_inputs(predictor, [files["texts"]], options)
    return iter_records(predictor, examples)


def export(
    model: PathLike,
    out: PathLike,
    *,
    format: Literal["onnx", "web"] = "onnx",  # noqa: A002
    head: str = "",
    int8: bool = False,
    dev: PathLike | None = None,
    layers: int = 0,
    max_drop: float | None = None,
    runtime: PathLike | None = None,
    overwrite: bool = False,
) -> Result:
    """Write a model for onnxruntime, or as a page that answers in the browser (always in int8).

    `head` answers; by default what the model was fine-tuned for. What `int8` costs is measured on the labelled examples
    of `dev`; more than `max_drop` points (1 by default) is an error. The folder of onnxruntime-web is `runtime`;
    without it npm fetches it.

    >>> litebert.export("runs/small", "exported").report["head"]
    'mlm'
    """
    from litebert.exporters.int8 import Int8Options, export_int8
    from litebert.exporters.onnx_folder import export_onnx, has_exits, learned_exits
    from litebert.exporters.web import MAX_BYTES, export_web
    from litebert.interop.opening import load_checkpoint
    from litebert.interop.truncating import truncate

    is_web = format == "web"
    if not (int8 or is_web) and (dev is not None or max_drop is not None):
        raise ConfigError(
            "only-int8",
            "dev and max_drop measure what int8 costs: export in int8 too, or leave them out",
            option="int8",
        )
    if max_drop is not None and dev is None:
        raise ConfigError(
            "no-examples",
            f"max_drop = {max_drop:g} is measured on labelled examples: name a file of them",
            option="dev",
        )
    if runtime is not None and not is_web:
        raise ConfigError("only-web", "runtime is for the format web: leave it out", option="format")
    checkpoint = load_checkpoint(os.fspath(model))
    checkpoint = truncate(checkpoint, layers) if layers else checkpoint
    notes = []
    options = Int8Options(None if dev is None else Path(dev), MAX_DROP if max_drop is None else max_drop, print)
    accuracy, in_float = None, tuple[str, ...]()
    with _folder_to_write(out, overwrite=overwrite) as folder:
        if is_web:
            files = None if runtime is None else Path(runtime)
            page = export_web(checkpoint, folder, options, head=head, runtime=files)
            chosen, num_bytes, accuracy = page.head, page.num_bytes, page.accuracy
        elif int8:
            result = export_int8(checkpoint, folder, options, head=head)
            chosen, num_bytes = result.exported.head, result.exported.num_bytes
            accuracy, in_float = result.accuracy, result.in_float
        else:
            done = export_onnx(checkpoint, folder, head=head)
            chosen, num_bytes = done.head, done.num_bytes
    if is_web and num_bytes > MAX_BYTES:
        size = f"{num_bytes / 1e6:.0f} MB"
        notes.append(f"visitors load a model of {size}; a smaller one, or fewer layers, would load faster")
    if not is_web and learned_exits(checkpoint, chosen) and not has_exits(checkpoint, chosen):
        notes.append("its layers differ, so the graph cannot leave them early: it always computes all of them")
    if (int8 or is_web) and accuracy is None:
        notes.insert(0, "what int8 costs was not measured; give labelled examples (dev)")
    report = {
        "format": format,
        "head": chosen,
        "num_bytes": num_bytes,
        "accuracy": asdict(accuracy) if accuracy else None,
        "in_float": list(in_float),
        "notes": notes,
    }
    metrics = {"num_bytes": num_bytes} | ({"int8_score": accuracy.int8_score} if accuracy else {})
    return Result("export", Path(out), None, metrics, report, accuracy)


@contextmanager
def _folder_to_write(out: PathLike, *, overwrite: bool) -> Iterator[Path]:
    """Where to write a model to; only a folder with a model is ever replaced."""
    from litebert.core.files import directory_to_write

    folder = Path(out)
    if overwrite and folder.exists() and not any((folder / name).is_file() for name in _MODEL_FILES):
        raise ConfigError(
            "output-exists", f"{folder} exists and does not contain a model: choose another", option="out"
        )
    with directory_to_write(folder, replaces=overwrite) as place:
        yield place


def run_study(
    study: PathLike,
    changes: Changes = (),
    *,
    scale: Literal["laptop", "paper"] = "laptop",
    arms: Sequence[str] = (),
    seeds: Sequence[int] = (),
    corpora: Sequence[PathLike] | Mapping[str, PathLike] = (),
    data: PathLike | None = None,
    out: PathLike | None = None,
    jobs: int = 1,
) -> Result:
    """Run a study (`litebert study list` names them), or continue one; finished arms are not run again.

    `arms` are names or patterns, `seeds` others than the study's; `corpora` is the corpus to read, for a study of
    several a mapping from their names. `jobs` arms run side by side, each in a process with its share of the cores. The
    report has what was measured of each arm; `litebert study report` makes tables and figures.

    >>> found = litebert.run_study("table-1", arms=["albert-base"], out="runs/sizes")
    >>> found.report["arms"]["albert-base-seed-1"]["values"]["parameters"] < 12.5
    True
    """
    from litebert.study.arms import plan_arms
    from litebert.study.run import StudyRequest, run_arms
    from litebert.study.spec import load_study

    name = os.fspath(study)
    loaded = load_study(name)
    runs = plan_arms(loaded, scale, words=tuple(list_words(changes)), arms=arms, seeds=seeds)
    if isinstance(corpora, Mapping):
        paths = tuple(f"{key}={os.fspath(path)}" for key, path in corpora.items())
    else:
        paths = tuple(os.fspath(path) for path in ([corpora] if isinstance(corpora, str | os.PathLike) else corpora))
    folder = Path(out) if out else Path("runs") / "studies" / f"{loaded.name}-{scale}"
    request = StudyRequest(name, folder, paths, None if data is None else Path(data))
    ended = run_arms(request, runs, jobs)
    report = {"arms": ended.reports, "elsewhere": ended.elsewhere}
    return Result("run_study", folder, None, {"arms": len(ended.reports)}, report)


def serve(
    models: PathLike | Sequence[PathLike] | Mapping[str, PathLike],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str = "",
    origins: Sequence[str] = (),
    allow_hosts: Sequence[str] = (),
    root_path: str = "",
    rerank_label: str = "",
    device: str = "auto",
    engine: Literal["auto", "torch", "onnx", "openvino"] | None = None,
    threads: int = 0,
    max_batch: int = 64,
    max_wait_ms: float = 2.0,
    max_queue: int = 512,
    max_inputs: int = 64,
    max_characters: int = 20_000,
    max_tokens: int = 16_384,
    max_body: int = 1_000_000,
    timeout: float = 30.0,
) -> None:
    """Serve models over HTTP until Ctrl-C, with a page to play on at / and the API's description at /docs.

    A mapping names the models, as `name=path` does. Clients must send `token`, if there is one, as a bearer token.
    `rerank_label`: the label of relevant texts, whose probability /v1/rerank takes for the score of a classifier.

    >>> litebert.serve({"mine": "runs/tuned"}, port=8000)  # doctest: +SKIP
    """
    try:
        from litebert.server.options import Limits, ServeOptions
        from litebert.server.server import Computing
        from litebert.server.server import serve as run
    except ImportError as error:
        raise ConfigError("missing-package", f"the server needs {error.name}: pip install 'litebert[serve]'") from error

    if isinstance(models, Mapping):
        sources = [f"{name}={os.fspath(path)}" for name, path in models.items()]
    else:
        sources = [os.fspath(path) for path in ([models] if isinstance(models, str | os.PathLike) else models)]
    limits = Limits(
        max_body_bytes=max_body,
        max_inputs=max_inputs,
        max_characters=max_characters,
        max_tokens=max_tokens,
        max_queue=max_queue,
        max_batch=max_batch,
        max_wait_seconds=max_wait_ms / 1000,
        timeout_seconds=timeout,
    )
    options = ServeOptions(
        host, port, token, tuple(origins), tuple(allow_hosts), limits, root_path=root_path, rerank_label=rerank_label
    )
    run(sources, options, Computing(device, engine, threads))


def list_words(changes: Changes) -> list[str]:
    """Changes as the words of the command line, such as train.steps=500; a Python value becomes a TOML value.

    >>> list_words({"train": {"steps": 5}, "data.corpora": "corpus"})
    ['train.steps=5', 'data.corpora="corpus"']
    """
    if isinstance(changes, str):
        raise ConfigError(
            "bad-changes", f"changes = {changes!r}: a mapping such as {{'train.steps': 500}}, or a list of key=value"
        )
    if not isinstance(changes, Mapping):
        return [str(word) for word in changes]
    words: list[str] = []
    for key, value in changes.items():
        if isinstance(value, Mapping):
            words += [f"{key}.{word}" for word in list_words(value)]
        else:
            words.append(f"{key}={_to_toml(key, value)}")
    return words


def _to_toml(key: str, value: Any) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bool | str):
        return json.dumps(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_to_toml(key, item) for item in value)}]"
    raise ConfigError(
        "bad-changes", f"{key} = {value!r}: a number, a string, true or false, a path, or a list of these"
    )


def _find_texts(texts: Texts, field: str) -> tuple[list[str], list[str] | None]:
    """The files that are named, or the texts themselves; a list of strings is texts."""
    if isinstance(texts, str | os.PathLike):
        return [os.fspath(texts)], None
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or hasattr(texts, "column_names"):
        names = list(getattr(texts, "column_names", None) or getattr(texts, "columns", None) or texts)
        if field not in names:
            raise DataError(
                "no-column", f"the table has no column '{field}', but {', '.join(map(str, names))}", option="field"
            )
        texts = texts[field]
    items = list(texts) if isinstance(texts, Iterable) else [texts]
    if items and all(isinstance(item, os.PathLike) for item in items):
        return [os.fspath(item) for item in items], None
    for number, item in enumerate(items):
        if not isinstance(item, str):
            raise DataError("no-text", f"texts[{number}] is {item!r}: every text is a string")
    if not items:
        raise DataError("no-text", "texts is empty: there is nothing to read")
    if all(len(item) < 4096 and Path(item).exists() for item in items if item.strip()):
        raise DataError(
            "file-name",
            f"texts[0] = {items[0]!r} is the name of a file: pass Paths to read files, strings to read texts",
        )
    return [], items


def _check_one_of(name: str, value: str, valid: Sequence[str]) -> None:
    if value not in valid:
        raise ConfigError("unknown-value", f"{name} = {value} is unknown; valid: {', '.join(valid)}", option=name)
