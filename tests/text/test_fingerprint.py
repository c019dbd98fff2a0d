"""A fingerprint distinguishes tokenizers that give different ids, and only those."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_text import SIZES, make_sentences

from litebert.core.sealed import read_sealed
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.text.tokenizers_backend import TokenizersBackend
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

KINDS: list[Any] = ["wordpiece", "bpe"]
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return train_tokenizer(make_sentences(), VocabularyOptions(request.param, SIZES[request.param]))


def changed(tokenizer: Tokenizer, change: Change) -> str:
    """The fingerprint after a change of tokenizer.json."""
    facts = json.loads(tokenizer.model)
    change(facts)
    return Tokenizer(TokenizersBackend(json.dumps(facts).encode())).fingerprint


def swap_last_pieces(facts: dict[str, Any]) -> None:
    pieces = facts["model"]["vocab"]
    first, second = sorted(pieces, key=pieces.__getitem__)[-2:]
    pieces[first], pieces[second] = pieces[second], pieces[first]


def write_merges_as_before(facts: dict[str, Any]) -> None:
    if "merges" in facts["model"]:
        facts["model"]["merges"] = [" ".join(pair) for pair in facts["model"]["merges"]]


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,  # laid out in one line instead of many
        lambda facts: facts.update(post_processor=None, decoder=None),
        lambda facts: facts["added_tokens"][-1].update(lstrip=True),
        lambda facts: facts["model"].update(fuse_unk=False, dropout=None),
        write_merges_as_before,
    ],
)
def test_what_decides_no_id_does_not_change_it(change: Change, tokenizer: Tokenizer) -> None:
    assert changed(tokenizer, change) == tokenizer.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        swap_last_pieces,
        lambda facts: facts.update(normalizer={"type": "Lowercase"}),
        lambda facts: facts.update(pre_tokenizer={"type": "Whitespace"}),
        lambda facts: facts["added_tokens"].append(facts["added_tokens"][0] | {"content": "e", "special": False}),
    ],
)
def test_what_decides_ids_changes_it(change: Change, tokenizer: Tokenizer) -> None:
    assert changed(tokenizer, change) != tokenizer.fingerprint


def test_tokenizers_saved_with_a_fingerprint_of_the_whole_file_still_open(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "saved")
    file = tmp_path / "saved/manifest.json"
    manifest = read_sealed(file)
    old = hashlib.sha256(tokenizer.model + json.dumps({"kind": tokenizer.kind}).encode()).hexdigest()
    file.write_text(json.dumps(manifest | {"fingerprint": old}), "utf-8")
    assert load_tokenizer(tmp_path / "saved").has_fingerprint(old)
    assert load_tokenizer(tmp_path / "saved").fingerprint == tokenizer.fingerprint != old
