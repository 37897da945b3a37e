"""What one approval costs, how soon work begins, how soon the demo opens: `python -m tests.bench`."""
