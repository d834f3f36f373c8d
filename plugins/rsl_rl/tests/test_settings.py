"""What a user writes under `algorithm.recovery_cfg`."""

from dataclasses import asdict, dataclass

import pytest
from safeexplorer_rsl_rl import RecoverySettings, with_recovery

GOOD = {"policy": "robot:stand", "region": "robot:tilt", "radius": 0.3}


@dataclass
class AlgorithmCfg:
    """As mjlab and Isaac Lab have it."""

    learning_rate: float = 1e-3
    class_name: str = "PPO"


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"polcy": 1}, r"no field 'polcy'; known: policy, region, radius"),
        ({"policy": 3}, r"recovery_cfg\.policy: got 3, needs a callable or a string"),
        ({"region": None}, r"recovery_cfg\.region: got None"),
        ({"radius": -0.1}, r"recovery_cfg\.radius: got -0.1, needs a number >= 0"),
        ({"radius": "0.1"}, r"recovery_cfg\.radius: got '0.1'"),
        ({"radius": float("nan")}, r"recovery_cfg\.radius: got nan"),
        ({"radius": {"initial": 0.1}}, r"recovery_cfg\.radius: got .*needs a number or"),
        ({"radius": {"initial": 0.1, "final": -1, "iterations": 5}}, r"radius\.final: got -1"),
        (
            {"radius": {"initial": 0.1, "final": 1, "iterations": 0}},
            r"radius\.iterations: got 0, needs a number >= 1",
        ),
        ({"imitation": -1}, r"recovery_cfg\.imitation: got -1, needs a number >= 0"),
        ({"imitation": "1e-3"}, r"recovery_cfg\.imitation: got '1e-3'"),
        ({"hold_rollouts": 1.5}, r"recovery_cfg\.hold_rollouts: got 1.5, needs a whole number"),
        ({"use_final_obs": 1}, r"recovery_cfg\.use_final_obs: got 1, needs true or false"),
        ({"obs_groups": "policy"}, r"recovery_cfg\.obs_groups: got 'policy', needs a list"),
        ({"obs_groups": []}, r"recovery_cfg\.obs_groups: got \[\]"),
    ],
)
def test_wrong_input_names_the_field_what_was_got_and_what_is_allowed(changes, message):
    with pytest.raises(ValueError, match=message):
        RecoverySettings.read({**GOOD, **changes})


@pytest.mark.parametrize("missing", ["policy", "region"])
def test_a_recovery_has_a_policy_and_a_region(missing):
    with pytest.raises(ValueError, match=rf"recovery_cfg\.{missing} is missing"):
        RecoverySettings.read({name: value for name, value in GOOD.items() if name != missing})


def test_a_forgotten_recovery_is_no_silent_ppo():
    with pytest.raises(ValueError, match=r"recovery_cfg: got None, needs a dictionary .*'PPO'"):
        RecoverySettings.read(None)


def test_dictionaries_and_dataclasses_take_a_recovery():
    expected = {
        "learning_rate": 0.5,
        "class_name": "safeexplorer_rsl_rl:SafeExplorerPPO",
        "recovery_cfg": GOOD,
    }
    assert with_recovery({"learning_rate": 0.5, "class_name": "PPO"}, **GOOD) == expected
    cfg = with_recovery(AlgorithmCfg(learning_rate=0.5), **GOOD)
    assert asdict(cfg) == expected and isinstance(cfg, AlgorithmCfg)
    with pytest.raises(ValueError, match="got str, needs a dictionary or a dataclass instance"):
        with_recovery("PPO", **GOOD)
    with pytest.raises(ValueError, match=r"recovery_cfg\.imitation"):
        with_recovery({}, **GOOD, imitation=-1)
