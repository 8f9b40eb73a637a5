# Two commands are enough: `make demo` and `make test`. Everything goes into .venv; nothing else is touched.
ROBOT ?= wabian2
MOTION ?= gentle_dance
TIME ?= 32
PORT ?= 8080
SPEED ?= 1
VENV ?= .venv
RUN := $(VENV)/bin
export OMP_NUM_THREADS := 1
export PYTHONUNBUFFERED := 1
# Byte code is kept, whatever the environment says: tests start hundreds of interpreters, and each worker reads every test.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-walk quick test nightly nightly-tests nightly-mutants thorough durations busy retries counts faults setup check boundscheck plain newest mutants bench bench-peers peers docs site wheel picture clean
.DEFAULT_GOAL := help

help:
	@echo "make demo [ROBOT=lola] [MOTION=clip.trc] [SPEED=0.5] [PORT=8080] [HOLD=1]   a robot dances, a report follows"
	@echo "make demo-walk [ROBOT=hrp2] [PORT=8080] [HOLD=1]   a robot walks a little course, a table follows"
	@echo "make quick [BASE=rev] [BUDGET=60]   the tests that depend on what has changed"
	@echo "make test      the tests, but for long ones and what another test shows in less time"
	@echo "make nightly   all tests, with every index checked and as plain Python too, mutants, other libraries (hours)"
	@echo "make thorough  longer runs of what tests of the suite show in short"
	@echo "make durations how long each test file took in the last 'make test', for test/durations.json"
	@echo "make busy [RUNS=20] [LOOPS=1] [FRESH=1]   tests of nodes, processes and the browser next to busy loops, many times"
	@echo "make retries   tests that are tried once more where they fail, with the reasons"
	@echo "make counts    lines and words of the package and of its documentation"
	@echo "make faults [ONLY=B01,W1]   other people's bug reports, rebuilt as small inputs: id, right value, result"
	@echo "make setup     only the environment (.venv); demo and test do it by themselves"
	@echo "make check     ruff, mypy, import-linter and the tests"
	@echo "make boundscheck   the tests of compiled kernels with every index checked (compiles all anew: 20 minutes)"
	@echo "make plain     the tests of some kernels as plain Python, and by numba without changes to it"
	@echo "make newest    the tests of kernels with the newest numba, and the newest release of every other dependency"
	@echo "make mutants ROOM=ik [N=20] [SEED=1]   how many small changes of a room's code its tests notice"
	@echo "make bench [RESUME=1]   all measurements, as evidence/docs/benchmarks.md; RESUME=1: those that an earlier call did not end"
	@echo "make bench-peers   the tests that compare with pink, mink, PlaCo, filterpy, and those of the launch files"
	@echo "make docs      robots, docs and default parameter files, made anew from their sources"
	@echo "make site      the pages of docs/ as a site, in site/"
	@echo "make wheel     the package as a wheel, in dist/"
	@echo "make picture   the pictures of the README and of docs/ (needs Chromium)"
	@echo "make clean     remove .venv and what was generated"

setup: $(VENV)/.ready

$(VENV)/.installed: setup.py constraints.txt .ci/make_environment.sh
	@sh .ci/make_environment.sh $(VENV)

$(VENV)/.ready: $(VENV)/.installed
	@echo "setup: tools and tests, and all other kernels (a minute and a half on two cores)" >&2
	@$(RUN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[all,test,check]'
	@$(RUN)/humanoid warm
	@touch $@

# A demo waits for no kernels but its own; what other commands need is compiled after it.
demo: $(VENV)/.installed
	@$(RUN)/humanoid demo --robot "$(ROBOT)" --motion "$(MOTION)" --speed $(SPEED) --port $(PORT) \
		--seconds $(TIME) $(if $(HOLD),--hold)
	@test -e $(VENV)/.ready || { echo "Now what other commands need; if you interrupt it, they compile it when they need it:" && $(MAKE) --no-print-directory setup; }

WALKER ?= $(if $(filter command environment,$(origin ROBOT)),$(ROBOT),lola)
demo-walk: $(VENV)/.installed
	@$(RUN)/humanoid demo walk --robot "$(WALKER)" --port $(PORT) $(if $(HOLD),--hold)

# The default lane: everything but long runs and what another test shows in less time. First, in four workers, the tests
# that compute or may take their time (test/workers.py), then, alone, those that measure rates and latencies. Kernels whose
# sources have changed are compiled before: nothing is compiled while a test goes by the clock.
LANE := not thorough and not nightly
TIMED := timed or ((ros or browser) and not patient)
TIMED_FILES = $$(grep -rlE 'mark\.(ros|browser|timed)' test --include='test_*.py')
PYTEST := $(RUN)/python -m pytest --rerun-show-tracebacks
test: setup
	@$(RUN)/humanoid warm >/dev/null
	@$(PYTEST) --junitxml=.junit/test.xml -n 4 --dist loadfile -m "$(LANE) and not ($(TIMED))"; first=$$?; \
	$(PYTEST) --junitxml=.junit/timed.xml -m "$(LANE) and ($(TIMED))" $(TIMED_FILES) && exit $$first

# Every test, at all six robots; then kernels with every index checked, kernels as plain Python, a sample of mutants, and
# comparisons with other libraries. All parts run; the command fails where one of them did.
NIGHTLY_MUTANTS ?= numerics ik/limits hardware/can
nightly: setup
	@$(MAKE) --no-print-directory --keep-going nightly-tests plain boundscheck bench-peers nightly-mutants

nightly-tests: setup
	@$(RUN)/humanoid warm >/dev/null
	@$(PYTEST) -o timeout=7200 --junitxml=.junit/nightly.xml -n 4 --dist loadfile -m "not ($(TIMED))"; first=$$?; \
	$(PYTEST) -o timeout=7200 --junitxml=.junit/nightly_timed.xml -m "$(TIMED)" $(TIMED_FILES) && exit $$first

nightly-mutants: setup
	@code=0; for room in $(NIGHTLY_MUTANTS); do \
		$(RUN)/python test/mutants.py "$$room" -n 4 --seed $$(date +%j) || code=1; done; exit $$code

# The tests that depend on names changed since BASE, by default since the branch left origin/main, or since the last commit.
# Those that start processes and those beyond BUDGET [s] are left to `make test`.
BASE ?=
BUDGET ?= 60
quick: setup
	@$(RUN)/humanoid warm >/dev/null
	@$(RUN)/python -m pytest -q --reached-by="$(BASE)" --budget=$(BUDGET)

# Longer runs of what other tests show in short.
thorough: setup
	$(RUN)/python -m pytest -n 2 --dist loadfile -o timeout=7200 -m thorough

# Seconds of each test file in the last `make test`: fresh clones begin with what takes longest.
durations:
	@$(RUN)/python test/durations.py

# The tests of nodes, processes and the browser again and again, next to busy loops; it goes on where it was interrupted.
RUNS ?= 20
LOOPS ?= 1
busy: setup
	@$(RUN)/humanoid warm >/dev/null
	@$(RUN)/python test/busy.py --runs $(RUNS) --loops $(LOOPS) $(if $(FRESH),--fresh)

# Tests that are tried once more where they fail, with the reasons.
retries:
	@$(RUN)/python test/retries.py

# Lines and words of the package and of its documentation.
counts:
	@python3 test/counts.py

# Bug reports of other people, rebuilt as inputs that lie beside the clips (HUMANOID_TEST_DATA). ONLY: some of them.
ONLY ?=
faults: setup
	@$(RUN)/python test/outside_faults.py --only "$(ONLY)"

check: setup
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports
	@$(MAKE) --no-print-directory test

# An index beyond its array, or before it, is an error then, and not another number. Kernels are kept apart from the fast
# ones. The test of one instruction for several pairs is left out: checks are branches.
KERNELS := compiled numerics kinematics collision multibody tendons ik simulation retargeting human walking performing hardware reaching \
	policy estimation viewer evaluation robots
boundscheck: setup
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$(CURDIR)/$(VENV)/boundscheck" $(RUN)/python -m pytest -n 2 --dist loadfile \
		-m "$(LANE) and not ros and not browser and not timed" -k "not one_instruction" $(wildcard $(KERNELS:%=test/%))

# Kernels as plain Python, and by numba as it is published, on the packages in which that takes little time.
PLAIN := compiled numerics kinematics
plain: setup
	NUMBA_DISABLE_JIT=1 $(RUN)/python -m pytest -n 2 --dist loadfile -m "$(LANE)" $(PLAIN:%=test/%)
	HUMANOID_PLAIN_NUMBA=1 NUMBA_CACHE_DIR="$(CURDIR)/$(VENV)/plain_numba" $(RUN)/python -m pytest -n 2 --dist loadfile \
		-m "$(LANE) and not timed" $(PLAIN:%=test/%)

# Releases after those of constraints.txt, numba also after the range of setup.py: what will have to change before long.
NEWEST := $(VENV)/newest
newest: setup
	$(RUN)/python -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -m pip install -q -e '.[all,test]'
	$(NEWEST)/bin/python -m pip install -q --upgrade numba
	NUMBA_CACHE_DIR="$(CURDIR)/$(NEWEST)/kernels" $(NEWEST)/bin/python -m pytest -n 2 --dist loadfile -m "$(LANE) and not timed" \
		$(PLAIN:%=test/%) test/ik

# A sample of changes, one at a time, in a copy; it goes on where it was interrupted.
ROOM ?= ik
N ?= 20
SEED ?= 1
mutants: setup
	@$(RUN)/python test/mutants.py "$(ROOM)" -n $(N) --seed $(SEED)

# What `bench` compares with. Wheels of PlaCo, and those of TSID and crocoddyl, pin their own pinocchio, so they get
# folders of their own.
PLACO := $(VENV)/placo
PEERS := $(VENV)/peers
PERFORM_PEERS := tsid==1.7.1 crocoddyl==3.0.1 pin==3.4.0 'cmeel-urdfdom<5' 'cmeel-tinyxml2<11'
peers: setup
	@$(RUN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@test -d $(PLACO) || $(RUN)/python -m pip install -q --disable-pip-version-check --target $(PLACO) 'placo>=0.10' || \
		{ rm -rf $(PLACO); echo "PlaCo could not be installed: its rows and tests are left out"; }
	@test -d $(PEERS) || $(RUN)/python -m pip install -q --disable-pip-version-check --only-binary :all: \
		--target $(PEERS) $(PERFORM_PEERS) || \
		{ rm -rf $(PEERS); echo "TSID and crocoddyl could not be installed: their rows and tests are left out"; }

bench: peers
	@$(if $(RESUME),,rm -rf $(VENV)/bench)
	@$(RUN)/humanoid bench all -o evidence/docs/benchmarks.md --summary README.md --keep $(VENV)/bench

bench-peers: peers
	@sh .ci/launch_sources.sh $(VENV)/launch $(RUN)/python
	@$(RUN)/python -m pip install -q --disable-pip-version-check osrf-pycommon
	@PYTHONPATH="$$(cat $(VENV)/launch/path)" $(RUN)/python -m pytest -rs test/benchmarks test/launch \
		--ignore test/launch/test_demo_launch.py
	@test ! -s $(VENV)/launch/path || PYTHONPATH="$$(cat $(VENV)/launch/path)" \
		AMENT_PREFIX_PATH="$(CURDIR)/$(VENV)/launch/prefix" ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST \
		$(RUN)/python -m launch_testing.launch_test test/launch/test_demo_launch.py

docs: setup
	@$(RUN)/humanoid robots build
	@$(RUN)/humanoid docs
	@$(RUN)/python docs/_site/layers.py

site: setup
	@$(RUN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@$(RUN)/mkdocs build --strict

wheel: setup
	@$(RUN)/python -m pip wheel -q --disable-pip-version-check --no-deps -w dist .

picture: setup
	@$(RUN)/humanoid perform dance --robot hrp2 --picture docs/picture.png
	@$(RUN)/humanoid picture --robot armar3,hrp2,suralp,wabian2,we4rii --at 16 --height 560 -o docs/five.png
	@$(RUN)/humanoid picture --walking --height 620 -o docs/walking.png
	@$(RUN)/humanoid picture --strip --no-shadows --width 1500 --height 520 -o docs/walking_strip.png
	@$(RUN)/humanoid picture --strip --whole-body --robot hrp2,lola,wabian2 --width 1000 -o docs/dances.png
	@$(RUN)/humanoid picture --collision --width 1500 --height 560 -o docs/collision.png
	@$(RUN)/humanoid score dance -o docs/.score && mv docs/.score/errors.png docs/errors.png && rm -r docs/.score
	@$(RUN)/humanoid study tendons --only E2,E4 -o docs/.study && mv docs/.study/E2.png docs/tendons_walk.png \
		&& mv docs/.study/E4.png docs/tendons_zero.png && rm -r docs/.study
	@$(RUN)/humanoid demo tendons --seconds 100 --picture docs/tendons_cut.png

clean:
	rm -rf $(VENV) build dist site .mutants .junit *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
