"""lm-eval drives generation: a class task, live turns in rounds, a layer that one bad sample does not end (README.md).

`task` is the benchmark's, `messages_task` that of messages by themselves; `metrics` is what lm-eval prints at once.
`settings` knows what `--metadata` may say. `survive` stands between lm-eval and a model, `wire` asks over HTTP,
`preflight` whether anybody is there, and `window` knows what doesn't fit. `ending` sees to a run's last lines and exit
code. What these use of lm-eval that isn't public stands in lm_eval_tasks/README.md.
"""
