"""Nearest neighbours in memory; derived from the database, and can always be thrown away."""
