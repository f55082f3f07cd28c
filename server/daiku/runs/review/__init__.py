"""What runs changed: decided on, brought back, shown."""
