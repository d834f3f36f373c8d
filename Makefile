PYTHON ?= python3
VENV := .venv
ORACLES := .venv-oracles

.PHONY: test quickstart oracles format clean

test: $(VENV)/installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pytest

quickstart: $(VENV)/installed
	$(VENV)/bin/safeexplorer quickstart

# Other people's code as a judge of ours, in an environment of its own.
oracles: $(ORACLES)/installed
	set -e; for oracle in oracles/*.py; do echo "$$oracle"; $(ORACLES)/bin/python $$oracle; done

format: $(VENV)/installed
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clean:
	rm -rf $(VENV) $(ORACLES) build dist .pytest_cache .ruff_cache

$(VENV)/installed: pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet -e .[test]
	touch $@

# torch is pinned and goes first: any other build pulls gigabytes of accelerator libraries. OmniSafe comes without the
# old Gymnasium and MuJoCo that it pins, but with what its imports ask for.
$(ORACLES)/installed: pyproject.toml
	test -x $(ORACLES)/bin/python || $(PYTHON) -m venv $(ORACLES)
	$(ORACLES)/bin/pip install --quiet torch==2.13.0
	$(ORACLES)/bin/pip install --quiet stable-baselines3 rliable "pandas<3"
	$(ORACLES)/bin/pip install --quiet --no-deps omnisafe==0.5.0
	$(ORACLES)/bin/pip install --quiet pyyaml wandb tensorboard seaborn gdown typer tqdm moviepy
	$(ORACLES)/bin/pip install --quiet -e .
	touch $@
