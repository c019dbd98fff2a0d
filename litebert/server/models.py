"""The models of a server, by the names that requests call them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from litebert.core.errors import ConfigError
from litebert.inference.naming import name_model, tell_language
from litebert.inference.predictor import Predictor
from litebert.model.cost import count_parameters
from litebert.server import schemas
from litebert.server.functions import FUNCTIONS

# Functions that the page hides where the head learned nothing; who asks for them is still answered.
HEADS = {"fill-mask": "mlm", "order": "sentence"}


@dataclass(frozen=True)
class NamedModel:
    """A model ready to be asked, its name, and what it can do."""

    name: str
    predictor: Predictor
    functions: tuple[str, ...]

    @classmethod
    def of(cls, name: str, predictor: Predictor) -> "NamedModel":
        return cls(name, predictor, tuple(key for key, one in FUNCTIONS.items() if one.is_possible(predictor)))

    def describe(self) -> schemas.ServedModel:
        checkpoint, tokenizer = self.predictor.checkpoint, self.predictor.tokenizer
        config, task = checkpoint.config, None if checkpoint.task is None else self.predictor.task
        return schemas.ServedModel(
            name=self.name,
            functions=[name for name in self.functions if HEADS.get(name) not in checkpoint.at_chance],
            task=None if task is None else task.name,
            labels=list(getattr(task, "labels", ())),
            num_texts=getattr(task, "num_texts", 0),
            has_spans=getattr(task, "has_spans", False),
            has_exits=self.predictor.has_exits,
            language=tell_language(tokenizer),
            mask=tokenizer.pieces([tokenizer.mask_id])[0],
            num_parameters=count_parameters(config, checkpoint.heads).total,
            num_layers=len(config.layer_plan.rows),
            num_heads=config.num_heads,
            hidden_size=config.hidden_size,
            max_length=self.predictor.form().max_length,
        )


def split_name(word: str) -> tuple[str, str]:
    """The name and the source of `name=source`, or of a source alone, whose name is then the last telling folder's."""
    name, sign, source = word.partition("=")
    if sign and not Path(word).exists():
        if not name or not source or "/" in name:
            raise ConfigError(f"'{word}' is no model to serve: write a path, or name=path")
        return name, source
    return name_model(Path(word)), word


def check_names(names: Sequence[str]) -> None:
    """Refuse models of the same name."""
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two models would be called '{name}': give names, such as {name}-a=path {name}-b=path")
