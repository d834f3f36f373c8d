"""Shared by all tests."""

import hypothesis

import safeexplorer  # noqa: F401 (before mujoco, which picks its OpenGL backend at import)

# A shared machine may be slow at any moment; slowness is not a failure.
hypothesis.settings.register_profile("suite", deadline=None, print_blob=True)
hypothesis.settings.load_profile("suite")
