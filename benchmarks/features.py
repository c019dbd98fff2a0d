"""Speed of converting SQuAD to features, compared with plain Python like squad_convert_examples_to_features.

    LITEBERT_DATA=... python benchmarks/features.py [SHARE]

Both read SQuAD 1.1 dev (or a share of its questions) with the official vocabulary at 384 tokens, stride 128. The plain
version processes one question at a time: it splits the paragraph into words, encodes each, finds the answer, cuts
windows, and finds the window with most context for each token. Processor time of one thread; both take turns.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from litebert.tasks.groups import build_form
from litebert.tasks.squad.features import build_groups
from litebert.tasks.squad.reading import Question, read_squad
from litebert.tasks.squad.windows import WindowOptions
from litebert.text.tokenizer import Tokenizer, load_tokenizer

MAX_LENGTH, MAX_QUESTION, STRIDE = 384, 64, 128


def main() -> None:
    folder = os.environ.get("LITEBERT_DATA")
    if not folder:
        sys.exit(print("LITEBERT_DATA is not set: nothing to measure on"))
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    tokenizer = load_tokenizer(Path(folder) / "vocab")
    questions = read_squad(Path(folder) / "squad" / "dev-v1.1.json")
    questions = questions[: round(share * len(questions))]
    form = build_form(tokenizer, max_length=MAX_LENGTH, num_segments=2)
    options = WindowOptions(MAX_QUESTION, STRIDE)
    build_groups(questions[:5], tokenizer, form, options)  # compiles

    parts = 5 if share == 1 else 1
    plain = ours = again = 0.0
    num_plain = num_ours = 0
    with tempfile.TemporaryDirectory() as cache:
        for part in range(parts):  # interleaved, so that load affects both alike; articles stay together
            chosen = questions[len(questions) * part // parts : len(questions) * (part + 1) // parts]
            seconds, features = measure(lambda some=chosen: [f for q in some for f in plain_features(q, tokenizer)])
            plain, num_plain = plain + seconds, num_plain + len(features)
            build = lambda some=chosen: build_groups(some, tokenizer, form, options, cache=Path(cache))  # noqa: E731
            seconds, groups = measure(build)
            ours, num_ours = ours + seconds, num_ours + sum(len(group.sequences) for group in groups)
            again += measure(build)[0]
    print(f"{len(questions):,} questions: {num_ours:,} windows here, {num_plain:,} there")
    print(f"plain Python   {plain:7.2f} s")
    print(f"ours           {ours:7.2f} s: {plain / ours:.1f} times as fast")
    print(f"ours, cached   {again:7.2f} s: {plain / again:.0f} times as fast")


def measure(work: Callable[[], list[Any]]) -> tuple[float, list[Any]]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def plain_features(question: Question, tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """The windows of one question, with lists and loops."""
    words, word_of_character = split_words(question.context)
    tokens: list[int] = []
    word_of_token: list[int] = []
    token_of_word: list[int] = []
    for number, word in enumerate(words):
        token_of_word.append(len(tokens))
        for token in tokenizer.encode(word):
            word_of_token.append(number)
            tokens.append(token)
    answer_start = answer_end = -1
    if question.answers:
        answer = question.answers[0]
        answer_start = token_of_word[word_of_character[answer.start]]
        last_word = word_of_character[min(answer.end, len(question.context)) - 1]
        answer_end = token_of_word[last_word + 1] - 1 if last_word < len(words) - 1 else len(tokens) - 1
        answer_start, answer_end = improve_span(tokens, answer_start, answer_end, tokenizer, answer.text)
    asked = tokenizer.encode(question.text)[:MAX_QUESTION]
    spans = cut_spans(len(tokens), MAX_LENGTH - len(asked) - 3)
    features = []
    for number, (start, length) in enumerate(spans):
        ids = [tokenizer.cls_id, *asked, tokenizer.sep_id, *tokens[start : start + length], tokenizer.sep_id]
        types = [0] * (len(asked) + 2) + [1] * (length + 1)
        mask = [1] * len(ids)
        while len(ids) < MAX_LENGTH:
            ids.append(tokenizer.pad_id)
            types.append(0)
            mask.append(0)
        offset = len(asked) + 2
        originals = {offset + n: word_of_token[start + n] for n in range(length)}
        best = {offset + n: has_max_context(spans, number, start + n) for n in range(length)}
        inside = start <= answer_start and answer_end < start + length and answer_start >= 0
        features.append(
            {
                "input_ids": ids,
                "token_type_ids": types,
                "attention_mask": mask,
                "token_to_orig_map": originals,
                "token_is_max_context": best,
                "start_position": answer_start - start + offset if inside else 0,
                "end_position": answer_end - start + offset if inside else 0,
            }
        )
    return features


def split_words(context: str) -> tuple[list[str], list[int]]:
    """The words between white space, and for each character the index of the word that it is in or follows."""
    words: list[str] = []
    word_of_character: list[int] = []
    is_new = True
    for character in context:
        if character in " \t\r\n\u202f":
            is_new = True
        elif is_new:
            words.append(character)
            is_new = False
        else:
            words[-1] += character
        word_of_character.append(len(words) - 1)
    return words, word_of_character


def cut_spans(num_tokens: int, room: int) -> list[tuple[int, int]]:
    """Start and length of each window of a paragraph."""
    spans: list[tuple[int, int]] = []
    start = 0
    while start < num_tokens:
        length = min(num_tokens - start, room)
        spans.append((start, length))
        if start + length == num_tokens:
            break
        start += min(length, STRIDE)
    return spans


def improve_span(tokens: list[int], start: int, end: int, tokenizer: Tokenizer, text: str) -> tuple[int, int]:
    """Narrow the word-level span to the tokens that match the answer exactly, if there are any."""
    wanted = tokenizer.encode(text)
    for new_start in range(start, end + 1):
        for new_end in range(end, new_start - 1, -1):
            if tokens[new_start : new_end + 1] == wanted:
                return new_start, new_end
    return start, end


def has_max_context(spans: list[tuple[int, int]], number: int, token: int) -> bool:
    best_score = best_number = None
    for index, (start, length) in enumerate(spans):
        end = start + length - 1
        if token < start or token > end:
            continue
        score = min(token - start, end - token) + 0.01 * length
        if best_score is None or score > best_score:
            best_score, best_number = score, index
    return number == best_number


if __name__ == "__main__":
    main()
