"""The page of errors can be read: answers stand apart, and none at all is said."""

from pathlib import Path

from litebert.tasks.finetuning import FinetuneTask, Output
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.kinds.classification import MultiLabel
from litebert.tasks.kinds.token_tags import TaggedWords, TokenTags
from litebert.tasks.report import write_errors
from litebert.tasks.squad.reading import Answer, Question
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.texts import TextExample


def write_page(folder: Path, task: FinetuneTask, output: Output, example: object) -> list[str]:
    write_errors(folder / "errors.md", task, [output], [example], title="run")
    return (folder / "errors.md").read_text("utf-8").splitlines()[2:]


def test_right_answers_have_a_section_and_no_answer_is_marked(tmp_path: Path) -> None:
    task = SpanTask("squad-v2", "2.0", threshold=0.0)
    context = "the cat sees the old house"
    answers = (Answer("the old house", 13), Answer("house", 21))
    page = write_page(tmp_path, task, {"spans": [], "null_odds": 1.0}, Question("7", "what", context, answers))
    assert page[0] == "## 7: (no answer) instead of the old house | house"
    spans = {"spans": [["the cat", 0, 7, 1.0, 0.0, 0.0]], "null_odds": -1.0}
    assert write_page(tmp_path, task, spans, Question("8", "what", context, ()))[0] == (
        "## 8: the cat instead of (no answer)"
    )


def test_choices_are_listed_and_the_right_one_is_marked(tmp_path: Path) -> None:
    example = ChoiceExample("1", "a passage", "who", ("a cat", "the dog"), 1)
    page = write_page(tmp_path, Choices("race", has_letters=True), [0.9, 0.1], example)
    assert page[0] == "## 1: A instead of B"
    assert "- a cat | the dog" in page


def test_labels_have_sections_and_words_make_a_sentence(tmp_path: Path) -> None:
    labels = MultiLabel("multi-label", ("dark red", "blue"))
    page = write_page(tmp_path, labels, [0.1, 0.1], TextExample("1", "a text", label=("dark red", "blue")))
    assert page[0] == "## 1: (none) instead of dark red | blue"
    words = TaggedWords("2", ("a", "cat"), ("O", "B-ANIMAL"))
    page = write_page(tmp_path, TokenTags("tags", ("O", "B-ANIMAL")), [[1.0, 0.0], [1.0, 0.0]], words)
    assert page[:5] == ["## 2: 1 errors", "", "a [cat](ANIMAL)", "", "- missed ANIMAL: cat"]
    page = write_page(
        tmp_path,
        TokenTags("tags", ("DT", "NN")),
        [[1.0, 0.0], [1.0, 0.0]],
        TaggedWords("3", ("a", "cat"), ("DT", "NN")),
    )
    assert page[2:5] == ["a cat", "", "- cat: DT instead of NN"]
