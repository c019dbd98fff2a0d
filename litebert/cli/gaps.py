"""`litebert predict` of a model that was only pre-trained: what it would write in the place of each `[MASK]`."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from litebert.core.errors import DataError

if TYPE_CHECKING:
    from litebert.inference.predictor import Predictor
    from litebert.tasks.groups import Group

NUM_GUESSES = 5
CHUNK = 1024  # texts that are answered together, before any is printed


def print_guesses(predictor: "Predictor", examples: Sequence[Any], *, as_table: bool, has_files: bool) -> None:
    """A line for each text, with the best guesses for each of its gaps; every text is looked at before any is read."""
    from litebert.core.progress import ProgressBar
    from litebert.inference.fill_mask import MASK, count_masks, show_guess

    encoded: list[Group] = []
    for example in examples:
        if example.text_b is not None:
            raise DataError(
                f"{example.where}: a pair of texts; a model that was not fine-tuned fills gaps in single ones"
            )
        if not count_masks(predictor.tokenizer, example.text):
            remedy = f"write {MASK} in the place of a word, or `litebert finetune` it to answer"
            raise DataError(f"{example.where}: the model was not fine-tuned and fills gaps, and here is none; {remedy}")
        try:
            encoded += predictor.encode_gaps([example.text])
        except DataError as error:
            raise DataError(f"{example.where}: {error}") from None
    with ProgressBar("guessing", total=len(examples), unit="texts", scale=1) as progress:
        for start in range(0, len(examples), CHUNK):
            chunk = examples[start : start + CHUNK]
            guesses = predictor.fill_gaps(encoded[start : start + CHUNK], NUM_GUESSES)
            for example, gaps in zip(chunk, guesses, strict=True):
                words = [[(show_guess(predictor.tokenizer, guess), guess) for guess in gap] for gap in gaps]
                if as_table:
                    shown = [", ".join(f"{word} {guess.probability:.3f}" for word, guess in gap) for gap in words]
                    print("; ".join(shown), example.text, sep="\t")
                    continue
                found = [
                    [{"word": word, "piece": guess.piece, "probability": guess.probability} for word, guess in gap]
                    for gap in words
                ]
                record: dict[str, Any] = {"id": example.id, "gaps": found}
                print(json.dumps(record | ({"where": example.where} if has_files else {}), ensure_ascii=False))
            progress.move_to(start + len(chunk))
