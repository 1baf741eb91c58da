# The front door: each target is a line or two over scripts/, CMake presets and CTest. `make help` lists them.
.DEFAULT_GOAL := build
.PHONY: stress valgrind analyze build demo test install lint format fuzz tsan bench bench-quick fresh-machine clean help

PREFIX       ?= /usr/local
FUZZ_SECONDS ?= 30
JOBS         ?= $(shell nproc 2>/dev/null || echo 2)

# $(call configure_and_build,PRESET[,TARGET]): configuring again costs half a second and never misses a change.
define configure_and_build
@command -v cmake >/dev/null || { echo "make: cmake is missing: run scripts/setup" >&2; exit 1; }
@echo "== build: preset $(1) in build/$(1)"
@cmake --preset $(1) --log-level=WARNING >build/$(1).log 2>&1 || \
	{ cat build/$(1).log; exit 1; }
@cmake --build build/$(1) -j $(JOBS) $(if $(2),--target $(2)) -- --quiet
endef

build: | build/ ## release binaries in build/release/bin, libraries in build/release/lib (the default)
	$(call configure_and_build,release)

demo: ## set up this machine, build, and run the main job on a few thousand real files
	@scripts/setup
	@$(MAKE) --no-print-directory build
	@scripts/demo build/release/bin

test: ## set up this machine, build with ASan and UBSan, and run every test
	@scripts/setup --test
	@$(MAKE) --no-print-directory dev
	@ctest --preset dev -j $(JOBS) --no-tests=error $(CTEST_ARGS)

.PHONY: dev
dev: | build/ ## the build that tests run on (ASan and UBSan) in build/dev
	$(call configure_and_build,dev)

install: build ## headers, libraries, pkg-config and CMake files, and lade below PREFIX (and DESTDIR)
	@echo "== install: into $(DESTDIR)$(PREFIX)"
	@cmake --install build/release --prefix "$(PREFIX)" >build/install.log || { cat build/install.log; exit 1; }

lint: ## clang-format and clang-tidy, as errors; FILES="src/a.c ..." for a few
	@scripts/setup --test
	@scripts/lint $(FILES)

format: ## rewrite the sources as .clang-format says
	@git ls-files '*.c' '*.h' '*.cc' | xargs clang-format -i

tsan: | build/ ## the tests again under ThreadSanitizer
	@scripts/setup --test
	$(call configure_and_build,tsan)
	@ctest --preset tsan -j $(JOBS) -LE 'api|fuzz' --no-tests=error $(CTEST_ARGS)

stress: ## the runtime's tests with 100 times the rounds (LADE_RT_ROUNDS), also on the chaos build: an hour
	@scripts/setup --test
	@scripts/rt-check stress

valgrind: ## the runtime's tests under Valgrind, which knows every stack
	@scripts/setup --test
	@scripts/rt-check valgrind

analyze: ## gcc -fanalyzer over the runtime
	@scripts/rt-check analyze

fuzz: | build/ ## each fuzz target for FUZZ_SECONDS (30), finds in build/fuzz/found
	@scripts/setup --test
	$(call configure_and_build,fuzz,lade_fuzzers)
	@scripts/fuzz build/fuzz $(FUZZ_SECONDS)

bench: build ## every table of the benchmark suite in full, report in build/bench/; peers: scripts/setup --bench
	@build/release/bin/lade-bench run all --out build/bench/full-$$(date -u +%Y%m%d-%H%M%S) $(BENCH_ARGS)

bench-quick: build ## the same with small counts, under three minutes
	@build/release/bin/lade-bench run all --quick --out build/bench/quick-$$(date -u +%Y%m%d-%H%M%S) $(BENCH_ARGS)

fresh-machine: ## as root: make demo and make test in an empty Debian 12 with git, make and a shell only
	@scripts/fresh-machine

clean: ## remove build/
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | sort | while IFS='	' read -r name text; do \
		printf 'make %-14s %s\n' "$$name" "$$text"; done

build/:
	@mkdir -p build
