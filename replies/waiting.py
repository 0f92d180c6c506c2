"""How long a server asks to be left alone; the judge's engine and the task's requests both keep to it."""

from __future__ import annotations

import email.utils
import re
import time


def retry_after(header: str | None) -> float:
    """The wait of a Retry-After header in seconds, given as such or as a date (RFC 9110, 10.2.3); 0 without one that
    can be read.
    """
    try:
        if re.fullmatch(r"\s*[\d.]+\s*", header or ""):
            return float(header or 0)
        return max(0.0, email.utils.parsedate_to_datetime(header or "").timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0
