"""What may be asked of a run. Commands bring everything a decision needs; `decide` looks nothing up."""

from domain.command import Command as Command
from domain.commands.afterwards import NoteBlocked as NoteBlocked
from domain.commands.afterwards import NoteContinued as NoteContinued
from domain.commands.afterwards import NoteWaitEnded as NoteWaitEnded
from domain.commands.afterwards import ResolveTool as ResolveTool
from domain.commands.model import BeginModelCall as BeginModelCall
from domain.commands.model import ExhaustChain as ExhaustChain
from domain.commands.model import RecordModelFailure as RecordModelFailure
from domain.commands.model import RecordQueueing as RecordQueueing
from domain.commands.model import RecordReply as RecordReply
from domain.commands.model import RecordText as RecordText
from domain.commands.model import RetryModelCall as RetryModelCall
from domain.commands.model import SkipLink as SkipLink
from domain.commands.model import UseFallback as UseFallback
from domain.commands.run import AwaitApproval as AwaitApproval
from domain.commands.run import AwaitInput as AwaitInput
from domain.commands.run import CancelQueuedRun as CancelQueuedRun
from domain.commands.run import CancelRun as CancelRun
from domain.commands.run import CloseAbandoned as CloseAbandoned
from domain.commands.run import CompleteRun as CompleteRun
from domain.commands.run import CreateRun as CreateRun
from domain.commands.run import ExhaustAttempts as ExhaustAttempts
from domain.commands.run import FailRun as FailRun
from domain.commands.run import NoteChild as NoteChild
from domain.commands.run import Nudge as Nudge
from domain.commands.run import ReportUsage as ReportUsage
from domain.commands.run import RequestCancel as RequestCancel
from domain.commands.run import StartRun as StartRun
from domain.commands.side import SideCommand as SideCommand
from domain.commands.tool import AnswerToolCall as AnswerToolCall
from domain.commands.tool import InvokeTool as InvokeTool
from domain.commands.tool import RecordToolFailure as RecordToolFailure
from domain.commands.tool import RecordToolOutput as RecordToolOutput
from domain.commands.tool import RecordUnknownOutcome as RecordUnknownOutcome
from domain.commands.workflow import AnswerRequest as AnswerRequest
from domain.commands.workflow import WorkflowCommand as WorkflowCommand

ModelCommand = BeginModelCall | RecordQueueing | RecordText | RecordReply | RecordModelFailure
ChainCommand = RetryModelCall | SkipLink | UseFallback | ExhaustChain
AfterwardsCommand = ResolveTool | NoteContinued | NoteBlocked | NoteWaitEnded | AnswerRequest
"""What may be asked of a run that has ended, and of no other."""

RunCommand = (
    CreateRun
    | StartRun
    | ModelCommand
    | ChainCommand
    | SideCommand
    | WorkflowCommand
    | InvokeTool
    | RecordToolOutput
    | RecordToolFailure
    | AnswerToolCall
    | RecordUnknownOutcome
    | NoteChild
    | ReportUsage
    | Nudge
    | AwaitApproval
    | AwaitInput
    | RequestCancel
    | CompleteRun
    | FailRun
    | CancelRun
    | CloseAbandoned
    | CancelQueuedRun
    | ExhaustAttempts
    | AfterwardsCommand
)
