"""`litebert recipes`: list recipes, show one, and count what a run would cost."""

import json
from typing import TYPE_CHECKING

from litebert.cli.words import AsJson, Overrides, RecipeName

if TYPE_CHECKING:
    from litebert.plan.summary import Summary


def show_recipes(as_json: AsJson = False) -> None:
    """List the recipes that come with litebert.

    Examples:
      litebert recipes list
    """
    from litebert.pretraining.recipe import list_recipes

    recipes = {name: line.removeprefix(f"{name}: ") for name, line in list_recipes().items()}
    if as_json:
        print(json.dumps(recipes, indent=2, ensure_ascii=False))
        return
    width = max(map(len, recipes))
    for name, line in recipes.items():
        print(f"{name:{width}}  {line}")


def show_recipe(recipe: RecipeName, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Print a recipe in full, with all defaults, as a file to edit.

    Examples:
      litebert recipes show nano > my-recipe.toml
      litebert recipes show albert-base train.steps=4000
    """
    from litebert.core.options import parse_toml
    from litebert.pretraining.recipe import load_recipe

    toml = load_recipe(recipe, overrides or []).to_toml()
    print(json.dumps(parse_toml(toml, where=recipe), indent=2) if as_json else toml)


def check_recipe(recipe: RecipeName, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Check a recipe, and print it with the size of the run.

    Parameters, memory, tokens, steps and the first batch are shown; nothing is trained.

    Examples:
      litebert recipes check nano data.corpora=corpora/en
      litebert recipes check albert-base train.steps=4000
    """
    from litebert.core.options import parse_toml
    from litebert.plan.summary import summarize
    from litebert.pretraining.recipe import load_recipe

    resolved = load_recipe(recipe, overrides or [])
    summary = summarize(resolved)
    facts = _list_facts(summary, hours=resolved.train.hours)
    if as_json:
        print(json.dumps({"recipe": parse_toml(resolved.to_toml(), where=recipe), **facts}, indent=2))
        return
    print(resolved.to_toml())
    for name, value in facts.items():
        print(f"{name:13} {value}")


def _list_facts(summary: "Summary", *, hours: float) -> dict[str, str]:
    """Facts about the run, as text."""
    parameters, memory = summary.parameters, summary.memory
    return {
        "parameters": f"{parameters.total:,} stored, {parameters.unrolled:,} if layers were not shared",
        "memory": f"{memory.total / 1e6:,.0f} MB for a micro-batch of {summary.micro_batch} x {summary.length}, "
        f"of which {memory.activations / 1e6:,.0f} MB activations",
        "run": _tell_length(summary, hours),
        **_tell_text(summary),
    }


def _tell_length(summary: "Summary", hours: float) -> str:
    size = summary.size
    if size is None:
        return f"limited by train.hours = {hours:g}; `litebert recipes plan` estimates the number of steps"
    text = f"{size.epochs:.1f} epochs, about" if summary.text else "at most"
    return f"{size.steps:,} steps, {text} {size.tokens:,} tokens, {size.flops:.3g} FLOPs"


def _tell_text(summary: "Summary") -> dict[str, str]:
    text = summary.text
    if text is None:
        missing = ", ".join(summary.missing_corpora)
        none = f"{missing} does not exist" if missing else "none set"
        return {"corpus": f"{none}; set data.corpora=... to see its tokens, epochs and first batch"}
    batch = text.first_batch
    return {
        "corpus": f"{text.num_tokens:,} tokens, {text.steps_per_epoch:,} steps per epoch",
        "first batch": f"{batch.num_sequences} sequences in rows {tuple(batch.token_ids.shape)}, "
        f"{int(batch.mask.sum()) / batch.mask.numel():.1%} text, "
        f"{len(batch.mlm_labels) / int(batch.mask.sum()):.1%} masked",
        **({"start": "; ".join(text.notes)} if text.notes else {}),
    }
