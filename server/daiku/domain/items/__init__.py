"""Work items: which issue, request or file it is, what a forge says of it, what is to be done there."""
