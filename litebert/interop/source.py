"""A checkpoint from elsewhere, opened: its model, and where each of our tensors is in it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from litebert.core.errors import DataError
from litebert.interop.matching import Mismatch, Place, Store, check_match
from litebert.interop.names import Family
from litebert.interop.statistics import check_has_content
from litebert.model.config import HeadKind, HeadSpec, ModelConfig
from litebert.model.model import build_model
from litebert.model.pooling import EmbeddingSpec
from litebert.text.tokenizer import Tokenizer, load_tokenizer

SourceKind = Literal["huggingface", "tensorflow"]


@dataclass(frozen=True)
class LoadOptions:
    """Facts about a source that the user supplies because the source does not state them."""

    allows_missing_heads: bool = False
    allows_partial_heads: bool = True  # if heads may be missing, also drop incomplete ones
    classifier: HeadKind | None = None  # what a plain classifier is: classification, tokens or choice
    tokenizer: Path | None = None
    needs_tokenizer: bool = True  # False for models that read ids without a tokenizer, such as phonemes
    config: Path | None = None  # of a TensorFlow checkpoint, if it is not stored next to it

    @property
    def drops_partial_heads(self) -> bool:
        return self.allows_missing_heads and self.allows_partial_heads


# Training initializes the heads that a source lacks; an incomplete head means a corrupt file.
FOR_TRAINING = LoadOptions(allows_missing_heads=True, allows_partial_heads=False)
Partial = dict[HeadKind, set[str]]  # incomplete heads -> which of their tensors are present


@dataclass(frozen=True)
class Source:
    """A foreign checkpoint; only its headers have been read, unless a choice depends on a tensor."""

    path: Path
    kind: SourceKind
    family: Family
    config: ModelConfig
    heads: tuple[HeadSpec, ...]
    store: Store
    places: Mapping[str, Place]  # our tensor -> its location
    slots: Mapping[str, Place]  # `<our tensor>/<moment>` -> its location
    mismatch: Mismatch
    step: int
    tokenizer_path: Path | None
    stated: Mapping[str, object]  # its configuration file, unchanged
    notes: tuple[str, ...] = ()  # for the user
    embedding: EmbeddingSpec | None = None  # how its embeddings are made, if a sentence-transformers folder says so

    @property
    def weight_files(self) -> tuple[Path, ...]:
        return self.store.files

    def check(self) -> None:
        """Raise if the source is incomplete."""
        check_match(self.path, self.mismatch)

    def load_weights(self) -> dict[str, Tensor]:
        """All weights under our names, in float32."""
        self.check()
        weights = {ours: self.read(place) for ours, place in self.places.items()}
        check_has_content(weights, self.path)
        return weights

    def load_optimizer(self) -> dict[str, Tensor]:
        """The optimizer's moments under the names that checkpoints use, with the training step."""
        self.check()
        wanted = {f"{name}/{moment}" for name in self.places for moment in ("exp_avg", "exp_avg_sq")}
        missing = sorted(wanted - self.slots.keys())
        if missing:
            raise DataError(
                "no-optimizer",
                f"{self.path} has no optimizer state for {len(missing) // 2} of its {len(self.places)} weights "
                f"such as {missing[0].rpartition('/')[0]}: training can start from its weights but not resume",
            )
        moments = {name: self.read(self.slots[name]) for name in sorted(wanted)}
        shapes = model_shapes(self.config, self.heads)
        for name, moment in moments.items():
            expected = shapes[name.rpartition("/")[0]]
            if tuple(moment.shape) != expected:
                raise DataError(
                    "optimizer-mismatch",
                    f"{self.path}: the optimizer state {self.slots[name].name} is {list(moment.shape)}, "
                    f"but its weight {list(expected)}: training cannot resume from it",
                )
        return moments | {f"{name}/step": torch.tensor(float(self.step)) for name in self.places}

    def load_tokenizer(self) -> Tokenizer:
        """Its tokenizer; raises an error if it has more pieces than the model has embedding rows."""
        if self.tokenizer_path is None:
            raise DataError(
                "no-tokenizer",
                f"{self.path} has no tokenizer; give one, such as 30k-clean.model or vocab.txt, or convert it with "
                f"tokenizer none if it reads token ids",
            )
        tokenizer = load_tokenizer(self.tokenizer_path)
        if tokenizer.vocab_size > self.config.vocab_size:
            raise DataError(
                "tokenizer-mismatch",
                f"{self.tokenizer_path} has {tokenizer.vocab_size:,} pieces, but {self.path} has "
                f"{self.config.vocab_size:,} rows: the tokenizer belongs to another model",
            )
        return tokenizer

    def read(self, place: Place) -> Tensor:
        """One tensor in our layout, in float32; values too large for float32 are an error."""
        stored = self.store.read(place.name)
        if not stored.is_floating_point():  # an optimizer's moment, whose type `match` does not check
            raise DataError(
                "not-weights",
                f"{self.path}: {place.name} is of type {str(stored.dtype)[6:]}, which is not a weight type",
            )
        tensor = stored.t() if place.is_transposed else stored
        tensor = tensor[place.dead_rows : len(tensor) - place.spare_rows] if tensor.ndim else tensor
        ours = tensor.to(torch.float32).contiguous()
        if tensor.dtype == torch.float64 and bool((ours.isinf() & ~tensor.isinf()).any()):
            raise DataError("value-overflow", f"{self.path}: {place.name} has float64 values too large for float32")
        return ours


def blame_heads(mismatch: Mismatch, names: Iterable[str]) -> Mismatch:
    """List the missing tensors of heads first, with how to fix them."""
    *others, last = ["", *sorted(names)]
    if not last:
        return mismatch
    of_heads = (*others[1:], f"{last} (of a head; allow missing heads to drop it)")
    return replace(mismatch, missing=(*of_heads, *(n for n in mismatch.missing if n not in {*others, last})))


def note_partial(partial: Partial) -> list[str]:
    """Notes about incomplete heads that were dropped."""
    return [
        f"the head {kind} is incomplete and was dropped (it has only {', '.join(sorted(there))})"
        for kind, there in partial.items()
        if there
    ]


def model_shapes(config: ModelConfig, heads: tuple[HeadSpec, ...]) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of a model."""
    state = build_model(config, heads, device="meta").state_dict()
    return {name: tuple(tensor.shape) for name, tensor in state.items()}
