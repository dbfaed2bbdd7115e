"""Learned surrogates: a network whose distance stands in for a metric that cannot be back-propagated."""
