"""What must not be lost: collections and items in a database, pictures in a folder."""
