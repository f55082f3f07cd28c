"""Message history as a service accepts it: images within the limits, and refused parts left out."""
