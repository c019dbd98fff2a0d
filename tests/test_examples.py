"""The scripts in examples/ do what they say."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from small_text import make_sentences

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_from_a_folder_of_text_to_a_served_classifier(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    (tmp_path / "texts").mkdir()
    sentences = make_sentences(600)
    text = "\n\n".join("\n".join(sentences[start : start + 6]) for start in range(0, len(sentences), 6))
    (tmp_path / "texts" / "one.txt").write_text(text, "utf-8")
    rows = [{"text": f"{word} {n}", "label": word} for n in range(20) for word in ("river", "station")]
    (tmp_path / "labelled.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    script = subprocess.Popen(
        [sys.executable, "-u", EXAMPLES / "classifier.py", "texts", "labelled.jsonl", "out"],
        cwd=tmp_path,
        env={**os.environ, "SIZE": "tiny", "PORT": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert script.stdout is not None
    said = []
    try:
        for line in script.stdout:
            said.append(line)
            if found := re.search(r"Open (http://\S+) in a browser", line):
                break
        else:
            pytest.fail("".join(said))
        body = json.dumps({"inputs": ["the river is old", "a station"]}).encode()
        request = urllib.request.Request(
            f"{found[1]}/v1/classify", data=body, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            answers = json.load(response)
        assert "river" in json.dumps(answers)
    finally:
        script.send_signal(signal.SIGINT)
        script.communicate(timeout=60)
    assert any(line.startswith("<finetune: ") for line in said)
    assert (tmp_path / "out" / "int8").is_dir()
