"""The agent skills that ship with BLADE, their installation, and skills written for one benchmark."""
