"""Help pages: sections in a fixed order, 80 columns, and an `Examples:` epilog for every command.

A command's docstring ends with its examples; `add_command` makes them the epilog. Sections of options are typer's
`rich_help_panel`s, without their boxes and columns: at 80 columns these leave little room for the text.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import dedent, wrap
from typing import Any, ClassVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

EXAMPLES = "Examples:"
_EXPONENT = re.compile(r"\d+(\.\d+)?[eE]\+?\d+")  # 1e3, 2.5e4
_COLUMN = 24  # the widest name with its help on the same line


def add_command(app: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Register a function as a command, with the examples of its docstring as the epilog."""
    help_text, _, examples = dedent(f"    {function.__doc__ or ''}").partition(f"\n{EXAMPLES}\n")
    app.command(
        name,
        cls=Command,
        help=help_text.strip(),
        epilog=f"{EXAMPLES}\n{examples.rstrip()}" if examples else None,
    )(function)


def add_group(app: typer.Typer, name: str, help_text: str) -> typer.Typer:
    """Register a noun, such as `corpus`, and return the app to which its verbs are added."""
    group = typer.Typer(cls=Group, help=help_text)
    app.add_typer(group, name=name)
    return group


class Command(TyperCommand):
    """A command whose integers may be written as 1e3."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_help(self, ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _write_out_integers(args, self.params))


class Group(TyperGroup):
    """A group of commands, listed in `sections`, or all in one."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the sections; typer has groups last."""
        return [name for names in self.sections.values() for name in names] or super().list_commands(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_help(self, ctx, formatter)


def list_arguments(command: Any) -> list[TyperArgument]:
    """The visible arguments of a command."""
    return [one for one in command.params if isinstance(one, TyperArgument) and not one.hidden]


def list_options(command: Any) -> list[TyperOption]:
    """The visible options of a command, without --help."""
    return [one for one in command.params if isinstance(one, TyperOption) and not one.hidden and one.name != "help"]


def name_argument(argument: TyperArgument) -> str:
    """MODEL, or [RUNS]... if it is optional and can be repeated."""
    name = str(argument.metavar or argument.name.upper())
    return f"{name if argument.required else f'[{name}]'}{'' if argument.nargs == 1 else '...'}"


def name_option(option: TyperOption) -> str:
    """`--out FOLDER`, or a flag's spellings."""
    names = ", ".join(sorted(option.opts, key=len, reverse=True))
    if option.secondary_opts:
        names = f"{names} / {', '.join(option.secondary_opts)}"
    return names if option.is_flag else f"{names} {_name_value(option)}"


def describe_option(option: TyperOption) -> str:
    """The help of an option, with its default."""
    default = option.default
    if option.required:
        shown = "required"
    elif default is None or default in ("", [], ()) or (option.is_flag and not option.secondary_opts):
        shown = ""  # where nothing is said, the help explains the default
    elif option.is_flag:
        shown = f"default: {(option.opts if default else option.secondary_opts)[0]}"
    else:
        shown = f"default: {default}"
    return f"{option.help} [{shown}]" if shown else str(option.help)


def _name_value(option: TyperOption) -> str:
    if option.metavar:
        return str(option.metavar)
    choices = option.type_descriptor.choices
    if choices:
        return "|".join(map(str, choices))
    annotation = str(option.type_descriptor.annotation)
    return "N" if "int" in annotation else "X" if "float" in annotation else "PATH" if "Path" in annotation else "TEXT"


def _write_help(command: Any, ctx: Any, formatter: Any) -> None:
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    arguments, options = list_arguments(command), list_options(command)
    commands = getattr(command, "commands", {})
    usage = [
        *(["[OPTIONS]"] if options else []),
        *map(name_argument, arguments),
        *(["COMMAND ..."] if commands else []),
    ]
    formatter.write_usage(ctx.command_path, " ".join(usage))
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text((command.help or "").strip())
    sections = getattr(command, "sections", {}) or ({"Commands": list(commands)} if commands else {})
    for title, names in sections.items():
        _write_section(formatter, title, [(name, _first_sentence(commands[name].help)) for name in names])
    if arguments:
        _write_section(formatter, "Arguments", [(name_argument(one), str(one.help)) for one in arguments])
    for title in dict.fromkeys(one.rich_help_panel or "Options" for one in options):
        chosen = [one for one in options if (one.rich_help_panel or "Options") == title]
        _write_section(formatter, title, [(name_option(one), describe_option(one)) for one in chosen])
    if command.epilog:
        _write_heading(formatter, EXAMPLES)
        for line in command.epilog.splitlines()[1:]:
            formatter.write(f"{_wrap_example(line, formatter.width)}\n")
    if commands:
        formatter.write(f"\n{ctx.command_path} COMMAND --help explains a command.\n")


def _write_section(formatter: Any, title: str, rows: list[tuple[str, ...]]) -> None:
    _write_heading(formatter, f"{title}:")
    formatter.indent()
    formatter.write_dl(rows, col_max=_COLUMN)
    formatter.dedent()


def _write_heading(formatter: Any, title: str) -> None:
    formatter.write(f"\n{typer.style(title, bold=True)}\n")  # echo drops the style where the output is not a terminal


def _first_sentence(text: str | None) -> str:
    return re.split(r"\.(?:\s|$)", " ".join((text or "").split()), maxsplit=1)[0]


def _wrap_example(line: str, width: int) -> str:
    """A long command on several lines, as a shell reads it."""
    together = re.sub(r"( --[\w-]+) (?!-)", r"\1\0", line)  # an option and its value
    lines = wrap(together, width - 2, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(lines).replace("\0", " ")


def _write_out_integers(args: list[str], params: Iterable[Any]) -> list[str]:
    """Replace 1e3 by 1000 where an option expects an integer."""
    flags = {
        flag
        for option in params
        if isinstance(option, TyperOption) and option.type_descriptor.annotation in (int, int | None)
        for flag in option.opts
    }
    written = list(args)
    for place, word in enumerate(args):
        flag, sign, value = word.partition("=")
        if flag in flags and sign and _EXPONENT.fullmatch(value):
            written[place] = f"{flag}={float(value):.0f}"
        elif place and args[place - 1] in flags and _EXPONENT.fullmatch(word):
            written[place] = f"{float(word):.0f}"
    return written
