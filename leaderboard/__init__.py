"""A scored run as it is handed in for the board: packed, verified, exported."""
