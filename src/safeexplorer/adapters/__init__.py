"""Other people's worlds: Gymnasium environments, Stable-Baselines3, takeovers, OmniSafe."""
