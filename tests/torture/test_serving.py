"""The short version of the server's campaign: the attacks that once stopped it, and a moment of saturation."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torture.ledger import Ledger
from tests.torture.serving import (
    ATTACKS,
    Server,
    attack_all,
    find_problems,
    is_same,
    open_ten_thousand,
    saturate,
    start_server,
)

# clients are cut off in the middle on purpose, and asyncio complains of their streams
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ONCE_FATAL = (
    "490,000 integers for inputs|300,000 empty lists|60 KB of U.FDFA|480,000 combining marks|"
    "24 texts of 19,998 combining marks|300,000 Tibetan vowels|16 long choices|900,000 chunks|noise"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with start_server(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.mark.slow
def test_what_once_stopped_the_server_does_not_keep_a_polite_client_waiting(server: Server, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", "server-attacks", seed=1)
    asyncio.run(attack_all(server, ledger, ONCE_FATAL))
    assert len(ledger.records) == ONCE_FATAL.count("|") + 1 <= len(ATTACKS)
    assert [record["problem"] for record in ledger.records if record["problem"]] == []


@pytest.mark.slow
def test_ten_thousand_connections_are_answered_or_refused_politely_and_logged_briefly(server: Server) -> None:
    before, num_files = server.count_lines(), server.num_files
    codes = asyncio.run(open_ten_thousand(server.port, Ledger(Path("none"), "server-attacks", 1).random("open")))
    assert set(codes) == {"200", "503 busy"}
    assert sum(codes.values()) == 10_000
    # a line for each answered request; refusals repeat, and are counted instead of written
    assert server.count_lines() - before < codes["200"] + 500
    asyncio.run(asyncio.sleep(1.0))
    assert server.num_files < num_files + 20


@pytest.mark.slow
def test_at_saturation_everybody_gets_their_own_answer(server: Server) -> None:
    records = asyncio.run(saturate(server, 20.0, 16, Ledger(Path("none"), "server-saturation", 1).random("short")))
    assert sum(record.get("answers", 0) for record in records) > 50
    assert find_problems(records) == []


def test_a_swapped_answer_is_distinguished_from_rounding() -> None:
    answer = {"results": [{"label": "cat", "probabilities": {"cat": 0.5, "dog": 0.5}, "num_cut": 0}]}
    near = {"results": [{"label": "cat", "probabilities": {"cat": 0.5001, "dog": 0.4999}, "num_cut": 0}]}
    other = {"results": [{"label": "cat", "probabilities": {"cat": 0.51, "dog": 0.49}, "num_cut": 0}]}
    assert is_same(answer, near)
    assert not is_same(answer, other)
    assert not is_same(answer, {"results": []})
    busy = {"megabytes": 600, "files": 40, "wrong": 0, "codes": {"200": 9}, "bad_codes": {"422 invalid": 3}, "p99": 1.0}
    calm = [{**busy, "elapsed": n} for n in range(9)] + [{"is_idle": True, "files": 40}]
    assert find_problems(calm) == []
    grown = [{**record, "megabytes": 600 + 20 * n} for n, record in enumerate(calm[:-1])] + calm[-1:]
    assert len(find_problems(grown)) == 1
    assert (
        len(find_problems([*calm[:-1], {**busy, "elapsed": 9, "wrong": 1, "bad_codes": {"500 internal": 1}}, calm[-1]]))
        == 2
    )
