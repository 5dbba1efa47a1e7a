# The one door: `make demo`, `make test`. Needs python3 (3.11 or newer), make and a network.
#
#   make demo         builds samples/matmul.mlir into an executable, runs it, checks its result
#   make test         linters, and the tests of every day: ten minutes on two cores
#   make test-all     linters and all tests; those of PyTorch, ONNX and JAX where these are installed
#   make frontends    installs PyTorch, ONNX and JAX
#   make test-frontends  the tests of PyTorch, ONNX and JAX alone, which it installs
#   make chips        every kernel that aotc can choose, built for chips, whose cubins are read
#   make property     new random kernels, whose values are known, on the CPU
#   make fuzz         damaged and odd inputs for aotc build; finds in build/fuzz
#   make stress       builds on partly warm caches, three at a time, and interrupted ones
#   make artifacts    records what is generated from many modules, to be compared (tests/artifacts)
#   make networks     new random networks of PyTorch's layers, which it installs, on the CPU
#   make models       models of PyTorch, torchvision, timm, transformers, diffusers and scikit-learn, which it
#                     installs, and their ONNX exports, on the CPU: docs/models.md's tables; goes on where it
#                     was interrupted
#   make upstream     LLVM's own execution tests of MLIR, which it fetches, on the CPU device; expected failures
#                     are in tests/upstream/expected.toml, results in build/upstream/results.md
#   make bench        kernels on the CPU against C loops; numbers in build/bench
#   make bench-launch build/bench-launch: what a call costs, to be run on a machine with a GPU
#   make bench-submission build/bench-submission: calls of many kernels, and results, likewise
#   make bench-sparse build/bench-sparse: products of sparse matrices against cuSPARSE, likewise
#   make bench-ladder build/bench-ladder: the matmul ladder against cuBLAS, likewise
#   make bench-bandwidth build/bench-bandwidth: how near kernels come to a copy, likewise
#   make bench-gemm   build/bench-gemm: products of matrices against cuBLAS, likewise
#   make bench-attention build/bench-attention: attention against PyTorch's, likewise
#   make gpu-bundle   build/gpu-bundle: what a machine with a GPU and without Python runs
#   make model-bundle build/model-bundle: models of PyTorch, for a machine with a GPU and PyTorch
#   make gpu-products build/gpu-products: products and attention of random sizes, likewise, against f64
#   make explore-editor  bundles CodeMirror for the page of `aotc explore`; needs npm
#   make docs         build/site: the documentation as a site, with its links checked; docs/man; docs/session.svg
#   make lint         linters alone
#   make clean        removes what these make, but not .venv
#
# PYTHON=... names another python3, JOBS=... how many tests run at a time, BENCH=... options of the
# benchmark (`make bench BENCH=--help` tells them), PROPERTY=..., FUZZ=..., STRESS=..., NETWORKS=...,
# ARTIFACTS=... (a folder), CHIPS=..., UPSTREAM=... and MODELS=... those of the targets of these
# names (FUZZ='--seconds 600 --category onnx').

PYTHON ?= python3
JOBS ?= 2
TORCH ?= 2.13.0
TORCHVISION ?= 0.28.0

VENV := .venv
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/installed
# Golden text is what aotc generates, as it is.
C_FILES = $(shell find runtime_c templates samples bench tests '(' -name '*.[ch]' -o -name '*.[ch]pp' ')' \
  -not -path 'tests/golden/*' 2>/dev/null)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-frontends frontends bench bench-launch bench-submission bench-sparse bench-ladder bench-bandwidth bench-gemm \
  bench-attention gpu-bundle gpu-products model-bundle lint setup clean property networks fuzz stress \
  chips artifacts models upstream explore-editor docs

help:
	@sed -n 's/^#   //p' Makefile

# Made again when pyproject.toml is newer. The stamp comes last: half an installation has none. An
# environment that works stays: another python3 would leave it with the files of two.
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

# Outside of templates/, which travel with aotc as they are.
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

# pytest comes last: its closing line is the result. Tests start aotc as a process again and again:
# without its compiled modules each of them takes a third longer.
test: export PYTHONDONTWRITEBYTECODE =
test: lint
	$(RUN) -m pytest -m 'not exhaustive' -n $(JOBS) --dist worksteal

test-all: export PYTHONDONTWRITEBYTECODE =
test-all: lint
	$(RUN) -m pytest -n $(JOBS) --dist worksteal

# Of this release of PyTorch, package indexes of machines without GPUs have the build for the CPU.
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

# torchvision's wheels ask for the build of PyTorch with GPUs.
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
