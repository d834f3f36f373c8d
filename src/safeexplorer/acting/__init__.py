"""The rollout of Algorithm 1 in numpy: who acts, what is executed, what happened."""
