# Everything runs inside one .venv, made on first use.
#   make demo    the main job on an embedded default
#   make test    the tests; make test-slow: kills, torchrun, browser, fuzzing
#   make check   format, lint, types, import direction
#   make docs    the documentation site, into site/; needs no network once its packages are installed
#   make notebooks  execute notebooks/ and store what they print
#   make coverage  the tests again: which lines and branches they do not reach, in the terminal and coverage/index.html
#   make package  wheel and sdist in dist/, each installed into a clean environment, where it trains and answers
#   make release-check  everything that must be true before a release: versions, checks, docs, tests, package
#   make torture  kills, power losses, mutants, long training, hosts that disappear: hours; continues after an interruption
#   make chromium  the browser for the slow tests of the page, if apt has it; they skip without one
#   make torture-server  attacks on a server, and SECONDS (1800) of saturation; see docs/serving.md
#   make audit   known vulnerabilities of the pinned packages; needs the network
#   make bench   benchmarks, ours compared with our peers', under ten minutes; make bench-full: all of them, an hour or two;
#                BENCH=--compare shows which ratios moved since the last time
#   make model   train models/cpu-small-en again, in runs/cpu-small-en, on the folder of text that TEXT names
#   make model-zh  train a Chinese model in runs/cpu-small-zh, on the folder of Chinese text that TEXT_ZH names
#   make studies the studies of docs/results.md that are not yet in docs/studies/; make study-table-5: one of them
#   make results docs/results.md and its figures from the studies' reports in docs/studies/
#   make pins    constraints.txt with the newest version of everything but torch

PYTHON ?= python3
# Where torch comes from, e.g. make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=

VENV := .venv
RUN := $(VENV)/bin/python -m
INDEX := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
# A .venv whose interpreter is gone (moved folder, upgraded Python) is created again.
BROKEN := $(shell $(VENV)/bin/python -c "" 2>/dev/null || echo broken)

# .installing outlives an interrupted install: the next run then starts from nothing instead of trusting half a .venv.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "litebert needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 2; }
	@if [ ! -f $(VENV)/.created ] || [ -f $(VENV)/.installing ] || ! $(VENV)/bin/python -c "" 2>/dev/null; then \
	  echo "Making $(VENV)" && rm -rf $(VENV) && $(PYTHON) -m venv $(VENV) && touch $(VENV)/.created; fi
	@touch $(VENV)/.installing
	@echo "Installing litebert$(1) into $(VENV) (a minute or two the first time)"
	@$(RUN) pip install --quiet --disable-pip-version-check $(INDEX) --constraint constraints.txt --editable '.$(1)'
	@rm $(VENV)/.installing
	@touch $@
endef

.PHONY: demo test test-slow coverage notebooks release-check torture torture-short torture-server audit chromium check docs package format bench-full bench model model-zh studies results pins clean broken
demo: $(VENV)/.demo
	@$(RUN) litebert demo

test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(RUN) pytest -m "not slow" -n 2 --dist loadfile $(PYTEST_ARGS)

test-slow: $(VENV)/.test
	$(RUN) pytest -m slow --timeout 1200 $(PYTEST_ARGS)

# What it has tried is in runs/torture/ledger.jsonl; docs/reliability.md has the numbers of the last long campaign.
torture: $(VENV)/.test
	OMP_NUM_THREADS=1 $(RUN) tests.torture kills --count 1500 --seconds 10800
	OMP_NUM_THREADS=1 $(RUN) tests.torture power --count 1000 --seconds 3600
	OMP_NUM_THREADS=1 $(RUN) tests.torture mutants --count 50000 --seconds 7200
	OMP_NUM_THREADS=1 $(RUN) tests.torture training --seconds 1800
	OMP_NUM_THREADS=1 $(RUN) tests.torture hosts --seconds 3600

torture-short: $(VENV)/.test
	$(RUN) pytest -m slow tests/torture

SECONDS ?= 1800
torture-server: $(VENV)/.test
	$(RUN) tests.torture.serving attacks
	$(RUN) tests.torture.serving saturation --seconds $(SECONDS)

# What compiled kernels and other processes execute is not seen, so the true share is higher.
coverage: $(VENV)/.test
	OMP_NUM_THREADS=1 $(RUN) pytest -q -m "not slow" -n 2 --dist loadfile --cov --cov-report=term --cov-report=html:coverage --cov-report=xml $(PYTEST_ARGS)

notebooks: $(VENV)/.test
	$(VENV)/bin/python notebooks/execute.py notebooks/*.ipynb

audit:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	.venv-audit/bin/pip-audit --no-deps --disable-pip --requirement constraints.txt

# Never a failure: without root or apt, the tests of the page are skipped.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "no chromium: the tests of the page in a browser will be skipped"

check: $(VENV)/.dev
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) pytest -q tests/test_architecture.py

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --quiet --clean
	@echo "done: site/index.html"

package: $(VENV)/.dev
	rm -rf dist .venv-package && $(RUN) build --outdir dist .
	@set -e; for file in dist/*.tar.gz dist/*.whl; do \
	  rm -rf .venv-package && $(PYTHON) -m venv .venv-package && \
	  .venv-package/bin/python -m pip install --quiet --disable-pip-version-check $(INDEX) --constraint constraints.txt $$file; \
	  .venv-package/bin/python -I tests/smoke.py .venv-package/smoke && echo "works: $$file"; \
	done; rm -rf .venv-package

# Versions first: they take a second, and are what is forgotten.
release-check: $(VENV)/.dev
	$(RUN) pytest -q tests/test_release.py
	@! grep -n "^## Unreleased" CHANGELOG.md || { echo "CHANGELOG.md: give the unreleased changes a version" >&2; exit 1; }
	@git diff --quiet HEAD || { echo "there are uncommitted changes" >&2; exit 1; }
	$(MAKE) check docs test test-slow package
	@echo "ready: git tag v$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)"

format: $(VENV)/.dev
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

# The peers are in an environment of their own, with pinned versions: what they install does not touch ours.
bench: .venv-bench/.created
	.venv-bench/bin/python benchmarks/suite/run.py $(BENCH)
bench-full: .venv-bench/.created
	.venv-bench/bin/python benchmarks/suite/run.py --full $(BENCH)

.venv-bench/.created: pyproject.toml constraints.txt benchmarks/requirements.txt
	@echo "Installing litebert and its peers into .venv-bench (some minutes the first time)"
	@[ -x .venv-bench/bin/python ] || $(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/pip install --quiet --disable-pip-version-check $(INDEX) --constraint constraints.txt --editable '.[test]'
	@.venv-bench/bin/pip install --quiet --disable-pip-version-check $(INDEX) --constraint constraints.txt \
	  --requirement benchmarks/requirements.txt || echo "some peers cannot be installed here: what needs them is left out" >&2
	@touch $@

# About an hour on two cores. After an interruption the same command resumes.
TEXT ?= $(if $(LITEBERT_DATA),$(LITEBERT_DATA)/corpora/enwiki)
MODEL := runs/cpu-small-en
model: $(MODEL)/model
	@echo "done: $(MODEL)/model"

$(MODEL)/tokenizer: | $(VENV)/.demo
	@test -n "$(TEXT)" || { echo "TEXT is not set: make model TEXT=folder" >&2; exit 2; }
	$(RUN) litebert tokenizer train $(TEXT) --vocab-size 8000 --out $@
$(MODEL)/corpus/manifest.json: | $(MODEL)/tokenizer
	$(RUN) litebert corpus build $(TEXT) --tokenizer $(MODEL)/tokenizer --out $(@D)
$(MODEL)/model: | $(MODEL)/corpus/manifest.json
	OMP_NUM_THREADS=1 $(RUN) litebert pretrain cpu-small data.corpora=$(MODEL)/corpus --processes 2 --out $(MODEL)/run
	$(RUN) litebert plot $(MODEL)/run --out $(MODEL)/curves.png
	$(RUN) litebert convert $(MODEL)/run --out $@ --dtype float16

# 147M tokens: hours on two cores. After an interruption the same command resumes.
TEXT_ZH ?= $(if $(LITEBERT_DATA),$(LITEBERT_DATA)/corpora/zhwiki)
MODEL_ZH := runs/cpu-small-zh
model-zh: $(MODEL_ZH)/model
	@echo "done: $(MODEL_ZH)/model"

$(MODEL_ZH)/tokenizer: | $(VENV)/.test
	@test -n "$(TEXT_ZH)" || { echo "TEXT_ZH is not set: make model-zh TEXT_ZH=folder" >&2; exit 2; }
	$(RUN) litebert tokenizer train $(TEXT_ZH) --kind wordpiece --vocab-size 8000 --chinese --script simplified --out $@
$(MODEL_ZH)/corpus/manifest.json: | $(MODEL_ZH)/tokenizer
	$(RUN) litebert corpus build $(TEXT_ZH) --tokenizer $(MODEL_ZH)/tokenizer --valid-share 0.02 --out $(@D)
$(MODEL_ZH)/model: | $(MODEL_ZH)/corpus/manifest.json
	OMP_NUM_THREADS=1 $(RUN) litebert pretrain cpu-small-zh data.corpora=$(MODEL_ZH)/corpus --processes 2 --out $(MODEL_ZH)/run
	$(RUN) litebert plot $(MODEL_ZH)/run --out $(MODEL_ZH)/curves.png
	$(RUN) litebert convert $(MODEL_ZH)/run --out $@ --dtype float16

# About nine hours on two cores in all. After an interruption the same command resumes; arms in docs/studies/ are not run
# again. The results there are for English Wikipedia as TEXT, and TASKS with glue/ and pairs/.
STUDIES := table-2-speed table-5 table-4 figure-1 figure-2b roberta-table-1
STUDIED := runs/studies
TASKS ?= $(LITEBERT_DATA)
JOBS := 2
studies: $(STUDIES:%=study-%)
	$(MAKE) results

# which corpus each study reads, and which of its arms
CORPUS := main
study-table-5: CORPUS := openings
study-roberta-table-1: CORPUS := part
study-table-4: ARMS_OPTION := --arms 'e768-*'
study-table-2-speed: JOBS := 1
study-%: $(STUDIED)/corpora/main/manifest.json $(STUDIED)/corpora/openings/manifest.json $(STUDIED)/corpora/part/manifest.json
	@mkdir -p $(STUDIED)/$*-laptop docs/studies/$*
	@! ls docs/studies/$*/*.json >/dev/null 2>&1 || cp docs/studies/$*/*.json $(STUDIED)/$*-laptop/
	$(RUN) litebert study run $* --jobs $(JOBS) --corpus $(STUDIED)/corpora/$(CORPUS) $(ARMS_OPTION) \
	  $(if $(TASKS),--data $(TASKS)) --out $(STUDIED)/$*-laptop; code=$$?; cp $(STUDIED)/$*-laptop/*.json docs/studies/$*/ 2>/dev/null; exit $$code

$(STUDIED)/corpora/tokenizer: | $(VENV)/.demo
	@test -n "$(TEXT)" || { echo "TEXT is not set: make studies TEXT=folder" >&2; exit 2; }
	$(RUN) litebert tokenizer train $(TEXT) --vocab-size 8000 --out $@
$(STUDIED)/corpora/main/manifest.json: | $(STUDIED)/corpora/tokenizer
	$(RUN) litebert corpus build $(TEXT) --tokenizer $| --valid-share 0.05 --out $(@D)
$(STUDIED)/corpora/openings/manifest.json: | $(STUDIED)/corpora/tokenizer
	$(RUN) litebert corpus build $(TEXT) --tokenizer $| --valid-share 0.15 --first-sentences 8 --out $(@D)
$(STUDIED)/corpora/part/manifest.json: | $(STUDIED)/corpora/tokenizer
	$(RUN) litebert corpus build $(wordlist 1,2,$(sort $(wildcard $(TEXT)/*))) --tokenizer $| --valid-share 0.1 --out $(@D)

results: $(VENV)/.demo
	$(RUN) litebert study report $(sort $(wildcard docs/studies/*/)) --out docs/results --markdown docs/results.md
	$(VENV)/bin/python docs/readme_results.py

pins:
	rm -rf .venv-pins && $(PYTHON) -m venv .venv-pins
	grep '^torch==' constraints.txt > .venv-pins/torch.txt
	.venv-pins/bin/pip install --quiet --disable-pip-version-check $(INDEX) --constraint .venv-pins/torch.txt --editable '.[dev,docs]'
	{ grep '^#' constraints.txt; .venv-pins/bin/pip list --format freeze --disable-pip-version-check | \
	  grep -v '^litebert==\|^pip==' | sed 's/+.*//' | sort -f; } > .venv-pins/constraints.txt
	mv .venv-pins/constraints.txt constraints.txt && rm -rf .venv-pins

clean:
	rm -rf $(VENV) .venv-bench dist build site coverage coverage.xml .coverage* .pytest_cache .mypy_cache .ruff_cache

$(VENV)/.demo: pyproject.toml constraints.txt $(BROKEN)
	$(call install,[plots])
$(VENV)/.test: pyproject.toml constraints.txt $(BROKEN)
	$(call install,[test])
$(VENV)/.docs: pyproject.toml constraints.txt $(BROKEN)
	$(call install,[docs])
$(VENV)/.dev: pyproject.toml constraints.txt $(BROKEN)
	$(call install,[dev])
broken:
