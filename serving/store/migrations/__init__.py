"""The database's history: every version of the tables, and the way from one to the next."""
