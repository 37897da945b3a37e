"""Stand-ins for Stripe: one that others wrote, one that breaks its word, and a bad line to either."""
