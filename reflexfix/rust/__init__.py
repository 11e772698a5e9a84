"""All that is Rust: reading a file, a target, answers, tests and examples; writing a body back."""
