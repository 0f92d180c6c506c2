"""The task of talks: a simulated user answers what the model under test says, in rounds over all talks at once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from lm_eval.api.instance import Instance

from dataset_builder.release import Release
from judge.replies.recorded import TALKS, identity
from judge.replies.script import ChatMessages
from judge.replies.talks import BUILT_IN, to_subject
from judge.rules.answers import conduct
from judge.simulated_user import Playing, estimated
from lm_eval_tasks.helmbench.layer import Layer
from lm_eval_tasks.helmbench.task import HelmbenchTask, log
from lm_eval_tasks.helmbench.user_model import UserModel, user_of


class TalksTask(HelmbenchTask):
    """Every part of the release once, or as often as `helmbench_repeats` says."""

    def samples(self, release: Release, wanted: dict[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
        """A row for each part, with what the model under test reads first."""
        self._parts, self._talks = release.parts, dict[str, list[Playing]]()
        rows = [
            {"id": p.id, "tiers": [wanted["tier"]], "evaluation": [], "polarity": p.polarity}
            | {"messages": to_subject(p, [p.lines[0].text], [])}
            for p in release.parts.values()
        ]
        self._user = str((self.config.metadata or {}).get("helmbench_user", BUILT_IN))
        log.warning("%s: %s", self.config.task, estimated([*release.parts.values()], release.prompts, self._user))
        return pa.Table.from_pylist(rows), identity(release, TALKS) | {"user": self._user}

    def _opening(self, doc: dict[str, Any]) -> ChatMessages:
        return to_subject(
            self._parts[doc["id"]], [doc["messages"][-1]["content"]], [], self._tested, self._system or ""
        )

    def _most(self, doc: dict[str, Any]) -> int:
        return self._parts[doc["id"]].turns

    def apply_filters(self) -> Any:
        """Plays every talk to its end, a batch of replies and a batch of the user's lines per round."""
        layer = self._layer
        if layer is None or self._template is None:
            raise SystemExit(f"{self.config.task}: talks need --apply_chat_template and a chat model")
        with user_of(self.config.metadata, getattr(layer.cache.db, "filename", None)) as user:
            begun = self._play(layer, user)
        self._keep_ends(layer)
        for i, one in begun:
            i.arguments = (*i.args, one.talk().model_dump(mode="json"))  # logged behind how the request ended
        return super(HelmbenchTask, self).apply_filters()

    def _play(self, layer: Layer, user: UserModel | None) -> list[tuple[Instance, Playing]]:
        """Every talk, played, with its first request."""
        name = user.model if user else BUILT_IN
        playing: list[tuple[Instance, Playing]] = []
        for i in self.instances:
            part = self._parts[i.doc["id"]]
            one = Playing(part, self._release, name, i.idx // part.turns, self._tested, self._system or "")
            self._talks.setdefault(part.id, []).append(one)
            playing.append((i, one))
            ended = layer.completion(i)
            one.reply(ended.text, ended.finish)
        number, begun = 1, playing
        while any(one.wants for _, one in playing):
            number += 1
            open_ = sum(one.wants is not None for _, one in playing)
            log.info("%s: round %d, %d of %d talks go on", self.config.task, number, open_, len(playing))
            while user and (waiting := [one for _, one in playing if one.wants == "user"]):
                user.speak(waiting)
            playing = [(self._asked(i, one), one) if one.wants else (i, one) for i, one in playing]
            asked = [i for i, one in playing if one.wants]
            layer(asked)
            for i, one in playing:
                if one.wants:
                    ended = layer.completion(i)
                    i.resps.append(ended.text)
                    self._instances.append(i)
                    one.reply(ended.text, ended.finish)
        return begun

    def _asked(self, last: Instance, one: Playing) -> Instance:
        """The request for a talk's next reply."""
        return Instance(
            request_type="generate_until",
            doc=last.doc,
            arguments=(self._render(one.subject_request(), self._template), dict(last.args[1])),
            idx=last.idx + 1,
            metadata=(last.task_name, last.doc_id, 1),
        )

    def process_results(self, doc: dict[str, Any], results: list[Any]) -> dict[str, Any]:
        """The share of replies that say something, and of talks that were played; a judge reads the rest."""
        if "bypass" in self._metric_fn_list:  # --predict_only
            return {"bypass": None}
        talks = [one.talk() for one in self._talks[doc["id"]]]
        ends = [(text, finish) for t in talks for text, finish in zip(t.turns, t.finish, strict=True)]
        answered = [
            not str(finish or "").startswith("error") and conduct(text, finish) is None for text, finish in ends
        ]
        return {"answered": sum(answered) / len(answered), "played": sum(t.played for t in talks) / len(talks)}
