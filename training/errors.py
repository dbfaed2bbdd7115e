"""What can be wrong with what a user hands to training and evaluation."""


class DataError(Exception):
    """Data, a checkpoint or a config that cannot be used; the message says what to do."""
