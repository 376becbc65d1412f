# Everything runs inside .venv, which these targets make and keep up to date by themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-native test-browser chromium lint unit baselines clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/installed ## train RepCONC on HotpotQA, beside OPQ and the uncompressed encoder, in one table (about 8 minutes)
	@$(BIN)/repconc demo

test: lint unit ## ruff, mypy and the unit tests

test-all: lint chromium ## the unit tests and the slow ones: other libraries, load, malformed requests, a browser
	$(BIN)/python -m pytest -m ''

test-browser: .venv/installed chromium ## the page of the service in a real browser
	$(BIN)/python -m pytest -m '' tests/serving/test_browser.py

# Debian's browser and its driver; where they are absent and cannot be installed, this fails.
chromium:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
		{ $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq chromium chromium-driver; }

test-native: .venv/installed ## the native scan under AddressSanitizer and UndefinedBehaviorSanitizer, on every path
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target build/sanitized --config-settings=cmake.define.REPCONC_SANITIZE=ON .
	$(BIN)/python -m tests.sanitized build/sanitized/repconc

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: .venv/installed
	$(BIN)/python -m pytest -n auto --dist loadfile

baselines: .venv/installed ## measure BM25 and the uncompressed encoders into benchmarks/results/ (about an hour)
	$(BIN)/python -m benchmarks.baselines

# torch first and pinned, so that the build of it that was chosen stays and nothing later replaces it.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,bench,serve,irds,hf,dev]'
	@touch $@

clean: ## remove the environment and what tests and demo wrote here
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis demo build dist
