"""git, as somebody whom it need not ask for a name."""

import subprocess


def git(folder, *arguments):
    """Run git in a folder; returns what it prints."""
    who = ["-c", "user.name=me", "-c", "user.email=me@example.com"]
    done = subprocess.run(
        ["git", *who, *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout
