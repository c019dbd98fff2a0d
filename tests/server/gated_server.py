"""A server whose embeddings wait while a file exists: python gated_server.py FILE CHECKPOINT."""

import sys
import time
from pathlib import Path
from typing import Any

from litebert.inference.predictor import Predictor
from litebert.server.options import ServeOptions
from litebert.server.server import Computing, serve

gate = Path(sys.argv[1])
embed = Predictor.embed


def wait_and_embed(self: Predictor, *arguments: Any, **options: Any) -> Any:
    while gate.exists():
        time.sleep(0.01)
    return embed(self, *arguments, **options)


Predictor.embed = wait_and_embed  # type: ignore[method-assign]
serve([sys.argv[2]], ServeOptions(port=0), Computing(device="cpu", threads=1))
