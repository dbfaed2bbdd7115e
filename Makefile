# make serve   run the product            make setup   everything a developer needs, nothing started
# make test    all gates and tests        make check   the gates and the quick tests
# make fix     format, regenerate docs    make bench   side by side with peers
# make soak    long campaigns in full     make clean   remove what make made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
CODE := readleaf.py training export serving ui docker benchmarks tests
.DEFAULT_GOAL := serve
.PHONY: serve triton setup test check static fix bench soak clean browser

serve: $(VENV)/.serve
	$(BIN)/readleaf serve

triton: $(VENV)/.triton
	$(BIN)/readleaf triton start

setup: $(VENV)/.all

test: setup static browser
	$(BIN)/pytest

check: setup static
	$(BIN)/pytest --ignore tests/e2e

static:
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: setup
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)
	$(BIN)/python -m serving.reference

bench: setup
	$(BIN)/python benchmarks/embed.py
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/rotated_iou.py
	$(BIN)/python benchmarks/surrogates.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/renderer.py
	$(BIN)/python benchmarks/review.py
	@echo "benchmarks/{embedder,reading,recognizer,pictures,detector,classifier,identify}.py need photographs: see what each says"

soak: setup browser
	$(BIN)/pytest --soak --timeout 3600 -s -m campaign

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.serve: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing the service and the page (no torch)"
	@$(PIP) --editable '.[serve,cpu,ui]'
	@touch $@

$(VENV)/.triton: $(VENV)/.serve
	@echo "Installing what talks to Triton"
	@$(PIP) --editable '.[triton]'
	@touch $@

$(VENV)/.all: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing everything: service, page, training, export, tools (some minutes the first time)"
	@$(PIP) --editable '.[serve,cpu,triton,ui,train,export,dev]'
	@touch $@ $(VENV)/.serve $(VENV)/.triton

browser:
	@command -v chromium >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then \
	    echo "Installing Chromium for the browser tests"; \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	  else \
	    echo "The browser tests need Chromium. Run: sudo apt-get install chromium"; exit 1; \
	  fi; }
