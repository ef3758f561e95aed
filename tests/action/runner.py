"""A runner of our own: composite actions and workflows, offline, in milliseconds.

It does what the real one does with what we use, and raises at everything else.
Beyond that it is strict: nothing that it prints, writes or hands on may hold the
token, and a summary above the limit is dropped, as the real one does.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from ruamel.yaml import YAML

from pytest_perfgate import __version__, cli
from tests.action.expressions import Unknown, filled, holds

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "ghs_" + "thisIsTheTokenThatNobodyMaySee0123456"
SUMMARY_LIMIT = 1024 * 1024
STEP_KEYS = {"name", "id", "if", "shell", "env", "run", "uses", "with"}
JOB_KEYS = {"name", "if", "needs", "runs-on", "timeout-minutes", "permissions"}
JOB_KEYS |= {"environment", "steps"}
WORKFLOW_KEYS = {"name", "on", "permissions", "concurrency", "jobs"}
FILES = ("OUTPUT", "ENV", "PATH", "STATE", "STEP_SUMMARY")
COMMAND = re.compile(r"^\s*::([\w-]+)(?: ([^:]*))?::(.*)$")
OLD_COMMAND = re.compile(r"##\[([\w.-]+)[^\]]*\]")


def load(path):
    return YAML(typ="safe").load(Path(path).read_text(encoding="utf-8"))


@dataclass(kw_only=True)
class Annotation:
    kind: str
    message: str
    file: str = ""
    title: str = ""


@dataclass(kw_only=True)
class Step:
    """What became of a step."""

    name: str
    outcome: str = "skipped"
    code: int | None = None
    outputs: dict = field(default_factory=dict)
    log: str = ""
    summary: str = ""
    annotations: list = field(default_factory=list)
    commands: list = field(default_factory=list)

    @property
    def context(self):
        outcome = {"outcome": self.outcome, "conclusion": self.outcome}
        return {"outputs": self.outputs, **outcome}


@dataclass(kw_only=True)
class Result:
    """What became of an action or of a job."""

    outcome: str = "success"
    outputs: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)
    fields: dict = field(default_factory=dict)

    def step(self, name):
        return next(step for step in self.steps if step.name == name)

    @property
    def log(self):
        return "".join(step.log for step in self.steps)

    @property
    def summary(self):
        return "".join(step.summary for step in self.steps)

    @property
    def annotations(self):
        return [one for step in self.steps for one in step.annotations]

    @property
    def commands(self):
        return [one for step in self.steps for one in step.commands]

    @property
    def ran(self):
        return [step.name for step in self.steps if step.outcome != "skipped"]


def read_file(text):
    """Read what a step wrote for the runner: NAME=VALUE, or a heredoc."""
    found, lines = {}, text.split("\n")
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        plain, heredoc = line.find("="), line.find("<<")
        if heredoc >= 0 and (plain < 0 or heredoc < plain):
            name, _, delimiter = line.partition("<<")
            value = []
            while lines and lines[0] != delimiter:
                value.append(lines.pop(0))
            assert lines, f"Matching delimiter not found {delimiter!r}"
            lines.pop(0)
            found[name] = "\n".join(value)
        else:
            assert plain > 0, f"Invalid format {line!r}"
            found[line[:plain]] = line[plain + 1 :]
    return found


def unescaped(text, *, in_property=False):
    if in_property:
        text = text.replace("%3A", ":").replace("%2C", ",")
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def obey(step):
    """Read the commands of a log; `stop-commands` ends that until its word comes."""
    stopped = ""
    for line in step.log.splitlines():
        found = COMMAND.match(line)
        name = found[1] if found else ""
        if stopped:
            stopped = "" if name == stopped else stopped
            continue
        step.commands += OLD_COMMAND.findall(line)
        if not found:
            continue
        step.commands.append(name)
        if name == "stop-commands":
            stopped = found[3]
        elif name in {"error", "warning", "notice"}:
            step.annotations.append(annotation(name, found[2] or "", found[3]))
    assert not stopped, "commands are still stopped at the end of the step"


def annotation(kind, properties, message):
    given = dict(one.split("=", 1) for one in properties.split(",") if one)
    given = {name: unescaped(value, in_property=True) for name, value in given.items()}
    return Annotation(
        kind=kind,
        message=unescaped(message),
        file=given.get("file", ""),
        title=given.get("title", ""),
    )


class Machine:
    """A runner with a workspace, in which one job's steps run one after the other."""

    def __init__(self, folder, event, *, environment=None, workspace=None):
        self.folder = folder
        self.workspace = workspace or folder / "workspace"
        self.temporary = folder / "temporary"
        for one in (self.workspace, self.temporary, folder / "home"):
            one.mkdir(parents=True, exist_ok=True)
        self.event = event
        self.given = environment or {}
        self.added = {}
        self.cancelled = False
        self.count = 0
        self.in_process = False

    def environment(self):
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "CI": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temporary),
            **self.event.variables(self.folder),
            **self.given,
            **self.added,
        }

    def context(self, **more):
        return {
            "github": self.event.github(TOKEN),
            "runner": {"temp": str(self.temporary)},
            "env": self.added,
            **more,
        }

    # -- steps

    def action(self, folder, given):
        """Run a composite action, as a step of a job would."""
        definition = load(folder / "action.yml")
        assert definition["runs"]["using"] == "composite"
        inputs = self.inputs(definition, given)
        result = Result()
        ids = {}
        for each in definition["runs"]["steps"]:
            context = self.context(inputs=inputs, steps=ids)
            step = self.step(each, context, result.outcome, action=folder)
            result.steps.append(step)
            if "id" in each:
                ids[each["id"]] = step.context
            if step.outcome == "failure":
                result.outcome = "failure"
        context = self.context(inputs=inputs, steps=ids)
        result.outputs = {
            name: filled(output["value"], context)
            for name, output in definition["outputs"].items()
        }
        self.keep_secret(result.outputs.values(), "the outputs of the action")
        return result

    def inputs(self, definition, given):
        unknown = set(given) - set(definition["inputs"])
        assert not unknown, f"the action has no input {unknown}"
        defaults = {
            name: filled(one.get("default", ""), self.context())
            for name, one in definition["inputs"].items()
        }
        return defaults | {name: str(value) for name, value in given.items()}

    def step(self, each, context, outcome, *, action=None):
        if set(each) - STEP_KEYS:
            raise Unknown(f"keys of a step: {set(each) - STEP_KEYS}")
        step = Step(name=each.get("name", each.get("id", "")))
        status = {
            "always": True,
            "cancelled": self.cancelled,
            "failure": outcome == "failure" and not self.cancelled,
            "success": outcome == "success" and not self.cancelled,
        }
        if holds(each.get("if", "success()"), context, status):
            own = {k: filled(v, context) for k, v in each.get("env", {}).items()}
            self.run(each, step, own, action)
        return step

    def run(self, each, step, own, action):
        if action is not None and each["shell"] != "bash":
            raise Unknown(f"shell: {each['shell']}")
        self.count += 1
        files = {name: self.folder / f"{name.lower()}-{self.count}" for name in FILES}
        for file in files.values():
            file.touch()
        environment = self.environment() | own
        environment |= {f"GITHUB_{name}": str(path) for name, path in files.items()}
        if action is not None:
            environment["GITHUB_ACTION_PATH"] = str(action)
        if step.name == "Measure":
            self.keep_secret(environment.values(), "the environment of Measure")
        execute = here if self.in_process and action == ROOT else self.bash
        step.code, step.log = execute(each["run"], environment)
        step.outcome = "failure" if step.code else "success"
        self.collect(step, files)

    def bash(self, text, environment):
        script = self.folder / f"step-{self.count}.sh"
        script.write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            check=False,
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def collect(self, step, files):
        obey(step)
        texts = {name: path.read_text("utf-8") for name, path in files.items()}
        step.outputs = read_file(texts["OUTPUT"])
        self.added |= read_file(texts["ENV"])
        assert not texts["PATH"]
        step.summary = texts["STEP_SUMMARY"]
        if len(step.summary.encode()) > SUMMARY_LIMIT:
            step.summary = ""
        self.keep_secret([step.log, *texts.values()], f"what {step.name} wrote")

    def keep_secret(self, texts, where):
        assert not any(TOKEN in text for text in texts), f"{where} holds the token"


def here(text, environment):
    """Run a step of our action in this process: quicker by a second for each."""
    found = re.search(r"/\.github/action/(prepare|step)\.(?:sh|py)\"(?: (\w+))?$", text)
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", buffering=1) as log,
        mock.patch.dict(os.environ, environment, clear=True),
        redirected(log),
    ):
        code = prepare() if found[1] == "prepare" else cli.main(["action", found[2]])
        log.seek(0)
        return code, log.read()


def prepare():
    """Run what prepare.sh runs, with a Python that is known already."""
    spec = importlib.util.spec_from_file_location(
        "prepare", ROOT / ".github" / "action" / "prepare.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["prepare"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    known = module.Python(
        path=os.environ.get("REPLAY_PYTHON", sys.executable),
        version=sys.version_info[:3],
        plugin=__version__,
    )
    Path(os.environ["GITHUB_OUTPUT"]).write_text("verdict=error\n")
    if os.environ["PERFGATE_MODE"] == "comment":
        Path(os.environ["GITHUB_OUTPUT"]).write_text("")
    with mock.patch.object(module, "probe", return_value=known):
        try:
            module.main()
        except SystemExit as end:
            return end.code


@contextlib.contextmanager
def redirected(log):
    """Let everything that this process and its children print go to a file."""
    sys.stdout.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        for number in kept:
            os.dup2(log.fileno(), number)
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)


@dataclass(kw_only=True)
class Store:
    """Artifacts of one run, kept in a folder."""

    folder: Path

    def upload(self, name, source):
        source = Path(source)
        kept = [
            path
            for path in (source.rglob("*") if source.is_dir() else [source])
            if path.is_file()
            and not any(
                part.startswith(".") for part in path.relative_to(source.parent).parts
            )
        ]
        for path in kept:
            inside = path.relative_to(source) if source.is_dir() else path.name
            target = self.folder / name / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        return bool(kept)

    def download(self, pattern, target):
        for source in sorted(self.folder.glob(pattern)):
            shutil.copytree(source, Path(target) / source.name, dirs_exist_ok=True)


class Workflow:
    """Runs the jobs of a workflow file, each on a machine of its own.

    Actions of others are stubs: checkout copies a prepared clone, artifacts live in
    a folder. Anything else that is used is an action of ours.
    """

    def __init__(self, path, folder, event, *, checkout=None, environment=None):
        self.definition = load(path)
        if set(self.definition) - WORKFLOW_KEYS:
            raise Unknown(f"keys of a workflow: {set(self.definition) - WORKFLOW_KEYS}")
        self.folder = folder
        self.event = event
        self.checkout = checkout
        self.environment = environment or {}
        self.store = Store(folder=folder / "artifacts")
        self.jobs = {}

    def run(self):
        jobs = dict(self.definition["jobs"])
        while jobs:
            ready = [
                name for name, job in jobs.items() if not set(needs(job)) & set(jobs)
            ]
            assert ready, "jobs that wait for each other"
            for name in ready:
                self.jobs[name] = self.job(name, jobs.pop(name))
        return self.jobs

    def job(self, name, job):
        if set(job) - JOB_KEYS:
            raise Unknown(f"keys of a job: {set(job) - JOB_KEYS}")
        before = {other: self.jobs[other] for other in needs(job)}
        machine = Machine(self.folder / name, self.event, environment=self.environment)
        machine.in_process = True
        known = {
            other: {"result": one.outcome, "outputs": one.outputs}
            for other, one in before.items()
        }
        outcomes = [one.outcome for one in before.values()]
        status = {
            "always": True,
            "cancelled": False,
            "failure": "failure" in outcomes,
            "success": all(one == "success" for one in outcomes),
        }
        context = machine.context(needs=known)
        if not holds(job.get("if", "success()"), context, status):
            return Result(outcome="skipped")
        return self.steps(job["steps"], machine, known)

    def steps(self, steps, machine, known):
        result, ids = Result(), {}
        for each in steps:
            context = machine.context(needs=known, steps=ids, inputs=self.event.inputs)
            step = (
                self.use(each, context, result, machine)
                if "uses" in each
                else machine.step(each, context, result.outcome)
            )
            result.steps.append(step)
            if "id" in each:
                ids[each["id"]] = step.context
            if step.outcome == "failure":
                result.outcome = "failure"
        return result

    def use(self, each, context, result, machine):
        name = each["uses"].partition("@")[0]
        step = Step(name=each.get("id", name))
        success = result.outcome == "success"
        status = {"always": True, "cancelled": False}
        status |= {"success": success, "failure": not success}
        if not holds(each.get("if", "success()"), context, status):
            return step
        given = {k: filled(v, context) for k, v in each.get("with", {}).items()}
        stubs = {
            "actions/checkout": self.check_out,
            "actions/upload-artifact": self.upload,
            "actions/download-artifact": self.download,
        }
        if name in stubs:
            step.outcome = "success" if stubs[name](given, machine) else "failure"
            return step
        assert name in {"OWNER/pytest-perfgate", "./"}, name
        done = machine.action(ROOT, given)
        step.outcome, step.outputs, step.log = done.outcome, done.outputs, done.log
        step.summary, step.annotations = done.summary, done.annotations
        result.fields[name] = done
        return step

    def check_out(self, given, machine):
        assert set(given) <= {"persist-credentials", "fetch-depth", "ref"}
        shutil.copytree(self.checkout, machine.workspace, dirs_exist_ok=True)
        if (machine.workspace / ".git").exists():  # files have other inodes now
            refresh = ["git", "update-index", "-q", "--refresh"]
            subprocess.run(refresh, cwd=machine.workspace, check=True)
        return True

    def upload(self, given, machine):
        assert set(given) <= {"name", "path", "if-no-files-found"}
        found = self.store.upload(given["name"], given["path"])
        return found or given.get("if-no-files-found") != "error"

    def download(self, given, machine):
        assert set(given) <= {"name", "pattern", "path"}
        if "name" in given:
            source = self.store.folder / given["name"]
            if source.is_dir():
                shutil.copytree(source, given["path"], dirs_exist_ok=True)
            return source.is_dir()
        self.store.download(given["pattern"], given["path"])
        return True


def needs(job):
    named = job.get("needs", [])
    return [named] if isinstance(named, str) else named
