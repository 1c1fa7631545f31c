"""Answers held against a criterion by a judge, on a binding of its own (CHAIN-13)."""

import json
from decimal import Decimal
from typing import Any

import pytest

from app.main import Host
from app.models.accounts import Account
from domain import events as e
from domain.agent import Link
from domain.events.side import (
    AnswerSentBack,
    CriterionJudged,
    SideCallReplied,
    SideCallStarted,
    SideFallbackUsed,
    SidePurpose,
)
from domain.failure import ErrorClass, FailureClass
from domain.ids import DEFAULT_TENANT, session_stream
from projections.run_record import record_of
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.supervision.crashing import CONTINUING, close_orphan, die, successor
from tests.supervision.one_database import database as database
from tracon import tool

DOWN = 'default = { status = { status = 503, message = "down" } }'
DRAFTS = 'script = [{ text = "Soon." }, { text = "On Tuesday." }]\ndefault = { text = "Later." }'
AGENT_CHAIN = {"ModelFallbackUsed", "ModelCallRetried", "ChainLinkSkipped", "ChainExhausted"}


def says(met: bool, reason: str = "It names a day.") -> str:
    verdict = json.dumps({"reason": reason, "met": met})
    return f"{{ text = '{verdict}' }}"


MET, UNMET = says(True), says(False, "It names no day.")
STRICT = f"script = [{UNMET}]\ndefault = {MET}"


def settings(*judges: str, agent: str = DRAFTS, rounds: int = 2, more: str = "", lines: str = "") -> str:
    """Agent `a`, whose answers are judged by model `j` of the providers `j1` and so on."""
    models = f"[providers.script.models.m]\n{agent}\n"
    for number, does in enumerate(judges, 1):
        models += f'[providers.j{number}]\ntype = "scripted"\n[providers.j{number}.models.j]\n{does}\n'
    others = ", ".join(f'{{ provider = "j{n}", model = "j" }}' for n in range(2, len(judges) + 1))
    agents = (
        f'[agents.a]\nprovider = "script"\nmodel = "m"\n{lines}\n'
        f'[agents.a.loop]\ncriterion = "It names a day."\nmax_rounds = {rounds}\n'
        f'judge = {{ provider = "j1", model = "j", fallbacks = [{others}] }}\n'
    )
    return scripted(models, agents, more)


async def run(host: Host, **more: Any) -> list[e.Recorded[e.Event]]:
    return await follow(host, await start(host, "a", **more))


async def test_an_answer_that_meets_the_criterion_is_the_answer(host_of: OpenHost) -> None:
    seen = await run(await host_of(settings(f"default = {MET}")))
    assert kinds(seen)[2:] == [
        "ModelCallStarted",
        "ModelReplied",
        "SideCallStarted",
        "SideCallReplied",
        "CriterionJudged",
        "RunCompleted",
    ]
    assert only(seen, CriterionJudged) == [CriterionJudged(met=True, reason="It names a day.")]


async def test_another_is_sent_back_with_the_judges_reason(host_of: OpenHost) -> None:
    """CHAIN-13: the model reads why, and its next answer is judged in its turn."""
    seen = await run(await host_of(settings(STRICT)))
    assert [one.met for one in only(seen, CriterionJudged)] == [False, True]
    (back,) = only(seen, AnswerSentBack)
    assert (back.round, "It names no day." in back.message) == (1, True)
    assert only(seen, e.RunCompleted)[0].answer == "On Tuesday."


async def test_the_model_reads_what_it_was_sent_back_with(host_of: OpenHost) -> None:
    agent = 'script = [{ text = "Soon." }]\ndefault = { echo = true }'
    seen = await run(await host_of(settings(STRICT, agent=agent)))
    assert only(seen, e.RunCompleted)[0].answer == only(seen, AnswerSentBack)[0].message


@pytest.mark.parametrize("rounds", [0, 2])
async def test_after_its_rounds_the_run_fails_with_the_judges_reason(host_of: OpenHost, rounds: int) -> None:
    """CHAIN-13: an error type of its own, in the class of a missing deliverable."""
    seen = await run(await host_of(settings(f"default = {UNMET}", rounds=rounds)))
    assert len(only(seen, e.ModelReplied)) == rounds + 1
    (failed,) = only(seen, e.RunFailed)
    assert (failed.error_type, failed.error_class) == ("criterion_not_met", ErrorClass.INVALID)
    assert failed.error.endswith(f"after {rounds} more rounds: It names no day.")


async def test_no_round_goes_beyond_the_turns_steps(host_of: OpenHost) -> None:
    seen = await run(await host_of(settings(f"default = {UNMET}", more="[turn]\nmax_steps = 1")))
    assert only(seen, e.RunFailed)[0].error_type == "criterion_not_met"


class TestBinding:
    """CHAIN-13: links of its own, and nothing of it in the agent's chain."""

    async def test_no_link_is_waited_for_longer_than_the_settings_allow(self, host_of: OpenHost) -> None:
        """CHAIN-2, CHAIN-13: `chain.retry_after_cap` is for these calls too."""
        busy = 'default = { status = { status = 500, retry_after = 1.5, message = "busy" } }'
        capped = "[chain]\nretry_after_cap = 0.1"
        seen = await run(await host_of(settings(busy, f"default = {MET}", more=capped)))
        assert len([one for one in only(seen, SideCallStarted) if one.provider == "j1"]) == 1
        assert len(only(seen, SideFallbackUsed)) == 1

    async def test_another_link_judges_when_the_first_is_down(self, host_of: OpenHost) -> None:
        priced = f'input_per_million = "1"\noutput_per_million = "1"\ndefault = {MET}'
        free = 'input_per_million = "0"\noutput_per_million = "0"\n' + DRAFTS
        seen = await run(await host_of(settings(DOWN, priced, agent=free)))
        assert only(seen, SideFallbackUsed) == [
            SideFallbackUsed(
                purpose=SidePurpose.JUDGE,
                primary=Link(provider="j1", model="j"),
                fallback=Link(provider="j2", model="j"),
                failure_class=FailureClass.UNAVAILABLE,
                reason="it answered 503: down",
            )
        ]
        (replied,) = only(seen, SideCallReplied)
        assert (replied.provider, replied.model) == ("j2", "j")
        assert replied.cost == Decimal(replied.usage.total) / 1_000_000
        record = record_of(seen)
        assert record is not None
        assert (record.provider, record.model_id) == ("script", "m")
        assert Decimal(record.cost or 0) == replied.cost
        assert not AGENT_CHAIN & {*kinds(seen)}

    async def test_a_link_that_was_left_is_not_asked_again_in_the_next_round(self, host_of: OpenHost) -> None:
        seen = await run(await host_of(settings(DOWN, STRICT)))
        assert [one.provider for one in only(seen, SideCallStarted)] == ["j1", "j2", "j2"]

    @pytest.mark.parametrize("words", ['"It is fine."', '\'{"met": "maybe"}\''], ids=["prose", "half"])
    async def test_words_that_are_no_verdict_are_asked_for_again_and_then_elsewhere(
        self, host_of: OpenHost, words: str
    ) -> None:
        """A reply like that is paid for, and no fault of its provider."""
        host = await host_of(settings(f"default = {{ text = {words} }}", f"default = {MET}"))
        seen = await run(host)
        assert [one.provider for one in only(seen, SideCallStarted)] == ["j1", "j1", "j2"]
        assert [one.flaw is None for one in only(seen, SideCallReplied)] == [False, False, True]
        assert host.services.circuits.health(Account("j1")).consecutive_failures == 0

    @pytest.mark.parametrize("behaviour", ["status = 401", "status = 404", "content_filter = true"])
    async def test_what_ends_a_chain_ends_this_one(self, host_of: OpenHost, behaviour: str) -> None:
        """CHAIN-3: the classes mean the same to it."""
        seen = await run(await host_of(settings(f"default = {{ {behaviour} }}", f"default = {MET}")))
        assert [one.provider for one in only(seen, SideCallStarted)] == ["j1"]
        assert only(seen, e.RunFailed)[0].error_type == "judge_unavailable"

    async def test_a_kept_verdict_is_given_again_and_costs_nothing(self, host_of: OpenHost) -> None:
        """BREAK-3: it passes the cache of an agent that wants one."""
        agent = 'default = { text = "On Tuesday." }'
        judge = f'input_per_million = "1"\noutput_per_million = "1"\ndefault = {MET}'
        host = await host_of(settings(judge, agent=agent, lines="cache_replies = true"))
        first, second = [only(await run(host), SideCallReplied)[0] for _ in range(2)]
        assert (first.cached, second.cached) == (False, True)
        assert (second.cost, second.usage.total) == (Decimal(0), 0)

    async def test_a_reply_of_no_use_is_not_had_again_from_the_cache(self, host_of: OpenHost) -> None:
        judge = f'script = [{{ text = "It is fine." }}]\ndefault = {MET}'
        seen = await run(await host_of(settings(judge, lines="cache_replies = true")))
        assert [one.cached for one in only(seen, SideCallReplied)] == [False, False]
        assert only(seen, CriterionJudged)[0].met

    async def test_a_verdict_in_a_fence_is_one(self, host_of: OpenHost) -> None:
        fenced = '```json\\n{\\"met\\": true, \\"reason\\": \\"It does.\\"}\\n```'
        seen = await run(await host_of(settings(f'default = {{ text = "{fenced}" }}')))
        assert only(seen, CriterionJudged) == [CriterionJudged(met=True, reason="It does.")]

    async def test_an_answer_that_nobody_can_judge_is_not_given_for_a_good_one(
        self, host_of: OpenHost
    ) -> None:
        seen = await run(await host_of(settings(DOWN, DOWN)))
        (failed,) = only(seen, e.RunFailed)
        assert (failed.error_type, failed.error_class) == ("judge_unavailable", ErrorClass.PROVIDER)
        assert "nobody could judge the answer: provider j1 failed" in failed.error
        assert (failed.refunded, failed.fallbacks_taken) == (False, ())

    async def test_a_judge_that_is_not_heard_of_is_waited_for_until_the_deadline(
        self, host_of: OpenHost
    ) -> None:
        """CLASS-2: the last link has all the time that the run has, and no more."""
        host = await host_of(settings("default = { silent = true }", more='[turn]\ntimeout = "300ms"'))
        seen = await run(host)
        assert only(seen, e.RunFailed)[0].error_type == "deadline_exceeded"
        assert "CriterionJudged" not in kinds(seen)

    async def test_a_cancel_gives_the_call_up(self, host_of: OpenHost) -> None:
        """CANCEL-3."""
        host = await host_of(settings("default = { silent = true }"))
        run_id = await start(host, "a")
        await follow(host, run_id, SideCallStarted)
        await host.services.runs.cancel(DEFAULT_TENANT, run_id)
        seen = await follow(host, run_id)
        assert only(seen, e.RunCancelled)[0].model_call == Link(provider="j1", model="j")
        assert "CriterionJudged" not in kinds(seen)


async def test_no_judge_is_asked_when_the_budget_is_spent(host_of: OpenHost) -> None:
    """BUDGET-2: a verdict is a call like any other, and what it costs counts."""
    agent = 'default = { text = "Soon.", usage = { input_tokens = 50, output_tokens = 50 } }'
    verdict = f"default = {UNMET[:-2]}, usage = {{ input_tokens = 60, output_tokens = 0 }} }}"
    for tokens, judged in ((100, 0), (150, 1)):
        more = f"[agent_graph]\nmax_total_tokens = {tokens}"
        seen = await run(await host_of(settings(verdict, agent=agent, more=more)))
        assert kinds(seen).count("CriterionJudged") == judged
        assert kinds(seen).count("ModelReplied") == 1
        assert only(seen, e.RunFailed)[0].error_type == "run_budget_exceeded"


class TestOtherRules:
    """How the criterion meets deliverables, schemas, and answers that are carried on (CHAIN-8, CHAIN-9)."""

    async def test_an_answer_that_its_limit_ended_is_judged_when_it_is_whole(self, host_of: OpenHost) -> None:
        agent = 'script = [{ length = "On " }, { text = "Tuesday." }]'
        seen = await run(await host_of(settings(f"default = {MET}", agent=agent)))
        assert kinds(seen).count("CriterionJudged") == 1
        assert only(seen, e.RunCompleted)[0].answer == "On Tuesday."

    async def test_the_deliverable_comes_before_the_judge(self, host_of: OpenHost) -> None:
        @tool(name="file", effect="write")
        def file() -> str:
            """File it."""
            return "filed"

        files = '{ tool_call = { name = "file" } }'
        agent = f'script = [{{ text = "Soon." }}, {files}, {{ text = "On Tuesday." }}]'
        lines = 'tools = ["file"]\ndeliverable_tool = "file"'
        host = await host_of(settings(f"default = {MET}", agent=agent, lines=lines), tools=(file,))
        seen = await run(host)
        told = [kind for kind in kinds(seen) if kind in ("TurnNudged", "CriterionJudged")]
        assert told == ["TurnNudged", "CriterionJudged"]

    async def test_each_answer_must_meet_the_schema_before_it_is_judged(self, host_of: OpenHost) -> None:
        """Nudges are counted over the turn: the one that there is was given in the first round."""
        agent = "script = [{ text = 'Soon.' }, { text = '{}' }]\ndefault = { text = 'Tuesday.' }"
        lines = 'response_schema = { type = "object" }'
        seen = await run(await host_of(settings(STRICT, agent=agent, lines=lines)))
        told = [kind for kind in kinds(seen) if kind in ("TurnNudged", "CriterionJudged", "AnswerSentBack")]
        assert told == ["TurnNudged", "CriterionJudged", "AnswerSentBack"]
        assert only(seen, e.RunFailed)[0].error_type == "missing_deliverable"

    async def test_who_watches_sees_every_round(self, host_of: OpenHost) -> None:
        """What was streamed is not taken back; the events say what became of it."""
        seen = await run(await host_of(settings(STRICT)), streaming=True)
        spoken = [one for one in kinds(seen) if one in ("TextDelta", "CriterionJudged", "AnswerSentBack")]
        assert [spoken[i] for i in range(len(spoken)) if i == 0 or spoken[i] != spoken[i - 1]] == [
            "TextDelta",
            "CriterionJudged",
            "AnswerSentBack",
            "TextDelta",
            "CriterionJudged",
        ]

    async def test_the_rounds_are_part_of_the_session(self, host_of: OpenHost) -> None:
        host = await host_of(settings(STRICT))
        seen = await run(host, session_id="rounds")
        turns = await host.services.log.read_stream(session_stream(DEFAULT_TENANT, "rounds"))
        (turn,) = only(turns, e.SessionTurnAdded)
        assert [message.content for message in turn.messages] == [
            "hello",
            "Soon.",
            only(seen, AnswerSentBack)[0].message,
            "On Tuesday.",
        ]

    async def test_the_criterion_may_name_parameters(self, host_of: OpenHost) -> None:
        toml = settings(f"default = {MET}", lines='parameters = { day = "Tuesday" }')
        host = await host_of(toml.replace('It names a day."\nmax', 'It names {{ day }}."\nmax'))
        seen = await run(host, parameters={"day": "Friday"})
        definition = only(seen, e.RunStarted)[0].definition
        assert definition is not None
        assert definition.loop is not None
        assert definition.loop.criterion == "It names Friday."


async def test_a_run_that_died_while_it_was_judged_goes_on(host_of: OpenHost) -> None:
    """CONT-1: another host begins the turn anew, and its answer is judged there."""
    more = CONTINUING.format(attempts=1)
    host = await host_of(settings("default = { silent = true }", more=more))
    other = await host_of(settings(f"default = {MET}", more=more))
    run_id = await start(host, "a", session_id="died")
    await follow(host, run_id, SideCallStarted)
    await die(host)
    await close_orphan(other, run_id)
    seen = await follow(other, await successor(other, run_id))
    assert kinds(seen)[-2:] == ["CriterionJudged", "RunCompleted"]
