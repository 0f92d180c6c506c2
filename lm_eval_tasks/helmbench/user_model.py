"""The language model that plays the users of talks: an OpenAI-compatible server, or `vllm:ORG/MODEL` or `hf:ORG/MODEL`
in this process. Its answers are kept like a judge's, so that a run that continues asks none of them again.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from judge.llm import batch, local
from judge.llm.asking import Stored
from judge.llm.budget import FREE, Budget
from judge.llm.engine import Endpoint, drive
from judge.llm.errors import EngineError
from judge.llm.questions import JudgeRequest
from judge.replies.talks import BUILT_IN, USER_SETTINGS
from judge.simulated_user import Playing


class UserModel:
    """`name`: as in `--metadata helmbench_user`; `url`: of its server, None for a local model; `where`: the folder of
    its answers.

    Raises:
        SystemExit: a server's model without an address, or an address that can't be used.
    """

    def __init__(self, metadata: Mapping[str, Any], where: Path) -> None:
        self.name, url = str(metadata["helmbench_user"]), metadata.get("helmbench_user_url")
        self.model = local.model_of(self.name)
        if not local.is_local(self.name) and not url:
            raise SystemExit(
                f"helmbench: helmbench_user is {self.name!r}; expected vllm:ORG/MODEL, hf:ORG/MODEL, or also "
                '"helmbench_user_url": "http://…/v1"'
            )
        try:
            self._endpoint = Endpoint(str(url), who="user") if url else None
        except ValueError as error:
            raise SystemExit(f"helmbench: helmbench_user_url: {error}") from None
        self._where, self._heard = where, False

    def speak(self, waiting: Sequence[Playing]) -> None:
        """Gives every talk that waits for its user the next message, or why there is none.

        Raises:
            SystemExit: the model has not written a single line and can't be used.
        """
        requests = [self._request(p) for p in waiting]
        try:
            self._ask(requests)
        except EngineError as problem:
            if not self._heard:
                raise SystemExit(f"helmbench: {problem}") from None
        stored = Stored(self._where)
        for playing, request in zip(waiting, requests, strict=True):
            answer = stored(request)
            said = None if isinstance(answer, str) else answer.label or ""
            self._heard = self._heard or said is not None
            playing.hear(said, "" if said is not None else str(answer).replace("_", " "))

    def _ask(self, requests: list[JudgeRequest]) -> None:
        if self._endpoint is None:
            local.answer(lambda: iter(requests), self._where, self.name)
            return
        with closing(batch.Log(self._where)) as log:
            replies = batch.Replies(self._where)
            with closing(Budget(self._where, replies.live, replies.elsewhere, FREE)) as budget:
                drive(batch.missing(requests, replies), log, self._endpoint, budget, len(requests))

    def _request(self, playing: Playing) -> JudgeRequest:
        body = {"model": self.model, "messages": playing.user_request(), **USER_SETTINGS}
        key = json.dumps({"body": body, "repeat": playing.repeat}, sort_keys=True)
        return JudgeRequest(hashlib.sha256(key.encode()).hexdigest()[:32], body, (), "", text=True)


@contextmanager
def user_of(metadata: Mapping[str, Any], cache: str | None) -> Iterator[UserModel | None]:
    """The user model of a run, or None for the built-in user. `cache`: lm-eval's; the answers are next to it, and
    without one they are kept for this run only.
    """
    if metadata.get("helmbench_user", BUILT_IN) == BUILT_IN:
        yield None
    elif cache:
        yield UserModel(metadata, Path(f"{cache}.users"))
    else:
        with tempfile.TemporaryDirectory(prefix="helmbench-user-") as folder:
            yield UserModel(metadata, Path(folder))
