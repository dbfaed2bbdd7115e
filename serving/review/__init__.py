"""Species with an expert in the loop: observations, the queue, votes, what they amount to, and the taxonomy."""
