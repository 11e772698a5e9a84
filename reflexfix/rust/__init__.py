"""All that is Rust: reading a file, a target, an answer, tests and examples; writing a body back."""
