"""The history of a request as its service accepts it: pictures within the limits, and parts that are left out."""
