"""SkillOpt's trainer: steps, epochs, a slow update and a meta skill."""
