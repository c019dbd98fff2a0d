"""The shapes of the tests' models; a test that needs another changes a field or two: replace(TINY, num_layers=3)."""

from litebert.model.config import ModelConfig

TINY = ModelConfig(
    vocab_size=100,
    embedding_size=16,
    hidden_size=32,
    ffn_size=64,
    num_layers=2,
    num_heads=2,
    max_positions=64,
    initializer_range=0.1,
)
# as small as tensors of unequal sizes can be
NARROW = ModelConfig(
    vocab_size=100,
    embedding_size=8,
    hidden_size=16,
    ffn_size=24,
    num_layers=2,
    num_heads=2,
    max_positions=32,
)
