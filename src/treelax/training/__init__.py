"""Under a training run: its config, folder, checkpoints and metrics."""
