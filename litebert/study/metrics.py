"""The metrics of studies: their titles and units."""

from collections.abc import Collection
from typing import NamedTuple

from litebert.core.errors import ConfigError, suggest


class Metric(NamedTuple):
    """The title, unit and properties of a metric."""

    title: str
    unit: str = "%"
    digits: int = 1
    is_exact: bool = False  # determined by the recipe, independent of seed and text
    is_relative: bool = False  # spreads in proportion to its size
    is_untrained: bool = False  # independent of training
    is_of_layers: bool = False  # describes layers: meaningful only if all models have learned something
    chance: float | None = None  # the chance level, which the baseline may exceed

    @property
    def label(self) -> str:
        """The title with its unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def show(self, value: float, *, is_signed: bool = False) -> str:
        value = round(value, self.digits) or 0.0  # avoids -0
        return f"{value:+,.{self.digits}f}" if is_signed else f"{value:,.{self.digits}f}"


AVERAGE = "avg"  # over the tasks
EXACT = "-em"  # a task's second number: exact matches
ENSEMBLE = "-ensemble"
SPEEDUP = "speedup"
METRICS = {
    "parameters": Metric("Parameters", "M", 2, is_exact=True, is_untrained=True),
    "tokens_per_second": Metric("Speed", "tokens/s", 0, is_relative=True, is_untrained=True),
    SPEEDUP: Metric("Speed against the reference", "times", 2, is_relative=True, is_untrained=True),
    "hours": Metric("Training", "h", 2, is_relative=True, is_untrained=True),
    "measuring_hours": Metric("Measuring and fine-tuning", "h", 2, is_relative=True, is_untrained=True),
    "memory": Metric("Kept for backward", "MB", 1, is_exact=True, is_untrained=True),
    "mlm": Metric("Masked tokens"),
    "mlm_usual": Metric("Masked tokens, 80/10/10"),
    "perplexity": Metric("Perplexity", "", 2, is_relative=True),
    "sop": Metric("SOP", chance=50.0),
    "sop_lead": Metric("SOP, openings", chance=50.0),
    "sop_inner": Metric("SOP, not openings", chance=50.0),
    "sop_probe": Metric("SOP by probe", chance=50.0),
    "sop_probe_lead": Metric("SOP by probe, openings", chance=50.0),
    "sop_probe_inner": Metric("SOP by probe, not openings", chance=50.0),
    "nsp": Metric("NSP", chance=50.0),
    "nsp_lead": Metric("NSP, openings", chance=50.0),
    "nsp_inner": Metric("NSP, not openings", chance=50.0),
    "nsp_probe": Metric("NSP by probe", chance=50.0),
    "nsp_probe_lead": Metric("NSP by probe, openings", chance=50.0),
    "nsp_probe_inner": Metric("NSP by probe, not openings", chance=50.0),
    "l2_floor": Metric("Least L2 distance", "", 2, is_relative=True, is_of_layers=True),
    "l2_floor_share": Metric("Least L2 distance", "% of the state's norm", 1, is_relative=True, is_of_layers=True),
    "l2_roughness": Metric("Roughness of L2", "%", 1, is_relative=True, is_of_layers=True),
    "degrees_floor": Metric("Least angle", "degrees", 1, is_relative=True, is_of_layers=True),
    "degrees_roughness": Metric("Roughness of the angle", "%", 1, is_relative=True, is_of_layers=True),
    "degrees_further": Metric("Angle at four times the depth", "degrees", 2, is_relative=True, is_of_layers=True),
    "layer_weights": Metric("Cosine of two layers' weights", "", 3, is_of_layers=True),
    "layer_function": Metric("Cosine of two layers' effects", "", 3, is_of_layers=True),
    AVERAGE: Metric("Average of the tasks"),
    "cola": Metric("CoLA", "Matthews"),
    "sst-2": Metric("SST-2"),
    "mrpc": Metric("MRPC"),
    "sts-b": Metric("STS-B", "Pearson"),
    "qqp": Metric("QQP"),
    "mnli": Metric("MNLI"),
    "qnli": Metric("QNLI"),
    "rte": Metric("RTE"),
    "wnli": Metric("WNLI"),
    "squad-v1": Metric("SQuAD 1.1", "F1"),
    "squad-v1-em": Metric("SQuAD 1.1", "EM"),
    "squad-v2": Metric("SQuAD 2.0", "F1"),
    "squad-v2-em": Metric("SQuAD 2.0", "EM"),
    "squad-v2-test": Metric("SQuAD 2.0 test", "F1"),
    "squad-v2-test-em": Metric("SQuAD 2.0 test", "EM"),
    "race": Metric("RACE"),
    "race-middle": Metric("RACE middle"),
    "race-high": Metric("RACE high"),
}
# The axis labels of series, by name.
SERIES = {
    "l2": ("layer", "L2 distance between input and output"),
    "l2_share": ("layer", "L2 distance, % of the input's norm"),
    "degrees": ("layer", "angle between input and output, degrees"),
    "degrees_further": ("layer", "angle when the layer is applied four times as often, degrees"),
    "mlm": ("step", "held-out masked tokens, %"),
    "sentence": ("step", "held-out sentence pairs, %"),
    "loss": ("step", "held-out loss, nats"),
    "mlm_loss": ("step", "held-out masked tokens, loss in nats"),
    "train_mlm_loss": ("step", "masked tokens in training, loss in nats"),
}
MATRICES = {
    "layer_weights": "cosine of two layers' weights",
    "layer_function": "cosine of two layers' effects on the same input",
}


def check_metric(name: str, tasks: Collection[str], *, where: str) -> None:
    """Raise unless a measure or a task provides this metric."""
    plain = name.removesuffix(ENSEMBLE)
    if plain not in METRICS and not any(plain == task or plain.startswith(f"{task}-") for task in tasks):
        raise ConfigError("unknown-metric", f"{where}: nothing measures '{name}'; {suggest(name, [*METRICS, *tasks])}")


def describe(name: str) -> Metric:
    """A metric by name; the metric of a user's own task is a score in percent."""
    if name in METRICS:
        return METRICS[name]
    if name.endswith(ENSEMBLE):
        alone = describe(name.removesuffix(ENSEMBLE))
        return alone._replace(title=f"{alone.title}, ensemble")
    return Metric(name)
