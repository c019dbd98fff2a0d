"""The `litebert` command: registers the subcommands and prints errors as one line with an exit code."""

import os
import sys
import traceback
import warnings
from typing import Annotated, Any, NoReturn

import typer

from litebert import __version__
from litebert.cli import (
    adapt,
    convert,
    corpus,
    demo,
    doctor,
    ensemble,
    evaluate,
    export,
    finetune,
    models,
    plan,
    plot,
    predict,
    pretrain,
    score,
    serve,
    study,
    tokenizer,
    verify,
)
from litebert.core.errors import LitebertWarning, describe_refusal, escape_controls
from litebert.core.view import discard_output
from litebert.training.launcher import report_to_launcher

# Raised for bad command-line arguments. typer vendors click and does not export this name.
UsageError: type[Any] = typer.BadParameter.__bases__[0]
_PYTHONS_WARNING = warnings.formatwarning
# arguments of Python functions that are named differently on the command line
_OPTIONS = {"replace": "force", "format": "format_", "allow_hosts": "allow_host", "origins": "origin"}
INTERRUPTED = 130  # typer's exit code for Ctrl-C

app = typer.Typer(
    name="litebert",
    help="Pretrain, study, fine-tune and ship lite BERTs: ALBERT, and the BERT and RoBERTa baselines.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.run_demo)
app.command("convert")(convert.convert_model)
app.command("doctor")(doctor.examine)
app.command("verify")(verify.verify_directories)
app.command("models")(models.show_models)
app.add_typer(tokenizer.app, name="tokenizer")
app.add_typer(corpus.app, name="corpus")
app.command("recipes")(pretrain.show_recipes)
app.command("check")(pretrain.check_recipe)
app.command("plan")(plan.plan_recipe)
app.command("pretrain")(pretrain.run_pretraining)
app.command("adapt")(adapt.adapt_model)
app.command("finetune")(finetune.run_finetuning)
app.command("evaluate")(evaluate.run_evaluation)
app.command("predict")(predict.predict_texts)
app.command("export")(export.export_model)
app.command("score")(score.score_predictions)
app.command("scores")(ensemble.show_scores)
app.command("ensemble")(ensemble.run_ensemble)
app.command("submission")(ensemble.write_submission)
app.command("plot")(plot.plot_runs)
app.command("serve")(serve.serve_models)
app.add_typer(study.app, name="study")


def main() -> NoReturn:
    """Run the command line; --debug, anywhere in it, shows the traceback of an error."""
    # threads that wait by spinning starve the rest of a busy machine, us included; torch reads this when it loads
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    warnings.formatwarning = _show_warning
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    sys.exit(_run(arguments, debug=len(arguments) < len(sys.argv) - 1))


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **line: Any) -> str:
    """Format our warnings as notes without a source line, and others as Python does."""
    is_ours = issubclass(category, LitebertWarning)
    return (
        f"note: {escape_controls(str(message))}\n" if is_ours else _PYTHONS_WARNING(message, category, *place, **line)
    )


def _run(arguments: list[str], *, debug: bool) -> int:
    try:
        code: int = app(arguments, prog_name="litebert", standalone_mode=False) or 0
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else "litebert"
        print(f"error: {error.format_message()} (see: {command} --help)", file=sys.stderr)
        return 2
    except SystemExit as ending:
        if not isinstance(ending.__context__, BrokenPipeError):
            raise
        discard_output(sys.__stdout__ or sys.stdout)  # `litebert ... | head` closed the pipe
        return 0
    except Exception as error:
        refusal = describe_refusal(error)
        if refusal is None:
            raise
        if debug:
            traceback.print_exc()
        report_to_launcher(error)
        print(refusal.line + _name_flag(error, arguments), file=sys.stderr)
        return refusal.exit_code
    if code == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return code


def _name_flag(error: Exception, arguments: list[str]) -> str:
    """The flag of the argument that the library names, or nothing if this command has no such flag."""
    option = getattr(error, "option", "")
    if not option:
        return ""
    command = typer.main.get_command(app)
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    names = {_OPTIONS.get(option, option), option}
    flags = [parameter.opts[0] for parameter in command.params if parameter.name in names and parameter.opts]
    return f" ({flags[0]})" if flags and flags[0].startswith("--") else ""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"litebert {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    pass
