"""A model file in fewer bits: the plan says which tensor gets which format, the job writes the file."""
