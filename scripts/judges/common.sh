# Shared by the export validators: sample exports, and a Python with the validating packages.
# Needs a built program: that of `cargo build` or of the tests, or the one in UNSPOOL_PROGRAM.

samples=(
    claude-code/discovery-loop
    claude-code/subagents-parallel-and-background
    claude-code/subagents-nested
    claude-code/subagent-fails
    claude-code/question-answered
    claude-code/compaction-and-resume
    claude-code/interrupted-mid-tool
    claude-code/odd-output
    codex/exec-discovery-with-hooks
    gemini/subagents
    copilot/subagents-and-background-agent
    opencode/subagents-parallel-and-resumed
    ai-sdk/multi-step-interleaved
    rows/conversation-with-tools
)

# export_samples FORMAT FOLDER [--all]: exports every session of the samples, or of all fixtures.
export_samples() {
    local form=$1 folder=$2 case data program
    program=${UNSPOOL_PROGRAM:-${CARGO_TARGET_DIR:-target}/debug/unspool}
    if [[ ! -x $program ]]; then
        echo "${0##*/}: $program does not exist; build it with 'cargo build --profile test -p unspool'" >&2
        exit 2
    fi
    if [[ ${3-} == --all ]]; then
        mapfile -t samples < <(cd fixtures && find . -mindepth 2 -maxdepth 2 -type d -printf '%P\n' | sort)
    fi
    data=$(mktemp -d)
    for case in "${samples[@]}"; do
        rm -rf "$data/archive"
        # A single session is written into a folder only if the folder exists.
        mkdir -p "$folder/$case"
        HOME=$data "$program" --data "$data/archive" import "fixtures/$case" > /dev/null 2>&1
        # A fixture may have only empty sessions, which are not exported.
        HOME=$data "$program" --data "$data/archive" export --all --to "$form" -o "$folder/$case" > /dev/null 2> "$data/said" ||
            grep -q 'has no sessions' "$data/said" || { cat "$data/said" >&2; exit 1; }
    done
    rm -rf "$data"
}

# python_with NAME VERSION PACKAGES…: prints the path of a Python of at least that version with the
# packages, in a virtual environment below the temporary folder. Prints nothing on failure.
python_with() {
    local name=$1 version=$2 folder python
    shift 2
    folder=${TMPDIR:-/tmp}/unspool-judges-$(id -u)/$name
    if [[ ! -f $folder/complete ]]; then
        # pyenv has Pythons that are not on the PATH.
        for python in python3 python3.14 python3.13 python3.12 python3.11 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
            "$python" -c "import sys; sys.exit(sys.version_info < (${version/./, }))" 2> /dev/null && break
            python=
        done
        [[ -n $python ]] || return 0
        rm -rf "$folder"
        mkdir -p "$(dirname "$folder")"
        "$python" -m venv "$folder" > /dev/null 2>&1 || return 0
        timeout 300 "$folder/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@" > /dev/null 2>&1 || return 0
        touch "$folder/complete"
    fi
    echo "$folder/bin/python"
}
