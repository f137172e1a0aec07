# Two commands do all the set-up: `make sandbox` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := configs/requirements.lock
READY  := $(VENV)/.ready

# Compiled modules are kept: a process that finds none takes 0.5 s more to start, and the tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: sandbox test lint types style unit e2e bench size soak compare forms simulate perturb kills fuzz hostile upstream release-check walk lock lowest \
  docs site clean

sandbox: $(READY) ## a local control plane with the manager on it
	$(BIN)/kcm sandbox $(ARGS)

test: $(READY) ## everything CI runs; the processes of e2e mostly wait, so all else runs beside them
	+$(MAKE) --no-print-directory -k -j 4 -O e2e $(PARTS) types style

lint: $(READY)
	+$(MAKE) --no-print-directory -j 2 -O types style

types: $(READY)
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin

style: $(READY)
	$(BIN)/ruff check kcm_cli tests
	$(BIN)/ruff format --check -q kcm_cli tests
	$(BIN)/codespell kcm_cli tests docs configs *.md
	$(BIN)/lint-imports

unit: $(READY) ## everything that needs no process of its own
	+$(MAKE) --no-print-directory -k -j 3 -O $(PARTS)

# Each part is one process of pytest, since workers of xdist would collect all 20,000 tests each. The longest come first.
NAMED             := controllers plan simulation integration sandbox perturb
PART_sandbox      := tests/unit/sandbox
PART_controllers  := tests/unit/controllers
PART_perturb      := tests/perturb
PART_integration  := tests/integration
PART_simulation   := tests/simulation
PART_plan         := tests/unit/plan tests/unit/trace tests/unit/testing tests/unit/docs
PART_others       := tests $(foreach part,$(NAMED),$(addprefix --ignore ,$(PART_$(part))))
PARTS             := unit-controllers unit-others $(filter-out unit-controllers,$(NAMED:%=unit-%))

.PHONY: $(PARTS)
$(PARTS): unit-%: $(READY)
	$(BIN)/python -m pytest -q -m "not e2e" --ignore tests/e2e $(PART_$*)

e2e: $(READY) ## real processes over TLS, which mostly wait
	$(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder tests/e2e

$(READY): pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("kcm needs Python 3.11 or newer, and $(PYTHON) is %d.%d: make PYTHON=python3.13 ..." % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install -q --no-compile --require-hashes -r $(LOCK)
	$(VENV)/bin/python -m pip install -q --no-deps --no-build-isolation -e .
	touch $@

SEEDS ?= 200
FIRST ?= 0
JOBS  ?= 2

simulate: $(READY) ## random work under random faults on virtual time, FIRST to FIRST+SEEDS; a failing seed replays: --seed N
	$(BIN)/python -m tests.simulation.run --first $(FIRST) --seeds $(SEEDS) --jobs $(JOBS)

perturb: $(READY) ## every write of every controller, each time with one thing gone wrong; then operators with known bugs
	$(BIN)/python -m tests.simulation.perturb $(ARGS)
	$(BIN)/python -m tests.perturb.run --runs 100 --jobs 6

KILLS ?= 200

kills: $(READY) ## kill -9 a sandbox in the middle of writes, so many times
	KCM_KILLS=$(KILLS) $(BIN)/python -m pytest -q -s -o faulthandler_timeout=0 tests/e2e/test_durability.py

FUZZ_S ?= 600

fuzz: $(READY) ## parsers and requests for so many seconds each, and what schemathesis thinks of for every operation
	$(BIN)/python -m tests.fuzz.run --seconds $(FUZZ_S)
	$(BIN)/python -m tests.unit.sandbox.fuzz.run --seconds $(FUZZ_S)
	KCM_FUZZ_EXAMPLES=5 $(BIN)/python -m pytest -q -s -o faulthandler_timeout=0 tests/e2e/test_schemathesis.py

OBJECTS ?= 2000
SECONDS ?= 60

hostile: $(READY) ## work beside odd objects and behind a proxy that spoils answers; KUBEBUILDER_ASSETS: on that server
	$(BIN)/python -m tests.hostile.run --objects $(OBJECTS) --seconds $(SECONDS) $(ARGS)

bench: $(READY) ## cost as JSON lines; KUBEBUILDER_ASSETS: beside the Go binary; ARGS="--against COMMIT": beside that commit
	$(BIN)/python -m tests.bench.run $(ARGS)
	$(BIN)/python -m tests.bench.plan

size: $(READY) ## a sandbox of 30,000 pods, of 100,000 on 5,000 nodes, and 3,000 idle nodes: CPU, memory, turns, what clients wait for
	$(BIN)/python -m tests.bench.size $(ARGS)

soak: $(READY) ## an hour of churn in less time: memory, sockets, threads, series; KUBEBUILDER_ASSETS: beside the Go binary
	$(BIN)/python -m tests.bench.soak $(ARGS)

compare: $(READY) ## where a sandbox answers differently from the kube-apiserver in the folder KUBEBUILDER_ASSETS
	$(BIN)/python -m tests.differential.run $(ARGS)

forms: $(READY) ## recorded scenarios in protobuf, JSON, without uvloop, after a warm standby, in groups; ARGS: some of them
	$(BIN)/python -m tests.differential.forms $(ARGS)

SUITE ?= job
ONLY  ?= .

upstream: $(READY) ## upstream's integration tests, from the folder UPSTREAM_TESTS: tests/upstream/README.md
	$(BIN)/python -m tests.upstream.run --only '$(value ONLY)' $(SUITE)

release-check: $(READY) ## build twice, install, start, and write dist/sbom.json
	$(BIN)/python -m tests.release.check

UV ?= uv==0.13.9

walk: $(READY) ## a newcomer's way by the pages, in an empty folder: install, a Deployment, a test of an operator
	$(BIN)/python -m tests.release.walk

lock: ## renew the lock files; no download address is recorded in them
	$(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install -q $(UV)
	$(VENV)/lock/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header configs/build.in -o configs/build.lock
	$(VENV)/lock/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --all-extras pyproject.toml -o $(LOCK)
	grep -oE '^[A-Za-z0-9_.-]+==[^ ]+' $(LOCK) > $(VENV)/lock/pins
	$(VENV)/lock/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header -c $(VENV)/lock/pins pyproject.toml -o configs/runtime.lock
	sed -i '/^ *#   -c /d' configs/runtime.lock

LOWEST := $(VENV)/lowest

lowest: ## unit tests with the lowest versions that pyproject.toml permits, in an environment of their own
	$(PYTHON) -m venv $(LOWEST) && $(LOWEST)/bin/pip install -q $(UV)
	$(LOWEST)/bin/uv pip compile -q --upgrade --resolution lowest-direct --python-version 3.11 --all-extras pyproject.toml -o $(LOWEST)/pins
	$(LOWEST)/bin/python -m tests.release.floors $(LOWEST)/pins
	$(LOWEST)/bin/pip install -q -r $(LOWEST)/pins && $(LOWEST)/bin/pip install -q --no-deps --no-build-isolation -e .
	+$(MAKE) --no-print-directory -k -j 3 -O $(PARTS) BIN=$(LOWEST)/bin

docs: $(READY) ## reference pages, man pages and configs/kcm-config.yaml, from the declarations
	$(BIN)/python -m tests.generate.docs

site: $(READY) ## dist/site, the documentation as pages for a browser
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q -f configs/site/mkdocs.yml

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
