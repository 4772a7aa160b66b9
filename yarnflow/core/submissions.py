"""What a submission is known by where its bytes need not travel again."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import JobSubmission


def submission_digest(submission: JobSubmission) -> str:
    """SHA-256 of all that a submission says, in hexadecimal; the order of mappings does not matter."""
    rest = replace(submission, configuration=dict(sorted(submission.configuration.items())), files={})
    digest = hashlib.sha256(to_json(rest).encode("ascii"))
    for name, content in sorted(submission.files.items()):
        # with lengths, so that no two sets of files read alike
        encoded = name.encode()
        digest.update(b"\n%d %d " % (len(encoded), len(content)) + encoded)
        digest.update(content)
    return digest.hexdigest()
