"""Shared by all tests."""

import os
import tempfile

import hypothesis
import pytest

# Every worker and every process that a test starts compiles each function once, and then finds it here.
CACHE = os.path.join(tempfile.gettempdir(), f"safeexplorer-jax-{os.getuid()}")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", CACHE)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

# A shared machine may be slow at any moment; slowness is not a failure.
hypothesis.settings.register_profile("suite", deadline=None, print_blob=True)
hypothesis.settings.load_profile("suite")

TEST_SECONDS = 120  # most of a test that does not say otherwise


def pytest_collection_modifyitems(items):
    """No test waits for ever, and the long ones begin first: none is left to run alone at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


@pytest.fixture
def bench(tmp_path):
    """Makes benches with a robot each, and closes them."""
    from robot_bench import Bench  # imports jax, which reads its settings then

    made = []

    def make(**changes):
        made.append(Bench(tmp_path, **changes))
        return made[-1]

    yield make
    for each in made:
        each.clock.free = True
        each.loop.close()
