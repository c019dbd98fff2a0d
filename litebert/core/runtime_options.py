"""The [runtime] section of a recipe. Does not import torch, so that a recipe can be read without it."""

from dataclasses import dataclass
from typing import Annotated

from litebert.core.ranges import NonNegativeInt, check_values


@dataclass(frozen=True)
class RuntimeOptions:
    """Device, number format and threads."""

    device: Annotated[str, ("auto", "cpu", "cuda", "mps")] = "auto"  # auto: cuda, else mps (for one process), else cpu
    # auto: bf16 if a micro-batch of the run is clearly faster in it on this machine; fp16 scales the loss
    dtype: Annotated[str, ("auto", "fp32", "bf16", "fp16")] = "fp32"
    num_threads: NonNegativeInt = 0  # 0: what torch chooses

    def __post_init__(self) -> None:
        check_values(self)
