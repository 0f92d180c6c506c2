"""Submissions of scored runs → a leaderboard. What can be recomputed is never taken from the submission.

Imports point left: schema, secrets, public ← verify ← submit ← exports ← board.

`schema`: the shapes of a submission and of the result of verifying it.
`secrets`: what looks like a key or a password.
`public`: what everyone may read: no withheld reply, key, path or hidden character.
`verify`: a submission's folder → everything that is wrong with it.
`submit`: a scored run → a submission's folder, verified.
`exports`: a verified submission → the formats of the Hub, Every Eval Ever and spreadsheets.
`board`: a folder of submissions → static pages.
"""
