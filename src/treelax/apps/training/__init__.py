"""What a training run is made of: config, folder, loop, checkpoints, metrics."""
