# What the judges of exports share: samples to judge, and a Python with the packages that judge them.
# Needs: the program, as `cargo build` or the tests leave it (UNSPOOL_PROGRAM names another).

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

# export_samples FORM FOLDER [--all]: every session of the samples, or of all fixtures, in a form.
export_samples() {
    local form=$1 folder=$2 case data program
    program=${UNSPOOL_PROGRAM:-${CARGO_TARGET_DIR:-target}/debug/unspool}
    if [[ ! -x $program ]]; then
        echo "${0##*/}: there is no $program; build it with 'cargo build --profile test -p unspool'" >&2
        exit 2
    fi
    if [[ ${3-} == --all ]]; then
        mapfile -t samples < <(cd fixtures && find . -mindepth 2 -maxdepth 2 -type d -printf '%P\n' | sort)
    fi
    data=$(mktemp -d)
    for case in "${samples[@]}"; do
        rm -rf "$data/archive"
        # One session goes into a folder only where there is one.
        mkdir -p "$folder/$case"
        HOME=$data "$program" --data "$data/archive" import "fixtures/$case" > /dev/null 2>&1
        # An agent that was only warmed up leaves nothing that could be exported.
        HOME=$data "$program" --data "$data/archive" export --all --to "$form" -o "$folder/$case" > /dev/null 2> "$data/said" ||
            grep -q 'has no sessions' "$data/said" || { cat "$data/said" >&2; exit 1; }
    done
    rm -rf "$data"
}

# python_with NAME VERSION PACKAGES…: a Python of at least that version with the packages, in an
# environment of its own below the temporary folder. Prints nothing where there can be none.
python_with() {
    local name=$1 version=$2 folder python
    shift 2
    folder=${TMPDIR:-/tmp}/unspool-judges-$(id -u)/$name
    if [[ ! -f $folder/complete ]]; then
        # pyenv has Pythons that no command leads to.
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
