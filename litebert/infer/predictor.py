"""A model ready to be asked: `litebert.load(path)`, then classify, tag, answer, choose, fill_mask, embed, order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError
from litebert.core.runtime import Runtime, RuntimeOptions, choose_runtime
from litebert.data.group_batch import build_group_batch
from litebert.data.groups import Group, SequenceForm, build_form
from litebert.infer.answering import Choice, FoundAnswer, read_answer, read_choice, to_choice_example, to_questions
from litebert.infer.fill_mask import Guess, fill_mask
from litebert.infer.outputs import BATCH_TOKENS, compute_outputs, plan_batches
from litebert.interop.opening import load_checkpoint
from litebert.model.config import HeadKind
from litebert.model.model import Model
from litebert.tasks.catalog import restore_task
from litebert.tasks.choices import Choices
from litebert.tasks.classification import Classification, MultiLabel, Regression
from litebert.tasks.finetuning import FinetuneTask, Output
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.texts import TextExample, join_texts
from litebert.tasks.token_tags import TaggedWords, TokenTags
from litebert.text.tokenizer import Tokenizer

Text = str | tuple[str, str]  # one, or a pair


@dataclass(frozen=True)
class Label:
    """An answer: the label (a number for regression, a tuple where several labels may hold) and all probabilities."""

    label: Any
    probabilities: dict[str, float]  # empty for regression


class Predictor:
    """A checkpoint's model with its tokenizer and, if it was fine-tuned, its task."""

    def __init__(self, checkpoint: Checkpoint, runtime: Runtime) -> None:
        self.checkpoint = checkpoint
        self.runtime = runtime
        self.tokenizer: Tokenizer = checkpoint.load_tokenizer()
        self.model: Model = checkpoint.load_model().to(runtime.device).eval()

    @cached_property
    def task(self) -> FinetuneTask:
        """What the model was fine-tuned for."""
        if self.checkpoint.task is None:
            has = ", ".join(spec.kind for spec in self.checkpoint.heads) or "no head"
            raise ConfigError(
                f"{self.checkpoint.path} was not fine-tuned (it has {has}): `litebert finetune` makes it answer"
            )
        return restore_task(self.checkpoint.task, where=str(self.checkpoint.path))

    def form(self, max_length: int | None = None) -> SequenceForm:
        """How this model wants its input; texts that are longer than it was fine-tuned on are cut."""
        config = self.checkpoint.config
        learned = (self.checkpoint.task or {}).get("max_length", config.max_positions)
        length = min(max_length or learned, config.max_positions)
        return build_form(self.tokenizer, max_length=length, num_segments=config.num_segments)

    def predict(
        self, examples: Sequence[Any], *, max_length: int | None = None, report: Callable[[int], None] = lambda _: None
    ) -> list[Output]:
        """The task's outputs for its own kind of examples, in their order."""
        groups = self.task.encode(examples, self.tokenizer, self.form(max_length))
        pad_id = self.tokenizer.pad_id
        return compute_outputs(self.model, self.task, groups, self.runtime, pad_id=pad_id, report=report)

    def classify(self, texts: Sequence[Text]) -> list[Label]:
        """The label of each text or pair, with its probability and the others'; or the number, for regression."""
        task = self._expect(Classification, MultiLabel, Regression)
        return [self._label(task, output) for output in self.predict(_to_examples(texts))]

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tag of each word of each sentence."""
        task = self._expect(TokenTags)
        if isinstance(sentences, str) or any(isinstance(words, str) for words in sentences):
            raise ConfigError("a sentence is a list of its words: text.split(), or your own tokenizer's")
        examples = [TaggedWords(str(n), tuple(words)) for n, words in enumerate(sentences)]
        return [task.decide(output) for output in self.predict(examples)]

    def answer(self, question: str, context: str) -> FoundAnswer:
        """The stretch of the context that answers the question, however long the context is; "" where there is none."""
        return self.answer_batch([(question, context)])[0]

    def answer_batch(self, pairs: Sequence[tuple[str, str]]) -> list[FoundAnswer]:
        """`answer` for many (question, context) pairs at once."""
        task = self._expect(SpanTask)
        return [read_answer(task, output) for output in self.predict(to_questions(pairs))]

    def choose(self, context: str, question: str, choices: Sequence[str]) -> Choice:
        """The choice that fits the question about the context best; a choice takes the place of a `_`."""
        self._expect(Choices)
        (output,) = self.predict([to_choice_example(context, question, choices)])
        return read_choice(choices, output)

    def fill_mask(self, text: str, top_k: int = 5) -> list[list[Guess]]:
        """The most probable pieces for each [MASK] of a text."""
        self._need_head("mlm", "fill masks")
        return fill_mask(self.model, self.tokenizer, text, top_k)

    def order(self, first: str, second: str) -> float:
        """How probable it is that the second text follows the first, rather than the other way round."""
        self._need_head("sentence", "order sentences")
        (sequence,) = join_texts(_to_examples([(first, second)]), self.tokenizer, self.form())
        batch = build_group_batch([Group((sequence,))], self.tokenizer.pad_id).to(self.runtime.device)
        with torch.inference_mode():
            pooled = self.model.encoder(batch.token_ids, batch.segment_ids).pooled
            return float(self.model.heads["sentence"](pooled).softmax(-1)[0, 0])

    def embed(self, texts: Sequence[Text], *, normalize: bool = True) -> NDArray[np.float32]:
        """A vector (N, H) for each text: the mean of its tokens' last states, of length one unless told otherwise."""
        sequences = join_texts(_to_examples(texts), self.tokenizer, self.form())
        groups = [Group((sequence,)) for sequence in sequences]
        vectors = np.zeros((len(groups), self.checkpoint.config.hidden_size), dtype=np.float32)
        for numbers in plan_batches(groups, BATCH_TOKENS):
            batch = build_group_batch([groups[n] for n in numbers], self.tokenizer.pad_id).to(self.runtime.device)
            with torch.inference_mode():
                hidden = self.model.encoder(batch.token_ids, batch.segment_ids, batch.mask).hidden
                mean = (hidden * batch.mask[..., None]).sum(1) / batch.mask.sum(1, keepdim=True)  # (S, H)
            vectors[numbers] = mean.float().cpu().numpy()
        if normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

    def _label(self, task: Any, output: Output) -> Label:
        answer = task.decide(output)
        if isinstance(task, Regression):
            return Label(answer, {})
        label = tuple(answer) if isinstance(answer, list) else answer
        return Label(label, dict(zip(task.labels, output, strict=True)))

    def _expect(self, *kinds: type[Any]) -> Any:
        if not isinstance(self.task, kinds):
            asked = " or ".join(kind.__name__ for kind in kinds)
            raise ConfigError(
                f"{self.checkpoint.path} was fine-tuned for {self.task.name} ({type(self.task).__name__}), not {asked}"
            )
        return self.task

    def _need_head(self, kind: HeadKind, purpose: str) -> None:
        if kind not in self.model.heads:
            raise ConfigError(
                f"{self.checkpoint.path} cannot {purpose}: it has no head '{kind}'; take a pre-trained one"
            )


def load(source: str | Path, *, device: str = "auto") -> Predictor:
    """The predictor of a checkpoint, of a run's model, of a Hugging Face or TensorFlow model, or of a hub's name."""
    return Predictor(load_checkpoint(source), choose_runtime(RuntimeOptions(device=device)))


def _to_examples(texts: Sequence[Text]) -> list[TextExample]:
    if isinstance(texts, str):
        raise ConfigError(f"'{texts[:40]}' is one text: give a list of texts")
    return [TextExample(str(number), *_check_texts(text, number)) for number, text in enumerate(texts)]


def _check_texts(text: Any, number: int) -> tuple[str, ...]:
    parts = (text,) if isinstance(text, str) else tuple(text) if isinstance(text, tuple | list) else ()
    if not 1 <= len(parts) <= 2 or not all(isinstance(part, str) for part in parts):
        raise ConfigError(f"text {number} is {text!r:.60}: give a text, or a pair of texts as a tuple")
    return parts
