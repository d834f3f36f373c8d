"""Thousands of robots in environments written in JAX: rollout and update are one compiled function."""
