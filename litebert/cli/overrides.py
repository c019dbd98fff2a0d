"""What to write instead of an option such as `--steps 100`, which is a key of the recipe."""

from collections.abc import Sequence


def suggest_override(flag: str | None, words: Sequence[str]) -> str:
    """`write train.steps=100` for an unknown option that names a key of the command's recipe; else nothing."""
    from litebert.core.options import find_keys

    if not flag or not flag.startswith("--"):
        return ""
    kind = _find_recipe(words)
    keys = find_keys(kind, flag.removeprefix("--").replace("-", "_")) if kind else []
    if not keys:
        return ""
    return f"write {keys[0]}={_find_value(flag, words) or '...'}"


def _find_recipe(words: Sequence[str]) -> type | None:
    """The dataclass whose keys a command takes as KEY=VALUE."""
    from litebert.finetuning.recipe import FinetuneRecipe
    from litebert.model.config import ModelConfig
    from litebert.pretraining.recipe import Recipe

    if words[0] in ("pretrain", "recipes", "adapt", "demo", "study", "corpus"):
        return Recipe
    return {"finetune": FinetuneRecipe, "models": ModelConfig}.get(words[0])


def _find_value(flag: str, words: Sequence[str]) -> str:
    """What stands after the option, or after its equals sign."""
    for place, word in enumerate(words):
        name, sign, value = word.partition("=")
        if name == flag:
            follows = words[place + 1 :][:1]
            return value if sign else "".join(word for word in follows if not word.startswith("--"))
    return ""
