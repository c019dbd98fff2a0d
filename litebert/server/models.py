"""The models of a server, by the names that requests call them."""

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

# Functions that the page hides where the head learned nothing; who asks for them is still answered.
HEADS = {"fill-mask": "mlm", "order": "sentence"}
TASK_FUNCTIONS = ("classify", "tokens", "answer", "choose")  # of which a fine-tuned model has one


@dataclass(frozen=True)
class NamedModel:
    """A model ready to be asked, its name, and what it can do."""

    name: str
    predictor: Predictor
    functions: tuple[str, ...]

    @classmethod
    def of(cls, name: str, predictor: Predictor) -> "NamedModel":
        return cls(name, predictor, tuple(key for key, one in FUNCTIONS.items() if one.is_possible(predictor)))

    def describe(self, *, with_examples: bool = False) -> schemas.ServedModel:
        """What `/v1/models` says of it; `with_examples` of the data that it was fine-tuned on, where they are known."""
        predictor, checkpoint = self.predictor, self.predictor.checkpoint
        length = predictor.form().max_length
        facts = describe_model(checkpoint, predictor.tokenizer, max_length=length, has_exits=predictor.has_exits)
        functions = [name for name in self.functions if HEADS.get(name) not in checkpoint.at_chance]
        examples = self._read_examples() if with_examples else {}
        return schemas.ServedModel(name=self.name, functions=functions, examples=examples, **facts)

    def _read_examples(self) -> dict[str, list[Any]]:
        """Inputs from the report of the run that made this model: those that its function takes."""
        checkpoint = self.predictor.checkpoint
        folder = next((one for one in (checkpoint.path, checkpoint.path.parent) if (one / REPORT_FILE).is_file()), None)
        name = next((name for name in self.functions if name in TASK_FUNCTIONS), None)
        if folder is None or name is None:
            return {}
        try:
            report = read_report(folder)
        except LitebertError:  # it is not needed to answer
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
    """The name and the source of `name=source`, or of a source alone, whose name is then the last telling folder's."""
    name, sign, source = word.partition("=")
    if sign and not Path(word).exists():
        if not name or not source or "/" in name:
            raise ConfigError("bad-model-name", f"'{word}' is not a model: write a path, or name=path")
        return name, source
    return name_model(Path(word)), word


def check_names(names: Sequence[str]) -> None:
    """Refuse models of the same name."""
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                "repeated-value",
                f"two models are named '{name}': name them, for example {name}-a=path {name}-b=path",
            )
