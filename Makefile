# Every target sets up what it needs in .venv; the machine has to have only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MINUTES ?= 1
INSTALLED := $(VENV)/.installed

.PHONY: help setup demo test test-wheel test-lowest browser-test check docs notebooks bench fuzz format architecture clean

help:  ## Show the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

setup: $(INSTALLED)  ## Create .venv with the package and its development tools.

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fspll needs Python 3.11 or newer; $$($(PYTHON) --version) was found. Set PYTHON=/path/to/python3."; exit 1; }
	@echo "Installing fspll, PyTorch and the development tools into $(VENV), once: about 80 packages,"
	@echo "400 MB to download (more where PyTorch comes with GPU libraries) and 1.7 GB on the disk."
	@echo "With a fast connection it takes about a minute; pip shows how far it is:"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check $$([ -t 1 ] || echo --progress-bar=off) \
	  -c constraints.txt -e '.[dev]'
	@touch $@

# So little work takes 20 s on one thread; on a busy machine two would mostly wait for each other.
demo: $(INSTALLED)  ## Train on drawn characters, test on new ones, label a folder of pictures.
	@OMP_NUM_THREADS=1 $(BIN)/fspll demo

# One process per core, with one thread each: more threads would only wait for each other.
test: $(INSTALLED)  ## Run the test suite.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n logical

# Both build the package and install it into environments of their own, which are gone afterwards.
test-wheel:  ## Install the wheel into a fresh environment and try every command.
	$(PYTHON) tests/installed.py --python $(PYTHON)

test-lowest:  ## The same with the lowest versions that are allowed, and the core tests.
	$(PYTHON) tests/installed.py --python $(PYTHON) --lowest

# Chromium comes from Debian's packages where it is missing and one may install them.
browser-test: $(INSTALLED)  ## Run the tests of pages, in Chromium.
	@command -v chromedriver >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } || \
	  { echo "Chromium was not found; on Debian and Ubuntu: sudo apt-get install -y chromium chromium-driver"; exit 1; }
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[browser]'
	@command -v npm >/dev/null && npm install --silent --no-save --prefix $(VENV)/npm axe-core >/dev/null || \
	  echo "npm was not found: tests of accessibility (axe-core) will be skipped"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m browser tests

check: $(INSTALLED)  ## Lint, formatting and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The variable turns off a note about the future of mkdocs itself.
docs: $(INSTALLED)  ## Build the documentation site into site/; warnings are errors.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site begins at site/index.html. Its search needs a server:"
	@echo "$(BIN)/python -m http.server --directory site"

notebooks: $(INSTALLED)  ## Run the notebooks of the tutorial and store their outputs.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs,text]'
	OMP_NUM_THREADS=1 $(BIN)/python docs/run_notebooks.py

# easyfsl asks for torchvision, which would bring another build of torch, and learn2learn for older versions of half of what
# is installed: both without what they ask for. Where one cannot be installed or imported, the page says why.
bench: $(INSTALLED)  ## Measure a short form of every benchmark, in under an hour.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@for peer in easyfsl learn2learn; do \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $$peer >/dev/null 2>&1 || \
	    echo "$$peer could not be installed; its rows will be missing"; done
	$(BIN)/python benchmarks/bench.py

fuzz: $(INSTALLED)  ## Damage files for every reader: make fuzz MINUTES=10.
	$(BIN)/python benchmarks/fuzz.py --minutes $(MINUTES)

format: $(INSTALLED)  ## Apply formatting and safe lint fixes.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

architecture: $(INSTALLED)  ## Draw the graph of docs/architecture.md from the code.
	$(BIN)/python docs/draw_architecture.py

clean:  ## Remove .venv and caches.
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
