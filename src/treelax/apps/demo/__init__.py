"""The web page of `treelax demo`: scores, noise, soft trees and best trees of a sentence, live.

It needs fastapi and uvicorn, which the extra ``demo`` installs. `messages` says what page and server
exchange, `score_sources` where scores come from; `answers` computes replies, `app` guards and serves
them, `server` listens; ``static/`` is the page, HTML, CSS and JavaScript without a build step.
"""
