"""Tasks: what the data, model, loss and metrics of each are."""
