"""The user's own module: loaded from a file or by name, and searched for tools and agents."""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from app.agents import Agent
from app.functions.function import WorkflowFunction
from app.functions.workflow import Workflow
from app.models.classifiers import Classifier
from app.settings.errors import Problem, SettingsError
from app.tools.tool import Tool
from domain.agent import AgentDefinition
from domain.errors import TraconError
from domain.workflow.definition import WorkflowDefinition

T = TypeVar("T")
_NOT_THEIRS = {Path(__file__), Path(importlib.__file__)}


@dataclass(frozen=True, kw_only=True)
class AppDefinitions:
    """What a module has at its top level. `source` is how the user calls it."""

    tools: tuple[Tool, ...] = ()
    agents: tuple[AgentDefinition, ...] = ()
    classifiers: tuple[Classifier, ...] = ()
    functions: tuple[WorkflowFunction, ...] = ()
    workflows: tuple[WorkflowDefinition, ...] = ()
    source: str = "application"


def load_app(target: str | None) -> AppDefinitions:
    """Import a file or a module and take its tools and agents, also those in lists. None loads nothing.

    Raise SettingsError, with the user's own failing line, where that cannot be done.
    """
    if target is None:
        return AppDefinitions()
    try:
        module = _from_file(target) if _is_file(target) else _by_name(target)
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:
        raise _refused(target, _told(error, target)) from error
    return _searched(module, target)


def _searched(module: ModuleType, target: str) -> AppDefinitions:
    found = list(_flat(vars(module).values()))
    tools = [thing for thing in found if isinstance(thing, Tool)]
    workflows = [thing for thing in found if isinstance(thing, Workflow)]
    found += [thing for workflow in workflows for thing in (*workflow.agents, *workflow.functions)]
    agents = list(_with_those_they_call(thing for thing in found if isinstance(thing, Agent)))
    definitions = [thing for thing in found if isinstance(thing, AgentDefinition)]
    tools += [tool for agent in agents for tool in agent.tools]
    definitions += [agent.definition for agent in agents]
    classifiers = [thing for thing in found if isinstance(thing, Classifier)]
    functions = [thing for thing in found if isinstance(thing, WorkflowFunction)]
    if not (tools or definitions or classifiers or functions or workflows):
        raise _refused(target, "has no tool, agent, classifier or workflow at its top level")
    return AppDefinitions(
        tools=_once(tools),
        agents=_once(definitions),
        classifiers=_once(classifiers),
        functions=_once(functions),
        workflows=tuple(workflow.definition for workflow in _once(workflows)),
        source=target,
    )


def _is_file(target: str) -> bool:
    return target.endswith(".py") or os.sep in target or Path(target).is_file()


def _from_file(target: str) -> ModuleType:
    if not Path(target).is_file():
        raise _refused(target, "there is no such file")
    file = Path(target).resolve()
    # A name that no import can mean: the user's `app.py` is not our package.
    name = f"tracon_application_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise _refused(target, "is not a Python file")
    _make_importable(file.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # type hints are looked up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _by_name(name: str) -> ModuleType:
    _make_importable(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise _refused(name, f"there is no module {error.name!r}") from error
        raise


def _make_importable(folder: Path) -> None:
    """At the end: a neighbour of the user's file must not stand in for a library."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _flat(things: Iterable[object]) -> Iterator[object]:
    for thing in things:
        yield thing
        if isinstance(thing, list | tuple):
            yield from thing


def _with_those_they_call(agents: Iterable[Agent]) -> Iterator[Agent]:
    """An agent that is made before those that call it can be in no circle."""
    for agent in agents:
        yield agent
        yield from _with_those_they_call(agent.agents)


def _once(things: Iterable[T]) -> tuple[T, ...]:
    """A thing that has two names is one thing."""
    return tuple({id(thing): thing for thing in things}.values())


def _told(error: BaseException, target: str) -> str:
    what = str(error) if isinstance(error, TraconError) else f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_place(error.filename, error.lineno, target)}: {error.msg}"
    frame = _users_frame(traceback.extract_tb(error.__traceback__))
    return f"{_place(frame.filename, frame.lineno, target)} ({frame.line}): {what}" if frame else what


def _place(filename: str, line: int | None, target: str) -> str:
    return f"line {line}" if Path(filename) == Path(target).resolve() else f"{filename}, line {line}"


def _users_frame(frames: traceback.StackSummary) -> traceback.FrameSummary | None:
    """The last line of the user's own: in the file that was loaded, or beside or below it."""
    theirs = [
        frame for frame in frames if Path(frame.filename) not in _NOT_THEIRS and frame.filename[0] != "<"
    ]
    if not theirs:
        return None
    home = Path(theirs[0].filename).parent
    return [frame for frame in theirs if Path(frame.filename).is_relative_to(home)][-1]


def _refused(target: str, reason: str) -> SettingsError:
    return SettingsError([Problem(source=target, key="", reason=reason)])
