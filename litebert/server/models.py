"""The served models and their names in requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, LitebertError
from litebert.inference.naming import describe_model, name_model
from litebert.inference.predictor import Predictor
from litebert.server import schemas
from litebert.server.functions import FUNCTIONS, Function
from litebert.tasks.report import REPORT_FILE, read_report

# The page hides a function if its head learned nothing; requests for it are still answered.
HEADS = {"fill-mask": "mlm", "order": "sentence"}
TASK_FUNCTIONS = ("classify", "tokens", "answer", "choose")  # a fine-tuned model has one of these


@dataclass(frozen=True)
class NamedModel:
    """A loaded model, its name and the functions that it supports."""

    name: str
    predictor: Predictor
    functions: tuple[str, ...]

    @classmethod
    def of(cls, name: str, predictor: Predictor) -> "NamedModel":
        return cls(name, predictor, tuple(key for key, one in FUNCTIONS.items() if one.is_possible(predictor)))

    def describe(self, *, with_examples: bool = False) -> schemas.ServedModel:
        """The model's entry in `/v1/models`; `with_examples` adds inputs from its fine-tuning data, if known."""
        predictor, checkpoint = self.predictor, self.predictor.checkpoint
        length = predictor.form().max_length
        facts = describe_model(checkpoint, predictor.tokenizer, max_length=length, has_exits=predictor.has_exits)
        functions = [name for name in self.functions if HEADS.get(name) not in checkpoint.at_chance]
        examples = self._read_examples() if with_examples else {}
        return schemas.ServedModel(name=self.name, functions=functions, examples=examples, **facts)

    def _read_examples(self) -> dict[str, list[Any]]:
        """Inputs that the model's function accepts, from the report of the run that trained it."""
        checkpoint = self.predictor.checkpoint
        folder = next((one for one in (checkpoint.path, checkpoint.path.parent) if (one / REPORT_FILE).is_file()), None)
        name = next((name for name in self.functions if name in TASK_FUNCTIONS), None)
        if folder is None or name is None:
            return {}
        try:
            report = read_report(folder)
        except LitebertError:  # examples are optional
            return {}
        if report["facts"] != checkpoint.task:
            return {}
        inputs = [one for one in report.get("examples", []) if self._is_taken(FUNCTIONS[name], one)]
        return {name: inputs} if inputs else {}

    def _is_taken(self, function: Function, one: Any) -> bool:
        try:
            (value,) = function.request.model_validate({"inputs": [one]}).inputs  # type: ignore[attr-defined]
            function.check(self.predictor, value)
        except (ValueError, LitebertError):
            return False
        return True


def split_name(word: str) -> tuple[str, str]:
    """The name and source in `name=source`; a source alone is named after its last folder with a meaningful name."""
    name, sign, source = word.partition("=")
    if sign and not Path(word).exists():
        if not name or not source or "/" in name:
            raise ConfigError("bad-model-name", f"'{word}' is not a model: write a path, or name=path")
        return name, source
    return name_model(Path(word)), word


def check_names(names: Sequence[str]) -> None:
    """Raise if two models have the same name."""
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                "repeated-value",
                f"two models are named '{name}': name them, for example {name}-a=path {name}-b=path",
            )
