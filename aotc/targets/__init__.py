"""The kinds of devices that kernels run on: a folder for each."""
