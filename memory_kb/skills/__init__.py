"""Skills: procedures with their outcomes, and the files of other tools that hold skills."""
