"""Work on whole models beside running them: one folder for each question."""
