"""Exact metrics: the numbers a model is judged by."""
