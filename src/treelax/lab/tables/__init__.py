"""Tables of runs: what each has in its rows and columns, and the commands that make them."""
