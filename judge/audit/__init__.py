"""An audit of a product's own conversations: `helmbench audit`.

- `logs`: reads and masks conversations, which stay in an unnamed file while the audit runs.
- `passes`: who is in danger and since when, how they were answered, and who was alarmed without reason.
- `audit`: the command, and its figures; `schema`: their shapes; `page`: the page for the product team.
"""
