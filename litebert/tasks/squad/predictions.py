"""The files of a SQuAD prediction: answers, n-best lists and null odds, as the official scripts read them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.core.files import write_json
from litebert.tasks.squad.decoding import Reply, Span
from litebert.tasks.squad.reading import QuestionSet

ANSWERS_FILE = "predictions.json"  # id -> text, "" = no answer: what the leaderboard takes
NBEST_FILE = "nbest_predictions.json"
NULL_ODDS_FILE = "null_odds.json"


def write_predictions(directory: Path, replies: Sequence[Reply], *, threshold: float | None) -> None:
    """The three files; a question whose null odds are above the threshold has the answer "". None: always answered."""
    write_json(directory / ANSWERS_FILE, decide(replies, threshold))
    write_json(directory / NBEST_FILE, {reply.id: [span._asdict() for span in reply.spans] for reply in replies})
    write_json(directory / NULL_ODDS_FILE, {reply.id: reply.null_odds for reply in replies})


def decide(replies: Sequence[Reply], threshold: float | None) -> dict[str, str]:
    """The answers by id."""
    return {reply.id: "" if threshold is not None and reply.null_odds > threshold else reply.text for reply in replies}


def read_replies(directory: Path) -> list[Reply]:
    """What `write_predictions` kept of the replies."""
    nbest = _read_object(directory / NBEST_FILE)
    odds = _read_object(directory / NULL_ODDS_FILE)
    if nbest.keys() != odds.keys():
        raise DataError(f"{directory}: {NBEST_FILE} and {NULL_ODDS_FILE} are about different questions; predict again")
    try:
        return [Reply(id_, tuple(Span(**span) for span in spans), float(odds[id_])) for id_, spans in nbest.items()]
    except (TypeError, ValueError) as error:
        raise DataError(f"{directory / NBEST_FILE}: not written by litebert ({error}); predict again") from error


def combine_replies(members: Sequence[Sequence[Reply]]) -> list[Reply]:
    """The ensemble: the mean probability of each span over the union of all members' spans, and the mean null odds.

    A span that a member does not list has probability 0 there. Spans of equal text are one.
    """
    ids = [reply.id for reply in members[0]]
    by_id = [{reply.id: reply for reply in member} for member in members]
    for number, replies in enumerate(by_id):
        if replies.keys() != set(ids):
            raise DataError(f"member {number + 1} of the ensemble answers other questions than the first")
    return [_combine([replies[id_] for replies in by_id]) for id_ in ids]


def check_submission(path: Path, questions: QuestionSet | None, *, allows_none: bool) -> list[str]:
    """What the official script or the leaderboard would reject in a predictions.json; empty = nothing."""
    answers = _read_object(path)
    problems = [
        f"'{id_}': {json.dumps(text)[:40]} is not text" for id_, text in answers.items() if not isinstance(text, str)
    ]
    if not allows_none:
        problems += [
            f"'{id_}': the answer is empty, and SQuAD 1.1 knows no unanswerable question"
            for id_, text in answers.items()
            if text == ""
        ]
    if questions is not None:
        asked = {question.id for question in questions.questions}
        problems += [f"'{id_}': not answered" for id_ in asked - answers.keys()]
        problems += [f"'{id_}': no such question" for id_ in answers.keys() - asked]
    return problems


def _combine(replies: Sequence[Reply]) -> Reply:
    total: dict[str, float] = {}
    best: dict[str, Span] = {}
    for reply in replies:
        for span in reply.spans:
            total[span.text] = total.get(span.text, 0.0) + span.probability / len(replies)
            if span.text not in best or span.probability > best[span.text].probability:
                best[span.text] = span
    ranked = sorted(total, key=lambda text: -total[text])
    return Reply(
        replies[0].id,
        tuple(best[text]._replace(probability=total[text]) for text in ranked),
        sum(reply.null_odds for reply in replies) / len(replies),
    )


def _read_object(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; predict first") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); predict again") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected an object from question ids to answers")
    return content
