"""The official ALBERT data (google-research/albert), as settings of ours: each quirk is a switch that can be set alone.

`data.compat = "google"` in a recipe sets all of them; a key that the recipe names itself wins. The resolved recipe
lists the switches, not the shorthand.
"""

from collections.abc import Mapping
from typing import Any

from litebert.core.errors import ConfigError, suggest
from litebert.core.options import merge

GOOGLE: dict[str, dict[str, Any]] = {
    "segments": {
        "single_sentence": "random_doc",  # a chunk of one sentence gets a stranger's text and label 1, in SOP too
        "fill": "overfill",  # the last sentence does not fit, and the pair is trimmed: the later segment is longer
        "fill_from": "start",  # always from the start, so that this length tells the order
        "target_per": "document",  # the shorter length is drawn once for a document, not for each chunk
        "negatives": "draw",  # from any place of any document: often a lead, and of another length
    },
    "masking": {
        "fills_budget": True,  # groups that do not fit the budget are shortened or skipped: fewer long ones
        "max_predictions": 20,  # 3.9 % of 512 tokens
        "may_straddle": True,  # words and groups go on behind [SEP]
        "random_from_all": True,  # a random token may be [PAD], [CLS], ...
    },
}
COMPATIBLE_WITH = {"google": GOOGLE}


def expand_compat(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe whose `data.compat` is replaced by the switches that it stands for."""
    section = recipe.get("data", {})
    if not isinstance(section, Mapping):
        return dict(recipe)  # refused by its name when the options are built
    data = dict(section)
    name = data.pop("compat", None)
    if name is None:
        return dict(recipe)
    if not isinstance(name, str) or name not in COMPATIBLE_WITH:
        raise ConfigError(f"unknown data.compat '{name}'; {suggest(str(name), COMPATIBLE_WITH)}")
    return merge(COMPATIBLE_WITH[name], {**recipe, "data": data})
