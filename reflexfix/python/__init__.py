"""Python as a language to be written and repaired."""
