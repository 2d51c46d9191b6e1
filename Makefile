# make demo   set up, then the main job on real tiles (no GPU needed; a Hopper GPU is used where there is one)
# make test   set up, then all tests that need no GPU, properties with a quarter of their examples
# make test-all  the same at full strength: every example, every case, the site, the notebooks, a tenth of the mutants
# make docs   set up, then the documentation as HTML in docs/_build/html
# make bench  set up, then the benchmarks
# make extras each extra alone in a bare environment, from the package index
# make mutants  set up, then small wrong changes to the library, each of which related tests must notice
# make lint   style, types and dependency direction
# make clean  remove what these made

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
unexport PYTHONDONTWRITEBYTECODE  # every process under test would compile the library and its solvers anew

.PHONY: demo test test-all tests-short tests-full extras bench mutants docs lint clean
.DEFAULT_GOAL := test

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "layoutalg needs Python >= 3.11 (set PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: pyproject.toml $(VENV)/.created
	$(BIN)/pip install -q -e '.[cuda]'
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.created
	$(BIN)/pip install -q --no-compile -e '.[cuda,docs,dev]'
	@touch $@ $(VENV)/.run $(VENV)/.docs

$(VENV)/.docs: pyproject.toml $(VENV)/.created
	$(BIN)/pip install -q -e '.[docs]'
	@touch $@

demo: $(VENV)/.run
	$(BIN)/layoutalg demo

TESTS := -m pytest -n $(WORKERS) --dist loadfile --doctest-modules tests layoutalg --ignore=layoutalg/__main__.py

test: lint tests-short

test-all: lint tests-full

tests-short: $(VENV)/.test
	$(BIN)/python $(TESTS)

tests-full: $(VENV)/.test
	$(BIN)/python $(TESTS) --full

extras: $(VENV)/.test
	$(BIN)/python -m pytest -q --extras tests/extras

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test
	$(BIN)/python benchmarks/bench.py

mutants: $(VENV)/.test
	$(BIN)/python tests/mutants/run.py --jobs $(WORKERS)

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo docs/_build/html/index.html

clean:
	rm -rf $(VENV) docs/_build docs/generated build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
