"""The span task: what it learns from does not depend on how a batch is cut or padded; thresholds; what is submitted."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from official_squad import scores_v2
from refusals import refuses

from litebert.core.errors import DataError
from litebert.model.config import ModelConfig
from litebert.model.engine import HeadInputs, HeadName
from litebert.model.model import Model, build_model
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.group_batch import build_group_batch, cut_micro_batches
from litebert.tasks.groups import SequenceForm
from litebert.tasks.squad.features import count_lost_answers
from litebert.tasks.squad.files import squad_reader
from litebert.tasks.squad.reading import Answer, Question
from litebert.tasks.squad.task import SpanTask
from litebert.text.tokenizer import Tokenizer

TASKS = [
    SpanTask("v1", stride=6, max_question_length=5, num_best=4),
    SpanTask("v2", "2.0", "conditional_span", stride=6, max_question_length=5),
]


def build_questions() -> list[Question]:
    questions = []
    for n in range(8):
        context = "The cat sees a small dog near the old house. " * (n % 4 + 1)
        answers = () if n % 3 == 2 else (Answer("a small dog", context.rindex("a small dog")),)
        questions.append(Question(str(n), "what sees the cat" + " now" * n, context, answers))
    return questions


def build_small_model(tokenizer: Tokenizer, task: SpanTask, num_segments: int = 2) -> Model:
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        embedding_size=8,
        hidden_size=16,
        ffn_size=32,
        num_layers=2,
        num_heads=2,
        num_segments=num_segments,
    )
    return build_model(config, task.heads, seed=3).eval()


def form_of(tokenizer: Tokenizer, num_segments: int = 2) -> SequenceForm:
    return SequenceForm(tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id, max_length=28, num_segments=num_segments)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("num_segments", [1, 2])
def test_parts_add_up_and_padding_changes_nothing(tiny_tokenizer: Tokenizer, task: SpanTask, num_segments: int) -> None:
    model = build_small_model(tiny_tokenizer, task, num_segments)
    groups = task.encode(build_questions(), tiny_tokenizer, form_of(tiny_tokenizer, num_segments))
    assert max(len(group.sequences) for group in groups) > 3
    whole = build_group_batch(groups, tiny_tokenizer.pad_id)
    totals = task.count(whole)
    parts = cut_micro_batches(groups, 1, tiny_tokenizer.pad_id)
    assert len(parts) == len(groups)
    with torch.inference_mode():
        expected = float(task.loss(model, whole, totals).loss)
        summed = sum(float(task.loss(model, part, totals).loss) for part in parts)
    assert summed == pytest.approx(expected, rel=1e-5)
    with torch.inference_mode():
        together = task.predict(model, whole, groups)
        alone = [task.predict(model, part, [group])[0] for part, group in zip(parts, groups, strict=True)]
    for one, other in zip(together, alone, strict=True):
        assert [span[:3] for span in one["spans"]] == [span[:3] for span in other["spans"]]
        assert one["null_odds"] == pytest.approx(other["null_odds"], abs=1e-4)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_answer_is_longer_than_allowed_or_outside_the_paragraph(tiny_tokenizer: Tokenizer, task: SpanTask) -> None:
    task = replace(task, max_answer_length=2, num_best=20)
    model = build_small_model(tiny_tokenizer, task)
    questions = build_questions()
    groups = task.encode(questions, tiny_tokenizer, form_of(tiny_tokenizer))
    with torch.inference_mode():
        outputs = task.predict(model, build_group_batch(groups, tiny_tokenizer.pad_id), groups)
    assert any(output["spans"] for output in outputs)
    for question, output in zip(questions, outputs, strict=True):
        for text, start, end, *_ in output["spans"]:
            assert question.context[start:end] == text
            assert len(tiny_tokenizer.encode(text)) <= 2


def output_of(text: str, null_odds: float) -> dict[str, object]:
    return {"spans": [[text, 0, len(text), 1.0, 0.0, 0.0]], "null_odds": null_odds}


def test_the_threshold_is_tuned_on_dev_and_then_kept() -> None:
    task = SpanTask("v2", "2.0", "conditional_span")
    questions = [
        Question("1", "?", "cat", (Answer("cat", 0),)),
        Question("2", "?", "cat", ()),
        Question("3", "?", "cat", (Answer("cat", 0),)),
    ]
    outputs = [output_of("cat", 0.5), output_of("cat", 3.0), output_of("cat", 1.0)]
    assert task.score(outputs, questions)["f1"] == 1.0
    tuned, files = task.finish(outputs, questions)
    assert tuned.threshold == 2.0  # between the last that is answered and the next
    assert files["predictions.json"] == {"1": "cat", "2": "", "3": "cat"}
    assert files["null_odds.json"] == {"1": 0.5, "2": 3.0, "3": 1.0}
    later = [output_of("cat", 2.5), output_of("cat", 1.9), output_of("cat", 2.5)]  # the kept one is wrong for these
    assert tuned.score(later, questions)["f1"] == 0.0
    assert tuned.score(later, questions)["best_f1"] == pytest.approx(2 / 3)
    assert tuned.decide(output_of("cat", 2.01)) == ""


def official_f1(
    predictions: dict[str, str], null_odds: dict[str, float], threshold: float, golds: dict[str, list[str]]
) -> float:
    """evaluate-v2.0.py with --na-prob-file and --na-prob-thresh: odds above the threshold count as no answer."""
    total = 0.0
    for id_, answers in golds.items():
        if null_odds[id_] > threshold:
            total += float(not answers)
        else:
            total += scores_v2(predictions[id_], answers)[1]
    return total / len(golds)


@pytest.mark.parametrize("shift", [-6.0, 0.0, 6.0])
def test_the_official_script_with_our_odds_and_threshold_gives_our_score(shift: float) -> None:
    task = SpanTask("v2", "2.0", "conditional_span")
    odds = [0.5 + shift, 3.0 + shift, 1.0 + shift, 0.7 + shift]
    golds = {"1": ["cat"], "2": [], "3": ["a cat and"], "4": []}
    questions = [Question(id_, "?", "a cat and", tuple(Answer(text, 0) for text in golds[id_])) for id_ in golds]
    outputs = [output_of("cat", value) for value in odds]
    tuned, files = task.finish(outputs, questions)
    predictions, null_odds = files["predictions.json"], files["null_odds.json"]
    ours = tuned.score(outputs, questions)["f1"]
    assert official_f1(predictions, null_odds, files["null_odds_threshold.json"], golds) == pytest.approx(ours)
    if shift > 0:  # the script's default is not ours
        assert official_f1(predictions, null_odds, 1.0, golds) < ours


def test_the_empty_answer_is_given_where_it_scores_best() -> None:
    task = SpanTask("v2", "2.0", "conditional_span")
    questions = [Question(str(n), "?", "cat", ()) for n in range(3)]
    outputs = [output_of("cat", odds) for odds in (-5.0, -4.0, 2.0)]
    tuned, files = task.finish(outputs, questions)
    assert set(files["predictions.json"].values()) == {""}
    assert tuned.score(outputs, questions)["f1"] == task.score(outputs, questions)["f1"] == 1.0


def test_version_1_1_always_answers() -> None:
    task = SpanTask("v1")
    assert task.decide(output_of("cat", 99.0)) == "cat"
    _, files = task.finish([output_of("cat", 99.0)], [Question("1", "?", "cat", None)])
    assert files["predictions.json"] == {"1": "cat"}
    assert "null_odds.json" not in files


@pytest.mark.parametrize("context", ["the", "The cat sees a small dog near the old house. " * 4])
def test_version_1_1_answers_though_the_best_start_and_the_best_end_lie_elsewhere(
    context: str, tiny_tokenizer: Tokenizer
) -> None:
    task = replace(TASKS[0], num_best=1, max_answer_length=2)
    groups = task.encode([Question("1", "who sees it", context)], tiny_tokenizer, form_of(tiny_tokenizer))

    class AtClassifier:
        """Sure of [CLS], which is no answer here, and least unsure of the paragraph's first words after it."""

        def run(self, head: HeadName, inputs: HeadInputs) -> dict[str, torch.Tensor]:
            del head
            columns = torch.arange(inputs.token_ids.shape[1], dtype=torch.float32)
            logits = torch.where(columns == 0, 9.0, -columns).expand(inputs.token_ids.shape)
            return {"start": logits, "end": logits}

    [output] = task.predict(AtClassifier(), build_group_batch(groups, tiny_tokenizer.pad_id), groups)
    assert task.decide(output) == context.split()[0]


def test_an_ensemble_lists_no_more_spans_than_its_members() -> None:
    task = SpanTask("v1", num_best=3)
    outputs = [
        {"spans": [[f"{name}{n}", 0, 2, 0.5 - 0.1 * n, 0.0, 0.0] for n in range(3)], "null_odds": 0.0} for name in "ab"
    ]
    spans = task.combine(outputs)["spans"]
    assert [(span[0], span[3]) for span in spans] == [("a0", 0.25), ("b0", 0.25), ("a1", 0.2)]


def test_chance_is_what_needs_no_reading() -> None:
    two = [
        Question(str(n), "?", "a cat and a dog", (Answer(text, 2 + 10 * n),)) for n, text in enumerate(["cat", "dog"])
    ]
    assert SpanTask("v1").chance(two).score == 0.0
    silent = [*two, *(Question(str(n), "?", "a cat", ()) for n in range(2, 6))]
    assert SpanTask("v2", "2.0").chance(silent).score == pytest.approx(4 / 6)


def test_a_folder_without_a_training_file_is_refused(tmp_path: Path) -> None:
    with refuses(DataError, "missing-file", at="train-v1.1.json"):
        squad_reader(TASKS[0])(tmp_path, TableOptions())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_reduced_precision_learns_and_answers_too(tiny_tokenizer: Tokenizer, task: SpanTask) -> None:
    model = build_small_model(tiny_tokenizer, task)
    groups = task.encode(build_questions(), tiny_tokenizer, form_of(tiny_tokenizer))
    batch = build_group_batch(groups, tiny_tokenizer.pad_id)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = task.loss(model, batch, task.count(batch)).loss
        with torch.no_grad():
            outputs = task.predict(model, batch, groups)
    loss.backward()
    full = task.loss(model, batch, task.count(batch)).loss
    assert float(loss.detach()) == pytest.approx(float(full.detach()), rel=0.02)
    assert len(outputs) == len(groups)


def test_answers_that_no_window_has_are_counted(tiny_tokenizer: Tokenizer) -> None:
    questions = [question for question in build_questions() if question.has_answer]
    form = form_of(tiny_tokenizer)
    overlapping, apart = (
        replace(TASKS[0], stride=stride).encode(questions, tiny_tokenizer, form) for stride in (2, 100)
    )
    assert count_lost_answers(questions, overlapping) == 0
    assert count_lost_answers(questions, apart) > 0
