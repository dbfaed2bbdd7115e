"""Models, losses, data and metrics: everything that needs torch. Imports nothing of ours but itself."""
