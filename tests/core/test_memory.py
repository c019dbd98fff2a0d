"""Out of memory: one line with the step, the amount requested, and the key to lower."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refuses
from small_runs import make_recipe

from litebert.core.errors import TrainingError, describe_refusal, explain_import, naming_shortages
from litebert.core.memory import describe_shortage
from litebert.pretraining.pretrain import pretrain

LIMIT = """
import resource, sys
from litebert.cli import main
from litebert.pretraining import pretrain, adapt
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
sys.argv[0] = "litebert"
main.main()
"""


def fail_to_allocate() -> list[Exception]:
    """The exceptions of those whom we ask for memory, each asked for a petabyte."""
    caught = []
    for allocate in (lambda: torch.zeros(1 << 50), lambda: np.ones(1 << 50), lambda: bytearray(1 << 50)):
        try:
            allocate()
        except Exception as error:
            caught.append(error)
    return caught


def test_every_allocator_is_understood() -> None:
    found = [describe_shortage(error) for error in fail_to_allocate()]
    assert found == [
        "not enough memory: 4503599.63 GB more needed",
        "not enough memory: 8.00 PiB more needed",
        "not enough memory",
    ]
    of_cuda = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total of 8.00 GiB")
    assert describe_shortage(of_cuda) == "not enough memory: 2.00 GiB more needed"
    assert describe_shortage(RuntimeError("shapes do not match")) is None
    assert describe_shortage(ValueError("out of memory, says a text")) is None


def test_a_shortage_anywhere_is_one_line() -> None:
    refusal = describe_refusal(MemoryError())
    assert refusal is not None
    assert refusal.line.startswith("error[out-of-memory]: not enough memory; ")


def test_a_package_that_memory_was_short_for_is_not_called_missing() -> None:
    short = ImportError("libonnxruntime.so: failed to map segment from shared object")
    assert explain_import(short, purpose="x needs y", remedy="pip install y").code == "out-of-memory"
    broken = explain_import(ImportError("undefined symbol"), purpose="x needs y", remedy="pip install y")
    assert "pip install" not in str(broken)
    assert "pip install y" in str(explain_import(ModuleNotFoundError("y"), purpose="x needs y", remedy="pip install y"))


def test_a_shortage_names_what_was_done_and_what_helps() -> None:
    for error in fail_to_allocate():
        with refuses(TrainingError, "out-of-memory", at="building the model: not enough memory"):
            fail("building the model", error)
    with pytest.raises(RuntimeError, match="shapes"):
        fail("building the model", RuntimeError("shapes do not match"))


def fail(doing: str, error: BaseException) -> None:
    with naming_shortages(doing, fix="use a smaller one"):
        raise error


def test_a_model_that_does_not_fit_is_one_line_that_names_the_keys_to_lower(tiny_corpus: Path, tmp_path: Path) -> None:
    # a matrix of 2**51 bytes is more than an address has bits, whatever the system promises
    sizes = {"vocab_size": 100, "hidden_size": 16, "embedding_size": 8, "ffn_size": 2**45, "num_layers": 2}
    recipe = make_recipe(tiny_corpus, model={**sizes, "num_heads": 2, "max_positions": 32})
    with refuses(TrainingError, "out-of-memory", at="model.hidden_size") as caught:
        pretrain(recipe, tmp_path / "run")
    assert str(caught.value).startswith("building the model")


@pytest.mark.slow
def test_training_without_enough_memory_names_the_step_and_the_key_to_lower(tiny_corpus: Path, tmp_path: Path) -> None:
    big = {"hidden_size": 1024, "embedding_size": 64, "ffn_size": 4096, "num_layers": 6, "vocab_size": 100}
    sizes = {"model": {**big, "num_heads": 16, "max_positions": 32}, "batch": {"sequences": 256}}
    recipe = make_recipe(tiny_corpus, **sizes, train={"steps": 2, "save_every": 2, "evaluate_batches": 1})
    (tmp_path / "recipe.toml").write_text(recipe.to_toml())
    words = [sys.executable, "-c", LIMIT, "pretrain", str(tmp_path / "recipe.toml"), "--out", str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr[-2000:]
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert line.startswith("error[out-of-memory]: step 1: not enough memory: ")
    assert "with 256 sequences of 32 tokens at once; set train.micro_batch=128" in line
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says how much memory is free")
def test_the_memory_that_is_free_is_no_more_than_the_process_may_take() -> None:
    code = "import resource; from litebert.core.memory import measure_free_memory as m; a = m(); "
    code += "resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31)); print(a, m())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unlimited, limited = map(int, done.stdout.split())
    assert 0 < limited <= min(unlimited * 1.5, 1 << 31)
