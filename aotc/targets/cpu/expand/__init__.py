"""GPU operations in a thread function → plain ones, and synchronizations."""
