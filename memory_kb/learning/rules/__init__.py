"""The playbook: rules, their confidence, and what a person has to decide."""
