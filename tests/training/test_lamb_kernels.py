"""The compiled kernels of LAMB."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPILED_OR_LOADED = """
import hashlib, torch
from litebert.training.optimizers import build_optimizer
from litebert.training.options import OptimOptions
generator = torch.Generator().manual_seed(0)
parameters = [(f"{n}.weight", torch.nn.Parameter(torch.randn(n, 130, generator=generator))) for n in (7, 513)]
optimizer = build_optimizer(parameters, OptimOptions())
for _ in range(3):
    for _, parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    optimizer.step()
print([hashlib.sha256(parameter.detach().numpy().tobytes()).hexdigest() for _, parameter in parameters])
"""


@pytest.mark.slow
def test_kernels_compiled_just_now_and_kernels_from_the_cache_give_the_same_bits(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COMPILED_OR_LOADED]
    first, second = (subprocess.check_output(command, env=environment) for _ in range(2))
    assert first == second
