"""A loaded model: `litebert.load(path)`, then classify, tag, answer, choose, fill_mask, embed, order."""

import os
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError, warn
from litebert.core.runtime import Runtime, RuntimeOptions, choose_runtime
from litebert.inference.answering import Choice, FoundAnswer, read_answer, read_choice, to_choice_example, to_questions
from litebert.inference.cutting import ReportCut, tell_cut
from litebert.inference.engines.choosing import PACKAGES, EngineChoice, Trial, choose_engine
from litebert.inference.engines.graphs import (
    BATCH_TOKENS,
    BatchEngine,
    CheckpointGraphs,
    EngineName,
    Graphs,
    OneGraph,
)
from litebert.inference.engines.threads import choose_threads
from litebert.inference.engines.torch_engine import TorchEngine
from litebert.inference.export_folder import Export, is_export, open_export
from litebert.inference.fill_mask import Guess, encode_gaps, fill_gaps
from litebert.inference.long_texts import LongTexts, WindowPooling, encode_windows, pool_windows
from litebert.inference.session import Session
from litebert.interop.opening import load_checkpoint
from litebert.interop.truncating import truncate
from litebert.interop.vocabulary_notes import note_vocabulary
from litebert.model.config import HeadKind
from litebert.model.engine import HeadName
from litebert.model.model import Model
from litebert.tasks.catalog import KINDS, find_kind, restore_task
from litebert.tasks.ensemble import is_ensemble, list_members
from litebert.tasks.finetuning import FinetuneTask, Output
from litebert.tasks.groups import Group, SequenceForm, build_form
from litebert.tasks.kinds.choices import ChoiceExample
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.embedding import Embedding
from litebert.tasks.kinds.token_tags import TaggedWords
from litebert.tasks.report import read_report
from litebert.tasks.squad.reading import Question
from litebert.tasks.texts import TextExample, check_num_texts, join_texts
from litebert.text.tokenizer import Tokenizer

Text = str | tuple[str, str]  # one, or a pair
_POOLED = (Classification, MultiLabel, Regression)  # tasks whose outputs of several windows can be pooled


@dataclass(frozen=True)
class Label:
    """An answer: the label (a number for regression, a tuple where several labels may hold) and all probabilities."""

    label: Any
    probabilities: dict[str, float]  # empty for regression


class Predictor:
    """A checkpoint's model with its tokenizer and, if it was fine-tuned, its task."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        runtime: Runtime,
        engine: BatchEngine | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        """Without an engine, torch is used."""
        self.checkpoint = checkpoint
        self.runtime = runtime
        self._tokenizer = tokenizer
        self.engine: BatchEngine = engine or TorchEngine(checkpoint.load_model().to(runtime.device).eval(), runtime)
        self.patience = 0  # early exit after this many consecutive layers with the same answer; 0: all layers
        self.long: LongTexts = "truncate"  # how to read texts that exceed the model's maximum length
        self.window_pooling: WindowPooling = "mean"
        self.is_wanted: Callable[[], bool] | None = None  # called before each batch; False raises `Interrupted`
        self.report_layers: Callable[[Sequence[int]], object] | None = None  # called with each text's number of layers
        self.members: tuple[Predictor, ...] = ()  # of an ensemble, whose outputs are averaged

    def __repr__(self) -> str:
        does = f"fine-tuned for {self.task.name}" if self.checkpoint.task else "pre-trained"
        return f"<Predictor {str(self.checkpoint.path)!r}: {does}, {self.engine.name}>"

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self._tokenizer or self.checkpoint.load_tokenizer()

    @cached_property
    def model(self) -> Model:
        """The torch model. With other engines it is loaded when first used."""
        if isinstance(self.engine, TorchEngine):
            return self.engine.model
        return self.checkpoint.load_model().to(self.runtime.device).eval()

    @property
    def session(self) -> Session:
        """The engine with this predictor's settings."""
        return Session(self.engine, self.tokenizer.pad_id, self.patience, self.is_wanted, self.report_layers)

    @property
    def has_exits(self) -> bool:
        """Whether it supports early exit."""
        return self._learned_exits and not self.members and self.engine.can_exit("classification")

    @property
    def _learned_exits(self) -> bool:
        return self.checkpoint.task is not None and bool(getattr(self.task, "exits", False))

    def check_exits(self) -> None:
        """Raise if it does not support early exit."""
        if self.members:
            raise ConfigError(
                "unsupported-early-exit",
                f"{self.checkpoint.path} is an ensemble, which does not support early exit: set patience to 0",
                option="patience",
            )
        if not self._learned_exits:
            raise ConfigError(
                "unsupported-early-exit",
                f"{self.checkpoint.path} was not trained for early exit: fine-tune it with exit.enabled=true",
                option="patience",
            )
        if not self.has_exits:
            raise ConfigError(
                "unsupported-early-exit",
                f"{self.checkpoint.path} does not support early exit with the {self.engine.name} engine (only onnx "
                "does, for models with one shared layer): use the checkpoint with the torch engine, or set patience "
                "to 0",
                option="patience",
            )

    def with_patience(self, patience: int) -> "Predictor":
        """The same predictor with another patience: a text exits after this many layers with the same answer.

        0 computes all layers. Weights and sessions are shared, so each request to a server may have its own patience.
        """
        if patience < 0:
            raise ConfigError(
                "out-of-range", f"patience must be 0 (no early exit) or more, got {patience}", option="patience"
            )
        if patience:
            self.check_exits()
        changed = copy(self)
        changed.patience = patience
        return changed

    def with_long(self, long: LongTexts, pooling: WindowPooling = "mean") -> "Predictor":
        """The same predictor with another way to read single texts that are too long, in `predict` and `embed`.

        "truncate" drops their end. "windows" reads all of them in overlapping windows, and pools the probabilities,
        numbers or vectors: their "mean", their "max", or the "first" window's.
        """
        for name, value, known in (("long", long, LongTexts), ("window_pooling", pooling, WindowPooling)):
            if value not in get_args(known):
                raise ConfigError(
                    "unknown-value", f"{name} = '{value}': choose {', '.join(get_args(known))}", option=name
                )
        if long == "windows" and self.checkpoint.task is not None and not isinstance(self.task, _POOLED):
            raise ConfigError(
                "unsupported-task",
                f"{self.checkpoint.path} answers {self.task.name}, for which windows are not pooled: passages and tags "
                "are read in windows anyway, choices are truncated",
                option="long",
            )
        changed = copy(self)
        changed.long, changed.window_pooling = long, pooling
        changed.members = tuple(member.with_long(long, pooling) for member in self.members)
        return changed

    def as_embedder(self) -> "Predictor":
        """The same predictor with `embedding` for its task, whose vectors are those of `embed`."""
        changed = copy(self)
        changed.checkpoint = replace(self.checkpoint, embedding=self.checkpoint.embedding_spec)
        return changed

    def interruptible(self, is_wanted: Callable[[], bool]) -> "Predictor":
        """The same predictor, which raises `Interrupted` before a batch when `is_wanted` returns False."""
        changed = copy(self)
        changed.is_wanted = is_wanted
        changed.members = tuple(member.interruptible(is_wanted) for member in self.members)
        return changed

    @property
    def only_fills_gaps(self) -> bool:
        """Whether it has a masked LM head and was not fine-tuned."""
        return self.checkpoint.task is None and "mlm" in {spec.kind for spec in self.checkpoint.heads}

    @cached_property
    def task(self) -> FinetuneTask:
        """The task that the model was fine-tuned for; one that states how it makes vectors embeds."""
        if self.checkpoint.task is None and self.checkpoint.embedding is not None:
            return Embedding(pooling=self.checkpoint.embedding.pooling, normalize=self.checkpoint.embedding.normalize)
        if self.checkpoint.task is None:
            has = ", ".join(spec.kind for spec in self.checkpoint.heads) or "no head"
            raise ConfigError(
                "no-task",
                f"{self.checkpoint.path} was not fine-tuned for a task (heads: {has}): run `litebert finetune` first",
            )
        return restore_task(self.checkpoint.task, where=str(self.checkpoint.path))

    def form(self, max_length: int | None = None) -> SequenceForm:
        """How texts are laid out for this model; texts longer than in fine-tuning are truncated."""
        config = self.checkpoint.config
        stated = None if self.checkpoint.embedding is None else self.checkpoint.embedding.max_length
        learned = (self.checkpoint.task or {}).get("max_length", stated or config.max_positions)
        length = min(max_length or learned, config.max_positions)
        return build_form(self.tokenizer, max_length=length, num_segments=config.num_segments)

    def predict(
        self,
        examples: Sequence[Any],
        *,
        max_length: int | None = None,
        encoded: Sequence[Group | None] = (),
        report: Callable[[int], None] = lambda _: None,
        report_cut: ReportCut | None = None,
    ) -> list[Output]:
        """The task's outputs for its kind of examples, in their order.

        `encoded` has the groups of examples that were encoded before. `report` is called with the number of finished
        examples, `report_cut` with the number of truncated tokens per example. Without `report_cut` truncation is
        reported as a warning.
        """
        if self.members:
            return self._predict_together(examples, max_length, report, report_cut)
        form = self.form(max_length)
        if self.long == "windows":
            return self._predict_windows(examples, form, report, report_cut)
        known = dict(enumerate(encoded))
        new = [number for number in range(len(examples)) if known.get(number) is None]
        made = iter(self.task.encode([examples[number] for number in new], self.tokenizer, form) if new else ())
        groups = [known.get(number) or next(made) for number in range(len(examples))]
        tell_cut(groups, form.max_length, report_cut)
        return self.session.predict(self.task, groups, report)

    def _predict_windows(
        self,
        examples: Sequence[Any],
        form: SequenceForm,
        report: Callable[[int], None],
        report_cut: ReportCut | None,
    ) -> list[Output]:
        """The pooled outputs of each text's windows."""
        task = self.task
        for example in examples:
            check_num_texts(example, getattr(task, "num_texts", 0))
        windows = encode_windows(examples, self.tokenizer, form)
        tell_cut([of_text[0] for of_text in windows], form.max_length, report_cut)
        done = np.cumsum([len(of_text) for of_text in windows])
        flat = [group for of_text in windows for group in of_text]
        outputs = iter(
            self.session.predict(task, flat, lambda count: report(int(np.searchsorted(done, count, "right"))))
        )
        sums_to_one = isinstance(task, Classification)
        return [
            pool_windows([next(outputs) for _ in of_text], self.window_pooling, sums_to_one=sums_to_one).tolist()
            for of_text in windows
        ]

    def _predict_together(
        self,
        examples: Sequence[Any],
        max_length: int | None,
        report: Callable[[int], None],
        report_cut: ReportCut | None,
    ) -> list[Output]:
        """The average of the members' outputs; only the first one reports truncation."""
        num_members, outputs = len(self.members), []
        for number, member in enumerate(self.members):
            progress = lambda done, before=number * len(examples): report((before + done) // num_members)  # noqa: E731
            tell = report_cut if number == 0 else lambda _: None
            outputs.append(member.predict(examples, max_length=max_length, report=progress, report_cut=tell))
        return [self.task.combine(list(each)) for each in zip(*outputs, strict=True)]

    def classify(self, texts: Sequence[Text], *, report_cut: ReportCut | None = None) -> list[Label]:
        """The label of each text or pair with the probabilities of all labels; for regression, the number."""
        task = self._expect(TextExample)
        outputs = self.predict(to_examples(texts), report_cut=report_cut)
        labels = getattr(task, "labels", ())
        answers = []
        for output in outputs:
            answer = task.decide(output)
            has_probabilities = isinstance(output, list) and len(output) == len(labels)
            probabilities = dict(zip(labels, output, strict=True)) if has_probabilities else {}
            answers.append(Label(tuple(answer) if isinstance(answer, list) else answer, probabilities))
        return answers

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tag of each word of each sentence."""
        task = self._expect(TaggedWords)
        if isinstance(sentences, str) or not all(_are_words(words) for words in sentences):
            raise ConfigError("wrong-input", "each sentence must be a list of words, such as text.split()")
        examples = [TaggedWords(str(n), tuple(words)) for n, words in enumerate(sentences)]
        return [task.decide(output) for output in self.predict(examples)]

    def answer(self, question: str, context: str) -> FoundAnswer:
        """The span of the context that answers the question, or "" if there is none. Any context length."""
        return self.answer_batch([(question, context)])[0]

    def answer_batch(self, pairs: Sequence[tuple[str, str]]) -> list[FoundAnswer]:
        """`answer` for many (question, context) pairs at once."""
        task = self._expect(Question)
        return [read_answer(task, output) for output in self.predict(to_questions(pairs))]

    def choose(self, context: str, question: str, choices: Sequence[str]) -> Choice:
        """The choice that fits the question about the context best; a choice replaces each `_` in the question."""
        return self.choose_batch([to_choice_example(context, question, choices)])[0]

    def choose_batch(self, examples: Sequence[ChoiceExample], *, report_cut: ReportCut | None = None) -> list[Choice]:
        """`choose` for many questions at once."""
        self._expect(ChoiceExample)
        outputs = self.predict(examples, report_cut=report_cut)
        return [read_choice(example.choices, output) for example, output in zip(examples, outputs, strict=True)]

    def fill_mask(self, text: str, top_k: int = 5) -> list[list[Guess]]:
        """The most probable pieces for each `[MASK]` of a text, the best first."""
        return self.fill_mask_batch([text], top_k)[0]

    def fill_mask_batch(self, texts: Sequence[str], top_k: int = 5) -> list[list[list[Guess]]]:
        """`fill_mask` for many texts at once."""
        return self.fill_gaps(self.encode_gaps(texts), top_k)

    def encode_gaps(self, texts: Sequence[str]) -> list[Group]:
        """Encode texts with masks for `fill_gaps`; raises if one has no mask or is too long."""
        self._need_head("mlm", "fill masks")
        return [encode_gaps(self.tokenizer, text, self.checkpoint.config.max_positions) for text in texts]

    def fill_gaps(self, encoded: Sequence[Group], top_k: int = 5) -> list[list[list[Guess]]]:
        """`fill_mask` for texts that `encode_gaps` has checked and encoded."""
        return fill_gaps(self.session, self.tokenizer, encoded, top_k)

    def order(self, first: str, second: str) -> float:
        """The probability that the second text follows the first, rather than the reverse."""
        return self.order_batch([(first, second)])[0]

    def order_batch(self, pairs: Sequence[tuple[str, str]], *, report_cut: ReportCut | None = None) -> list[float]:
        """`order` for many pairs at once."""
        self._need_head("sentence", "order sentences")
        # a head with three classes (segments.task = "three-way") has another one for unrelated texts
        found = self._outputs("sentence", "logits", pairs, report_cut)
        return [float(logits[:2].softmax(-1)[0]) for logits in found]

    def embed(
        self,
        texts: Sequence[Text],
        *,
        normalize: bool | None = None,
        size: int | None = None,
        report_cut: ReportCut | None = None,
        report_tokens: Callable[[Sequence[int]], object] = lambda _: None,
    ) -> NDArray[np.float32]:
        """A vector per text (N, H), pooled as the model specifies (sentence-transformers' modules.json).

        The default is the mean of the tokens' last hidden states, normalized to unit length. With `size`, vectors have
        their first so many numbers only, for which the model should have been trained (`embedding.sizes`).
        `report_tokens` is called with the number of tokens that were read of each text, special ones included.
        """
        if size is not None and not 0 < size <= self.checkpoint.config.hidden_size:
            raise ConfigError(
                "out-of-range",
                f"size must be between 1 and {self.checkpoint.config.hidden_size}, the length of the model's vectors, "
                f"got {size}",
                option="size",
            )
        spec = self.checkpoint.embedding_spec
        found = self._outputs("embedding", "embedding", texts, report_cut, report_tokens)
        width = self.checkpoint.config.hidden_size
        vectors = np.array([vector.numpy() for vector in found], dtype=np.float32).reshape(-1, width)[:, :size]
        if spec.normalize if normalize is None else normalize:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.ascontiguousarray(vectors)

    @property
    def vector_sizes(self) -> tuple[int, ...]:
        """The lengths of vectors that the model was trained for, the whole vector first."""
        return (self.checkpoint.config.hidden_size, *(self.checkpoint.task or {}).get("sizes", ()))

    def _outputs(
        self,
        head: HeadName,
        name: str,
        texts: Sequence[Text],
        report_cut: ReportCut | None,
        report_tokens: Callable[[Sequence[int]], object] = lambda _: None,
    ) -> list[Tensor]:
        """One of a head's outputs, for each text."""
        if self.members:
            raise ConfigError(
                "ensemble-has-no-weights",
                f"{self.checkpoint.path} is an ensemble, which has no embeddings or scores of its own: use one of its "
                "members",
            )
        form = self.form(self.checkpoint.find_max_length(head))
        pooling = self.checkpoint.embedding_spec.pooling
        if self.long == "windows" and head == "embedding":
            windows = encode_windows(to_examples(texts), self.tokenizer, form)
        else:
            windows = [[Group((sequence,))] for sequence in join_texts(to_examples(texts), self.tokenizer, form)]
        tell_cut([of_text[0] for of_text in windows], form.max_length, report_cut)
        report_tokens([sum(group.num_tokens for group in of_text) for of_text in windows])
        session = self.session
        found = iter(
            session.answer(
                [group for of_text in windows for group in of_text],
                lambda batch, _: list(session.run(head, batch.to_inputs()._replace(pooling=pooling))[name]),
            )
        )
        of_texts = ([next(found) for _ in of_text] for of_text in windows)
        return [
            one[0] if len(one) == 1 else torch.from_numpy(pool_windows([x.numpy() for x in one], self.window_pooling))
            for one in of_texts
        ]

    def _expect(self, example: type[Any]) -> Any:
        """The task; raises unless it answers examples of this type."""
        if find_kind(self.task).example is not example:
            asked = " or ".join(kind.task.__name__ for kind in KINDS.values() if kind.example is example)
            raise ConfigError(
                "wrong-task",
                f"{self.checkpoint.path} was fine-tuned for {self.task.name} ({type(self.task).__name__}), "
                f"not for {asked}",
            )
        return self.task

    def _need_head(self, kind: HeadKind, purpose: str) -> None:
        if all(spec.kind != kind for spec in self.checkpoint.heads):
            raise ConfigError(
                "no-head",
                f"{self.checkpoint.path} cannot {purpose} because it has no '{kind}' head: use a pre-trained model",
            )


def load(  # called directly by users, so its options are keyword arguments instead of an options object
    source: str | os.PathLike[str],
    *,
    device: str = "auto",
    engine: EngineChoice | None = None,
    threads: int = 0,
    patience: int = 0,
    layers: int = 0,
    tokenizer: Literal["own"] | None = "own",
) -> Predictor:
    """Load a checkpoint, run, ensemble, export, Hugging Face or TensorFlow model, or a model name on the Hub.

    `engine`: torch, onnx, openvino, or auto for the fastest here; by default torch, and onnx for exports.
    `threads` 0: OMP_NUM_THREADS if set, else the number of cores. `patience`: early exit after this many consecutive
    layers with the same answer, for models trained for it. `layers`: use only the first layers.
    `tokenizer` None: load without a tokenizer; `predictor.model` takes token ids. A warning is issued if the
    vocabulary size differs from the model's embedding table.
    """
    if threads < 0:
        raise ConfigError("out-of-range", f"threads must be 0 (all cores) or more, got {threads}", option="threads")
    if is_ensemble(Path(source)):
        computing: dict[str, Any] = {"device": device, "engine": engine, "threads": threads, "layers": layers}
        return _load_ensemble(Path(source), computing).with_patience(patience)
    exported = is_export(Path(source))
    if device not in ("auto", "cpu") and (exported or engine not in (None, "torch")):
        raise ConfigError(
            "unsupported-device",
            f"device '{device}' is supported only by the torch engine; exports and other engines run on the CPU",
            option="device",
        )
    if exported:
        if layers:
            raise ConfigError(
                "export-has-fixed-layers",
                f"{source} is an export, whose number of layers is fixed: export its checkpoint with fewer layers",
                option="layers",
            )
        return _load_exported(open_export(Path(source)), engine or "onnx", threads).with_patience(patience)
    checkpoint = load_checkpoint(source)
    checkpoint = truncate(checkpoint, layers) if layers else checkpoint
    if tokenizer is None:
        if engine not in (None, "torch"):
            raise ConfigError(
                "no-tokenizer", f"engine '{engine}' needs a tokenizer; only torch works without one", option="engine"
            )
        return Predictor(checkpoint, choose_runtime(RuntimeOptions(device=device, num_threads=choose_threads(threads))))
    return _load_checkpoint(checkpoint, device, engine or "torch", threads).with_patience(patience)


def _load_ensemble(path: Path, computing: dict[str, Any]) -> Predictor:
    """A predictor that averages the outputs of an ensemble's members."""
    members = tuple(load(member, **computing) for member in list_members(path))
    first = members[0]
    checkpoint = replace(first.checkpoint, path=path, task=read_report(path)["facts"])
    predictor = Predictor(checkpoint, first.runtime, first.engine, first.tokenizer)
    predictor.members = members
    return predictor


def build_engine(
    name: EngineName, checkpoint: Checkpoint, runtime: Runtime, graphs: Graphs, num_threads: int
) -> BatchEngine:
    """The engine with this name. Engines other than torch need optional packages, so they are imported here."""
    if name == "torch":
        return TorchEngine(checkpoint.load_model().to(runtime.device).eval(), runtime)
    if name == "onnx":
        from litebert.inference.engines.onnx_engine import OnnxEngine

        return OnnxEngine(graphs, num_threads)
    from litebert.inference.engines.openvino_engine import OpenVinoEngine

    return OpenVinoEngine(graphs, num_threads)


def _load_checkpoint(checkpoint: Checkpoint, device: str, engine: EngineChoice, threads: int) -> Predictor:
    num_threads, tokenizer = choose_threads(threads), checkpoint.load_tokenizer()
    for note in note_vocabulary(tokenizer, checkpoint.config.vocab_size):
        warn(f"{checkpoint.path}: {note}")
    options = RuntimeOptions(device=device if engine == "torch" else "cpu", num_threads=num_threads)
    runtime = choose_runtime(options)
    graphs = CheckpointGraphs(checkpoint, tokenizer.mask_id)
    build = lambda name: build_engine(name, checkpoint, runtime, graphs, num_threads)  # noqa: E731
    possible = _list_candidates(checkpoint) if engine == "auto" else tuple(PACKAGES)
    trial = Trial(checkpoint.heads[0].kind if checkpoint.heads else "embedding", checkpoint.config.max_positions)
    return Predictor(checkpoint, runtime, choose_engine(engine, possible, build, trial), tokenizer)


def _load_exported(export: Export, engine: EngineChoice, threads: int) -> Predictor:
    checkpoint, runtime = export.checkpoint, choose_runtime(RuntimeOptions(device="cpu"))
    length = checkpoint.config.max_positions
    # OpenVINO's summation order depends on the batch shape, and quantization makes the difference visible
    is_alone = export.mixes_texts or (export.is_int8 and engine == "openvino")
    batch_tokens = 1 if is_alone else BATCH_TOKENS
    graph = OneGraph(export.graph_file, export.head, length, export.has_exits, batch_tokens)
    num_threads = choose_threads(threads)
    build = lambda name: build_engine(name, checkpoint, runtime, graph, num_threads)  # noqa: E731
    # OpenVINO runs dynamically quantized graphs in float, slower than float itself, and does not support loops
    is_for_onnx = engine == "auto" and (export.is_int8 or export.has_exits)
    possible: tuple[EngineName, ...] = ("onnx",) if is_for_onnx else ("onnx", "openvino")
    return Predictor(checkpoint, runtime, choose_engine(engine, possible, build, Trial(export.head, length)))


def _list_candidates(checkpoint: Checkpoint) -> tuple[EngineName, ...]:
    """The engines that "auto" measures; for early-exit models only those that support it."""
    if not (checkpoint.task or {}).get("exits", False):
        return tuple(PACKAGES)
    return ("torch", "onnx") if checkpoint.config.layer_plan.is_one_layer else ("torch",)


def _are_words(words: Any) -> bool:
    is_list = isinstance(words, Collection) and not isinstance(words, str)
    return is_list and all(isinstance(word, str) for word in words)


def to_examples(texts: Sequence[Text]) -> list[TextExample]:
    """Convert texts or pairs of texts to a text task's examples."""
    if isinstance(texts, str):
        raise ConfigError("wrong-input", f"expected a list of texts, got the single string '{texts[:40]}'")
    examples = []
    for number, text in enumerate(texts):
        parts = (text,) if isinstance(text, str) else tuple(text) if isinstance(text, tuple | list) else ()
        if not 1 <= len(parts) <= 2 or not all(isinstance(part, str) for part in parts):
            raise ConfigError("wrong-input", f"text {number} must be a string or a pair of strings, got {text!r:.60}")
        examples.append(TextExample(str(number), *parts))
    return examples
