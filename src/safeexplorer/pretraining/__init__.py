"""How a recovery is made and judged: soft actor-critic, grades, selection."""
