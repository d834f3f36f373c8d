"""The toy task: what a recovery is for."""

from balance import WITH_RECOVERY, train


def test_ppo_falls_and_safeexplorer_hardly_ever():
    falls, _ = train(12, num_envs=32)
    caught, reward = train(12, num_envs=32, **WITH_RECOVERY)
    assert falls > 50 > 5 >= caught
    assert reward > 0.5
