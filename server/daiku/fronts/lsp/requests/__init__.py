"""What the editor asks: one module a group of methods, and the table of them."""
