"""What one approval costs, and how soon work begins after a decision: `python -m tests.bench`."""
