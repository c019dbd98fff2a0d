"""Windows against those that the `tokenizers` library cuts, which is what transformers' own SQuAD example uses."""

from itertools import pairwise

import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.tasks.groups import SequenceForm
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.tokens import encode_squad
from litebert.tasks.squad.windows import WindowOptions, plan_windows, write_sequences
from litebert.text.tokenizer import Tokenizer

WORDS = st.sampled_from(
    ["the", "a", "small", "old", "cat", "dog", "bird", "house", "tree", "river", "sees", "xyz", ".", ","]
)


@settings(max_examples=60)
@given(
    question=st.lists(WORDS, min_size=1, max_size=4).map(" ".join),
    context=st.lists(WORDS, min_size=1, max_size=60).map(" ".join),
    room=st.integers(2, 25),
    stride=st.integers(1, 24),
)
def test_windows_are_those_of_the_tokenizers_library(
    tiny_tokenizer: Tokenizer, question: str, context: str, room: int, stride: int
) -> None:
    stride = min(stride, room)
    asked = tiny_tokenizer.encode(question)
    library = tokenizers.Tokenizer.from_str(tiny_tokenizer.model.decode())
    library.enable_truncation(len(asked) + room, stride=room - stride, strategy="only_second")
    first = library.encode(question, context, add_special_tokens=False)
    theirs = [encoding.ids for encoding in (first, *first.overflowing)]

    form = SequenceForm(tiny_tokenizer.cls_id, tiny_tokenizer.sep_id, tiny_tokenizer.pad_id, len(asked) + room + 3)
    tokens = encode_squad([Question("1", question, context)], tiny_tokenizer)
    windows = plan_windows(tokens, form, WindowOptions(max_question_length=len(asked), stride=stride))
    token_ids, bounds = write_sequences(tokens, windows, form)
    special = {tiny_tokenizer.cls_id, tiny_tokenizer.sep_id}
    ours = [token_ids[a:b].tolist() for a, b in pairwise(bounds)]
    assert [[token for token in window if token not in special] for window in ours] == theirs
