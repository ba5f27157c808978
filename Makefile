# Every target uses the release profile, so that polars is compiled only once.
RESULTS ?= results
REPORTS ?= reports
SITE ?= site
CARGO ?= cargo
EXACTFED = $(CARGO) run --quiet --release --locked --

.DEFAULT_GOAL := help
.PHONY: help build reproduce fresh site test mutations browser check lints lint-scripts portability deny advisories faults fuzz soak slurm-test sanitize bench bench-compare times diff docs wheel wheel-test release-check

help: ## Print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "make %-13s %s\n", $$1, $$2 }'

build: ## Build the program
	$(CARGO) build --release --locked

# One experiment that takes no time, so that there is a page to open at once, and then the one whose figure
# README.md shows.
FIRST = book/drift frontier/quadratic
reproduce: build ## Run every manifest under experiments/ and write the reports
	$(EXACTFED) reproduce $(addprefix --first ,$(FIRST)) --out $(RESULTS) --reports $(REPORTS)

# The results are computed anew, so that nothing that lies in results/ is on the pages.
FRESH = target/fresh
fresh: build ## Run every manifest in a new folder and compare the reports with the committed ones
	rm -rf $(FRESH)
	$(EXACTFED) reproduce --out $(FRESH)/results --reports $(FRESH)/reports
	scripts/fresh.sh $(FRESH)

# Exit code 1 of `reproduce` means a refuted claim, and the reports are written.
site: build ## Write the reports and documents as a static site into site/ (SITE=; after `make reproduce`)
	@test -d $(RESULTS) || { echo "error: there is no $(RESULTS)/: run 'make reproduce' first" >&2; exit 2; }
	$(EXACTFED) reproduce --out $(RESULTS) --reports $(REPORTS) --quiet || [ $$? -eq 1 ]
	$(CARGO) run --quiet --release --locked -p exactfed-tools --bin site -- $(REPORTS) $(SITE)

# Many tests wait for what they started: three times as many at once as there are processors.
test: export RUST_TEST_THREADS ?= $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN))))
test: ## Run the tests
	$(CARGO) test --release --locked
	$(CARGO) test --release --locked -p exactfed-tools --bin diff_size

mutations: reproduce ## Judge all claims on wrong results: none may stay supported under all (after `make reproduce`)
	EXACTFED_RESULTS=$(abspath $(RESULTS)) EXACTFED_REPORTS=$(abspath $(REPORTS)) $(CARGO) test --release --locked --test suite mutations:: -- --nocapture

browser: ## Test the pages in a browser (after `make reproduce`; needs chromium, chromedriver, and npm once)
	AXE=$$(.ci/axe) EXACTFED_REPORTS=$(abspath $(REPORTS)) $(CARGO) test --release --locked --test browser

LINTS = -D warnings -D clippy::too_many_lines
check: lints test ## Check format and lints and run the tests, as continuous integration does

lints: lint-scripts ## Check format and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --locked --all-targets -- $(LINTS)
	$(CARGO) clippy --release --locked --bench bars --bench compare --test browser -- $(LINTS)
	$(CARGO) clippy --release --locked -p exactfed-tools --all-targets -- $(LINTS)
	$(CARGO) clippy --release --locked -p exactfed-python -- $(LINTS)
	$(CARGO) check --release --locked --manifest-path fuzz/Cargo.toml

lint-scripts: ## Check Python, shell scripts, workflows and the scripts of pages (pip and npm install the linters)
	scripts/lint.sh

faults: build ## Test faults that need root: a full disk and a read-only one
	scripts/faults.sh

sanitize: ## Run the kernels' tests under the address sanitizer (x86-64 Linux)
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address $(CARGO) test --release --locked \
		-p exactfed-core --lib --target x86_64-unknown-linux-gnu \
		--target-dir target/sanitize kernel

slurm-test: build ## Test `submit` on a real Slurm of three nodes (root; installs Debian packages)
	scripts/slurm-test.sh

portability: ## Compare digests: threads, shards, x86-64 processors, aarch64 (ONLY=quick, x86, aarch64; qemu-user)
	scripts/portability.sh $(ONLY)

deny: ## Check licences, sources and bans of dependencies (needs cargo-deny, no network)
	$(CARGO) deny --locked --all-features check bans licenses sources

advisories: ## Check dependencies against RustSec's advisories (needs cargo-deny and a network)
	$(CARGO) deny --locked --all-features check advisories

fuzz: ## Fuzz TARGET (manifest, npz, libsvm, csv, parquet, results, records) for SECONDS (600)
	scripts/fuzz.sh $(or $(TARGET),manifest) $(or $(SECONDS),600)

soak: build ## Run random manifests in many ways for HOURS (6) and compare digests (SEED=; PYTHON with the wheel)
	$(PYTHON) scripts/soak.py --hours $(or $(HOURS),6) --seed $(or $(SEED),1) $(ARGS)

docs: build ## Generate docs/MANIFEST.md from the types
	$(EXACTFED) schema --markdown > docs/MANIFEST.md.new
	mv docs/MANIFEST.md.new docs/MANIFEST.md

# The Pythons that the wheel is tested with.
PYTHON ?= python3
PYTHONS ?= $(PYTHON)
WHEELS ?= target/wheels
# `release` shares the dependencies of the program, and its wheel is larger than 20 MB.
WHEEL_PROFILE ?= wheel
WHEEL_TOOLS = target/wheel-tools

# maturin builds the wheel; where the machine has none, pip installs it below target/.
wheel: ## Build the Python package into target/wheels (PYTHON=, WHEELS=, WHEEL_PROFILE=)
	@command -v maturin >/dev/null || test -x $(WHEEL_TOOLS)/bin/maturin || \
		{ $(PYTHON) -m venv $(WHEEL_TOOLS) && $(WHEEL_TOOLS)/bin/pip install -q 'maturin>=1.16,<2'; }
	rm -rf $(WHEELS)
	PATH="$$PATH:$(abspath $(WHEEL_TOOLS)/bin)" maturin build --profile $(WHEEL_PROFILE) --locked \
		--compression-level 9 --out $(WHEELS)
	scripts/wheel-size.sh $(WHEELS) $(if $(filter wheel,$(WHEEL_PROFILE)),20,30)

wheel-test: wheel ## Install the wheel and run its tests, in a new environment for each Python (PYTHONS=)
	scripts/wheel-test.sh $(WHEELS) $(PYTHONS)

release-check: ## Check that this commit can be released: archives, wheel, licences, SBOM … (PYTHONS=, ALL=1)
	PYTHONS="$(PYTHONS)" scripts/release-check.sh $(if $(ALL),--all)

bench: ## Run all benchmarks and print which bars hold (PYTHON with numba for the peers)
	mkdir -p target/bench
	touch target/bench/marker
	$(CARGO) bench --locked --bench local_step --bench round --bench pipeline \
		--bench problems --bench moments
	$(CARGO) bench --locked --bench bars -- --since target/bench/marker

bench-compare: ## Compare times with those of BASE (a git revision; by default HEAD~1)
	$(CARGO) bench --locked --bench compare -- $(or $(BASE),HEAD~1) $(ARGS)

times: ## Measure the times that README.md states, in a clone below target/times (up to an hour)
	scripts/times.sh

ifdef RUN
diff: ## Compare the reports with those of BASE (by default HEAD); RUN=1: build and run both (EXPERIMENTS=)
	scripts/diff-runs.sh $(or $(BASE),HEAD) $(or $(EXPERIMENTS),experiments/smoke) $(ARGS)
else
diff: build
	$(EXACTFED) diff $(or $(BASE),HEAD) $(REPORTS) $(ARGS)
endif
