# Sourced by checks that cannot always run.

# leave_out WHAT WHY: says that a check is left out. `scripts/test` repeats it at its end.
leave_out() {
    printf '\n── left out: %s (%s)\n' "$1" "$2"
    if [[ -n ${UNSPOOL_LEFT_OUT-} ]]; then
        printf '   %s: %s\n' "$1" "$2" >> "$UNSPOOL_LEFT_OUT"
    fi
}
