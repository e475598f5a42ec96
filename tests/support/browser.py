"""Pages in Debian's chromium, without a network."""

import json
import re
import shutil
import subprocess

BROWSER = shutil.which("chromium")

# A window is no narrower than 500 pixels, a frame is.
_FRAME = """<title></title><script>addEventListener("message", event => document.title = JSON.stringify(event.data))</script>
<iframe src="probed.html" style="width:{width}px;height:{height}px;border:0"></iframe>"""


def draw(folder, page, probe, width, height):
    """Draws a page in a frame of so many pixels; what its script `probe` posts to the parent, and what the browser logs.

    folder   for its files; empty or not
    page     the page's text; `probe` is added to its end
    """
    (folder / "probed.html").write_text(page + probe)
    (folder / "frame.html").write_text(_FRAME.format(width=width, height=height))
    run = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND",
         "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}", f"--window-size=1400,{height}",
         "--virtual-time-budget=10000", "--dump-dom", (folder / "frame.html").as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )
    return json.loads(re.search(r"<title>(.*?)</title>", run.stdout).group(1).replace("&amp;", "&")), run.stderr
