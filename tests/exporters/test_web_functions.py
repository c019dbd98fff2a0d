"""The page's answers are Python's, to the letter: both read the same invented logits, in node where there is one."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from small_text import SIZES, make_sentences
from torch import Tensor
from varied_lines import iter_rare_lines

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.exporters.web import PAGE_FOLDERS
from litebert.exporters.web_model import FUNCTIONS, describe_for_page
from litebert.exporters.web_vocabulary import describe_vocabulary, describe_words
from litebert.inference.predictor import Predictor
from litebert.model.config import ModelConfig
from litebert.model.engine import NUM_STARTS, HeadInputs, HeadName
from litebert.model.heads import forbid
from litebert.model.model import build_model
from litebert.server import functions as served
from litebert.server.models import NamedModel
from litebert.tasks.catalog import task_facts
from litebert.tasks.groups import build_form
from litebert.tasks.kinds.choices import Choices
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.tasks.squad.task import SpanTask
from litebert.text.tokenizer import Kind, Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

MAX_LENGTH = 48
# Whole numbers below a modulus, then divided by a power of two: the same bits in both languages. A small modulus makes
# many equal scores, of which the first must win; a large one has no equals, where rounding would decide.
FEW, MANY = 211, 1000003
INVENT = """
const [FEW, MANY] = [211, 1000003];
const invent = (id, column, salt, modulus) =>
  ((id * 7919 + column * column * 104729 + salt * (column + 7) * 31337) % modulus) / 2 ** (modulus === MANY ? 17 : 8);
const tensor = (data, dims) => ({ data: Float32Array.from(data), dims });
"""
SCRIPT = """
import { readFileSync } from "node:fs";
import { buildFunctions } from "./functions.js";
import { buildTokenizer } from "./tokenizer.js";
const readJson = (name) => JSON.parse(readFileSync(`${name}.json`));
const [vocabulary, facts, inputs] = ["vocabulary", "facts", "inputs"].map(readJson);
const FORBIDDEN = Math.fround(-1e30);
const read = ({ ids, answerMask }) => {
  if (facts.task === null) {  // gaps; the last three of the model's rows are no pieces, and the most probable ones
    const width = vocabulary.pieces.length + 3;
    return { logits: tensor(Array.from({ length: width }, (_, id) => id / 64), [1, width]) };
  }
  const width = facts.task.labels?.length;
  const over = (salt, modulus) => ids.map((id, column) => invent(id, column, salt, modulus));
  if (facts.task.kind === "tags") {
    const rows = ids.flatMap((id, column) => facts.task.labels.map((_, label) => invent(id, column, label, FEW)));
    return { logits: tensor(rows, [1, ids.length, width]) };
  }
  if (facts.task.kind === "choices") return { logits: tensor([over(0, FEW).reduce((a, b) => a + b, 0) % 8], [1, 1]) };
  const [first, last] = [1, 2].map((salt) => tensor(over(salt, FEW), [1, ids.length]));
  if (facts.task.head === "span") return { start: first, end: last };
  const allow = (values) => values.map((value, column) => (answerMask[column] ? value : FORBIDDEN));
  const start = allow(over(1, MANY));
  const starts = [...start.keys()].sort((a, b) => start[b] - start[a]).slice(0, 5);
  const end = starts.flatMap((place) => allow(over(place, MANY)));
  const unanswerable = [over(3, FEW).reduce((a, b) => a + b, 0) % 4 - 1];
  return { start: tensor(start, [1, ids.length]), starts: { data: BigInt64Array.from(starts, BigInt) },
    end: tensor(end, [1, starts.length, ids.length]), unanswerable: tensor(unanswerable, [1]) };
};
const answer = buildFunctions({ facts, tokenizer: buildTokenizer(vocabulary) }, read)[facts.model.functions[0]];
const results = [];
for (const input of inputs) results.push(await answer(input, { top_k: 3 }));
console.log(JSON.stringify(results));
"""


class Inventing:
    """An engine whose logits are the script's."""

    name = "torch"
    batch_cost = 0
    batch_tokens = 4096

    def run(self, head: HeadName, inputs: HeadInputs) -> Mapping[str, Tensor]:
        ids, mask = inputs.token_ids, inputs.mask
        if head == "tokens":
            return {"logits": torch.stack([self._over(ids, label, FEW) for label in range(NUM_TAGS)], -1)}
        if head == "choice":
            return {"logits": ((self._over(ids, 0, FEW) * mask).sum(1) % 8)[:, None]}
        if head == "span":
            return {"start": self._over(ids, 1, FEW), "end": self._over(ids, 2, FEW)}
        assert inputs.allowed is not None
        start = forbid(self._over(ids, 1, MANY), inputs.allowed)
        starts = start.topk(NUM_STARTS).indices
        end = torch.stack([self._over(ids, starts[:, k : k + 1], MANY) for k in range(NUM_STARTS)], 1)
        unanswerable = (self._over(ids, 3, FEW) * mask).sum(1) % 4 - 1
        return {
            "start": start, "starts": starts, "end": forbid(end, inputs.allowed[:, None]), "unanswerable": unanswerable,
        }  # fmt: skip

    def can_exit(self, head: HeadName) -> bool:
        del head
        return False

    def _over(self, ids: Tensor, salt: int | Tensor, modulus: int) -> Tensor:
        columns = torch.arange(ids.shape[1])
        whole = (ids * 7919 + columns * columns * 104729 + salt * (columns + 7) * 31337) % modulus
        return whole.float() / (2**17 if modulus == MANY else 2**8)


TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
NUM_TAGS = len(TAGS)
TASKS = {
    "span": SpanTask("squad-v1", max_question_length=12, stride=16),
    "one_best": SpanTask("squad-v1", max_question_length=12, stride=16, max_answer_length=3, num_best=1),
    "conditional_span": SpanTask(
        "squad-v2", version="2.0", head="conditional_span", max_question_length=12, stride=16, threshold=0.5
    ),
    "null": SpanTask("squad-v2", version="2.0", max_question_length=12, stride=64, max_answer_length=5, num_best=4),
    "tags": TokenTags("tags", TAGS),
    "split_tags": TokenTags("tags", TAGS, splits_words=True),
    "choices": Choices("choice", max_choice_length=16),
}


@pytest.fixture(scope="module", params=["unigram", "wordpiece"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    kind: Kind = request.param
    return train_tokenizer(make_sentences(), VocabularyOptions(kind=kind, vocab_size=SIZES[kind]))


def build_predictor(folder: Path, task: Any, tokenizer: Tokenizer) -> Predictor:
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=8, hidden_size=8, ffn_size=8, num_layers=1, num_heads=1,
        max_positions=MAX_LENGTH,
    )  # fmt: skip
    content = CheckpointContent(step=0, task=task_facts(task, max_length=MAX_LENGTH))
    save_checkpoint(folder / "model", build_model(config, task.heads), tokenizer, content)
    engine: Any = Inventing()
    return Predictor(load_checkpoint(folder / "model"), choose_runtime(RuntimeOptions(device="cpu")), engine)


def answer_in_node(folder: Path, predictor: Predictor, inputs: Sequence[Any]) -> list[Any]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    for page in PAGE_FOLDERS:
        for file in page.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
    form = build_form(predictor.tokenizer, max_length=MAX_LENGTH, num_segments=2)
    head: HeadName = "mlm" if predictor.checkpoint.task is None else predictor.task.heads[0].kind
    facts = describe_for_page(predictor.checkpoint, head)
    values = {
        "vocabulary": describe_vocabulary(predictor.tokenizer, form) | describe_words(),
        "facts": facts,
        "inputs": inputs,
    }
    for name, value in {**values, "package": {"type": "module"}}.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    (folder / "run.js").write_text(INVENT + SCRIPT)
    done = subprocess.run([node, "run.js"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results: list[Any] = json.loads(done.stdout)
    return results


def list_inputs(function: str) -> list[Any]:
    """Texts with everything that changes its length when it is normalized, some of many windows, some of one word."""
    lines = [line for line in islice(iter_rare_lines(300), 60, None) if line.strip()] + make_sentences(40)
    passages = [" ".join(lines[at : at + at % 9 + 1]) for at in range(0, len(lines) - 9, 4)]
    if function == "tokens":
        return [*passages, "x" * 300 + " the river", "\u200b the"]
    if function == "choose":
        sides = ["the _ river", "who walks?", "_ and _", ""]
        return [
            {"context": text, "question": sides[n % 4], "choices": lines[n : n + 2 + n % 3]}
            for n, text in enumerate(passages)
        ]
    return [{"question": lines[-1 - n % 40], "context": text} for n, text in enumerate(passages)]


@pytest.mark.parametrize("name", TASKS)
def test_answers_are_those_of_the_server(name: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    predictor = build_predictor(tmp_path, TASKS[name], tokenizer)
    function = FUNCTIONS[predictor.task.heads[0].kind]
    inputs = list_inputs(function)
    assert len(inputs) > 50
    request: Any = served.FUNCTIONS[function].request
    asked = [request.model_validate({"inputs": [one]}).inputs[0] for one in inputs]
    checked = [served.FUNCTIONS[function].check(predictor, one) for one in asked]
    expected = [one.model_dump() for one in served.FUNCTIONS[function].compute(predictor, checked, {})]
    found = answer_in_node(tmp_path, predictor, inputs)
    for one, theirs, ours in zip(inputs, found, expected, strict=True):
        assert is_same(theirs, ours), (one, theirs, ours)
    if function == "answer":
        assert any(ours["answer"] for ours in expected)
    if name in ("span", "one_best"):
        assert all(ours["answer"] for ours in expected)
    if name in ("conditional_span", "null"):
        assert not all(ours["answer"] for ours in expected)


def test_gaps_are_filled_with_pieces_and_no_spare_rows_of_the_model(tmp_path: Path, tiny_checkpoint: Path) -> None:
    predictor = Predictor(load_checkpoint(tiny_checkpoint), choose_runtime(RuntimeOptions(device="cpu")))
    (answer,) = answer_in_node(tmp_path, predictor, ["the [MASK]"])
    last = predictor.tokenizer.vocab_size - 1
    assert [guess["piece"] for guess in answer["gaps"][0]] == predictor.tokenizer.pieces([last, last - 1, last - 2])


def is_same(theirs: Any, ours: Any) -> bool:
    """Equal, numbers nearly; of theirs what ours has."""
    if isinstance(ours, dict):
        return isinstance(theirs, dict) and all(is_same(theirs[key], value) for key, value in ours.items())
    if isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(is_same, theirs, ours))
    return bool(theirs == (pytest.approx(ours, rel=1e-4, abs=1e-5) if isinstance(ours, float) else ours))


def test_the_page_has_the_servers_description_of_a_model(tiny_checkpoint: Path) -> None:
    checkpoint = load_checkpoint(tiny_checkpoint)
    told = (
        NamedModel.of("x", Predictor(checkpoint, choose_runtime(RuntimeOptions(device="cpu")))).describe().model_dump()
    )
    facts = describe_for_page(checkpoint, "mlm")["model"]
    unused = {"examples"}  # an exported page is public: it holds none of the data
    assert set(facts) == set(told) - unused
    assert {key: facts[key] for key in facts if key not in ("name", "functions")} == {
        key: told[key] for key in facts if key not in ("name", "functions")
    }
