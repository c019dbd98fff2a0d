"""CMRC 2018's scores in plain loops, written from what the official script does and not from our code."""

MARKS = ["-", ":", "_", "*", "^", "/", "\\", "~", "`", "+", "="]
MARKS += [
    "，",
    "。",
    "：",
    "？",
    "！",
    "“",
    "”",
    "；",
    "’",
    "《",
    "》",
    "……",
    "·",
    "、",
    "「",
    "」",
    "（",
    "）",
    "－",
    "～",
    "『",
    "』",
]


def segments(text: str) -> list[str]:
    """Chinese characters alone, and the words in what is between them."""
    found: list[str] = []
    rest = ""
    for character in text.lower().strip():
        if character in MARKS:
            continue
        if "\u4e00" <= character <= "\u9fa5":
            found += words(rest)
            rest = ""
            found.append(character)
        else:
            rest += character
    return found + words(rest)


def words(text: str) -> list[str]:
    """Words between spaces; punctuation beside them stands alone, inside numbers it does not (as in NLTK)."""
    found: list[str] = []
    for chunk in text.split():
        word = ""
        for place, character in enumerate(chunk):
            following = chunk[place + 1 : place + 2]
            is_inside = bool(word) and (
                (character == "." and following.isalnum()) or (character == "," and following.isdigit())
            )
            if character.isalnum() or is_inside:
                word += character
                continue
            found += [word] if word else []
            found.append(character)
            word = ""
        found += [word] if word else []
    return found


def scores(prediction: str, golds: list[str]) -> tuple[float, float]:
    exact = f1 = 0.0
    for gold in golds:
        exact = max(exact, float(without_marks(gold) == without_marks(prediction)))
        first, second = segments(gold), segments(prediction)
        shared = 0
        for start in range(len(first)):
            for end in range(start + 1, len(first) + 1):
                run = first[start:end]
                if any(second[n : n + len(run)] == run for n in range(len(second))):
                    shared = max(shared, len(run))
        if shared:
            precision, recall = shared / len(second), shared / len(first)
            f1 = max(f1, 2 * precision * recall / (precision + recall))
    return exact, f1


def without_marks(text: str) -> str:
    return "".join(character for character in text.lower().strip() if character not in MARKS)
