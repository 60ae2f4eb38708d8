"""Applications of the library: data, training, tasks, pictures, the program and its web page."""
