"""Meta-training: regimes, objectives, the trainer, MAML."""
