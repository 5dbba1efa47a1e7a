"""What every stage is given, and what it returns: targets have stages, too."""
