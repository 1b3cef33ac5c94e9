"""The nearest other rows of every row of a database."""
