"""What everything that people look at shares: how a text from outside is shown, and what is told apart by colour."""
