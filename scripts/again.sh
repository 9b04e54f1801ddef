# Sourced by scripts/test: tests that drive processes and browsers may fail once on a busy machine.
# One that failed runs a second time, alone. If it passes then, the checks go on and their last lines
# name it as unstable; if it fails again, they fail.

# rust_tests ARGUMENTS: `cargo test ARGUMENTS`, and what failed once more.
rust_tests() {
    local output failed
    output=$(mktemp)
    printf '\n── cargo test %s\n' "$*"
    if cargo test "$@" --no-fail-fast 2>&1 | tee "$output"; then
        rm -f "$output"
        return
    fi
    mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$output" | sort -u)
    rm -f "$output"
    # Nothing was compiled, a test binary was killed, or this is no accident.
    [[ ${#failed[@]} -gt 0 && ${#failed[@]} -le 5 ]] || return 1
    printf '\n── once more: %s\n' "${failed[*]}"
    cargo test "$@" --no-fail-fast -- --exact --test-threads=1 "${failed[@]}" || return 1
    leave_out "unstable: ${failed[*]}" 'failed once, passed when it ran again alone'
}

# browser_tests: each file of e2e/, and what failed once more.
browser_tests() {
    local file failed=()
    for file in e2e/*.test.mjs; do
        printf '\n── node --test %s\n' "$file"
        node --test --test-concurrency=1 --test-reporter=spec "$file" || failed+=("$file")
    done
    [[ ${#failed[@]} -gt 0 ]] || return 0
    [[ ${#failed[@]} -le 3 ]] || return 1
    for file in "${failed[@]}"; do
        printf '\n── once more: %s\n' "$file"
        node --test --test-concurrency=1 --test-reporter=spec "$file" || return 1
        leave_out "unstable: $file" 'failed once, passed when it ran again'
    done
}
