# Two commands matter: `make gate` and `make test`. Both make .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCHES := benches

.PHONY: gate test lint types docs clean

$(READY): pyproject.toml .ci/constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint .ci/constraints.txt --editable '.[torch,benchmark,test]'
	touch $@

# Measures our own benchmarks and judges them; records them first where this
# kind of machine has no baselines yet.
gate: $(READY)
	$(BIN)/python scripts/gate.py $(BENCHES)

test: lint types $(READY)
	$(BIN)/python scripts/check.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/lint-imports

# Writes the pages and pictures that are generated from the code.
docs: $(READY)
	$(BIN)/python scripts/write_docs.py
	$(BIN)/python scripts/draw_statistics.py

clean:
	rm -rf $(VENV) .perfgate .coverage*
