"""Reading and writing data; the libraries behind the formats are imported when needed."""
