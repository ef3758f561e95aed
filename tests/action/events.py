"""Events of GitHub, with the variables that a runner sets beside them."""

import json
from dataclasses import dataclass, field, replace

OURS = "acme/kernels"
BASE_SHA, HEAD_SHA, MERGE_SHA = "b" * 40, "a" * 40, "c" * 40


@dataclass(frozen=True, kw_only=True)
class Event:
    name: str
    payload: object
    ref: str = "refs/heads/main"
    sha: str = HEAD_SHA
    base_ref: str = ""
    head_ref: str = ""
    attempt: int = 1
    run_id: int = 7001
    api: str = "http://127.0.0.1:9/api/v3"
    inputs: dict = field(default_factory=dict)
    self_hosted: bool = False

    def changed(self, **fields):
        return replace(self, **fields)

    def variables(self, folder):
        file = folder / "event.json"
        text = (
            self.payload if isinstance(self.payload, str) else json.dumps(self.payload)
        )
        file.write_text(text, encoding="utf-8")
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTOR": "somebody",
            "GITHUB_API_URL": self.api,
            "GITHUB_BASE_REF": self.base_ref,
            "GITHUB_EVENT_NAME": self.name,
            "GITHUB_EVENT_PATH": str(file),
            "GITHUB_HEAD_REF": self.head_ref,
            "GITHUB_REF": self.ref,
            "GITHUB_REF_NAME": self.ref.rpartition("/")[2],
            "GITHUB_REPOSITORY": OURS,
            "GITHUB_RUN_ATTEMPT": str(self.attempt),
            "GITHUB_RUN_ID": str(self.run_id),
            "GITHUB_RUN_NUMBER": "41",
            "GITHUB_SERVER_URL": "https://ghes.example",
            "GITHUB_SHA": self.sha,
            "GITHUB_WORKFLOW": "perf",
            "RUNNER_ENVIRONMENT": "self-hosted"
            if self.self_hosted
            else "github-hosted",
            "RUNNER_NAME": "runner-1",
        }

    def github(self, token):
        """Give the context `github` of expressions."""
        return {
            "token": token,
            "event": self.payload if isinstance(self.payload, dict) else {},
            "event_name": self.name,
            "ref": self.ref,
            "ref_name": self.ref.rpartition("/")[2],
            "repository": OURS,
            "run_attempt": self.attempt,
            "run_id": self.run_id,
            "sha": self.sha,
        }


def repository(name, number=1):
    owner = name.partition("/")[0]
    return {"id": number, "full_name": name, "owner": {"login": owner}}


def pull_request(*, head=OURS, draft=False, labels=(), action="synchronize", number=7):
    head_repository = repository(head, 1 if head == OURS else 2) if head else None
    payload = {
        "action": action,
        "number": number,
        "repository": repository(OURS),
        "pull_request": {
            "number": number,
            "draft": draft,
            "state": "open",
            "body": "",
            "labels": [{"name": name} for name in labels],
            "head": {"ref": "topic", "sha": HEAD_SHA, "repo": head_repository},
            "base": {"ref": "main", "sha": BASE_SHA, "repo": repository(OURS)},
        },
    }
    return Event(
        name="pull_request",
        payload=payload,
        ref=f"refs/pull/{number}/merge",
        sha=MERGE_SHA,
        base_ref="main",
        head_ref="topic",
    )


def fork(**fields):
    return pull_request(head="stranger/kernels", **fields)


def target(*, head=OURS):
    return pull_request(head=head).changed(
        name="pull_request_target", ref="refs/heads/main", sha=BASE_SHA
    )


def merge_group():
    queue = f"refs/heads/gh-readonly-queue/main/pr-7-{BASE_SHA}"
    payload = {
        "action": "checks_requested",
        "repository": repository(OURS),
        "merge_group": {
            "head_sha": HEAD_SHA,
            "head_ref": queue,
            "base_sha": BASE_SHA,
            "base_ref": "refs/heads/main",
        },
    }
    return Event(name="merge_group", payload=payload, ref=queue)


def push():
    payload = {
        "ref": "refs/heads/main",
        "before": "0" * 40,
        "after": HEAD_SHA,
        "repository": repository(OURS),
    }
    return Event(name="push", payload=payload)


def dispatch(**inputs):
    payload = {
        "inputs": inputs,
        "ref": "refs/heads/main",
        "repository": repository(OURS),
    }
    return Event(name="workflow_dispatch", payload=payload, inputs=inputs)


def schedule():
    return Event(name="schedule", payload={"schedule": "0 5 * * *"})


def workflow_run(*, head=OURS, conclusion="success", event="pull_request", pulls=True):
    own = head == OURS
    named = {
        "number": 7,
        "head": {"ref": "topic", "sha": HEAD_SHA},
        "base": {"ref": "main", "repo": {"url": f"https://ghes.example/repos/{OURS}"}},
    }
    payload = {
        "action": "completed",
        "repository": repository(OURS),
        "workflow_run": {
            "id": 7001,
            "run_number": 41,
            "run_attempt": 1,
            "event": event,
            "conclusion": conclusion,
            "head_sha": HEAD_SHA,
            "head_branch": "topic",
            "head_repository": repository(head, 1 if own else 2),
            "repository": repository(OURS),
            "pull_requests": [named] if own and pulls else [],
        },
    }
    return Event(name="workflow_run", payload=payload, sha=BASE_SHA, run_id=7002)
