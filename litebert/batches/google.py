"""The official ALBERT data (google-research/albert) as a set of our options: each of its quirks is one option.

`data.compat = "google"` in a recipe sets all of them; a key that the recipe sets itself wins. The resolved recipe lists
the options, not the shorthand.
"""

from collections.abc import Mapping
from typing import Any

from litebert.core.errors import ConfigError, suggest
from litebert.core.options import merge

GOOGLE: dict[str, dict[str, Any]] = {
    "segments": {
        "single_sentence": "random_doc",  # a chunk of one sentence gets a random segment and label 1, in SOP too
        "fill": "overfill",  # the last sentence does not fit, and the pair is trimmed: the later segment is longer
        "fill_from": "start",  # always from the start, so that this length reveals the order
        "target_per": "document",  # the shorter length is drawn once per document, not per chunk
        "negatives": "draw",  # from anywhere in any document: often an opening, and of another length
    },
    "masking": {
        "fills_budget": True,  # groups that do not fit the budget are shortened or skipped: fewer long ones
        "max_predictions": 20,  # 3.9 % of 512 tokens
        "may_straddle": True,  # words and groups continue after [SEP]
        "random_from_all": True,  # a random token may be [PAD], [CLS], ...
    },
}
COMPATIBLE_WITH = {"google": GOOGLE}


def expand_compat(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with `data.compat` replaced by the options that it abbreviates."""
    section = recipe.get("data", {})
    if not isinstance(section, Mapping):
        return dict(recipe)  # reported by name when the options are built
    data = dict(section)
    name = data.pop("compat", None)
    if name is None:
        return dict(recipe)
    if not isinstance(name, str) or name not in COMPATIBLE_WITH:
        raise ConfigError("unknown-compat", f"unknown data.compat '{name}'; {suggest(str(name), COMPATIBLE_WITH)}")
    return merge(COMPATIBLE_WITH[name], {**recipe, "data": data})
