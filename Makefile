# Everything runs inside one .venv, made on first use.
#   make demo    the main job on an embedded default
#   make test    the tests; make test-slow: kills, torchrun, browser, fuzzing
#   make check   format, lint, types, import direction
#   make bench   benchmarks, ours beside our peers'
#   make results docs/results.md and its figures from the studies' reports in docs/studies/

PYTHON ?= python3
# Where torch comes from, e.g. make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=

VENV := .venv
RUN := $(VENV)/bin/python -m
INDEX := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
# A .venv whose interpreter is gone (moved folder, upgraded Python) is made again.
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

.PHONY: demo test test-slow check format bench results clean broken
demo: $(VENV)/.demo
	@$(RUN) litebert demo

test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(RUN) pytest -m "not slow" -n 2 --dist loadfile $(PYTEST_ARGS)

test-slow: $(VENV)/.test
	$(RUN) pytest -m slow --timeout 1200 $(PYTEST_ARGS)

check: $(VENV)/.dev
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) pytest -q tests/test_architecture.py

format: $(VENV)/.dev
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

bench: $(VENV)/.test
	@for file in benchmarks/*.py; do echo "== $$file" && OMP_WAIT_POLICY=passive $(VENV)/bin/python $$file || exit 1; done

results: $(VENV)/.demo
	$(RUN) litebert study report $(sort $(wildcard docs/studies/*/)) --out docs/results --markdown docs/results.md

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache

$(VENV)/.demo: pyproject.toml constraints.txt $(BROKEN)
	$(call install,[plots])
$(VENV)/.test: pyproject.toml constraints.txt $(BROKEN)
	$(call install,[test])
$(VENV)/.dev: pyproject.toml constraints.txt $(BROKEN)
	$(call install,[dev])
broken:
