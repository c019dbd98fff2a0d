"""From a folder of text to a served classifier: tokenizer, corpus, pre-training, fine-tuning, int8 export, server.

    python examples/classifier.py TEXTS LABELLED [FOLDER]

TEXTS is a folder of plain text, LABELLED a .csv or .jsonl table with the columns text and label. Everything is written
to FOLDER (classifier/). Interrupt it at any moment: the same command resumes. With the default sizes this takes about
an hour on two cores; SIZE=tiny takes a minute, and learns almost nothing.
"""

import os
import sys
from pathlib import Path

import litebert

IS_TINY = os.environ.get("SIZE") == "tiny"
VOCAB_SIZE = 200 if IS_TINY else 8_000
PRETRAINING = {"train.steps": 20, "schedule.warmup_steps": 2, "train.save_every": 10} if IS_TINY else {}
FINE_TUNING = {"train.steps": 20, "train.evaluations": 2} if IS_TINY else {}


def main(texts: Path, labelled: Path, folder: Path) -> None:
    # 1. A vocabulary and a tokenized corpus. Both are deterministic: the same text gives the same bytes.
    tokenizer = folder / "tokenizer"
    if not tokenizer.exists():
        print(litebert.train_tokenizer(texts, tokenizer, vocab_size=VOCAB_SIZE))
    corpus = litebert.build_corpus(texts, folder / "corpus", tokenizer=tokenizer, valid_share=0.05)
    print(corpus)

    # 2. A small ALBERT, pre-trained by a recipe with a few keys changed. Any checkpoint works in its place:
    #    litebert.adapt("albert/albert-base-v2", texts, folder / "adapted").
    changes = {"data.corpora": corpus, "model.vocab_size": VOCAB_SIZE, **PRETRAINING}
    model = litebert.pretrain("nano", changes, out=folder / "model")
    print(model)

    # 3. A classifier. Labels, columns, the number of steps and the metric follow from the data and the machine.
    classifier = litebert.finetune(model, "classification", labelled, FINE_TUNING, out=folder / "classifier")
    print(classifier)
    for name, scores in classifier.report["dev"].items():
        baseline = scores.get("baseline", {}).get("scores", {})
        print(f"{name}: {scores['scores']}, bag of words: {baseline}")

    # 4. Ask it, from Python ...
    for answer in litebert.predict(classifier, ["A text to classify.", "Another one."]):
        print(answer)

    # 5. ... as ONNX in int8, a quarter of the size ...
    if not (folder / "int8").exists():
        print(litebert.export(classifier, folder / "int8", int8=True))

    # 6. ... and over HTTP, until Ctrl-C: POST {"inputs": ["A text."]} to /v1/classify, or open the page.
    litebert.serve({"mine": classifier}, port=int(os.environ.get("PORT", "8000")))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3] if len(sys.argv) == 4 else "classifier"))
