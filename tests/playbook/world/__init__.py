"""A simulated world that nobody can prepare for, in which what a playbook is worth is measured: `npm run world`."""
