"""The REST interface of a cluster on YARN: through YARN's proxy, and with tokens."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import urlsplit

from integration.conftest import wait_until
from integration.rest.client import Rest
from integration.yarn.jobs import Yarn


def proxied(yarn: Yarn, application: str) -> Rest:
    """A client without a token that asks through the proxy, as the application's tracking URL says."""

    def tracking_url() -> str:
        url = str(yarn.hadoop.yarn_application(application)["trackingUrl"])
        return url.rstrip("/") if "/proxy/" in url else ""

    url = wait_until(tracking_url, f"the tracking URL of {application}")

    def page() -> str:
        # skein's own, before the JobManager has told it where it serves
        start = Rest(url).ask("GET", "/")
        found = re.search(rb'http-equiv="refresh" content="0; url=([\w/]+)/"', start.body)
        return found[1].decode() if start.status == 200 and found else ""

    # which sends a browser on to where skein passes requests to the JobManager
    return Rest(f"{url}/{wait_until(page, 'the page of the JobManager')}")


def with_token(yarn: Yarn, where: str, *options: str) -> Rest:
    """A client beside the proxy, as ``yarnflow token`` says."""
    told = yarn.run("token", where, *options)
    assert told.process.returncode == 0, told.stderr
    (address,) = [line.split()[-1] for line in told.stderr.splitlines() if line.startswith("REST interface:")]
    return Rest(address, told.stdout.strip())


def check_reading(yarn: Yarn, application: str, job_id: str) -> None:
    """Whom the proxy lets in may read all and write nothing; anybody else needs a token."""
    proxy = proxied(yarn, application)
    page = proxy.ask("GET", "/")
    assert page.status == 200 and b"dashboard/app.js" in page.body
    assert proxy.ask("GET", "/dashboard/app.js").status == 200
    assert [job["jid"] for job in proxy.get("/jobs/overview")["jobs"]] == [job_id]
    assert proxy.get(f"/jobs/{job_id}")["state"] == "RUNNING"
    for method, path in (("GET", "yarn-cancel"), ("PUT", "yarn-cancel"), ("PUT", "yarn-stop")):
        assert proxy.ask(method, f"/jobs/{job_id}/{path}", {}).status == 401, path
    reader = with_token(yarn, f"-Dyarn.application.id={application}", "--read-only")
    # the proxy is on this machine, too: its address alone is not enough
    assert replace(reader, token="").ask("GET", "/jobs").status == 401
    assert reader.state(job_id) == "RUNNING"
    assert reader.ask("PATCH", f"/jobs/{job_id}").status == 403


def origin_of(rest: Rest) -> dict[str, str]:
    """What a browser says of the page it has from there."""
    parts = urlsplit(rest.url)
    return {"Origin": f"{parts.scheme}://{parts.netloc}", "Content-Type": "application/json"}
