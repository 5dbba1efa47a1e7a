"""The targets: the kinds of devices that kernels run on, with a package for each."""
