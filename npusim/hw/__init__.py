"""What a machine is: frozen models, closed forms, YAML with line-accurate errors."""
