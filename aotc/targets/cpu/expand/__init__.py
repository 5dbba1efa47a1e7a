"""Expansion of GPU operations in a thread function to plain operations and synchronizations."""
