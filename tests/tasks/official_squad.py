"""SQuAD in plain loops, written from what the official scripts do and not from our code: the other opinion."""

import re
from collections import Counter
from typing import Any

PUNCTUATION = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def normalized(text: str) -> str:
    text = "".join(character for character in text.lower() if character not in PUNCTUATION)
    words = re.sub(r"\b(?:a|an|the)\b", " ", text).split()
    return " ".join(words)


def f1_of_words(first: list[str], second: list[str]) -> float:
    left = Counter(second)
    shared = 0
    for word in first:
        if left[word] > 0:
            left[word] -= 1
            shared += 1
    if shared == 0:
        return 0.0
    precision = 1.0 * shared / len(first)
    recall = 1.0 * shared / len(second)
    return (2 * precision * recall) / (precision + recall)


def scores_v1(prediction: str, golds: list[str]) -> tuple[float, float]:
    """Evaluation 1.1: the best over the gold answers, of which there is at least one."""
    exact = max(normalized(prediction) == normalized(gold) for gold in golds)
    f1 = max(f1_of_words(normalized(prediction).split(), normalized(gold).split()) for gold in golds)
    return float(exact), f1


def scores_v2(prediction: str, golds: list[str]) -> tuple[float, float]:
    """Evaluation 2.0: gold answers that normalize to nothing are dropped, and no gold answer is the empty one."""
    kept = [gold for gold in golds if normalized(gold) != ""]
    if kept == []:
        kept = [""]
    exact, f1 = 0.0, 0.0
    for gold in kept:
        exact = max(exact, float(normalized(prediction) == normalized(gold)))
        words, gold_words = normalized(prediction).split(), normalized(gold).split()
        if len(words) == 0 or len(gold_words) == 0:
            f1 = max(f1, float(words == gold_words))
        else:
            f1 = max(f1, f1_of_words(words, gold_words))
    return exact, f1


def best_threshold(
    predictions: dict[str, str], scores: dict[str, float], odds: dict[str, float], has_answer: dict[str, bool]
) -> tuple[float, float]:
    """The sweep of evaluation 2.0: questions by rising odds, each answered in turn."""
    current = best = float(sum(1 for id_ in has_answer if not has_answer[id_]))
    threshold = 0.0
    for id_ in sorted(odds, key=lambda id_: odds[id_]):
        if has_answer[id_]:
            current += scores[id_]
        elif predictions[id_] != "":
            current += -1
        if current > best:
            best, threshold = current, odds[id_]
    return best, threshold


def windows(num_tokens: int, room: int, stride: int) -> list[tuple[int, int]]:
    """(first token, length) of each window: BERT's loop."""
    spans = []
    start = 0
    while start < num_tokens:
        length = num_tokens - start
        if length > room:
            length = room
        spans.append((start, length))
        if start + length == num_tokens:
            break
        start += min(length, stride)
    return spans


def has_max_context(spans: list[tuple[int, int]], number: int, token: int) -> bool:
    """BERT's loop over all windows for one token."""
    best_score, best_number = None, None
    for index, (start, length) in enumerate(spans):
        end = start + length - 1
        if token < start or token > end:
            continue
        score = min(token - start, end - token) + 0.01 * length
        if best_score is None or score > best_score:
            best_score, best_number = score, index
    return number == best_number


def best_indexes(logits: list[float], count: int) -> list[int]:
    ranked = sorted(enumerate(logits), key=lambda pair: pair[1], reverse=True)
    return [index for index, _ in ranked[:count]]


def nbest(passage: Any, start_logits: Any, end_logits: Any, num_best: int, max_length: int) -> list[tuple[str, float]]:
    """The n-best list of one question for the simple head."""
    spans = list(zip(passage.firsts.tolist(), passage.lengths.tolist(), strict=True))
    found = []
    for number, (first, length) in enumerate(spans):
        column = int(passage.columns[number])
        for start in best_indexes(start_logits[number].tolist(), num_best):
            for end in best_indexes(end_logits[number].tolist(), num_best):
                if start < column or start >= column + length or end < column or end >= column + length:
                    continue
                if not has_max_context(spans, number, start - column + first):
                    continue
                if end < start or end - start + 1 > max_length:
                    continue
                score = float(start_logits[number][start]) + float(end_logits[number][end])
                found.append((score, start - column + first, end - column + first))
    found.sort(key=lambda candidate: candidate[0], reverse=True)
    result: list[tuple[str, float]] = []
    for score, start, end in found:
        text = passage.context[passage.starts[start] : passage.ends[end]].strip()
        if text and text not in [other for other, _ in result]:
            result.append((text, score))
        if len(result) == num_best:
            break
    return result
