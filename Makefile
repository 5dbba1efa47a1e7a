# All tasks of development: `make demo`, `make test`. Needs python3 (3.11 or newer), make and a network.
#
#   make demo         builds samples/matmul.mlir into an executable, runs it, checks its result
#   make test         linters, and the default tests: half an hour on two cores
#   make test-all     linters and all tests; those of PyTorch, ONNX and JAX if these are installed
#   make frontends    installs PyTorch, ONNX and JAX
#   make test-frontends  the tests of PyTorch, ONNX and JAX alone; installs these
#   make chips        compiles every kernel that aotc can choose, and checks the cubins
#   make property     new random kernels with known results, on the CPU
#   make fuzz         damaged and unusual inputs for aotc build; findings in build/fuzz
#   make stress       builds with partly filled caches, three at a time, and interrupted builds
#   make artifacts    records the generated code of many modules, for comparison (tests/artifacts)
#   make networks     new random networks of PyTorch layers, on the CPU; installs PyTorch
#   make models       models of PyTorch, torchvision, timm, transformers, diffusers and scikit-learn, and
#                     their ONNX exports, on the CPU: the tables of docs/models.md; installs these packages;
#                     continues an interrupted run
#   make upstream     LLVM's own execution tests of MLIR, which it fetches, on the CPU device; expected failures
#                     are in tests/upstream/expected.toml, results in build/upstream/results.md
#   make bench        kernels on the CPU compared with C loops; results in build/bench
#   make bench-launch build/bench-launch: the cost of a call, to be run on a machine with a GPU
#   make bench-submission build/bench-submission: calls of many kernels, and results, likewise
#   make bench-sparse build/bench-sparse: products of sparse matrices compared with cuSPARSE, likewise
#   make bench-ladder build/bench-ladder: the matmul ladder compared with cuBLAS, likewise
#   make bench-bandwidth build/bench-bandwidth: the bandwidth of kernels compared with a copy, likewise
#   make bench-gemm   build/bench-gemm: matmuls compared with cuBLAS, likewise
#   make bench-attention build/bench-attention: attention compared with PyTorch's, likewise
#   make gpu-bundle   build/gpu-bundle: tests for a machine with a GPU and without Python
#   make model-bundle build/model-bundle: models of PyTorch, for a machine with a GPU and PyTorch
#   make gpu-products build/gpu-products: matmuls and attention of random sizes compared with f64, likewise
#   make explore-editor  bundles CodeMirror for the page of `aotc explore`; needs npm
#   make docs         build/site: the documentation as a site, with its links checked; docs/man; docs/session.svg
#   make lint         linters alone
#   make clean        removes the outputs of these targets, but not .venv
#
# PYTHON=... selects another python3, JOBS=... the number of concurrent tests, BENCH=... the options of
# the benchmark (`make bench BENCH=--help` lists them), PROPERTY=..., FUZZ=..., STRESS=..., NETWORKS=...,
# ARTIFACTS=... (a folder), CHIPS=..., UPSTREAM=... and MODELS=... the options of the targets with these
# names (FUZZ='--seconds 600 --category onnx').

PYTHON ?= python3
JOBS ?= 2
TORCH ?= 2.13.0
TORCHVISION ?= 0.28.0

VENV := .venv
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/installed
# Golden text is generated code, and is not formatted.
C_FILES = $(shell find runtime_c templates samples bench tests '(' -name '*.[ch]' -o -name '*.[ch]pp' ')' \
  -not -path 'tests/golden/*' 2>/dev/null)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-frontends frontends bench bench-launch bench-submission bench-sparse bench-ladder bench-bandwidth bench-gemm \
  bench-attention gpu-bundle gpu-products model-bundle lint setup clean property networks fuzz stress \
  chips artifacts models upstream explore-editor docs

help:
	@sed -n 's/^#   //p' Makefile

# Remade when pyproject.toml is newer. The stamp is written last, so an incomplete installation has
# none. A working environment is kept: with another python3 it would have files of both.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "aotc needs Python 3.11 or newer. '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: it lacks venv or ensurepip." >&2; \
	  echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV) (once; some minutes)"
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

setup: $(INSTALLED)

demo: $(INSTALLED)
	@$(RUN) samples/demo.py

# Built outside of templates/, because these files are part of the package.
explore-editor:
	@rm -rf build/explore-editor && mkdir -p build && cp -r templates/explore/editor build/explore-editor
	@cd build/explore-editor && npm install --silent --no-audit --no-fund --no-package-lock && npm run --silent bundle
	@cp build/explore-editor/codemirror.js templates/explore/

docs: $(INSTALLED)
	$(RUN) docs/tools/man.py
	$(RUN) docs/tools/session.py
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet

lint: $(INSTALLED)
	@! command -v node >/dev/null || for file in templates/explore/*.js; do node --check $$file || exit 1; done
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports --no-logo --cache-dir build/import_linter
	$(VENV)/bin/clang-format --dry-run -Werror $(C_FILES)

# LINTED=1: the linters have just run. pytest runs last: its last line is the result. Tests start aotc as a process many times: without
# compiled modules each start takes a third longer.
test: export PYTHONDONTWRITEBYTECODE =
test: $(if $(LINTED),,lint)
	$(RUN) -m pytest -m 'not exhaustive' -n $(JOBS) --dist worksteal

test-all: export PYTHONDONTWRITEBYTECODE =
test-all: $(if $(LINTED),,lint)
	$(RUN) -m pytest -n $(JOBS) --dist worksteal

# Package indexes of machines without GPUs have the CPU build of this release of PyTorch.
frontends: $(INSTALLED)
	$(RUN) -m pip install --quiet --disable-pip-version-check 'torch==$(TORCH)'
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[frontends]'

test-frontends: frontends
	$(RUN) -m pytest tests/frontends tests/fuzz -n $(JOBS) --dist worksteal

stress: $(INSTALLED)
	$(RUN) -m tests.stress.run $(STRESS)

property: $(INSTALLED)
	$(RUN) -m tests.property.run $(PROPERTY)

fuzz: $(INSTALLED)
	$(RUN) -m tests.fuzz.run $(FUZZ)

artifacts: $(INSTALLED)
	$(RUN) -m tests.artifacts.record $(ARTIFACTS)

chips: $(INSTALLED)
	$(RUN) -m tests.chips.run $(CHIPS)

upstream: $(INSTALLED)
	$(RUN) -m tests.upstream.run $(UPSTREAM)

networks: frontends
	$(RUN) -m tests.frontends.networks.run $(NETWORKS)

# torchvision's wheels require the GPU build of PyTorch.
models: frontends
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps 'torchvision==$(TORCHVISION)' timm
	$(RUN) -m pip install --quiet --disable-pip-version-check transformers diffusers pillow skl2onnx scikit-learn
	$(RUN) -m tests.frontends.zoo.run $(MODELS)

bench: $(INSTALLED)
	@mkdir -p build/bench
	@$(RUN) -m bench.cpu_device --json build/bench/cpu_device.json $(BENCH)

bench-launch: $(INSTALLED)
	$(RUN) -m bench.launch build/bench-launch

bench-submission: $(INSTALLED)
	$(RUN) -m bench.submission build/bench-submission

bench-sparse: $(INSTALLED)
	$(RUN) -m bench.sparse build/bench-sparse

bench-bandwidth: $(INSTALLED)
	$(RUN) -m bench.bandwidth build/bench-bandwidth

bench-ladder: $(INSTALLED)
	$(RUN) -m bench.ladder build/bench-ladder

bench-gemm: $(INSTALLED)
	$(RUN) -m bench.gemm build/bench-gemm

bench-attention: $(INSTALLED)
	$(RUN) -m bench.attention build/bench-attention

gpu-bundle: $(INSTALLED)
	$(RUN) -m SCons -Q gpu-bundle

gpu-products: $(INSTALLED)
	$(RUN) -m tests.gpu.products build/gpu-products

model-bundle: $(INSTALLED)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[frontends]'
	$(RUN) tests/frontends/bundle.py build/model-bundle

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .sconsign.dblite
	find aotc tests samples -name __pycache__ -type d -prune -exec rm -rf {} +
