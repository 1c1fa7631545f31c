"""An act of the demo: a long conversation is summed up, and an answer is judged and sent back."""

from rich.console import Console

from app.cli.client import Client
from app.cli.story import StoryBroken, heading
from app.http.display import FrameView

AGENT, SESSION = "patient", "demo-patience"
STORY = "My order 1042 was to come last week, and then there was this storm, and nobody could say when. " * 8
QUESTION = "So when does it come?"


async def other_models_help(console: Console, client: Client) -> None:
    heading(
        console,
        "A conversation grows too long, and an answer is not good enough.",
        f"The agent {AGENT} has a summarizer and a judge, each on a model of its own.",
    )
    for message in (STORY, QUESTION):
        frames = [frame async for frame in client.run(AGENT, message, SESSION)]
        console.print(f"  It is told {len(message)} characters.", soft_wrap=True)
        for frame in frames:
            if told := _told(frame):
                console.print(f"  {told}", soft_wrap=True, markup=False)
    _check([frame.type for frame in frames])


def _told(frame: FrameView) -> str:
    data = frame.data
    match frame.type, data.get("purpose"):
        case "SideCallReplied", "compaction":
            return f"{data['provider']}/{data['model']} sums it up for {data['cost']} {data['currency']}."
        case "ModelReplied", _:
            return f"It answers: {data['message']['content']}"
        case "CriterionJudged", _:
            return "The judge is content." if data["met"] else f"The judge has it sent back: {data['reason']}"
        case _:
            return ""


def _check(kinds: list[str]) -> None:
    wanted = ["ContextCompacted", "AnswerSentBack", "RunCompleted"]
    if [kind for kind in kinds if kind in wanted] != wanted:
        raise StoryBroken(f"the run went another way: {', '.join(kinds)}")
    if "ModelFallbackUsed" in kinds:
        raise StoryBroken("calls of others were taken for a switch of the agent's own")
