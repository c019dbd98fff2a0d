"""A model: the encoder and the heads that the loss uses, initialized as in the official code."""

import zlib
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from litebert.core.errors import ConfigError
from litebert.model.config import HeadKind, HeadSpec, ModelConfig
from litebert.model.encoder import Encoder
from litebert.model.engine import HeadInputs, HeadName, run_head
from litebert.model.heads import MaskedLMHead, build_head
from litebert.model.lean import vocabulary_loss
from litebert.model.neighbours import look_at_neighbours


class Model(nn.Module):
    """An encoder and its heads by kind: only those that a loss uses, as DDP waits for every parameter's gradient."""

    def __init__(self, config: ModelConfig, heads: Sequence[HeadSpec] = ()) -> None:
        super().__init__()
        if len({spec.kind for spec in heads}) < len(heads):
            raise ConfigError(
                "repeated-value", f"each kind of head can be built once, but heads = {[spec.kind for spec in heads]}"
            )
        self.config = config
        self.head_specs = tuple(heads)
        self.encoder = Encoder(config)
        self.heads = nn.ModuleDict({spec.kind: build_head(config, spec) for spec in heads})

    def run(self, head: HeadName, inputs: HeadInputs) -> Mapping[str, Tensor]:
        """The outputs of a head in evaluation mode, without gradients; named as in `Engine.run`."""
        return run_head(self, head, inputs)

    def masked_lm_logits(self, hidden: Tensor, positions: Tensor | None = None) -> Tensor:
        """Vocabulary logits everywhere (..., V), or only at `positions` (M, V): flat indices into the states."""
        logits: Tensor = self.heads["mlm"](hidden, self.encoder.embeddings.token.weight, positions)
        return logits

    def masked_lm_loss(self, states: Tensor, labels: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The summed loss of tokens `labels` (M,) at states (M, H), times `weights` (M,), and the number correct."""
        mlm = self.heads["mlm"]
        assert isinstance(mlm, MaskedLMHead)
        states = states.to(self.encoder.narrow_dtype or states.dtype)
        return vocabulary_loss(mlm.transform(states), self.encoder.embeddings.token.weight, mlm.bias, labels, weights)


def build_model(
    config: ModelConfig,
    heads: Sequence[HeadSpec | HeadKind] = (),
    *,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Model:
    """A freshly initialized model; on device "meta", only its shapes."""
    specs = [spec if isinstance(spec, HeadSpec) else HeadSpec(spec) for spec in heads]
    with torch.device("meta"):
        model = Model(config, specs)
    if torch.device(device).type == "meta":
        return model
    model = model.to_empty(device=device)
    initialize(model, config.initializer_range, seed)
    if config.initializer == "neighbours":
        look_at_neighbours(model.encoder, _generator(seed, "neighbours"))
    return model


@torch.no_grad()
def initialize(model: nn.Module, std: float, seed: int) -> None:
    """Truncated normal (cut at two sigma) for matrices, zero for biases, one for LayerNorm scales.

    Each tensor draws from its own generator, seeded with (seed, tensor name), so adding a head or a block does not
    change the others.
    """
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        elif parameter.ndim == 1:  # a LayerNorm's scale
            parameter.fill_(1.0)
        else:
            values = torch.empty(parameter.shape)  # on the CPU, so that every device starts from the same numbers
            nn.init.trunc_normal_(values, std=std, a=-2 * std, b=2 * std, generator=_generator(seed, name))
            parameter.copy_(values)


def _generator(seed: int, name: str) -> torch.Generator:
    # torch's CPU generator uses 32 bits of its seed, so seed and name are hashed to 32 bits
    return torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
