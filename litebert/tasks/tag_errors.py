"""Describes the errors of a tagger: the sentence with its gold spans marked, and the missed and spurious spans."""

from collections.abc import Sequence

from litebert.tasks.token_tags import Span, TaggedWords, TokenTags, find_spans


def describe_tag_errors(task: TokenTags, answer: Sequence[str], example: TaggedWords) -> list[str]:
    """Lines of Markdown for one sentence."""
    truth = example.label or ()
    if task.has_spans:
        guessed, true = find_spans(answer), find_spans(truth)
        errors = [
            *(f"- missed {_name(span, example)}" for span in true if span not in guessed),
            *(f"- wrongly found {_name(span, example)}" for span in guessed if span not in true),
        ] or ["- the spans are right but the tags inside them are not"]
        shown = _mark(true, example)
    else:
        triples = zip(example.words, answer, truth, strict=True)
        errors = [f"- {word}: {guess} instead of {tag}" for word, guess, tag in triples if guess != tag]
        shown = " ".join(example.words)
    return [f"## {example.id}: {len(errors)} errors", "", shown, "", *errors, f"- {example.where}", ""]


def _name(span: Span, example: TaggedWords) -> str:
    return f"{span.kind}: {' '.join(example.words[span.start : span.end])}"


def _mark(spans: Sequence[Span], example: TaggedWords) -> str:
    """The sentence with its gold spans in brackets: [Ada](PER) lived in [London](LOC)."""
    words = list(example.words)
    for span in spans:
        words[span.start] = f"[{words[span.start]}"
        words[span.end - 1] = f"{words[span.end - 1]}]({span.kind})"
    return " ".join(words)
