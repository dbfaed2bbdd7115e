"""The REST contract, one router a file: parse, one call of a pipeline, answer."""
