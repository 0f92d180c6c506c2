"""Plays a talk: the model under test answers, the model in the role `user` plays the part; without one, the part's own
lines do. The sample's store keeps the record; `judge.replies.inspect_log` reads the run from it.
"""

from __future__ import annotations

from pathlib import Path

from inspect_ai.model import GenerateConfig, Model, model_roles
from inspect_ai.solver import Generate, Solver, TaskState, solver

from helmbench.inspect.data import release
from helmbench.inspect.solver import chat, said
from judge.replies.inspect_log import TALK
from judge.replies.script import read_prompt
from judge.replies.talks import BUILT_IN, USER_SETTINGS
from judge.simulated_user import Playing

ROLE = "user"


def player() -> Model | None:
    """The model in the role `user`, or None.

    Raises:
        ValueError: several models in that role.
    """
    found = model_roles().get(ROLE)
    if isinstance(found, list):
        raise ValueError("helmbench: the role user names several models; run once with each (docs/running.md)")
    return found


def name_of(user: Model | None) -> str:
    return user.api.service_model_name() if user else BUILT_IN


@solver
def talk(dataset: str, condition: str | None = None, instruction: str = "") -> Solver:
    """Plays a part to its end. The record is stored after every reply: an interrupted sample shows how far it got."""
    tested = read_prompt(Path(condition), ()) if condition else None

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        found, user = release(dataset), player()
        part = found.parts[str(state.sample_id)]
        playing = Playing(part, found, name_of(user), state.epoch - 1, tested, instruction)
        while wants := playing.wants:
            if wants == "subject":
                state.messages = chat(playing.subject_request())
                state = await generate(state)
                playing.reply(*said(state.output))
                state.store.set(TALK, playing.talk().model_dump(mode="json"))
            else:
                assert user is not None  # the built-in user goes on by itself
                playing.hear(*await _answer(user, playing))
        state.store.set(TALK, playing.talk().model_dump(mode="json"))
        return state

    return solve


async def _answer(user: Model, playing: Playing) -> tuple[str | None, str]:
    """The simulated user's next message, or why there is none."""
    try:
        output = await user.generate(chat(playing.user_request()), config=GenerateConfig(**USER_SETTINGS))
    except Exception as error:  # providers raise anything; this talk isn't played, and the others go on
        return None, type(error).__name__
    return output.completion, ""
