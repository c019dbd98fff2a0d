"""Request and response schemas, as shown in OpenAPI."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict

# Characters that normalization may reorder: those with a combining class, and those that decompose into them.
MARKS = "".join(filter(unicodedata.combining, map(chr, range(0x300, 0x1F000)))) + "\u0f73\u0f75\u0f81\uff9e\uff9f"
MAX_MARKS = 100  # in a row; Unicode's stream-safe format allows 30
_TOO_MANY_MARKS = re.compile(f"[{MARKS}]{{{MAX_MARKS + 1}}}")


def _check_letters(text: str) -> str:
    """Reject lone surrogates (such as \\ud800) and characters with more than `MAX_MARKS` combining marks.

    Normalization sorts a character's marks by insertion while holding the GIL: 100,000 marks took half a minute, during
    which no request was answered.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("half of a surrogate pair is no letter; send valid Unicode") from None
        if _TOO_MANY_MARKS.search(text):
            raise ValueError(f"a letter has more than {MAX_MARKS} combining marks; remove them")
    return text


def _check_whole(value: object) -> object:
    """An integer as JSON Schema defines it: 5.0 is one; "5" and true are not."""
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
    if value is not None and not is_whole:
        raise ValueError("a whole number is needed")
    return value


Text = Annotated[str, AfterValidator(_check_letters)]
Whole = Annotated[int, BeforeValidator(_check_whole)]
FromZero = Annotated[int, Field(ge=0), BeforeValidator(_check_whole)]  # in this order, or OpenAPI lacks the minimum
Words = Annotated[list[Text], Field(fail_fast=True)]  # stop at the first error
Pair = Annotated[tuple[Text, Text], Field(description="Two texts that belong together.")]
Probability = Annotated[float, Field(ge=0, le=1)]


class Ask(BaseModel):
    """The field that every request may have: the served model to use."""

    model_config = ConfigDict(extra="forbid")
    lists: ClassVar[tuple[str, ...]] = ("inputs",)  # keys of the lists that are counted before validation

    model: str | None = Field(None, description="A model's name; without it the first one that can answer.")

    @property
    def settings(self) -> dict[str, object]:
        """The fields that apply to all inputs of the request."""
        return self.model_dump(exclude={"model", "inputs"})

    def place(self, number: int) -> str:
        """The location of an input in the request, for refusals."""
        return f"inputs.{number}"

    @classmethod
    def find_unsupported(cls, content: Mapping[str, Any]) -> tuple[str, str] | None:
        """The location of a feature of this API that we do not support, and the reason; called before counting."""
        del content
        return None


class FillMask(Ask):
    inputs: list[Text] = Field(fail_fast=True, min_length=1, examples=[["The function returns a [MASK] of strings."]])
    top_k: Whole = Field(5, ge=1, le=50, description="Guesses for each [MASK].")


class Classify(Ask):
    inputs: list[Text | Pair] = Field(
        fail_fast=True,
        min_length=1,
        examples=[["A charming film.", "What a waste of time."], [["A man eats soup.", "Somebody eats."]]],
    )
    patience: Whole = Field(
        0, ge=0, le=48, description="Answer early: after so many layers with the same answer; 0 computes all of them."
    )


class Tag(Ask):
    inputs: list[Text | Words] = Field(
        fail_fast=True,
        min_length=1,
        examples=[["Ada lived in London."]],
        description="Texts, cut into words at white space (Chinese without spaces into characters); or lists of words.",
    )


class Question(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: Text
    context: Text


class Answer(Ask):
    inputs: list[Question] = Field(
        fail_fast=True,
        min_length=1,
        examples=[[{"question": "Where did Ada live?", "context": "Ada lived in London, near the river."}]],
    )


class ChoiceQuestion(BaseModel):
    model_config = ConfigDict(extra="forbid")

    context: Text = ""
    question: Text = Field("", description="A choice takes the place of each `_`, or follows the question.")
    choices: list[Text] = Field(fail_fast=True, min_length=2, max_length=16)


class Choose(Ask):
    inputs: list[ChoiceQuestion] = Field(
        fail_fast=True,
        min_length=1,
        examples=[[{"context": "It rained all day.", "question": "The street was _.", "choices": ["wet", "dry"]}]],
    )


class Order(Ask):
    inputs: list[Pair] = Field(fail_fast=True, min_length=1, examples=[[["He opened the door.", "Then he went in."]]])


class Embed(Ask):
    inputs: list[Text | Pair] = Field(fail_fast=True, min_length=1, examples=[["a small dog", "a little hound"]])
    normalize: Annotated[bool, Strict()] | None = Field(
        None, description="Vectors of length one; null: as the model says, else true."
    )


class Read(Ask):
    inputs: list[Text | Pair] = Field(fail_fast=True, min_length=1, max_length=1, examples=[["The cat sees the dog."]])
    head: FromZero | None = Field(None, description="An attention head, from 0; without it the mean of all.")


class Guess(BaseModel):
    piece: str = Field(description="As the vocabulary has it, with its mark of a word's beginning or inside.")
    text: str = Field(description="As a person reads it.")
    probability: Probability


class Gaps(BaseModel):
    gaps: list[list[Guess]] = Field(description="For each [MASK], the best guess first.")


class Cut(BaseModel):
    """The field of every result whose input may have been truncated."""

    num_cut: int = Field(description="Tokens that were not read, because the input is longer than the model reads.")


class Classified(Cut):
    label: str | list[str] | float = Field(description="A label, or those that hold; or a number.")
    probabilities: dict[str, Probability] = Field(description="Of every label; empty for a number.")


class TaggedWord(BaseModel):
    word: str
    start: int = Field(description="In the text, in characters; of a list of words in these with a space between them.")
    end: int
    tag: str
    probability: Probability


class TaggedSpan(BaseModel):
    kind: str
    text: str
    start: int = Field(description="In characters, as of words.")
    end: int
    score: Probability = Field(description="The mean of its words' probabilities.")


class Tagged(Cut):
    words: list[TaggedWord]
    spans: list[TaggedSpan] = Field(description="Of tags such as B-PER and I-PER.")


class Span(BaseModel):
    text: str
    start: int = Field(description="In the context, in characters.")
    end: int
    probability: Probability


class Answered(Cut):
    answer: Span | None = Field(description="Null where the model finds none.")
    others: list[Span] = Field(description="What it found next best.")
    null_odds: float = Field(description="The odds that there is no answer.")


class Chosen(Cut):
    number: int = Field(description="Of the best choice, from 0.")
    text: str
    probabilities: list[Probability]


class Ordered(Cut):
    probability: Probability = Field(description="That the second text follows the first.")


class Vector(Cut):
    vector: list[float]


class ReadToken(BaseModel):
    piece: str
    segment: int
    start: int = Field(description="In its text, in characters; 0 for a special token.")
    end: int
    is_special: bool


class ReadLayer(BaseModel):
    attention: list[list[float]] = Field(description="From each token (row) to every token; a row sums to 1.")
    l2: list[float] = Field(description="How far the layer moves each token.")
    degrees: list[float] = Field(description="The angle between what goes in and what comes out, for each token.")


class ReadTrace(BaseModel):
    tokens: list[ReadToken]
    layers: list[ReadLayer]
    is_cut: bool = Field(description="The text was longer than what can be shown.")


class ServedModel(BaseModel):
    name: str
    functions: list[str]
    task: str | None = Field(description="What it was fine-tuned for.")
    labels: list[str]
    num_texts: Literal[0, 1, 2] = Field(description="Texts per input of classify: 2 for pairs; 0: one or two.")
    has_spans: bool = Field(description="Its tags are of spans, such as B-PER and I-PER.")
    has_exits: bool = Field(description="It may be asked with a patience.")
    language: Literal["en", "zh"] = Field(description="What its vocabulary is mostly for.")
    examples: dict[str, list[Any]] = Field(
        {}, description="For each function, inputs of the model's own data; it may have none."
    )
    mask: str = Field(description="The mark for a word to guess.")
    num_parameters: int
    num_layers: int
    num_heads: int
    hidden_size: int
    max_length: int = Field(description="In tokens; longer texts are cut, and `num_cut` of their results says so.")


class ServedModels(BaseModel):
    models: list[ServedModel]
    max_inputs: int
    max_characters: int


class Problem(BaseModel):
    """Why a request was not answered."""

    code: str = Field(description="One word for programs: too_long, busy, unauthorized, ...")
    message: str = Field(description="For people, with the remedy.")
    where: str = Field("", description="The place in the request, such as inputs.0 or patience.")


class Refusal(BaseModel):
    error: Problem


class State(BaseModel):
    status: Literal["ok", "ready", "busy", "stopping", "broken"]
