"""Rollouts of a physical robot, beside the same world as a simulation and in real time."""

import faulty_robot
import numpy as np
import pytest
from probes import Probe
from robot_bench import HELD, LED, RATE, Line, fails

from safeexplorer.acting.accounting import Ledger
from safeexplorer.acting.collector import Collector
from safeexplorer.acting.copying import Rehearsal
from safeexplorer.acting.interventions import SafeRegion
from safeexplorer.acting.schedules import constant
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.realtime import RobotCollector


class StillProbe(Probe):
    """The probe's world without its clock: what a `Line` would observe."""

    def _observe(self):
        return self.x[:, None].copy()


class Spring:
    def act(self, observation):
        return -0.5 * observation[:, :1]


class Everywhere:
    """The recovery acts in every state."""

    def takes_over(self, situation, progress):
        return np.ones(len(situation.step), bool)


@pytest.mark.parametrize(
    "region, rehearsal",
    [(SafeRegion(constant(0.4)), Rehearsal()), (Everywhere(), Rehearsal(radius=0.2, noise=0.5))],
    ids=["the policy inside", "a copy that is tried"],
)
def test_a_robot_gives_the_rollout_that_the_same_world_gives_as_a_simulation(bench, region, rehearsal):
    steps = 64
    world = StillProbe(lambda x, a: x + 0.1 * a, num_envs=1, move=0.1, limit=steps)
    world.single_observation_space = Line.observation_space
    simulated = Collector(world, Spring(), region, steps)
    simulated.reset(1)
    b = bench(recovery=Spring(), intervention=region, distance=lambda s: np.abs(s[:, 0]))
    b.robot.action_space, b.loop.limits.low[:], b.loop.limits.high[:] = world.single_action_space, -10, 10
    collector = RobotCollector(b.loop, steps)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    collector.arm(params)
    simulated.rehearsal = collector.rehearsal = rehearsal
    expected = simulated.collect(params, 0.0, np.random.default_rng(2))
    got = collector.collect(params, 0.0, np.random.default_rng(2))
    inside = expected.distance <= (rehearsal.radius or 0.4)
    assert 0 < inside.sum() < steps and (expected.recovering | inside).all()
    for name, mine, other in zip(expected._fields, got, expected, strict=True):
        assert np.asarray(mine).dtype == np.asarray(other).dtype and np.shape(mine) == np.shape(other), name
        np.testing.assert_allclose(mine, other, rtol=2e-6, atol=2e-6, err_msg=name)
    assert np.array_equal(collector.executed[:, 0], b.robot.sent[1 : steps + 1])


def test_two_rollouts_with_faults_reconcile_and_say_what_was_sent(bench):
    b = bench(recovery=Spring(), intervention=SafeRegion(constant(0.15)), distance=lambda s: np.abs(s[:, 0]))
    told = []

    class Looks:
        def before_step(self, step):
            told.append((step, collector.observation[0, 0]))

        def on_exit(self, step, robots):
            told.append(("exit", step))

    collector, ledger = RobotCollector(b.loop, 40, Looks()), Ledger(1)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    collector.arm(params)
    b.robot.faults["read", 9] = fails(OSError("bus"))
    for update in (1, 2):
        told.clear()
        before = len(b.robot.sent)
        rollout = collector.collect(params, 0.0, np.random.default_rng(update))
        b.clock.settle()
        episodes = ledger.add(rollout, update)
        ledger.reconcile(update * 40)
        sent, main = np.array(b.robot.sent[before : before + 40]), ~rollout.recovering[:, 0]
        assert np.array_equal(collector.executed[:, 0], sent)
        assert np.array_equal(np.clip(rollout.action[main, 0], -1, 1), sent[main])
        assert np.array_equal(rollout.action[~main, 0], sent[~main]) and 0 < main.sum() < 40
        assert np.array_equal(rollout.action[main], rollout.proposed[main])
        assert rollout.truncated[-1, 0] and rollout.truncated.sum() == len(episodes) == 1
        assert [step for step, _ in told if step != "exit"] == list(range(40))
        starts = np.flatnonzero(~main & np.append(True, main[:-1]))
        assert [step for kind, step in told if kind == "exit"] == starts.tolist()
    assert not ledger.open.any()
    assert len(b.events("intervention_start")) == ledger.counts.exits


def test_parameters_that_are_not_finite_move_nothing_and_leave_no_nan_in_the_rollout(bench):
    b = bench()
    collector = RobotCollector(b.loop, 5)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    collector.arm(params)
    params["actor"][-1]["bias"][:] = np.nan
    rollout = collector.collect(params, 0.0, np.random.default_rng(1))
    assert rollout.recovering.all() and (rollout.action == HELD).all()
    assert np.isnan(rollout.distance).all()  # there is none
    assert all(np.isfinite(x).all() for x in rollout._replace(distance=0.0))


def test_a_reward_that_is_not_finite_is_named_while_the_robot_is_held(bench):
    b = bench()
    collector = RobotCollector(b.loop, 5)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    collector.arm(params)
    b.robot.reward = lambda *_: np.inf
    with pytest.raises(ValueError, match=r"hardware\.reward of row 0 is inf"):
        collector.collect(params, 0.0, np.random.default_rng(1))
    b.hold(2)
    assert b.sent[-2:] == [HELD] * 2


def test_a_blank_rollout_has_the_shapes_and_types_of_a_real_one(bench):
    b = bench()
    collector = RobotCollector(b.loop, 5)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    blank = collector.blank()
    collector.arm(params)
    real = collector.collect(params, 0.0, np.random.default_rng(1))
    kinds = [[(np.shape(x), np.asarray(x).dtype) for x in rollout] for rollout in (blank, real)]
    assert kinds[0] == kinds[1] and collector.get_state() == {}


def test_the_recovery_holds_the_robot_between_rollouts(bench):
    b = bench()
    b.loop.arm()
    b.record(3)
    b.hold(200)
    assert b.sent[:4] == [HELD] + [LED] * 3 and set(b.sent[4:]) == {HELD}
    assert b.loop.status().missed == 0


def test_seconds_at_100_hz_with_faults_and_slow_updates_send_a_command_in_every_tick(tmp_path):
    robot, status, events, held = faulty_robot.run(4.0, tmp_path / "robot.jsonl")
    # A loaded machine may pass over ticks, which the log then says. Not one that ran went without a command, and
    # the updates did not stop the loop.
    passed_over = sum(e["count"] for e in events if e["event"] == "missed")
    assert len(robot.writes) == status.commands == status.ticks - passed_over
    assert status.ticks >= len(held) * (faulty_robot.ROWS + faulty_robot.UPDATE * RATE) and min(held) > 1
    assert faulty_robot.handled(events) == robot.expected != [] and len(held) >= 2


def test_a_copy_that_is_tried_gives_way_to_the_recovery_where_it_fails_or_a_reading_is_bad(bench):
    b = bench(intervention=Everywhere(), distance=lambda s: np.abs(s[:, 0]))
    b.robot.faults = {("policy", 3): fails(ValueError("no idea")), ("read", 5): fails(OSError("unplugged"))}
    b.loop.arm()
    rows = b.loop.record(b.policy, 10, within=1.0)
    given_way = rows.sent[:, 0] == HELD
    assert given_way.sum() == 2 and (rows.sent[~given_way, 0] == LED).all()
    assert (rows.advice[~given_way] == HELD).all() and np.isnan(rows.advice[given_way]).all()
    assert rows.recovering.all()
    assert {event["kind"] for event in b.events("fault")} == {"policy", "read"}
