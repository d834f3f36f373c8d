PYTHON ?= python3
VENV := .venv
ORACLES := .venv-oracles
PLUGIN := .venv-plugin
MJLAB := .venv-mjlab
JAX := .venv-jax
RAY := .venv-ray
FOREIGN := .venv-foreign
DOCS := .venv-docs
LOWEST := .venv-lowest

.PHONY: test test-lowest test-ray docs quickstart test-plugin test-mjlab test-jax mutants oracles foreign ablation format clean

test: $(VENV)/installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pytest

# The lower bounds as a set: the class, recoveries, files, exports, other people's environments, figures.
test-lowest: $(LOWEST)/installed
	$(LOWEST)/bin/pytest -n0 -q tests/test_agent.py tests/recovery tests/files tests/export tests/adapters \
		tests/robots/test_gymnasium.py tests/runs/test_facts.py tests/runs/test_damage.py

# A real cluster of two nodes on this machine, in an environment of its own.
test-ray: $(RAY)/installed
	$(RAY)/bin/pytest -n0 tests/campaigns/test_ray.py

# The site, in build/site; a warning is an error.
docs: $(DOCS)/installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict

quickstart: $(VENV)/installed
	$(VENV)/bin/safeexplorer quickstart

# The rsl_rl plugin against both releases of rsl_rl: one is installed, the other lies in a folder that goes first.
test-plugin: $(PLUGIN)/installed
	cd plugins/rsl_rl && RSL_RL=5.5.1 ../../$(PLUGIN)/bin/pytest -q
	cd plugins/rsl_rl && RSL_RL=5.4.2 PYTHONPATH=../../$(PLUGIN)/rsl_rl-5.4.2 ../../$(PLUGIN)/bin/pytest -q

# mjlab's own runner with the plugin; compiles kernels for a minute or two the first time.
test-mjlab: $(MJLAB)/installed
	cd plugins/rsl_rl && CUDA_VISIBLE_DEVICES= ../../$(MJLAB)/bin/pytest -q tests_mjlab

# Brax's and MuJoCo Playground's own environments through the class: two minutes of processor time, and an environment
# of 1.3 GB.
test-jax: $(JAX)/installed
	$(JAX)/bin/python oracles/jax/others.py

# Mutations of the code that trains: how many does `safeexplorer verify` catch?
mutants: $(VENV)/installed
	$(VENV)/bin/python tests/support/mutants.py

# Other people's code as a judge of ours, in an environment of its own.
oracles: $(ORACLES)/installed
	set -e; for oracle in oracles/*.py; do echo "$$oracle"; $(ORACLES)/bin/python $$oracle; done
	$(MAKE) test-mjlab
	$(MAKE) test-jax

# PPO and safeexplorer_auto on environments that nobody here wrote; an hour on two cores, goes on where it stopped.
foreign: $(FOREIGN)/installed
	$(FOREIGN)/bin/python oracles/handover/foreign.py

# safeexplorer_auto with each of its parts off in turn: 60 runs of a million steps, three hours on two cores.
ablation: $(VENV)/installed
	$(VENV)/bin/python oracles/handover/ablation.py

format: $(VENV)/installed
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clean:
	rm -rf $(VENV) $(ORACLES) $(PLUGIN) $(MJLAB) $(JAX) $(RAY) $(FOREIGN) $(DOCS) $(LOWEST) build dist .pytest_cache .ruff_cache

# The tested set, version by version.
$(VENV)/installed: pyproject.toml requirements.lock
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet -c requirements.lock -e .[test]
	touch $@

$(LOWEST)/installed: pyproject.toml requirements-lowest.txt
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet -c requirements-lowest.txt -e .[test]
	touch $@

$(RAY)/installed: pyproject.toml
	test -x $(RAY)/bin/python || $(PYTHON) -m venv $(RAY)
	$(RAY)/bin/pip install --quiet -e .[test,ray]
	touch $@

$(FOREIGN)/installed: pyproject.toml requirements.lock
	test -x $(FOREIGN)/bin/python || $(PYTHON) -m venv $(FOREIGN)
	$(FOREIGN)/bin/pip install --quiet -c requirements.lock -e .[robots] "gymnasium[box2d]" packaging scipy
	touch $@

# The site is made from text and sources alone: nothing of the package is imported.
$(DOCS)/installed: pyproject.toml
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet "mkdocs-material>=9.6" "mkdocstrings[python]>=0.30" "ruff>=0.12"
	touch $@

# torch is pinned and goes first: any other build pulls gigabytes of accelerator libraries. OmniSafe comes without the
# old Gymnasium and MuJoCo that it pins, but with what its imports ask for.
$(ORACLES)/installed: pyproject.toml
	test -x $(ORACLES)/bin/python || $(PYTHON) -m venv $(ORACLES)
	$(ORACLES)/bin/pip install --quiet torch==2.13.0
	$(ORACLES)/bin/pip install --quiet stable-baselines3 rliable "pandas<3"
	$(ORACLES)/bin/pip install --quiet --no-deps omnisafe==0.5.0
	$(ORACLES)/bin/pip install --quiet pyyaml wandb tensorboard seaborn gdown typer tqdm moviepy
	$(ORACLES)/bin/pip install --quiet -e .[robots,plots]
	touch $@

$(PLUGIN)/installed: plugins/rsl_rl/pyproject.toml
	test -x $(PLUGIN)/bin/python || $(PYTHON) -m venv $(PLUGIN)
	$(PLUGIN)/bin/pip install --quiet torch==2.13.0
	$(PLUGIN)/bin/pip install --quiet -c plugins/rsl_rl/constraints.txt rsl-rl-lib==5.5.1 -e plugins/rsl_rl[test]
	$(PLUGIN)/bin/pip install --quiet --no-deps --upgrade --target $(PLUGIN)/rsl_rl-5.4.2 rsl-rl-lib==5.4.2
	touch $@

$(MJLAB)/installed: plugins/rsl_rl/pyproject.toml
	test -x $(MJLAB)/bin/python || $(PYTHON) -m venv $(MJLAB)
	$(MJLAB)/bin/pip install --quiet torch==2.13.0
	$(MJLAB)/bin/pip install --quiet -c plugins/rsl_rl/constraints.txt mjlab==1.6.0 -e plugins/rsl_rl[test]
	touch $@

# Playground without warp-lang, its other engine, but with what its imports ask for.
$(JAX)/installed: pyproject.toml
	test -x $(JAX)/bin/python || $(PYTHON) -m venv $(JAX)
	$(JAX)/bin/pip install --quiet brax==0.14.2 mujoco-mjx==3.17.0 -e .
	$(JAX)/bin/pip install --quiet --no-deps playground==0.2.0
	$(JAX)/bin/pip install --quiet ml-collections lxml mediapy tqdm
	touch $@
