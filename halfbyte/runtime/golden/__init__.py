"""Golden vectors: what a model answered when its file was written, kept in the file for every machine to compare."""
