"""The `litebert` command: the tree of commands, and errors as one line with an exit code."""

import os
import sys
import traceback
import warnings
from typing import Annotated, Any, ClassVar, NoReturn

import typer

from litebert import __version__
from litebert.cli import (
    adapt,
    batches,
    convert,
    corpus,
    demo,
    distill,
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
    recipes,
    score,
    search,
    serve,
    study,
    tokenizer,
    verify,
)
from litebert.cli.help import Group, add_command, add_group
from litebert.cli.overrides import suggest_override
from litebert.cli.spellings import describe_hint, modernize
from litebert.core.errors import LitebertWarning, describe_refusal, escape_controls
from litebert.core.view import discard_output
from litebert.training.launcher import report_to_launcher

# Raised for bad command-line arguments. typer vendors click and does not export this name.
UsageError: type[Any] = typer.BadParameter.__bases__[0]
_PYTHONS_WARNING = warnings.formatwarning
# arguments of Python functions that are named differently on the command line
_OPTIONS = {
    "format": {"to", "text_format"},
    "allow_hosts": {"allow_host"},
    "origins": {"origin"},
    "corpora": {"corpus"},
    "seeds": {"num_seeds"},
    "label": {"reranker_label"},
}
INTERRUPTED = 130  # typer's exit code for Ctrl-C


class Commands(Group):
    """All commands, in the order of work."""

    sections: ClassVar = {
        "Start here": ("demo",),
        "Data": ("tokenizer", "corpus"),
        "Train": ("recipes", "pretrain", "adapt", "finetune", "distill"),
        "Use": ("predict", "search", "serve", "convert", "export"),
        "Inspect": ("models", "evaluate", "score", "doctor", "verify", "plot"),
        "Research": ("study", "compare", "ensemble", "submission"),
    }


app = typer.Typer(
    name="litebert",
    cls=Commands,
    help="Pretrain, study, fine-tune and ship lite BERTs: ALBERT, and the BERT and RoBERTa baselines.",
    pretty_exceptions_enable=False,
)
add_command(app, "demo", demo.run_demo)

tokenizers = add_group(app, "tokenizer", "Train a tokenizer, inspect one, or tokenize a text.")
add_command(tokenizers, "train", tokenizer.train)
add_command(tokenizers, "show", tokenizer.show)
add_command(tokenizers, "info", tokenizer.info)
corpora = add_group(app, "corpus", "Build a tokenized corpus from text, check it and look at it.")
add_command(corpora, "build", corpus.build)
add_command(corpora, "check", corpus.check)
add_command(corpora, "stats", corpus.stats)
add_command(corpora, "show", batches.show_examples)

all_recipes = add_group(app, "recipes", "List pre-training recipes, check them and plan runs.")
add_command(all_recipes, "list", recipes.show_recipes)
add_command(all_recipes, "show", recipes.show_recipe)
add_command(all_recipes, "check", recipes.check_recipe)
add_command(all_recipes, "plan", plan.plan_recipe)
add_command(all_recipes, "batches", batches.show_batches)
add_command(app, "pretrain", pretrain.run_pretraining)
add_command(app, "adapt", adapt.adapt_model)
add_command(app, "finetune", finetune.run_finetuning)
add_command(app, "distill", distill.distill_model)

add_command(app, "predict", predict.predict_texts)
searches = add_group(app, "search", "Find the passages of your texts that are nearest in meaning to a question.")
add_command(searches, "index", search.index_texts)
add_command(searches, "query", search.query_index)
add_command(app, "serve", serve.serve_models)
add_command(app, "convert", convert.convert_model)
add_command(app, "export", export.export_model)

presets = add_group(app, "models", "Count parameters, FLOPs and memory of model presets.")
add_command(presets, "list", models.list_models)
add_command(presets, "show", models.show_model)
add_command(app, "evaluate", evaluate.run_evaluation)
add_command(app, "score", score.score_predictions)
add_command(app, "doctor", doctor.examine)
add_command(app, "verify", verify.verify_directories)
add_command(app, "plot", plot.plot_runs)

studies = add_group(app, "study", "Reproduce the papers' tables and figures, or run your own studies.")
add_command(studies, "list", study.show_list)
add_command(studies, "show", study.show_study)
add_command(studies, "run", study.run_study)
add_command(studies, "report", study.report_studies)
add_command(app, "compare", ensemble.compare_runs)
add_command(app, "ensemble", ensemble.run_ensemble)
add_command(app, "submission", ensemble.write_submission)


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
    root: Any = typer.main.get_command(app)
    words = modernize(arguments, root)
    if words != arguments:
        print(describe_hint(words), file=sys.stderr)
    if not words or (words == [words[0]] and hasattr(root.commands.get(words[0]), "commands")):
        words = [*words, "--help"]  # no command: what there is
    try:
        code: int = app(words, prog_name="litebert", standalone_mode=False) or 0
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else "litebert"
        fix = suggest_override(getattr(error, "option_name", None), words)
        if fix:
            error.possibilities = None  # options that look alike
        else:
            fix = f"see: {command} --help"
        print(f"error: {_in_one_line(error)} ({fix})", file=sys.stderr)
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
        print(refusal.line + _name_flag(error, words), file=sys.stderr)
        return refusal.exit_code
    if code == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return code


def _in_one_line(error: Any) -> str:
    """A parser's message, without a name for what every message is."""
    return escape_controls(" ".join(error.format_message().replace("Value error, ", "").split()))


def _name_flag(error: Exception, arguments: list[str]) -> str:
    """The flag of the argument that the library names, or nothing if this command has no such flag."""
    option = getattr(error, "option", "")
    if not option:
        return ""
    command = typer.main.get_command(app)
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    names = {option, *_OPTIONS.get(option, ())}
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
