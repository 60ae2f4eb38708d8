"""A whole task in one folder: tag every word with the word before it, by way of a latent tree."""
