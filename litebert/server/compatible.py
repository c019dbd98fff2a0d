"""Endpoints compatible with clients of other APIs: embeddings (OpenAI) and reranking (Cohere, TEI)."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from litebert.inference.predictor import Predictor
from litebert.server.schemas import Ask, Cut, Text, Whole
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression

_EXAMPLE_QUERY = "Where did Ada live?"
_EXAMPLE_DOCUMENTS = ["It rained all day.", "Ada lived in London."]


class Embeddings(Ask):
    lists: ClassVar[tuple[str, ...]] = ("input",)

    input: Text | list[Text] = Field(min_length=1, description="A text, or a list of texts.")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="`base64`: the vector as little-endian 32-bit numbers."
    )
    dimensions: Whole | None = Field(
        None, ge=1, description="The model's own number, or a shorter one that it was trained for."
    )
    user: Text | None = Field(None, description="Accepted and ignored.")

    @property
    def inputs(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input

    @property
    def settings(self) -> dict[str, object]:
        return {"encoding_format": self.encoding_format, "dimensions": self.dimensions}

    def place(self, number: int) -> str:
        return "input" if isinstance(self.input, str) else f"input.{number}"

    @classmethod
    def find_unsupported(cls, content: Mapping[str, Any]) -> tuple[str, str] | None:
        given = content.get("input")
        if isinstance(given, list) and given and isinstance(given[0], int | list):
            return "input", "token arrays are not supported, because they are another tokenizer's: send texts"
        return None


class Embedding(Cut):
    object: Literal["embedding"]
    index: int = Field(description="The number of the text in the request, from 0.")
    embedding: list[float] | str = Field(description="Numbers, or base64 of them.")


class Usage(BaseModel):
    prompt_tokens: int = Field(description="Tokens that the model read, special tokens included.")
    total_tokens: int = Field(description="The same.")


class EmbeddingsAnswer(BaseModel):
    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


class Encoded(NamedTuple):
    """A vector as JSON, and the token counts of its text."""

    vector: str
    num_tokens: int
    num_cut: int


def embed_encoded(predictor: Predictor, texts: Sequence[str], settings: Mapping[str, Any]) -> list[Encoded]:
    """The exact vectors of `Predictor.embed`, with token counts."""
    num_cut, num_tokens = list[int](), list[int]()
    vectors = predictor.embed(
        texts, size=settings["dimensions"], report_cut=num_cut.extend, report_tokens=num_tokens.extend
    )
    if settings["encoding_format"] == "base64":
        shown = [json.dumps(base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")) for vector in vectors]
    else:  # nine significant digits round-trip a float32
        shown = [f"[{','.join(f'{value:.9g}' for value in vector.tolist())}]" for vector in vectors]
    return [Encoded(*one) for one in zip(shown, num_tokens, num_cut, strict=True)]


def find_bad_dimensions(predictor: Predictor, settings: Mapping[str, Any]) -> tuple[str, str] | None:
    if settings["dimensions"] in (None, *predictor.vector_sizes):
        return None
    size, *shorter = predictor.vector_sizes
    if shorter:
        return "dimensions", f"the model was trained for {size}, {', '.join(map(str, shorter))} dimensions: take one"
    return "dimensions", f"the model's vectors have {size} dimensions and are not cut: leave dimensions out"


def write_embeddings(model: str, ask: Any, results: Sequence[Encoded]) -> str:
    del ask
    data = ",".join(
        f'{{"object":"embedding","index":{index},"embedding":{one.vector},"num_cut":{one.num_cut}}}'
        for index, one in enumerate(results)
    )
    num_tokens = sum(one.num_tokens for one in results)
    usage = json.dumps({"prompt_tokens": num_tokens, "total_tokens": num_tokens})
    return f'{{"object":"list","data":[{data}],"model":{json.dumps(model)},"usage":{usage}}}'


def show_embeddings(_: Predictor) -> dict[str, Any]:
    return {"input": ["a small dog", "a little hound"]}


class Rerank(Ask):
    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["documents"]}, {"required": ["texts"]}]})
    lists: ClassVar[tuple[str, ...]] = ("documents", "texts")

    query: Text
    documents: list[Text] = Field([], fail_fast=True, min_length=1, description="Texts to order, as Cohere names them.")
    texts: list[Text] = Field([], fail_fast=True, min_length=1, description="The same, as TEI names them.")
    top_n: Whole | None = Field(None, ge=1, description="Results to return; without it all.")
    return_documents: bool = Field(False, strict=True, description="Results contain their texts.")
    label: Text | None = Field(
        None, description="Of a classifier, the label of relevant texts: its probability is the score."
    )

    @model_validator(mode="after")
    def _check_documents(self) -> "Rerank":
        if bool(self.documents) == bool(self.texts):
            raise ValueError("exactly one of documents and texts is needed")
        return self

    @property
    def inputs(self) -> list[tuple[str, str]]:
        return [(self.query, text) for text in self.documents or self.texts]

    @property
    def settings(self) -> dict[str, object]:
        return {"label": self.label}

    def place(self, number: int) -> str:
        return f"{'documents' if self.documents else 'texts'}.{number}"


class RerankedText(BaseModel):
    text: str


class Reranked(Cut):
    index: int = Field(description="The number of the text in the request, from 0.")
    relevance_score: float = Field(description="The number of a regression model, or the probability of the label.")
    document: RerankedText | None = Field(None, description="The text, if it was asked for.")


class RerankAnswer(BaseModel):
    model: str
    results: list[Reranked] = Field(description="The most relevant text first; equals in the order of the request.")


class Relevance(NamedTuple):
    """The relevance score of a text."""

    score: float
    num_cut: int


def can_rerank(predictor: Predictor) -> bool:
    """Whether the model is a fine-tuned classification or regression model that accepts text pairs."""
    if predictor.checkpoint.task is None:
        return False
    task = predictor.task
    return isinstance(task, Classification | MultiLabel | Regression) and task.num_texts != 1


def list_labels(predictor: Predictor) -> tuple[str, ...]:
    """The model's labels, one of which must be chosen; empty for a regression model."""
    return tuple(getattr(predictor.task, "labels", ()))


def rerank(predictor: Predictor, pairs: Sequence[tuple[str, str]], settings: Mapping[str, Any]) -> list[Relevance]:
    num_cut: list[int] = []
    answers = predictor.classify(pairs, report_cut=num_cut.extend)
    scores = [one.probabilities[settings["label"]] if one.probabilities else float(one.label) for one in answers]
    return [Relevance(score, cut) for score, cut in zip(scores, num_cut, strict=True)]


def find_bad_label(predictor: Predictor, settings: Mapping[str, Any]) -> tuple[str, str] | None:
    label, labels = settings["label"], list_labels(predictor)
    if labels and label not in labels:
        return "label", f"label must be one of {', '.join(labels)}: the one that a relevant text has"
    if label is not None and not labels:
        return "label", "the model gives a number and has no labels: leave label out"
    return None


def write_reranked(model: str, ask: Rerank, results: Sequence[Relevance]) -> str:
    order = sorted(range(len(results)), key=lambda index: -results[index].score)[: ask.top_n]
    texts = ask.documents or ask.texts
    found = [
        {"index": index, "relevance_score": results[index].score, "num_cut": results[index].num_cut}
        | ({"document": {"text": texts[index]}} if ask.return_documents else {})
        for index in order
    ]
    return json.dumps({"model": model, "results": found})


def show_rerank(predictor: Predictor) -> dict[str, Any]:
    labels = list_labels(predictor)
    label = {"label": labels[-1]} if labels else {}
    return {"query": _EXAMPLE_QUERY, "documents": _EXAMPLE_DOCUMENTS, **label}
