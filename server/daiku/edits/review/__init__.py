"""Review of the changes that runs made: decide on them, restore files, list them."""
