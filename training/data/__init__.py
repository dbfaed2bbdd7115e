"""Labelled pictures from disk."""
