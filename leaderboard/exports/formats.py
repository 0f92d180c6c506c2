"""The forms that a verified submission may leave in. A leaf that imports nothing of ours."""

from __future__ import annotations

from typing import Literal, get_args

Format = Literal["hub", "every-eval-ever", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
