"""Report what a checkpoint is and whether anything is wrong with it; reads everything, changes nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from torch import Tensor

from litebert.checkpoint import Checkpoint
from litebert.core.errors import LitebertError
from litebert.interop.card import read_licence
from litebert.interop.matching import list_some
from litebert.interop.names import SEGMENTS
from litebert.interop.opening import open_source
from litebert.interop.source import LoadOptions, Source, model_shapes
from litebert.interop.statistics import is_initial, is_matrix, summarize
from litebert.interop.vocabulary_notes import note_vocabulary
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.cost import count_parameters
from litebert.model.presets import PRESETS
from litebert.text.tokenizer import Tokenizer

MAX_LISTED = 4
# together with the number of blocks, these fields identify a published shape
_SHAPE = ("embedding_size", "hidden_size", "ffn_size", "num_layers")
MANY_VALUES = 10_000  # with fewer values, statistics cannot reliably distinguish a random matrix from a trained one
Level = Literal["problem", "warning"]
KINDS = {"huggingface": "a Hugging Face folder", "tensorflow": "a TensorFlow checkpoint of Google's code"}


class Finding(NamedTuple):
    """Something the user should know; a problem makes the checkpoint unusable, a warning does not."""

    level: Level
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """A description of a checkpoint, the findings, and the verdict."""

    facts: dict[str, str]
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        return not any(finding.level == "problem" for finding in self.findings)

    @property
    def verdict(self) -> str:
        problems = sum(finding.level == "problem" for finding in self.findings)
        warnings = len(self.findings) - problems
        if problems:
            return f"unfit: {_count(problems, 'problem')}, {_count(warnings, 'warning')}"
        return f"sound, with {_count(warnings, 'warning')}" if warnings else "sound"


def diagnose(source: str | Path, load_options: LoadOptions = LoadOptions()) -> Diagnosis:
    """Examine a checkpoint of any kind; one that cannot be opened also gives a diagnosis."""
    try:
        opened = open_source(source, load_options)
    except (LitebertError, OSError) as error:
        return Diagnosis({"source": str(source)}, (Finding("problem", str(error)),))
    facts = {"source": str(source), **_describe_model(opened)}
    findings = [*_look_at_files(opened, facts), *_look_at_tokenizer(opened, facts)]
    findings += [*_compare_with_published(opened.config, facts), *_look_at_configuration(opened)]
    findings += [*_look_at_tensors(opened, facts), *_look_at_licence(opened.path, facts)]
    return Diagnosis(facts, tuple(findings))


def _look_at_licence(path: Path, facts: dict[str, str]) -> Iterator[Finding]:
    try:
        facts["licence"] = read_licence(path if path.is_dir() else path.parent) or "not stated"
    except (LitebertError, OSError) as error:
        yield Finding("warning", str(error))


def _describe_model(opened: Checkpoint | Source) -> dict[str, str]:
    config = opened.config
    if isinstance(opened, Source):
        what = f"{opened.family.upper()}, {KINDS[opened.kind]}"
    else:
        what = f"a litebert checkpoint, {opened.layout.upper() if opened.layout else 'no published family'}"
    return {
        "what": what,
        "size": f"{_count(config.num_layers, 'layer')}, H {config.hidden_size:,}, E {config.embedding_size:,}, "
        f"FFN {config.ffn_size:,}, {config.num_heads} heads, V {config.vocab_size:,}, "
        f"{config.max_positions} positions, {config.num_segments} segments",
        "sharing": _describe_sharing(config),
        "computes": f"{config.activation}, LayerNorm epsilon {config.norm_epsilon:g}, dropout "
        f"{config.hidden_dropout_rate:g} / attention {config.attention_dropout_rate:g}",
        "heads": ", ".join(_describe_head(spec) for spec in opened.heads) or "none",
        "pooler": "yes" if config.has_pooler else "no",
        **({} if opened.embedding is None else {"vectors": str(opened.embedding)}),
        "step": f"{opened.step:,}" if opened.step else "not stated",
    }


def _describe_sharing(config: ModelConfig) -> str:
    plan = config.layer_plan
    attention, ffn = plan.num_attention_blocks, plan.num_ffn_blocks
    return (
        f"{config.sharing}: {_count(attention, 'attention block')} and {_count(ffn, 'feed-forward block')} for "
        f"{_count(len(plan.rows), 'layer')}"
    )


def _describe_head(spec: HeadSpec) -> str:
    return f"{spec.kind} ({spec.num_labels} labels)" if spec.kind in ("classification", "tokens") else spec.kind


def _look_at_files(opened: Checkpoint | Source, facts: dict[str, str]) -> Iterator[Finding]:
    if isinstance(opened, Checkpoint):
        facts["files"] = "safetensors, hashes verified"
        return
    names = ", ".join(file.name for file in opened.store.files[:MAX_LISTED])
    facts["files"] = names + (" ..." if len(opened.store.files) > MAX_LISTED else "")
    if opened.store.is_pickle:
        yield Finding("warning", f"{names} is a pickle, which is an unsafe format; it was read without running code")
    if opened.mismatch:
        yield Finding("problem", f"the weights do not match the configuration: {opened.mismatch.describe()}")
    for note in opened.notes:
        yield Finding("warning", note)


def _look_at_tokenizer(opened: Checkpoint | Source, facts: dict[str, str]) -> Iterator[Finding]:
    try:
        tokenizer = opened.load_tokenizer()
    except (LitebertError, OSError) as error:
        facts["tokenizer"] = "none that can be loaded"
        yield Finding("problem", str(error))
        return
    facts["tokenizer"] = f"{tokenizer.kind}, {tokenizer.vocab_size:,} pieces, {_describe_case(tokenizer)}"
    for note in note_vocabulary(tokenizer, opened.config.vocab_size):
        yield Finding("warning", note)
    stated = opened.stated.get("pad_token_id") if isinstance(opened, Source) else None
    if stated is not None and stated != tokenizer.pad_id:
        yield Finding("warning", f"config.json has pad_token_id = {stated}, but the tokenizer has {tokenizer.pad_id}")


def _describe_case(tokenizer: Tokenizer) -> str:
    return "uncased" if tokenizer.normalize("A") == "a" else "cased"


def _compare_with_published(config: ModelConfig, facts: dict[str, str]) -> Iterator[Finding]:
    total = count_parameters(config, ()).total
    counts = {name: count_parameters(preset.config, ()).total for name, preset in PRESETS.items()}
    alike = [name for name in counts if _shape_of(PRESETS[name].config) == _shape_of(config)]
    dropout = config.hidden_dropout_rate
    # if several releases have this shape, take the one with the same dropout
    nearest = min(
        alike or counts,
        key=lambda name: (abs(counts[name] - total), PRESETS[name].config.hidden_dropout_rate != dropout),
    )
    difference = total - counts[nearest]
    relation = "exactly as many as" if not difference else f"{difference:+,} against"
    facts["parameters"] = f"{total:,} without heads, {relation} {nearest}"
    if not alike:
        return
    published = PRESETS[nearest].config
    if published.num_heads != config.num_heads:
        note = " (the xlarge model page says 16, its published file 32)" if "-xlarge" in nearest else ""
        yield Finding("warning", f"{config.num_heads} heads, but {nearest} has {published.num_heads}{note}")
    rates = {PRESETS[name].config.hidden_dropout_rate for name in alike}
    if dropout not in rates:
        listed = " or ".join(f"{rate:g}" for rate in sorted(rates))
        yield Finding("warning", f"dropout is {dropout:g}, but the published {nearest} uses {listed}")
    if "albert" in nearest and config.activation == "gelu":
        yield Finding(
            "warning", "the activation is exact GELU, but the official ALBERT uses the tanh approximation (gelu_new)"
        )


def _shape_of(config: ModelConfig) -> tuple[object, ...]:
    return (*(getattr(config, name) for name in _SHAPE), config.layer_plan.num_attention_blocks)


def _look_at_configuration(opened: Checkpoint | Source) -> Iterator[Finding]:
    family = opened.family if isinstance(opened, Source) else opened.layout
    if family == "roberta" and opened.config.norm_epsilon != 1e-5:
        yield Finding(
            "warning", f"layer_norm_eps is {opened.config.norm_epsilon:g}, but the published RoBERTa uses 1e-05"
        )


def _look_at_tensors(opened: Checkpoint | Source, facts: dict[str, str]) -> Iterator[Finding]:
    """Read every tensor once and report problems by kind."""
    wrong: dict[str, list[str]] = {"not finite": [], "all zero": []}
    drawn: dict[str, _Drawn] = {}
    damaged: list[str] = []
    dtypes: Counter[str] = Counter()
    std = opened.config.initializer_range
    for name, dtype, tensor in _iter_tensors(opened, damaged):
        dtypes[dtype] += tensor.numel()
        summary = summarize(tensor)
        if not summary.is_finite:
            wrong["not finite"].append(name)
        elif summary.is_zero and is_matrix(name, tensor):
            wrong["all zero"].append(name)
        elif summary.is_zero and name == SEGMENTS and len(tensor) > 1:
            yield Finding(
                "warning", "all segment embeddings are zero: the model does not distinguish the two texts of a pair"
            )
        elif is_matrix(name, tensor):
            drawn[name] = _Drawn(is_initial(summary, {std, 0.02}), summary.num_values)
    facts["dtype"] = ", ".join(f"{dtype} ({count:,})" for dtype, count in dtypes.most_common())
    yield from (Finding("problem", text) for text in damaged[:MAX_LISTED])
    for what, names in wrong.items():
        if names:
            yield Finding("problem", f"{what}: {list_some(names, MAX_LISTED)}")
    yield from _tell_drawn(drawn)


class _Drawn(NamedTuple):
    """Whether a matrix looks randomly initialized, and the number of values that this is based on."""

    is_initial: bool
    num_values: int


def _tell_drawn(drawn: Mapping[str, _Drawn]) -> Iterator[Finding]:
    if drawn and all(matrix.is_initial for matrix in drawn.values()):
        is_certain = sum(matrix.num_values for matrix in drawn.values()) >= MANY_VALUES
        text = "never trained: every matrix still looks randomly initialized"
        yield Finding("problem" if is_certain else "warning", text)
        return
    # a small matrix may look random by chance: ignore it in the encoder, but report it in a head
    untrained = [
        name
        for name, matrix in drawn.items()
        if matrix.is_initial and (matrix.num_values >= MANY_VALUES or name.startswith("heads."))
    ]
    is_encoder = any(name.startswith("encoder.") and "pooler" not in name for name in untrained)
    if untrained:
        level: Level = "problem" if is_encoder else "warning"
        yield Finding(
            level, f"apparently never trained (statistics of random initialization): {list_some(untrained, MAX_LISTED)}"
        )


def _iter_tensors(opened: Checkpoint | Source, damaged: list[str]) -> Iterator[tuple[str, str, Tensor]]:
    """Each tensor under its litebert name with its stored dtype, one at a time; read errors go to `damaged`."""
    if isinstance(opened, Checkpoint):
        try:
            weights = opened.load_weights()
        except (LitebertError, OSError) as error:
            damaged.append(str(error))
            return
        for name, tensor in weights.items():
            yield name, str(tensor.dtype).removeprefix("torch."), tensor
        return
    shapes = model_shapes(opened.config, opened.heads)
    for name, place in opened.places.items():
        stored = opened.store.tensors.get(place.name)
        if stored is None or not place.holds(stored, shapes[name]):
            continue
        try:
            tensor = opened.read(place)
        except (LitebertError, OSError) as error:
            damaged.append(str(error))
            continue
        yield name, stored.dtype, tensor


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
