"""More than 20,000 lines with everything that has ever broken a tokenizer: real text, and constructed rarities."""

import gzip
import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

LONGEST = 120  # characters: many different lines rather than long ones
# Joined at random, with and without spaces between them.
FRAGMENTS = [
    *("hello World", "don't", "naïve café", "Ünïcödé", "e\u0301te\u0301", "a\u0327\u0301b"),
    *("Å Å Å", "İstanbul ışık", "ΑΣ ΟΔΟΣ."),
    *("1,000", "2010,", "9,", "in 1999, 2000, and 2001,", "3,14159", "12,345,678.90", "x9,y"),
    *("٣,٤", "１，０００", "²,"),
    *("½ ¾ ⅓", "ﬁne ﬂow", "Ⅳ ⅷ", "①②③⑩,", "㎏ ㏑", "ＦＵＬＬ　ｗｉｄｔｈ", "ﷺ", "…", "‥", "™ ℠"),
    *("x² y³", "µ μ Ω Ω"),
    *("😀", "👨‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇫🇷", "❤️", "☃", "𝕳𝖊𝖑𝖑𝖔", "🅰"),
    *("中国人民", "圣约翰岛", "繁體中文", "日本語のテキスト", "カタカナ ｶﾀｶﾅ", "한국어 문장"),
    *("\u1112\u1161\u11ab\u1100\u1173\u11af", "𠀀𠮷"),
    *("שלום עולם", "مرحبا بالعالم", "\u202babc\u202c", "\u200f", "السَّلامُ", "\u061c", "ภาษาไทย"),
    *("हिन्दी में", "বাংলা কী", "தமிழ் கொ", "မြန်မာ"),
    *("zero\u200bwidth", "non\u200cjoin", "jo\u200din", "\ufeff", "so\u00adft"),
    *("word\u2060joiner", "\u180e", "\u034f"),
    *("\x00", "\x01\x02", "\x07bell", "tab\there", "line\nbreak", "\r\n", "\x0b\x0c"),
    *("\x1c\x1d\x1e\x1f", "\x7f", "\x80\x85\x9f", "\xa0nbsp\u2003em\u3000ideo", "\u2028\u2029"),
    *("\ufffd", "\ufffe", "\uffff", "\ue000", "\U000e0001", "\U0010ffff", "\u0378"),
    *("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "<pad>", "<unk>", "<s>", "</s>", "<mask>"),
    *("a[MASK]b", "[mask]", "< pad >"),
    *("▁", "▁▁the", "Ġ", "##ing", "``quoted''", "''", "“curly” ‘single’", "«guillemets»", "—–-"),
    *("£5 €6 $7 ¥8", "(a) [b] {c}"),
    *("http://example.org/a?b=c&d=e#f", "a.b@c.de", "C++", "#hashtag", "@user", "snake_case"),
    *("CamelCase", "x" * 120, "9" * 30),
    *("ǅ ǆ", "ẞß", "ſ", "K", "¨x", "´", "ͅα", "\u0344", "\u0f73\u0f71", "\u0301", "\u3099か", "が"),
]  # fmt: skip


def iter_varied_lines(real_data: Path) -> Iterator[str]:
    yield from islice(_iter_lines(real_data / "corpora/enwiki/wiki_00.gz"), 9000)
    yield from islice(_iter_lines(real_data / "corpora/zhwiki/zhwiki_00.gz"), 4000)
    books = sorted((real_data / "corpora/gutenberg").glob("*.gz"))
    for book in books[::5]:
        yield from islice(_iter_lines(book), 100, 500)
    with (real_data / "clue/tnews/dev.json").open(encoding="utf-8") as file:
        yield from (json.loads(line)["sentence"] for line in islice(file, 1000))
    with (real_data / "glue/STS-B/dev.tsv").open(encoding="utf-8") as file:
        yield from (line.rstrip("\n") for line in islice(file, 1000))
    yield from iter_rare_lines(5000)


def iter_rare_lines(count: int) -> Iterator[str]:
    yield from FRAGMENTS
    rng = random.Random(7)
    for _ in range(count):
        yield rng.choice(["", " ", "  "]).join(rng.choices(FRAGMENTS, k=rng.randint(1, 6)))


def _iter_lines(file: Path) -> Iterator[str]:
    with gzip.open(file, "rt", encoding="utf-8", errors="replace", newline="\n") as stream:
        yield from (line.rstrip("\n")[:LONGEST] for line in stream if line.strip())
