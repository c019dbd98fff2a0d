"""The functions of served models: which models support each, its request and result, and how a batch is computed."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel

from litebert.core.errors import ConfigError, DataError
from litebert.inference.answering import FoundAnswer, read_answer, to_choice_example, to_questions
from litebert.inference.export_folder import ExportFiles
from litebert.inference.fill_mask import check_top_k, count_masks, show_guess
from litebert.inference.predictor import Predictor
from litebert.inference.tracing import Trace, trace
from litebert.server import compatible, schemas
from litebert.tasks.catalog import find_kind
from litebert.tasks.finetuning import Output
from litebert.tasks.groups import Group
from litebert.tasks.kinds.choices import ChoiceExample
from litebert.tasks.kinds.token_tags import TaggedWords, find_spans
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.task import to_reply
from litebert.tasks.texts import TextExample, check_num_texts
from litebert.tasks.words import Cut, cut_text

NUM_OTHERS = 3  # next-best answers returned per question
MAX_GAPS = 16  # masks per text; each needs scores for the whole vocabulary
Settings = Mapping[str, Any]


class Function(NamedTuple):
    """A function that models offer over HTTP."""

    summary: str
    request: type[schemas.Ask]
    result: type[BaseModel]
    is_possible: Callable[[Predictor], bool]
    compute: Callable[[Predictor, Sequence[Any], Settings], Sequence[Any]]
    # raises if an input is invalid, so that it does not fail the other inputs of its batch; `compute` gets its return
    # value instead of the input, so that nothing is encoded twice
    check: Callable[[Predictor, Any], Any] = lambda _, value: value
    # the setting that the model does not support, and the reason; None if there is none
    find_bad_setting: Callable[[Predictor, Settings], tuple[str, str] | None] = lambda *_: None
    # converts an input to the task's examples, if long inputs are read in windows: then `check` returns a `Passage`;
    # None: inputs are truncated
    to_examples: Callable[[Predictor, Any], Sequence[Any]] | None = None
    # converts a result to the form in which it is kept until the request is answered
    dump: Callable[[Any], Any] = BaseModel.model_dump_json
    envelope: "Envelope | None" = None  # the response format of another API; None: our own


class Passage(NamedTuple):
    """An input that is read in windows, and its windows if they were encoded to count their tokens."""

    value: Any
    windows: Group | None = None


class Envelope(NamedTuple):
    """The response format of an endpoint that is compatible with another API."""

    answer: type[BaseModel]
    write: Callable[[str, Any, Sequence[Any]], str]  # (model name, request, kept results) -> response body
    show: Callable[[Predictor], dict[str, Any]]  # an example request that the model accepts


def show_request(function: Function, predictor: Predictor) -> dict[str, Any]:
    """An example request that this model accepts."""
    return function.envelope.show(predictor) if function.envelope else {"inputs": _choose_example(function, predictor)}


def _choose_example(function: Function, predictor: Predictor) -> list[Any]:
    """The function's first example inputs that this model accepts."""
    examples = function.request.model_fields["inputs"].examples
    assert examples, f"{function.summary}: has no example"
    for inputs in examples:
        with suppress(DataError):  # a model for pairs refuses single texts, and vice versa
            for one in function.request.model_validate({"inputs": inputs}).inputs:  # type: ignore[attr-defined]
                function.check(predictor, one)
            return list(inputs)
    raise AssertionError(f"{function.summary}: no example is for this model")


def fill_mask(predictor: Predictor, encoded: Sequence[Group], settings: Settings) -> list[schemas.Gaps]:
    tokenizer = predictor.tokenizer
    return [
        schemas.Gaps(
            gaps=[
                [
                    schemas.Guess(piece=one.piece, text=show_guess(tokenizer, one), probability=one.probability)
                    for one in guesses
                ]
                for guesses in gaps
            ]
        )
        for gaps in predictor.fill_gaps(encoded, settings["top_k"])
    ]


def _encode_gaps(predictor: Predictor, text: str) -> Group:
    tokenizer = predictor.tokenizer
    if (count := count_masks(tokenizer, text)) > MAX_GAPS:
        raise DataError("too-many-masks", f"{count} masks exceed the limit of {MAX_GAPS} per text: split the text")
    (encoded,) = predictor.encode_gaps([text])
    return encoded


def _find_bad_count(predictor: Predictor, settings: Settings) -> tuple[str, str] | None:
    try:
        check_top_k(predictor.tokenizer, settings["top_k"])
    except ConfigError as error:
        return "top_k", str(error)
    return None


def classify(predictor: Predictor, texts: Sequence[Any], settings: Settings) -> list[schemas.Classified]:
    asked = predictor.with_patience(settings["patience"]) if settings["patience"] else predictor
    num_cut: list[int] = []
    answers = asked.classify(texts, report_cut=num_cut.extend)
    labels = [list(answer.label) if isinstance(answer.label, tuple) else answer.label for answer in answers]
    return [
        schemas.Classified(label=label, probabilities=answer.probabilities, num_cut=cut)
        for label, answer, cut in zip(labels, answers, num_cut, strict=True)
    ]


def _check_texts(predictor: Predictor, text: str | tuple[str, str]) -> str | tuple[str, str]:
    texts = (text,) if isinstance(text, str) else text
    check_num_texts(TextExample("", *texts), getattr(predictor.task, "num_texts", 0))
    return text


def _find_bad_patience(predictor: Predictor, settings: Settings) -> tuple[str, str] | None:
    if not settings["patience"] or predictor.has_exits:
        return None
    return "patience", "this model or its engine does not support early exit (fine-tune with exit.enabled=true)"


def tag(predictor: Predictor, texts: Sequence[Passage], settings: Settings) -> list[schemas.Tagged]:
    del settings
    found = [_find_words(text.value, splits_words=_splits_words(predictor)) for text in texts]
    asked = [number for number, (_, words) in enumerate(found) if words]  # the model needs words
    examples = [TaggedWords(str(number), tuple(word for word, *_ in found[number][1])) for number in asked]
    num_cut: list[int] = []
    windows = [texts[number].windows for number in asked]
    outputs = predictor.predict(examples, encoded=windows, report_cut=num_cut.extend)
    answered = iter(zip(outputs, num_cut, strict=True))
    return [_tagged(predictor.task, text, words, *(next(answered) if words else ([], 0))) for text, words in found]


def _to_tagged_words(predictor: Predictor, text: str | list[str]) -> list[TaggedWords]:
    words = tuple(word for word, *_ in _find_words(text, splits_words=_splits_words(predictor))[1])
    return [TaggedWords("", words)] if words else []


def _splits_words(predictor: Predictor) -> Cut:
    splits_words: Cut = getattr(predictor.task, "splits_words", False)
    return splits_words


def _find_words(text: str | list[str], *, splits_words: Cut = False) -> tuple[str, list[tuple[str, int, int]]]:
    """The text (a list of words is joined by spaces), and each word with its start and end in it."""
    if isinstance(text, str):
        cut = cut_text(text, splits_words=splits_words)
        return text, [(text[word.start : word.end], word.start, word.end) for word in cut]
    found, end = [], 0
    for word in text:
        found.append((word, end, end + len(word)))
        end += len(word) + 1  # skip the space, so that an empty word has a position of its own
    return " ".join(text), found


def _tagged(
    task: Any, text: str, words: Sequence[tuple[str, int, int]], output: Output, num_cut: int
) -> schemas.Tagged:
    tags = task.decide(output)
    probabilities = [max(shares) for shares in output]
    spans = []
    for kind, first, last in find_spans(tags) if task.has_spans else []:
        start, end = words[first][1], words[last - 1][2]
        score = float(np.mean(probabilities[first:last]))
        spans.append(schemas.TaggedSpan(kind=kind, text=text[start:end], start=start, end=end, score=score))
    return schemas.Tagged(
        words=[
            schemas.TaggedWord(word=word, start=start, end=end, tag=tag, probability=probability)
            for (word, start, end), tag, probability in zip(words, tags, probabilities, strict=True)
        ],
        spans=spans,
        num_cut=num_cut,
    )


def answer(predictor: Predictor, questions: Sequence[Passage], settings: Settings) -> list[schemas.Answered]:
    del settings
    asked, num_cut = to_questions([(one.value.question, one.value.context) for one in questions]), list[int]()
    outputs = predictor.predict(asked, encoded=[one.windows for one in questions], report_cut=num_cut.extend)
    return [
        _answered(read_answer(predictor.task, output), output, cut)  # type: ignore[arg-type]
        for output, cut in zip(outputs, num_cut, strict=True)
    ]


def _check_question(predictor: Predictor, one: schemas.Question) -> Passage:
    _to_questions(predictor, one)
    return Passage(one)


def _to_questions(_: Predictor, one: schemas.Question) -> list[Question]:
    return to_questions([(one.question, one.context)])


def _answered(found: FoundAnswer, output: Output, num_cut: int) -> schemas.Answered:
    spans = [
        schemas.Span(text=span.text, start=span.start, end=span.end, probability=span.probability)
        for span in to_reply(output).spans[: NUM_OTHERS + 1]
    ]
    best = spans[0] if found.text else None
    others = spans[1:] if best else spans[:NUM_OTHERS]
    return schemas.Answered(answer=best, others=others, null_odds=found.null_odds, num_cut=num_cut)


def choose(predictor: Predictor, examples: Sequence[ChoiceExample], settings: Settings) -> list[schemas.Chosen]:
    del settings
    num_cut: list[int] = []
    choices = predictor.choose_batch(examples, report_cut=num_cut.extend)
    return [
        schemas.Chosen(number=one.number, text=one.text, probabilities=list(one.probabilities), num_cut=cut)
        for one, cut in zip(choices, num_cut, strict=True)
    ]


def _check_choices(_: Predictor, one: schemas.ChoiceQuestion) -> ChoiceExample:
    return to_choice_example(one.context, one.question, one.choices)


def order(predictor: Predictor, pairs: Sequence[tuple[str, str]], settings: Settings) -> list[schemas.Ordered]:
    del settings
    num_cut: list[int] = []
    ordered = predictor.order_batch(pairs, report_cut=num_cut.extend)
    return [schemas.Ordered(probability=one, num_cut=cut) for one, cut in zip(ordered, num_cut, strict=True)]


def embed(predictor: Predictor, texts: Sequence[Any], settings: Settings) -> list[schemas.Vector]:
    num_cut: list[int] = []
    vectors = predictor.embed(texts, normalize=settings["normalize"], report_cut=num_cut.extend)
    return [schemas.Vector(vector=one, num_cut=cut) for one, cut in zip(_to_digits(vectors, 7), num_cut, strict=True)]


def read(predictor: Predictor, texts: Sequence[Any], settings: Settings) -> list[schemas.ReadTrace]:
    pairs = [(text,) if isinstance(text, str) else text for text in texts]
    return [_read_trace(trace(predictor, *pair, head=settings["head"])) for pair in pairs]


def _find_bad_head(predictor: Predictor, settings: Settings) -> tuple[str, str] | None:
    head, num_heads = settings["head"], predictor.checkpoint.config.num_heads
    if head is None or head < num_heads:
        return None
    return "head", f"the model has {num_heads} heads: 0 to {num_heads - 1}"


def _read_trace(found: Trace) -> schemas.ReadTrace:
    layers = zip(_to_digits(found.attention, 3), _to_digits(found.l2, 4), _to_digits(found.degrees, 4), strict=True)
    return schemas.ReadTrace(
        tokens=[schemas.ReadToken(**token._asdict()) for token in found.tokens],
        layers=[schemas.ReadLayer(attention=a, l2=l2, degrees=degrees) for a, l2, degrees in layers],
        is_cut=found.is_cut,
    )


def _to_digits(numbers: np.typing.NDArray[np.float32], digits: int) -> Any:
    """Nested lists of numbers rounded to `digits` significant digits, to keep responses small."""
    scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.maximum(np.abs(numbers), 1e-12))))
    return (np.round(numbers.astype(np.float64) * scale) / scale).tolist()


def _has_head(kind: str) -> Callable[[Predictor], bool]:
    return lambda predictor: any(spec.kind == kind for spec in predictor.checkpoint.heads)


def _has_weights(predictor: Predictor) -> bool:
    """Whether the model can be inspected; an export can only be run, with the one head it was exported with."""
    return not predictor.members and not isinstance(predictor.checkpoint.foreign, ExportFiles)


def _can_embed(predictor: Predictor) -> bool:
    return _has_weights(predictor) or not predictor.checkpoint.heads


def _answers(example: type[Any]) -> Callable[[Predictor], bool]:
    """Whether the model's task takes examples of this type."""
    return lambda predictor: predictor.checkpoint.task is not None and find_kind(predictor.task).example is example


# In the order shown on the page.
FUNCTIONS = {
    "fill-mask": Function(
        "The most probable words for each [MASK] of a text",
        schemas.FillMask,
        schemas.Gaps,
        _has_head("mlm"),
        fill_mask,
        _encode_gaps,
        _find_bad_count,
    ),
    "classify": Function(
        "The label of a text or of a pair, or a number",
        schemas.Classify,
        schemas.Classified,
        _answers(TextExample),
        classify,
        _check_texts,
        _find_bad_patience,
    ),
    "tokens": Function(
        "A tag for each word",
        schemas.Tag,
        schemas.Tagged,
        _answers(TaggedWords),
        tag,
        lambda _, value: Passage(value),
        to_examples=_to_tagged_words,
    ),
    "answer": Function(
        "The stretch of a text that answers a question",
        schemas.Answer,
        schemas.Answered,
        _answers(Question),
        answer,
        _check_question,
        to_examples=_to_questions,
    ),
    "choose": Function(
        "Which of several choices fits a question",
        schemas.Choose,
        schemas.Chosen,
        _answers(ChoiceExample),
        choose,
        _check_choices,
    ),
    "order": Function(
        "How probable it is that B follows A", schemas.Order, schemas.Ordered, _has_head("sentence"), order
    ),
    "embed": Function("A vector for each text", schemas.Embed, schemas.Vector, _can_embed, embed),
    "read": Function(
        "How a text is read: attention, and how far each layer moves each token",
        schemas.Read,
        schemas.ReadTrace,
        _has_weights,
        read,
        find_bad_setting=_find_bad_head,
    ),
    "embeddings": Function(
        "Vectors of texts, as OpenAI's clients ask for them",
        compatible.Embeddings,
        compatible.Embedding,
        _can_embed,
        compatible.embed_encoded,
        find_bad_setting=compatible.find_bad_dimensions,
        dump=lambda encoded: encoded,
        envelope=Envelope(compatible.EmbeddingsAnswer, compatible.write_embeddings, compatible.show_embeddings),
    ),
    "rerank": Function(
        "Texts in the order of their relevance to a query, as Cohere's clients ask for it",
        compatible.Rerank,
        compatible.Reranked,
        compatible.can_rerank,
        compatible.rerank,
        find_bad_setting=compatible.find_bad_label,
        dump=lambda relevance: relevance,
        envelope=Envelope(compatible.RerankAnswer, compatible.write_reranked, compatible.show_rerank),
    ),
}
