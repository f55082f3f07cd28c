"""Work items: labeled issues, requests and files, processed by unattended runs."""
