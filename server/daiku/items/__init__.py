"""Work items: labelled issues, requests and files, worked by runs with nobody watching."""
