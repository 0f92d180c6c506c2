"""HTTP for the runner and the judge engine: `client`, `waiting` (retries), `keys`, `addresses`, `usage`."""
