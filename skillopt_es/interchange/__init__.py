"""Result folders of the original SkillOpt: written from a log of ours, and read into one."""
