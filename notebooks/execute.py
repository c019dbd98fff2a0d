"""Execute notebooks from top to bottom in a kernel of their own, and store their outputs: `make notebooks`."""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient


def execute(notebook: Path, folder: Path) -> Any:
    """The notebook with the outputs of a fresh run in that folder; an error in a cell is an exception."""
    content = nbformat.read(notebook, as_version=4)
    NotebookClient(content, timeout=1200, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in content.cells:
        cell.metadata.pop("execution", None)  # the time of day
        if "outputs" in cell:
            cell.outputs = _tidy(cell.outputs)
    content.metadata["language_info"] = {"name": "python"}
    return content


def _tidy(outputs: list[Any]) -> list[Any]:
    """What was printed as one piece, results and pictures; not progress and notes, which are of this run."""
    tidied: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and output.name == "stdout":
            text = _shorten_paths(output.text)
            if tidied and tidied[-1].output_type == "stream":
                tidied[-1].text += text
            else:
                tidied.append(nbformat.from_dict({**output, "text": text}))
        elif output.output_type == "execute_result" or "image/png" in output.get("data", {}):
            tidied.append(output)
    return tidied


def _shorten_paths(text: str) -> str:
    """Where the notebook ran is nobody's business."""
    text = text.replace(f"{Path(__file__).resolve().parents[1]}/", "")
    return re.sub(rf"{re.escape(tempfile.gettempdir())}/[\w-]+/", "", text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        nbformat.write(execute(Path(name), Path(name).parent), name)
        print(f"done: {name}")
