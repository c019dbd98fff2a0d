"""Windows: the same as the official loops cut, and every answer found and given back in the original characters."""

from collections import Counter
from pathlib import Path

import numpy as np
import official_squad
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from litebert.core.errors import ConfigError
from litebert.tasks.files.reading import PassageOptions
from litebert.tasks.groups import SequenceForm
from litebert.tasks.squad.features import build_groups
from litebert.tasks.squad.reading import Answer, Question, read_squad
from litebert.tasks.squad.tokens import SquadTokens, encode_squad, locate_spans
from litebert.tasks.squad.windows import WindowOptions, find_gold, mark_max_context, plan_windows, write_sequences
from litebert.text.tokenizer import Tokenizer, load_tokenizer


def form_of(max_length: int, num_segments: int = 2) -> SequenceForm:
    return SequenceForm(cls_id=-1, sep_id=-2, pad_id=-3, max_length=max_length, num_segments=num_segments)


def invented_tokens(context_length: int, question_length: int) -> SquadTokens:
    context = np.arange(context_length, dtype=np.int32)
    return SquadTokens(
        context_ids=context,
        context_starts=context * 2,
        context_ends=context * 2 + 1,
        context_bounds=np.array([0, context_length]),
        question_ids=np.arange(question_length, dtype=np.int32) + 1000,
        question_bounds=np.array([0, question_length]),
        paragraphs=np.array([0]),
    )


@given(
    context_length=st.integers(1, 150),
    question_length=st.integers(0, 12),
    max_length=st.integers(13, 60),
    stride=st.integers(1, 60),
    num_segments=st.sampled_from([1, 2]),
)
def test_windows_and_max_context_are_those_of_the_official_loops(
    context_length: int, question_length: int, max_length: int, stride: int, num_segments: int
) -> None:
    tokens, form = invented_tokens(context_length, question_length), form_of(max_length, num_segments)
    options = WindowOptions(max_question_length=8, stride=stride)
    windows = plan_windows(tokens, form, options)
    asked = min(question_length, 8)
    room = max_length - asked - (3 if num_segments == 2 else 4)
    expected = official_squad.windows(context_length, room, stride)
    assert list(zip(windows.firsts.tolist(), windows.lengths.tolist(), strict=True)) == expected
    marks, bounds = mark_max_context(windows)
    for number, (first, length) in enumerate(expected):
        official = [official_squad.has_max_context(expected, number, token) for token in range(first, first + length)]
        assert marks[bounds[number] : bounds[number + 1]].tolist() == official
    token_ids, bounds = write_sequences(tokens, windows, form)
    between = [-2] if num_segments == 2 else [-2, -2]
    for number, (first, length) in enumerate(expected):
        context = list(range(first, first + length))
        sequence = [-1, *range(1000, 1000 + asked), *between, *context, -2]
        assert token_ids[bounds[number] : bounds[number + 1]].tolist() == sequence
        assert sequence[windows.columns[number]] == first


def test_a_window_without_the_whole_answer_points_at_cls() -> None:
    tokens = invented_tokens(20, 2)  # token i is character 2i
    windows = plan_windows(tokens, form_of(15), WindowOptions(max_question_length=4, stride=5))  # 10 tokens each
    question = Question("1", "?", "x" * 40, (Answer("x" * 5, 16),))  # tokens 8 to 10
    gold = find_gold([question], tokens, windows)
    assert windows.firsts.tolist() == [0, 5, 10]
    assert gold.starts.tolist() == [0, 4 + 3, 0]  # [CLS], two of the question, [SEP]; then 8 - 5
    assert gold.ends.tolist() == [0, 4 + 5, 0]
    nothing = find_gold([Question("1", "?", "x" * 40, ())], tokens, windows)
    assert not nothing.starts.any()
    assert not nothing.ends.any()


def test_no_room_for_the_paragraph_is_refused() -> None:
    with refuses(ConfigError, "text-too-long"):
        plan_windows(invented_tokens(3, 3), form_of(67), WindowOptions())
    with refuses(ConfigError, "out-of-range"):
        PassageOptions(stride=0)


# letters whose normalized form is longer, shorter or gone; ligatures, fractions, accents before and after, odd spaces
CHARACTERS = "aBc de 1½ﬁéİßﷺ①\u0301\u0327ñ\u00a0\u200b\u3000中文—“”'s$%,.ŉ한\t\n"


@pytest.fixture(scope="module")
def albert(real_data: Path) -> Tokenizer:
    return load_tokenizer(real_data / "vocab" / "albert-30k.model")


@given(context=st.text(CHARACTERS, min_size=1, max_size=60).filter(str.strip), data=st.data())
def test_tokens_that_touch_an_answer_cover_it(albert: Tokenizer, context: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(context) - 1))
    end = data.draw(st.integers(start + 1, len(context)))
    tokens = encode_squad([Question("1", "?", context)], albert)
    assert (np.diff(tokens.context_starts) >= 0).all()
    assert (np.diff(tokens.context_ends) >= 0).all()
    first, last = (int(part[0]) for part in locate_spans(tokens, np.array([0]), np.array([start]), np.array([end])))
    touching = [
        number
        for number, (a, b) in enumerate(zip(tokens.context_starts, tokens.context_ends, strict=True))
        if a < end and b > start and a < b
    ]
    if not touching:  # nothing of it is left, or only bare word marks
        assert last < first or all(tokens.context_starts[n] == tokens.context_ends[n] for n in range(first, last + 1))
        return
    bare = [*range(first, touching[0]), *range(touching[-1] + 1, last + 1)]
    assert all(tokens.context_starts[number] == tokens.context_ends[number] for number in bare)
    lost = context[start : max(start, tokens.context_starts[touching[0]])]
    lost += context[max(start, tokens.context_ends[touching[-1]]) : end]
    assert not albert.normalize(lost).strip(), "characters that the model sees belong to no token"


def give_back(questions: list[Question], tokens: SquadTokens) -> list[tuple[str, str, str]]:
    """(question id, answer, text of its tokens) where the two differ, over all answers of all questions."""
    rows = [(index, answer) for index, question in enumerate(questions) for answer in question.answers or ()]
    owners = np.array([index for index, _ in rows])
    first, last = locate_spans(
        tokens,
        owners,
        np.array([answer.start for _, answer in rows]),
        np.array([answer.end for _, answer in rows]),
    )
    offsets = tokens.context_bounds[tokens.paragraphs[owners]]
    starts, ends = tokens.context_starts[offsets + first], tokens.context_ends[offsets + last]
    return [
        (questions[index].id, answer.text, questions[index].context[start:end])
        for (index, answer), start, end in zip(rows, starts, ends, strict=True)
        if questions[index].context[start:end] != answer.text
    ]


def name_cause(answer: str, back: str) -> str:
    """What the piece at the answer's border holds beside it."""
    before, _, after = back.partition(answer)
    extra = before + after
    if not extra:
        return "lost"
    return "word" if extra.isalpha() else "number" if all(c.isdigit() or c in ".," for c in extra) else "sign"


@pytest.mark.parametrize(
    ("name", "exceptions"),
    [
        ("dev-v1.1", {"word": 54, "sign": 37, "number": 16}),
        ("dev-v2.0.cs224n-half", {"word": 12, "sign": 8, "number": 3}),
        ("xquad.en", {"number": 1}),
    ],
)
def test_every_answer_comes_back_unless_a_piece_straddles_its_border(
    real_data: Path, albert: Tokenizer, name: str, exceptions: dict[str, int]
) -> None:
    questions = read_squad(real_data / "squad" / f"{name}.json")
    differing = give_back(questions, encode_squad(questions, albert))
    assert all(answer in back for _, answer, back in differing)
    assert Counter(name_cause(answer, back) for _, answer, back in differing) == exceptions
    assert len(differing) < 0.007 * sum(len(question.answers or ()) for question in questions)


def test_every_answer_of_squad_is_in_a_window_and_is_decoded_from_it(real_data: Path, albert: Tokenizer) -> None:
    questions = read_squad(real_data / "squad" / "xquad.en.json")
    groups = build_groups(questions, albert, SequenceForm(2, 3, 0, max_length=256), WindowOptions(stride=64))
    missing = wrong = 0
    for question, group in zip(questions, groups, strict=True):
        passage, texts = group.about, set()
        assert group.target is not None
        for window, (start, end, column) in enumerate(group.target.tolist()):
            assert column == passage.columns[window]
            if start:
                shift = passage.firsts[window] - column
                texts.add(question.context[passage.starts[start + shift] : passage.ends[end + shift]])
        missing += not texts
        wrong += bool(texts) and texts != {question.label[0]}  # type: ignore[index]
    assert (missing, wrong) == (0, 1)


def test_kept_tokens_are_those_that_were_encoded(
    tmp_path: Path, tiny_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litebert.tasks.squad.tokens.MIN_CACHED", 3)
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path))
    questions = [
        Question(str(n), f"who sees the cat {n}", "the cat sees a dog" if n % 2 else "a bird") for n in range(4)
    ]
    fresh = encode_squad(questions, tiny_tokenizer)
    [file] = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    again = encode_squad(questions, tiny_tokenizer)
    assert file.stat().st_mtime_ns == written
    for name, value in vars(fresh).items():
        assert np.array_equal(value, getattr(again, name)), name
    file.write_bytes(b"torn")
    assert np.array_equal(encode_squad(questions, tiny_tokenizer).context_ids, fresh.context_ids)
    encode_squad(questions[:3], tiny_tokenizer)
    assert len(list(tmp_path.iterdir())) == 2
    encode_squad(questions[:2], tiny_tokenizer)  # so few are not kept
    assert len(list(tmp_path.iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, tiny_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litebert.tasks.squad.tokens.MIN_CACHED", 1)
    (tmp_path / "file").touch()
    tokens = encode_squad([Question("1", "who", "the cat")], tiny_tokenizer, tmp_path / "file" / "below")
    assert tokens.context_ids.tolist() == tiny_tokenizer.encode("the cat")


def test_every_stretch_of_chinese_characters_comes_back(real_data: Path) -> None:
    chinese = load_tokenizer(real_data / "tf" / "google_albert_base_zh" / "vocab_chinese.txt")
    context = "《战国无双３》是由光荣和ω-force开发的战国无双系列的正统第三续作，最初是於2009年發行。"
    starts = [n for n, c in enumerate(context) if "一" <= c <= "鿿"]
    spans = [(a, b + 1) for a in starts for b in starts if a <= b]
    answers = tuple(Answer(context[a:b], a) for a, b in spans)
    questions = [Question("1", "谁开发的？", context, answers)]
    assert give_back(questions, encode_squad(questions, chinese)) == []
