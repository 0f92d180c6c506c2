"""Scored runs of strangers → a board. What a submission says of itself is never believed where it can be made again.

Left imports nothing to its right: schema, secrets, layout, archive, public ← verify ← submit ← exports ← board.

`schema`: the shapes of a submission, and what verifying it comes to.
`secrets`: what looks like a key or a password.
`layout`: where the bytes of a zip archive belong.
`archive`: `responses.zip`, written so that the same run gives the same bytes, and read as what a stranger sent.
`public`: what of a submission may be read by everybody: no withheld reply, no key, no path, no character that hides.
`verify`: a submission's folder → everything that is wrong with it.
`submit`: a scored run → a submission's folder, verified before it is there.
`exports`: a verified submission → the forms that others collect.
`board`: a folder of submissions → static pages.
"""
