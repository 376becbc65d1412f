"""Dense training, warm-up, negatives, the two stages, and the pipeline that runs them."""
