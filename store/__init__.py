"""PostgreSQL: the only package with SQL. What is written here is the truth; cards and texts project it."""
