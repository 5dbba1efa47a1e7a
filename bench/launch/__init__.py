"""What a launch costs through a library, beside the driver by itself."""
