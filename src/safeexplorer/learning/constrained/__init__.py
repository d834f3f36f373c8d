"""PPO-Lagrangian and CPO: maximise the return while the cost per episode stays within a limit.

They share networks, rollouts and advantages with the other methods; the optimisers are their own.
"""
