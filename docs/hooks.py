"""Hooks of the documentation site: generated pages, links that leave docs/, and no file from another host.

Generated are the command line, the error codes and the notebooks.
"""

import ast
import base64
import html
import json
import logging
import re
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from typer.main import get_command

from litebert.cli.help import EXAMPLES, describe_option, list_arguments, list_options, name_argument, name_option
from litebert.cli.main import app

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def on_startup(**_: Any) -> None:
    """The search index uses jieba if it is installed, which announces its dictionary on standard error."""
    with suppress(ImportError):
        import jieba

        jieba.setLogLevel(logging.WARNING)


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    files.append(File.generated(config, "cli.md", content=describe_commands()))
    files.append(File.generated(config, "error-codes.md", content=describe_errors()))
    for notebook in NOTEBOOKS:
        page, images = render_notebook(notebook)
        files.append(File.generated(config, f"{notebook.stem}.md", content=page))
        for name, image in images.items():
            files.append(File.generated(config, name, content=image))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Files outside docs/ are not on the site, except for the notebooks: a link to one becomes its path.

    Generated pages exist only here, so the pages that are also read in the repository do not link to them.
    """
    markdown = re.sub(r"<!-- code: (\S+) (\S+) -->", lambda found: show_code(found[1], found[2]), markdown)
    markdown = markdown.replace("command line (`litebert --help`)", "[command line](cli.md)")
    markdown = markdown.replace("error codes (on the site)", "[error codes](error-codes.md)")
    markdown = re.sub(r"\(\.\./notebooks/([\w-]+)\.ipynb\)", r"(\1.md)", markdown)
    return re.sub(r"\[[^\]]+\]\(\.\./([^)]+)\)", r"`\1`", markdown)


def on_post_page(output: str, **_: Any) -> str:
    """The search's shim comes from this site, not from a CDN."""
    return output.replace("https://unpkg.com/iframe-worker/shim", "iframe-worker.js")


def show_code(path: str, name: str) -> str:
    """A function or method (`Class.method`) of a file, as a block that opens."""
    source = (ROOT / path).read_text("utf-8")
    found: Any = ast.parse(source)
    for part in name.split("."):
        found = next(node for node in found.body if getattr(node, "name", "") == part)
    lines = textwrap.dedent(" " * found.col_offset + ast.get_source_segment(source, found)).splitlines()
    block = "\n".join(f"    {line}".rstrip() for line in ["```python", *lines, "```"])
    return f'??? example "The code: `{name}` in {path}"\n\n{block}\n'


def describe_errors() -> str:
    """Every error code with its sentences, from the snapshot that a test compares with the code."""
    sentences: dict[str, list[str]] = {}
    for line in (ROOT / "tests/error_messages.txt").read_text("utf-8").splitlines():
        code, _, sentence = line.partition(" | ")
        sentences.setdefault(code, []).append(re.sub(r"\{[^{}]*(\{[^{}]*\}[^{}]*)*\}", "…", sentence))
    parts = [
        "# Error codes\n\nGenerated from the code: every error that litebert raises, by its code; … stands for a "
        "value. [Errors and exit codes](errors.md) explains how errors are printed.\n"
    ]
    for code, said in sentences.items():
        parts.append(f"## {code}\n")
        parts += [f"- {html.escape(sentence, quote=False)}" for sentence in dict.fromkeys(said) if sentence.strip(" …")]
        parts.append("")
    return "\n".join(parts)


def render_notebook(notebook: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as a page with its outputs, and the page's images by name."""
    parts, images = [], {}
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            source = source.replace("](../docs/", "](")
            parts.append(re.sub(r"\]\(([\w-]+)\.ipynb\)", r"](\1.md)", source))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"images/{notebook.stem}-{len(images) + 1}.png"
                images[name] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![What this cell draws]({name})")
            elif text := "".join(output.get("text") or data.get("text/plain", "")).rstrip():
                parts.append(f"```text\n{text}\n```")
    parts.append(f"This page is the notebook `notebooks/{notebook.name}` with the outputs of its last run.")
    return "\n\n".join(parts), images


def describe_commands() -> str:
    """Every command with its arguments and options, as `--help` shows them."""
    parts = [
        "# Command line\n\nGenerated from the commands; `litebert COMMAND --help` shows the same in a terminal. "
        "Errors and exit codes are [on their own page](errors.md).\n"
    ]
    for path, command in _walk("litebert", get_command(app)):
        parts.append(_describe(path, command))
    return "\n".join(parts)


def _walk(path: str, command: Any) -> list[tuple[str, Any]]:
    """Every command and group below `command`, in the order of the help page."""
    below = getattr(command, "commands", {})
    names = [name for names in getattr(command, "sections", {}).values() for name in names] or list(below)
    return [one for name in names for one in ((f"{path} {name}", below[name]), *_walk(f"{path} {name}", below[name]))]


def _describe(path: str, command: Any) -> str:
    lines = [f"{'##' if path.count(' ') == 1 else '###'} {path}", "", (command.help or "").strip(), ""]
    if getattr(command, "commands", None):
        return "\n".join(lines)
    arguments, options = list_arguments(command), list_options(command)
    usage = " ".join([path, *(["[OPTIONS]"] if options else []), *map(name_argument, arguments)])
    lines += ["```text", usage, "```", ""]
    if arguments:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [f"| `{name_argument(one)}` | {_escape(str(one.help))} |" for one in arguments]
        lines.append("")
    for title in dict.fromkeys(one.rich_help_panel or "Options" for one in options):
        lines += [f"| {title.lower()} | meaning |", "|---|---|"]
        lines += [
            f"| `{name_option(one)}` | {_escape(describe_option(one))} |"
            for one in options
            if (one.rich_help_panel or "Options") == title
        ]
        lines.append("")
    examples = [line.strip() for line in (command.epilog or "").splitlines()[1:]]
    return "\n".join([*lines, EXAMPLES, "", "```text", *examples, "```", ""])


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
