"""Options of batches: readable without the libraries that make batches."""

import subprocess
import sys


def test_options_import_neither_torch_nor_numba() -> None:
    code = (
        "import sys, litebert.batches.google, litebert.batches.options\n"
        "loaded = {'torch', 'numba', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'imported {loaded}' if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
