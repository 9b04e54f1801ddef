"""Validates ATIF trajectories with Harbor's validator (or with `atif` without Harbor), then checks
what Harbor does not cover: that references resolve, and that the order of a step's parts can be
restored from its `extra`.

usage: trajectories.py harbor|atif FILE…
"""

import json
import sys

BETWEEN = "\n\n"


def harbor(data):
    from harbor.utils.trajectory_validator import TrajectoryValidator

    validator = TrajectoryValidator()
    validator.validate(data)
    return validator.errors


def atif(data):
    from atif import Trajectory

    try:
        Trajectory.model_validate(data)
    except Exception as error:
        return [str(error)]
    return []


def rebuilt(text, parts, kinds):
    """Splits a joined text into its parts."""
    pieces = []
    at = 0
    for part in parts:
        if part["kind"] in kinds and part["chars"] > 0:
            if at > 0:
                if text[at : at + len(BETWEEN)] != BETWEEN:
                    return None
                at += len(BETWEEN)
            pieces.append(text[at : at + part["chars"]])
            at += part["chars"]
    return pieces if at == len(text) else None


def own(data, where, problems, counts):
    inside = {sub.get("trajectory_id") for sub in data.get("subagent_trajectories") or []}
    referred = set()
    for step in data["steps"]:
        here = f"{where}.steps[{step['step_id']}]"
        counts["steps"] += 1
        parts = step["extra"]["unspool"].get("parts", [])
        if step["source"] == "agent":
            counts["calls"] += len(step.get("tool_calls") or [])
            if rebuilt(step["message"], parts, {"text"}) is None:
                problems.append(f"{here}: the texts cannot be told apart")
            if rebuilt(step.get("reasoning_content") or "", parts, {"reasoning"}) is None:
                problems.append(f"{here}: the thoughts cannot be told apart")
            called = [call["tool_call_id"] for call in step.get("tool_calls") or []]
            if called != [part["call_id"] for part in parts if part["kind"] == "tool"]:
                problems.append(f"{here}: the calls have no place in the order")
        for result in (step.get("observation") or {}).get("results", []):
            for ref in result.get("subagent_trajectory_ref") or []:
                referred.add(ref["trajectory_id"])
    for lost in referred ^ inside:
        problems.append(f"{where}: {lost} is referred to or inside, and not both")
    counts["sub-agents"] += len(inside)
    for sub in data.get("subagent_trajectories") or []:
        own(sub, f"{where}/{sub['trajectory_id']}", problems, counts)


def main():
    judge = {"harbor": harbor, "atif": atif}[sys.argv[1]]
    bad = 0
    counts = {"steps": 0, "calls": 0, "sub-agents": 0}
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        problems = list(judge(data))
        if not problems:
            own(data, "trajectory", problems, counts)
        for problem in problems:
            print(f"{path}: {problem}")
        bad += bool(problems)
    said = ", ".join(f"{count} {what}" for what, count in counts.items())
    print(f"atif ({sys.argv[1]}): {len(sys.argv) - 2 - bad} of {len(sys.argv) - 2} trajectories are valid; {said}")
    if bad or len(sys.argv) == 2:
        sys.exit(1)


main()
