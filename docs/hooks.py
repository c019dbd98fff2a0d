"""Hooks of the documentation site: the command-line page, links that leave docs/, and no file from another host."""

import re
from typing import Any

from mkdocs.structure.files import File, Files
from typer.main import get_command

from litebert.cli.main import app


def on_files(files: Files, config: Any) -> Files:
    """Add the generated page of the command line."""
    files.append(File.generated(config, "cli.md", content=describe_commands()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Files outside docs/ are not on the site: a link to one becomes its path."""
    return re.sub(r"\[[^\]]+\]\(\.\./([^)]+)\)", r"`\1`", markdown)


def on_post_page(output: str, **_: Any) -> str:
    """The search's shim comes from this site, not from a CDN."""
    return output.replace("https://unpkg.com/iframe-worker/shim", "iframe-worker.js")


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
    found = []
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            found += [(f"{path} {name}", below), *_walk(f"{path} {name}", below)]
    return found


def _describe(path: str, command: Any) -> str:
    level = "##" if path.count(" ") == 1 else "###"
    lines = [f"{level} {path}", "", (command.help or "").strip(), ""]
    if getattr(command, "commands", None):
        return "\n".join(lines)
    arguments = [
        one for one in command.params if one.param_type_name == "argument" and not getattr(one, "hidden", False)
    ]
    options = [
        one for one in command.params if one.param_type_name == "option" and not one.hidden and one.name != "help"
    ]
    usage = " ".join([path, *(["[OPTIONS]"] if options else []), *(_name_argument(one) for one in arguments)])
    lines += ["```text", usage, "```", ""]
    if arguments:
        lines += ["| argument | |", "|---|---|"]
        lines += [
            f"| `{_escape(_name_argument(one))}` | {_escape(getattr(one, 'help', '') or '')} |" for one in arguments
        ]
        lines.append("")
    if options:
        lines += ["| option | default | |", "|---|---|---|"]
        for one in options:
            names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
            lines.append(f"| {names} | {_default(one)} | {_escape(one.help or '')} |")
        lines.append("")
    if command.epilog:
        lines += [*_describe_epilog(command.epilog), ""]
    return "\n".join(lines)


def _describe_epilog(epilog: str) -> list[str]:
    """Its examples as a block to copy."""
    title, *rest = [line.strip("\b").rstrip() for line in epilog.strip().splitlines()]
    return [title, "", "```text", *(line.strip() for line in rest if line.strip()), "```"]


def _name_argument(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper()).replace("{", "").replace("}", "")


def _default(option: Any) -> str:
    if option.required:
        return "required"
    if option.is_flag or option.default in (None, (), [], ""):
        return ""
    return f"`{getattr(option.default, 'value', option.default)}`"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
