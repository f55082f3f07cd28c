"""What is known of programs: data alone."""
