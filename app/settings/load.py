"""Settings from a profile, a file and the environment, in this order, checked before anything uses them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from app.settings.errors import Problem, SettingsError
from app.settings.hints import field_types, is_struct
from app.settings.pascal import in_snake_case
from app.settings.profiles import STARTS, Profile
from app.settings.reader import Reader
from app.settings.sources import PREFIX, SEPARATOR, Tree, merge, place, read_environment, read_file
from app.settings.whole import Settings

__all__ = ["Profile", "Settings", "SettingsError", "load_settings"]

_PASCAL_ROOT = "Tracon"


def load_settings(
    file: Path | None, environ: Mapping[str, str], *, profile: Profile | None = None
) -> Settings:
    """Read and check everything, or raise SettingsError with all that is wrong.

    A `profile` that is given here stands above one in the environment, and that above the file's.
    """
    written = _written(file)
    variables = {place(written, variable): variable.name for variable in read_environment(environ)}
    if profile is not None:
        written["profile"] = profile
    reader = Reader()
    settings: Settings = reader.read(merge(STARTS.get(str(written.get("profile")), {}), written), Settings)
    source = str(file) if file else "settings"
    problems = [
        Problem(source=_variable_of(path, variables) or source, key=".".join(path), reason=reason)
        for path, reason in reader.problems
    ]
    if problems := [*problems, *_near_misses(environ)]:
        raise SettingsError(problems)
    return settings


def _written(file: Path | None) -> Tree:
    """The file's tree, in the sections' spelling and free to change."""
    if file is None:
        return {}
    tree = read_file(file)
    if _PASCAL_ROOT not in tree:
        return tree
    try:
        return _below_root(tree)
    except ValueError as error:
        raise SettingsError([Problem(source=str(file), key=_PASCAL_ROOT, reason=str(error))]) from error


def _below_root(tree: Tree) -> Tree:
    sections = in_snake_case(tree[_PASCAL_ROOT], Settings)
    if not isinstance(sections, dict):
        raise ValueError("must hold an object of sections")
    if beside := ", ".join(tree.keys() - {_PASCAL_ROOT}):
        raise ValueError(f"holds all settings where it is used; move {beside} into it or out of the file")
    return sections


def _variable_of(path: tuple[str, ...], variables: dict[tuple[str, ...], str]) -> str | None:
    """The variable that set this path, or something above it."""
    return next((name for at, name in variables.items() if path[: len(at)] == at), None)


def _near_misses(environ: Mapping[str, str]) -> Iterator[Problem]:
    """TRACON_SERVER_PORT would set nothing, and say nothing. Kubernetes sets such names too, to a URL."""
    for section, kind in field_types(Settings).items():
        for key in field_types(kind) if is_struct(kind) else ():
            name = f"{PREFIX}{section}_{key}".upper()
            if "://" not in environ.get(name, "://"):
                meant = f"{PREFIX}{section}{SEPARATOR}{key}".upper()
                yield Problem(source=name, key="", reason=f"sets nothing; did you mean {meant}?")
