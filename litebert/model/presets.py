"""The published models as ModelConfigs, and the paper's tables of shapes with rounded parameter counts."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from litebert.core.errors import ConfigError, suggest
from litebert.model.config import ModelConfig
from litebert.model.sharing import Sharing


def _without_dropout(config: ModelConfig) -> ModelConfig:
    return replace(config, hidden_dropout_rate=0.0, attention_dropout_rate=0.0)


def _as_bert(config: ModelConfig) -> ModelConfig:
    return replace(config, vocab_size=30_522, embedding_size=config.hidden_size, sharing="none")


def _as_roberta(config: ModelConfig) -> ModelConfig:
    return replace(_as_bert(config), vocab_size=50_265, num_segments=1, norm_epsilon=1e-5, activation="gelu")


_BASE = ModelConfig(vocab_size=30_000, embedding_size=128, hidden_size=768, ffn_size=3_072, num_layers=12, num_heads=12)
_LARGE = replace(_BASE, hidden_size=1_024, ffn_size=4_096, num_layers=24, num_heads=16)
# 16 heads as on the released model's page; its shipped configuration file says 32
_XLARGE = replace(_BASE, hidden_size=2_048, ffn_size=8_192, num_layers=24, num_heads=16)
_XXLARGE = _without_dropout(replace(_BASE, hidden_size=4_096, ffn_size=16_384, num_heads=64))
_TINY = _without_dropout(replace(_BASE, hidden_size=312, ffn_size=1_248, num_layers=4))


class Preset(NamedTuple):
    """A named shape, the parameter count printed in its paper, and the source of the shape."""

    config: ModelConfig
    printed: str
    source: str


PRESETS: dict[str, Preset] = {
    "albert-base": Preset(_BASE, "12M", "ALBERT Table 1; dropout of the v1 release"),
    "albert-large": Preset(_LARGE, "18M", "ALBERT Table 1; dropout of the v1 release"),
    "albert-xlarge": Preset(_XLARGE, "60M", "ALBERT Table 1; dropout of the v1 release"),
    "albert-xxlarge": Preset(_XXLARGE, "235M", "ALBERT Table 1; v1 was already without dropout"),
    "albert-base-v2": Preset(_without_dropout(_BASE), "12M", "v2 release: no dropout"),
    "albert-large-v2": Preset(_without_dropout(_LARGE), "18M", "v2 release: no dropout"),
    "albert-xlarge-v2": Preset(_without_dropout(_XLARGE), "60M", "v2 release: no dropout"),
    "albert-xxlarge-v2": Preset(_XXLARGE, "235M", "v2 release: no dropout"),
    "bert-base": Preset(_as_bert(_BASE), "110M", "BERT, uncased vocabulary"),
    "bert-large": Preset(_as_bert(_LARGE), "340M", "BERT, uncased vocabulary"),
    "bert-xlarge": Preset(
        _as_bert(replace(_XLARGE, num_heads=32)),
        "1270M",
        "ALBERT's first versions, which found it does not train well",
    ),
    "roberta-base": Preset(_as_roberta(_BASE), "125M", "RoBERTa"),
    "roberta-large": Preset(_as_roberta(_LARGE), "355M", "RoBERTa"),
    "albert-tiny": Preset(_TINY, "-", "Chinese community; published as 4M with V = 21,128, here the English 30,000"),
    "albert-small": Preset(
        replace(_TINY, vocab_size=21_128, hidden_size=384, ffn_size=1_536, num_layers=6), "-", "Chinese community"
    ),
    "cpu-small": Preset(
        replace(_TINY, vocab_size=8_000, hidden_size=192, ffn_size=768, num_heads=8),
        "-",
        "ours: an hour or overnight on two cores",
    ),
    "nano": Preset(
        replace(_TINY, vocab_size=4_000, embedding_size=64, hidden_size=128, ffn_size=512, num_layers=2, num_heads=2),
        "-",
        "ours: the demo and the tests",
    ),
}
ALIASES = {f"albert-{size}-v1": f"albert-{size}" for size in ("base", "large", "xlarge", "xxlarge")}


def preset(name: str) -> ModelConfig:
    """The configuration of a published model."""
    known = ALIASES.get(name, name)
    if known not in PRESETS:
        raise ConfigError("unknown-preset", f"unknown preset '{name}'; {suggest(name, [*PRESETS, *ALIASES])}")
    return PRESETS[known].config


@dataclass(frozen=True)
class PaperRow:
    """A row of the ALBERT paper's tables: the shape, the printed parameter count, and how it is counted."""

    name: str
    config: ModelConfig
    printed_millions: int
    counts_pooler: bool  # reproduces the printed number: rows with sharing count the pooler
    note: str = ""  # if the printed number is not reproduced


def _shape(embedding_size: int, sharing: Sharing) -> ModelConfig:
    return replace(_BASE, embedding_size=embedding_size, sharing=sharing)


def _paper_vocabulary(name: str) -> ModelConfig:
    return replace(PRESETS[name].config, vocab_size=30_000)


PAPER_TABLES: dict[int, tuple[PaperRow, ...]] = {
    1: (
        PaperRow("BERT-base", _paper_vocabulary("bert-base"), 108, False),
        PaperRow("BERT-large", _paper_vocabulary("bert-large"), 334, False),
        PaperRow(
            "BERT-xlarge",
            _paper_vocabulary("bert-xlarge"),
            1270,
            False,
            "rounded to tens; not in the last version",
        ),
        PaperRow("ALBERT-base", _BASE, 12, True),
        PaperRow("ALBERT-large", _LARGE, 18, True),
        PaperRow("ALBERT-xlarge", _XLARGE, 60, True, "60M has position and segment tables of width H"),
        PaperRow("ALBERT-xxlarge", _XXLARGE, 235, True, "does not follow from the shape; Table 12: 225M"),
    ),
    3: (
        PaperRow("not shared, E = 64", _shape(64, "none"), 87, False),
        PaperRow("not shared, E = 128", _shape(128, "none"), 89, False),
        PaperRow("not shared, E = 256", _shape(256, "none"), 93, False),
        PaperRow("not shared, E = 768", _shape(768, "none"), 108, False),
        PaperRow("all shared, E = 64", _shape(64, "all"), 10, True),
        PaperRow("all shared, E = 128", _shape(128, "all"), 12, True),
        PaperRow("all shared, E = 256", _shape(256, "all"), 16, True),
        PaperRow("all shared, E = 768", _shape(768, "all"), 31, True),
    ),
    4: (
        PaperRow("E = 768, all shared", _shape(768, "all"), 31, True),
        PaperRow("E = 768, attention shared", _shape(768, "attention"), 83, True),
        PaperRow("E = 768, FFN shared", _shape(768, "ffn"), 57, True),
        PaperRow("E = 768, not shared", _shape(768, "none"), 108, False),
        PaperRow("E = 128, all shared", _shape(128, "all"), 12, True),
        PaperRow("E = 128, attention shared", _shape(128, "attention"), 64, True),
        PaperRow("E = 128, FFN shared", _shape(128, "ffn"), 38, True),
        PaperRow("E = 128, not shared", _shape(128, "none"), 89, False),
    ),
}
