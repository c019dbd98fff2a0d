"""Execute notebooks from top to bottom in a kernel of their own, and store their outputs: `make notebooks`."""

import sys
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
    """Without progress and notes, which are of this run and not of the result; what was printed is one piece."""
    tidied: list[Any] = []
    for output in outputs:
        if output.output_type != "stream":
            tidied.append(output)
        elif output.name == "stdout":
            if tidied and tidied[-1].output_type == "stream":
                tidied[-1].text += output.text
            else:
                tidied.append(output)
    return tidied


if __name__ == "__main__":
    for name in sys.argv[1:]:
        nbformat.write(execute(Path(name), Path(name).parent), name)
        print(f"done: {name}")
