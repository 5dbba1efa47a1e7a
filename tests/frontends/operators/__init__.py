"""PyTorch's operators, one at a time: a survey of which of them build, and of what they give."""
