"""
`.env` files: one beside the config, and one in the working folder, where the original's users keep theirs.

Of both, those variables alone are read that the config names because they hold a key. For a config of the original,
the one in the working folder also gives the original's own variables. What is set in the environment comes first, then
the file beside the config. A line of any other variable is not looked at, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from skillopt_es.config.sections import RunConfig
from skillopt_es.errors import ConfigError
from skillopt_es.events.plain import read_plain

FILE = ".env"
AZURE_SECRET = "AZURE_CLIENT_SECRET"  # noqa: S105 - a variable's name
"""Azure's own name for the secret of a service principal, which no config has to name."""
_REMARK = re.compile(r"(?:^|\s)#")
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)")


def named_variables(config: RunConfig) -> tuple[str, ...]:
    """The variables that a config names because they hold a key of a model's or are for an agent."""
    roles = [config.role(role) for role in config.roles]
    named = [name for own in roles for name in (own.api_key_env, *own.agent_variables)]
    if any(own.backend == "azure_openai" for own in roles):
        named.append(AZURE_SECRET)
    return tuple(dict.fromkeys(name for name in named if name))


def with_dotenv(config: RunConfig, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with what only a file says; raises ConfigError for a quote with no end."""
    found = from_dotenv(config, environ)
    return {**environ, **found} if found else environ


def from_dotenv(config: RunConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """The named variables that are in a file and not in the environment."""
    found = _by_file(config, environ, named_variables(config))
    return {name: value for values in found.values() for name, value in values.items()}


def dotenv_notes(config: RunConfig, environ: Mapping[str, str], used: Sequence[str] = ()) -> Iterator[str]:
    """What is to be told: which variables are from which file, and not what they are; `used` by the config itself."""
    for file, found in _by_file(config, environ, dict.fromkeys((*used, *named_variables(config)))).items():
        if found:
            yield f"read from {file}: {', '.join(found)}"


def dotenv_files(config: RunConfig) -> tuple[Path, ...]:
    """Where the files are, if there are any."""
    return tuple(folder / FILE for folder in (Path(config.folder), Path.cwd()))


def variables_in(folder: Path, wanted: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Those of some variables that a folder's file has and the environment has not; raises ConfigError as all do."""
    missing = [name for name in wanted if not environ.get(name, "").strip()]
    file = folder / FILE
    if not missing:
        return {}
    try:
        text = read_plain(file).decode("utf-8-sig", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    return {name: value for name, value in _values(text, file, missing) if value}


def _by_file(config: RunConfig, environ: Mapping[str, str], wanted: Iterable[str]) -> dict[Path, dict[str, str]]:
    found: dict[Path, dict[str, str]] = {}
    known, names = dict(environ), [*wanted]
    for file in dotenv_files(config):
        values = variables_in(file.parent, names, known)
        found.setdefault(file, {}).update(values)
        known |= values
    return found


def _values(text: str, file: Path, wanted: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        found = _LINE.fullmatch(line)
        if found is None or found[1] not in wanted:
            continue
        said = found[2].strip()
        if said[:1] in ("'", '"'):
            inside, quote, _ = said[1:].partition(said[0])
            if not quote:  # the value is not shown: it may be the key
                raise ConfigError(f"{file}, line {number}: the value of {found[1]} has no closing quote")
            yield found[1], inside.strip()
        else:
            yield found[1], _REMARK.split(said)[0].strip()
