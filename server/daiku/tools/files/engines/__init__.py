"""What looks through files for search/text: ripgrep, and the same in Python where there is none."""
