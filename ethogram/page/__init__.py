"""
Runs as one page that a browser draws, with nothing else to load.

`ethogram.page.content` is what the page shows, `ethogram.page.build` the page itself. The parts beside them
(``page.html``, ``*.css``, ``*.js``) are written by hand and put together as they are.
"""
