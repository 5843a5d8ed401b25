# The front door. `make quickstart` sets up, builds and audits a model; `make check`
# sets up, builds and passes all tests. Both start from a bare Debian 12.

PROGRAM := build/release/lipscope
SOURCES := $(shell git ls-files '*.h' '*.cpp' '*.js' 2>/dev/null)

FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local

.PHONY: help setup test-setup release install quickstart picture check bench format format-check layers asan fuzz campaign clean

help:
	@echo 'make quickstart   install what is missing, build, audit MiniLM: report.html'
	@echo 'make install      build and install under PREFIX (/usr/local), with completion'
	@echo 'make check        install what is missing, build, run every test'
	@echo 'make asan         the tests of all rooms under sanitizers'
	@echo 'make bench        build and run the benchmarks'
	@echo 'make fuzz         feed the file readers nonsense for FUZZ_SECONDS each (60)'
	@echo 'make campaign     a million adversarial cases for the bounds; killed, it goes on'
	@echo 'make format       lay out the sources with clang-format'

setup:
	@tools/install-packages

test-setup:
	@tools/install-packages --tests

release: setup
	@cmake --preset release
	@cmake --build --preset release

install: release
	@cmake --install build/release --prefix $(PREFIX)

quickstart: setup
	@command -v npm >/dev/null || tools/install-packages npm || true
	@cmake --preset release
	@cmake --build --preset release --target lipscope_cli
	@tools/quickstart $(PROGRAM)

check: test-setup release format-check layers
	@ctest --preset release --label-exclude slow -j2
	@ctest --preset release --label-regex slow -j2
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=2
	@echo 'make check: all tests passed'

asan: setup
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

bench: setup
	@cmake --preset release
	@cmake --build --preset release --target benches
	@tools/bench build/release

# a million adversarial cases for the bounds, on one core; killed, it goes on
CAMPAIGN_CASES ?= 1000000
CAMPAIGN_SEED ?= 1
campaign: setup
	@cmake --preset release
	@cmake --build --preset release --target campaign
	@nice -n 19 build/release/tests/campaign --cases $(CAMPAIGN_CASES) --seed $(CAMPAIGN_SEED) \
	  --out build/campaign-$(CAMPAIGN_SEED).jsonl

format: test-setup
	@clang-format -i $(SOURCES)

format-check: test-setup
	@clang-format --dry-run --Werror $(SOURCES)

layers: setup
	@python3 tools/check_layers.py

clean:
	rm -rf build
