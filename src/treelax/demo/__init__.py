"""The web page: scores, noise, soft trees and best trees of a sentence, live.

`treelax demo` starts it. It needs fastapi and uvicorn: ``pip install 'treelax[demo]'``.

=============  ================================================================
`messages`     what the page sends and receives
`sources`      where scores come from: zeros, random numbers
`models`       and trained models
`answers`      from a request to its reply
`problems`     what is wrong with a request, in one line
`limits`       size of requests, how many at once, for which host; headers of every reply
`app`          the addresses
`server`       the socket, and how long and how many clients may wait
`static/`      the page itself: HTML, CSS and JavaScript, without a build step
=============  ================================================================
"""
