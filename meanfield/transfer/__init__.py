"""Carrying a tuned learning rate from one net to another: the rules, what each takes for granted, and the choice."""
