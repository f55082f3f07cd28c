"""Reading what a model wrote: JSON, thoughts, action lists, the forms of roles."""
