"""What scripts/dogwood is made of. Each command is a module that cli.COMMANDS names."""
